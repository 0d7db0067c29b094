//! Exit codes: one table, printed by `errand --help` and relied upon by scripts.

use std::process::ExitCode;

use streams::code::{Blame, Code};
use streams::outcome::Status;

macro_rules! exits {
    ($($(#[doc = $meaning:literal])+ $name:ident = $code:literal,)*) => {
        /// How the program ends.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Exit {
            $($(#[doc = $meaning])+ $name = $code,)*
        }

        impl Exit {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($meaning),+),)* }
            }
        }
    };
}

exits! {
    /// It worked; a watched job completed.
    Done = 0,
    /// Something on this machine went wrong.
    Failed = 1,
    /// The command line was wrong.
    Usage = 2,
    /// The server refused the request (4xx).
    Refused = 3,
    /// There is no such thing.
    NotFound = 4,
    /// The server is unreachable or failed (5xx).
    Unreachable = 5,
    /// A watched job failed: the agent failed.
    AgentFailed = 10,
    /// A watched job failed: a limit of time struck.
    TimedOut = 11,
    /// A watched job was cancelled.
    Cancelled = 12,
    /// A watched job failed: the platform failed it.
    PlatformFailed = 13,
    /// Interrupted; a watched job goes on.
    Interrupted = 130,
}

impl Exit {
    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The end of a job that has this status and, unless it completed, this code.
    pub fn of_job(status: Status, code: Option<Code>) -> Self {
        match (status, code.map(Code::blame)) {
            (Status::Completed, _) => Self::Done,
            (Status::Cancelled, _) | (_, Some(Blame::User)) => Self::Cancelled,
            (_, Some(Blame::Agent)) => Self::AgentFailed,
            (_, Some(Blame::Time)) => Self::TimedOut,
            (_, Some(Blame::Platform) | None) => Self::PlatformFailed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests;
