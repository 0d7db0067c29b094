//! A server that is away for a while: once it was met, it is waited for.

use std::cell::Cell;
use std::time::Duration;

use serde_json::Value;

use crate::cli::Session;
use crate::client::Error;

/// The pause between tries, and the longest.
const AWAY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// How often a server that does answer, and fails, is asked again.
const FAILURES: u32 = 20;

/// The server of a session.
pub(super) struct Server<'s> {
    session: &'s Session,
    /// Whether it has answered once; before that, silence is an error.
    met: Cell<bool>,
    /// Whether somebody was told that it is away.
    told: Cell<bool>,
    /// Whether it had no room for lines when it was asked last.
    full: Cell<bool>,
}

impl<'s> Server<'s> {
    pub(super) fn of(session: &'s Session) -> Self {
        Self { session, met: Cell::new(false), told: Cell::new(false), full: Cell::new(false) }
    }

    /// Asks until there is an answer. What is asked must be harmless when it is asked again.
    pub(super) async fn call<T>(
        &self,
        ask: impl AsyncFn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (mut pause, mut failures) = (AWAY.0, 0);
        loop {
            match ask().await {
                Err(error) if self.met.get() && error.is_transient() && failures < FAILURES => {
                    failures += u32::from(matches!(error, Error::Refused { .. }));
                    if !self.told.replace(true) {
                        self.note(&format!("{error}; trying again"));
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(AWAY.1);
                }
                Err(error) => return Err(error),
                Ok(answer) => {
                    self.met.set(true);
                    if self.told.replace(false) {
                        self.note("the server is back");
                    }
                    return Ok(answer);
                }
            }
        }
    }

    /// Tells whoever watches when the server begins to refuse lines for want of room, and why, and
    /// when that is over.
    pub(super) fn has_room(&self, refusal: Option<&Value>) {
        if self.full.replace(refusal.is_some()) == refusal.is_some() {
            return;
        }
        match refusal {
            Some(reason) => self.note(&format!("the server takes no lines now: {reason}; waiting")),
            None => self.note("the server takes lines again"),
        }
    }

    fn note(&self, line: &str) {
        self.session.out.progress("");
        self.session.out.note(line);
    }
}
