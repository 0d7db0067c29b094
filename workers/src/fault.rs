//! Named points at which a test may stop the process dead. Compiled into debug builds only.
//!
//! `ERRAND_HOLD_AT=<point>` makes the process wait there for ever, after saying so on standard
//! error; the test then kills it with SIGKILL, which is what a crash is.

/// Where a process can be held, in the order in which a delivery meets them; the crash table in
/// ARCHITECTURE.md is made of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A delivery was received and decoded.
    Received,
    /// The claim on the agent is held.
    Claimed,
    /// The runner was started.
    Started,
    /// The agent has ended, its first result is saved.
    Saving,
    /// All results are saved.
    Saved,
    /// The post-run action is about to run.
    Acting,
    /// The next fact is stored, the delivery is not acknowledged.
    Published,
    /// The delivery is acknowledged.
    Acknowledged,
}

impl Point {
    /// Its name behind the step's in `ERRAND_HOLD_AT`: `step:point`.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Claimed => "claimed",
            Self::Started => "started",
            Self::Saving => "saving",
            Self::Saved => "saved",
            Self::Acting => "acting",
            Self::Published => "published",
            Self::Acknowledged => "acknowledged",
        }
    }
}

/// Waits here for ever when the test asked for it.
#[cfg(debug_assertions)]
pub async fn point(step: streams::phase::StepName, point: Point) {
    hold(&format!("{step}:{}", point.token())).await;
}

/// The same at a point that is in no step.
#[cfg(debug_assertions)]
pub async fn hold(here: &str) {
    let Some(wanted) = std::env::var_os("ERRAND_HOLD_AT") else { return };
    if wanted.to_str() == Some(here) {
        tracing::warn!(at = here, "holding for a test");
        std::future::pending::<()>().await;
    }
}

/// Release builds have no such points.
#[cfg(not(debug_assertions))]
#[expect(clippy::unused_async, reason = "the same signature in both builds")]
pub async fn point(_step: streams::phase::StepName, _point: Point) {}

/// Release builds have no such points.
#[cfg(not(debug_assertions))]
#[expect(clippy::unused_async, reason = "the same signature in both builds")]
pub async fn hold(_here: &str) {}
