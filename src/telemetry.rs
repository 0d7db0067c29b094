//! Logs of the platform: to stderr, as text on a terminal and as JSON lines elsewhere.
//!
//! Nothing here prints data; stdout belongs to `cli::render`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Chooses what is logged: `ERRAND_LOG`, in the syntax of `RUST_LOG`.
pub const VARIABLE: &str = "ERRAND_LOG";

/// Starts logging. `default` is what is logged when the variable says nothing.
pub fn start(default: &str) {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start (tests in one process) leaves the first in place.
    let _ = if std::io::stderr().is_terminal() {
        builder.with_target(false).compact().try_init()
    } else {
        builder.json().flatten_event(true).with_span_list(false).try_init()
    };
}
