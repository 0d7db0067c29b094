//! What the platform tells of itself: logs, to stderr, as text on a terminal and as JSON lines
//! elsewhere; and in files of their own the traces, and whose trace a request is a part of.
//!
//! Nothing here prints data; stdout belongs to `cli::render`.

pub mod caller;
pub mod traces;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Chooses what is logged: `ERRAND_LOG`, in the syntax of `RUST_LOG`.
pub const VARIABLE: &str = "ERRAND_LOG";

/// Chooses how logs look, `text` or `json`, wherever they go.
pub const FORMAT_VARIABLE: &str = "ERRAND_LOG_FORMAT";

/// Starts logging. `default` is what is logged when the variable says nothing.
pub fn start(default: &str) {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start (tests in one process) leaves the first in place.
    let _ = if is_text(std::env::var(FORMAT_VARIABLE).ok().as_deref()) {
        builder.with_target(false).compact().try_init()
    } else {
        builder.json().flatten_event(true).with_span_list(false).try_init()
    };
}

/// What is no format chooses none.
fn is_text(format: Option<&str>) -> bool {
    match format {
        Some("text") => true,
        Some("json") => false,
        _ => std::io::stderr().is_terminal(),
    }
}
