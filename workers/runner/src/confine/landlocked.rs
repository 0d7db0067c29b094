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

/// The platform's configuration: passwords of the queue, the store and the database.
const CONFIGURATION: &str = "/etc/errand";

/// Confines this process.
pub(super) fn enter(run: &RunDir, readable: &[PathBuf]) -> Result<(), Error> {
    let refused = |error: RulesetError| Error::Landlock(error.to_string());
    let own = [run.base(), run.home(), run.tmp(), run.io()];
    // A system directory that the run lies in would show the platform's data.
    let system = SYSTEM.iter().map(Path::new).filter(|dir| !contains(dir, run.root()));
    let system = system.flat_map(|dir| around(dir, Path::new(CONFIGURATION)));
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

/// A directory, or, where it holds what is closed to the agent, everything else in it: a rule takes
/// nothing away. What a link there leads to is no part of it.
fn around(dir: &Path, closed: &Path) -> Vec<PathBuf> {
    if !contains(dir, closed) || !closed.exists() {
        return vec![dir.to_owned()];
    }
    let entries = dir.read_dir().into_iter().flatten().flatten();
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    real.map(|entry| entry.path()).filter(|path| path != closed).collect()
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_closed_is_left_out_and_what_is_beside_it_is_not() {
        let etc = tempfile::tempdir().expect("a temporary directory");
        let (etc, closed) = (etc.path(), etc.path().join("errand"));
        assert_eq!(around(etc, &closed), [etc], "it is not there");
        fs::create_dir(&closed).expect("a directory");
        fs::write(etc.join("hosts"), "").expect("a file");
        std::os::unix::fs::symlink(&closed, etc.join("link")).expect("a link");
        assert_eq!(around(etc, &closed), [etc.join("hosts")]);
        assert_eq!(around(Path::new("/usr"), &closed), [Path::new("/usr")]);
    }
}
