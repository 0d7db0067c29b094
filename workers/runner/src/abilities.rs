//! What this machine permits a runner to do for keeping an agent apart: what `errand-runner probe`
//! tried and found, for the worker that decides and for people who ask why.

use serde::{Deserialize, Serialize};

/// What was tried; a failure comes with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// Running an agent as a user of its own.
    pub user: Result<Reach, String>,
    /// Running it inside Landlock.
    pub landlock: Result<(), String>,
    /// By what means an agent has no network.
    pub no_network: Result<Means, String>,
}

/// How another user comes to the run directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Every directory above them lets it pass.
    Open,
    /// They are mounted for it, in a mount namespace of its own.
    PrivateMounts,
}

/// What keeps an agent from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// A network namespace, with a loopback of its own.
    Namespace,
    /// A system call filter: only Unix sockets can be made.
    Seccomp,
    /// Landlock: no TCP. UDP is not covered.
    Landlock,
}

impl std::fmt::Display for Means {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Namespace => "a namespace with a loopback of its own",
            Self::Seccomp => "a filter that permits Unix sockets only",
            Self::Landlock => "Landlock, TCP only",
        })
    }
}
