//! Where the platform is no root: Landlock. The agent stays the same user, but sees the system
//! read-only, its own directories, and nothing else of what that user has.

use std::path::{Path, PathBuf};

use errand_runner::RunDir;
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::{Error, contains};

/// Without these rights a file that cannot be opened could still be truncated.
const LEAST: ABI = ABI::V3;

/// What is asked for beyond, as far as the kernel has it: devices, and signals to others.
const WANTED: ABI = ABI::V6;

const SYSTEM: [&str; 15] = [
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/proc",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib/ca-certificates",
];

const DEVICES: [&str; 8] = [
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// Confines this process.
pub(super) fn enter(run: &RunDir, readable: &[PathBuf]) -> Result<(), Error> {
    let refused = |error: RulesetError| Error::Landlock(error.to_string());
    let own = [run.base(), run.home(), run.tmp(), run.io()];
    // A system directory that the run lies in would show the platform's data.
    let system = SYSTEM.iter().map(Path::new).filter(|dir| !contains(dir, run.root()));
    let status = ruleset()
        .and_then(|rules| rules.add_rules(path_beneath_rules(system, AccessFs::from_read(WANTED))))
        .and_then(|rules| {
            rules.add_rules(path_beneath_rules(readable, AccessFs::from_read(WANTED)))
        })
        .and_then(|rules| rules.add_rules(path_beneath_rules(DEVICES, AccessFs::from_file(WANTED))))
        .and_then(|rules| rules.add_rules(path_beneath_rules(own, AccessFs::from_all(WANTED))))
        .and_then(RulesetCreated::restrict_self)
        .map_err(refused)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(Error::Landlock("the kernel has none".to_owned())),
    }
}

/// Rules that permit nothing yet. Making them proves that the kernel knows them.
pub(super) fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()
}
