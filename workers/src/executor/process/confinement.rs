//! How agents are kept apart at this place: decided once, when a worker starts, from what is
//! wanted and from what the machine permits. Nothing falls back in silence to less than was asked
//! for.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

use errand_runner::Abilities;
pub use errand_runner::Network;
use errand_runner::abilities::{Means, Reach};

/// What the installation wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The best that can be had.
    #[default]
    Auto,
    /// A user of its own for each run; takes root.
    User,
    /// Landlock.
    Landlock,
    /// Nothing.
    None,
}

/// Users for agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// The first one's number.
    pub first: u32,
    /// How many there are.
    pub count: u32,
}

/// What agents get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// What keeps them apart.
    pub kind: Kind,
    /// Which network they see.
    pub network: Network,
    means: Option<Means>,
}

/// What keeps them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A user for each run, and how that one comes to its files.
    Users(IdRange, Reach),
    /// Landlock.
    Landlock,
    /// Nothing, as was asked for.
    Waived,
    /// Nothing, for these reasons.
    Impossible(String),
}

/// Why there can be no worker with what is wanted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runner gave no answer.
    #[error("cannot ask {runner} what this machine permits: {reason}")]
    Probe {
        /// The program.
        runner: String,
        /// What went wrong.
        reason: String,
    },
    /// Users cannot be had.
    #[error(
        "worker.sandbox is \"user\", but agents cannot be given users of their own: {0}; run the \
         worker as root, or use \"auto\""
    )]
    NoUser(String),
    /// Landlock cannot be had.
    #[error(
        "worker.sandbox is \"landlock\", but the kernel cannot do it: {0}; use Linux 6.2 or later \
         with Landlock enabled (lsm=landlock,…), or \"auto\""
    )]
    NoLandlock(String),
    /// The network cannot be kept away.
    #[error(
        "worker.network is \"none\", but agents cannot be kept from the network: {0}; run the \
         worker as root, or on a kernel with seccomp, or use \"host\""
    )]
    NoIsolation(String),
}

impl Default for IdRange {
    /// Above what distributions, containers and directories give out.
    fn default() -> Self {
        Self { first: 2_000_000_000, count: 4096 }
    }
}

impl Default for Confinement {
    fn default() -> Self {
        Self { kind: Kind::Waived, network: Network::Host, means: None }
    }
}

impl Confinement {
    /// Asks the runner what can be had for runs below `runs`, and decides. Makes nothing.
    pub fn find(
        wanted: Wanted,
        network: Network,
        ids: IdRange,
        runner: &Path,
        runs: &Path,
    ) -> Result<Self, Error> {
        let abilities = probe(runner, ids.first, runs).map_err(|error| Error::Probe {
            runner: runner.display().to_string(),
            reason: error.to_string(),
        })?;
        Self::decide(wanted, network, ids, abilities)
    }

    fn decide(
        wanted: Wanted,
        network: Network,
        ids: IdRange,
        abilities: Abilities,
    ) -> Result<Self, Error> {
        let kind = match (wanted, abilities.user, abilities.landlock) {
            (Wanted::None, _, _) => Kind::Waived,
            (Wanted::Auto | Wanted::User, Ok(reach), _) => Kind::Users(ids, reach),
            (Wanted::User, Err(reason), _) => return Err(Error::NoUser(reason)),
            (Wanted::Auto | Wanted::Landlock, _, Ok(())) => Kind::Landlock,
            (Wanted::Landlock, _, Err(reason)) => return Err(Error::NoLandlock(reason)),
            (Wanted::Auto, Err(user), Err(landlock)) => {
                Kind::Impossible(format!("{user}; Landlock: {landlock}"))
            }
        };
        let means = match (network, abilities.no_network) {
            (Network::Host, _) => None,
            (Network::None, Ok(means)) => Some(means),
            (Network::None, Err(reason)) => return Err(Error::NoIsolation(reason)),
        };
        Ok(Self { kind, network, means })
    }

    /// Why no job may have secrets here: another's agent could read them, and nobody said that
    /// this is all right.
    pub fn secrets_refused(&self) -> Option<String> {
        let Kind::Impossible(reasons) = &self.kind else { return None };
        Some(format!(
            "secrets are refused, because agents cannot be kept apart here ({reasons}): run the \
             worker as root or on a kernel with Landlock, or permit it with worker.sandbox = \
             \"none\""
        ))
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Users(IdRange { first, count }, reach) => {
                write!(f, "user ids {first}–{}", first + (count - 1))?;
                if *reach == Reach::PrivateMounts {
                    write!(f, ", private mounts")?;
                }
            }
            Kind::Landlock => write!(f, "Landlock")?,
            Kind::Waived => write!(f, "none")?,
            Kind::Impossible(reasons) => write!(f, "none, so no secrets: {reasons}")?,
        }
        match self.means {
            None => write!(f, "; network host"),
            Some(means) => write!(f, "; network none by {means}"),
        }
    }
}

fn probe(runner: &Path, first: u32, runs: &Path) -> io::Result<Abilities> {
    // Where there are no runs yet, they will lie below what is there.
    let spot = runs.ancestors().find(|path| path.is_dir()).unwrap_or(runs);
    let asked = Command::new(runner).arg("probe").arg(first.to_string()).arg(spot).output()?;
    serde_json::from_slice(&asked.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&asked.stderr);
        io::Error::other(format!("it answered no JSON ({error}): {}", said.trim()))
    })
}

#[cfg(test)]
mod tests;
