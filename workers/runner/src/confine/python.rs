//! Where a Python interpreter keeps what it needs to run, told from its path alone: running it to
//! ask would cost every run a third of a second.

use std::fs;
use std::path::{Path, PathBuf};

use errand_runner::{Launch, Sandbox};

use super::contains;
use crate::translate;

/// More links than this in a row lead nowhere.
const HOPS: usize = 8;

/// The interpreter that Fabric is told of. Where nobody names one it would look on PATH, as a user
/// who does not reach all of it; the supervisor looks instead.
pub(crate) fn interpreter(launch: &Launch) -> Option<PathBuf> {
    let named = launch.python.as_ref().map(PathBuf::from);
    let is_looked_for =
        matches!(launch.sandbox, Sandbox::User { .. }) && !translate::is_script(&launch.agent);
    named.or_else(|| on_path(Path::new("python3")).filter(|_| is_looked_for))
}

/// The installations that the interpreter and the links behind it belong to; of a virtual
/// environment also the one that it was made from. Of one that the run lies in, such as the home
/// of the user who is the platform, only the interpreter's own part.
pub(super) fn places(python: &Path, run: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let mut next = on_path(python);
    for _ in 0..HOPS {
        let Some(program) = next else { break };
        let Some(place) = installation(&program) else { break };
        let config = fs::read_to_string(place.join("pyvenv.cfg")).unwrap_or_default();
        if let Some(home) = config.lines().find_map(|line| line.strip_prefix("home = ")) {
            let program = Path::new(home.trim()).join("python");
            places.extend(installation(&program).map(|base| parts(base, &program, run)));
        }
        places.push(parts(place, &program, run));
        // An absolute target replaces the path before it.
        next = fs::read_link(&program).ok().map(|target| program.with_file_name(target));
    }
    places.concat()
}

/// All of an installation, or what the program needs of it.
fn parts(place: PathBuf, program: &Path, run: &Path) -> Vec<PathBuf> {
    if !contains(&place, run) {
        return vec![place];
    }
    let libraries =
        ["lib", "lib64"].into_iter().filter_map(|lib| fs::read_dir(place.join(lib)).ok());
    let libraries = libraries.flatten().flatten().filter(|entry| {
        let name = entry.file_name();
        ["python", "libpython"].iter().any(|begin| name.to_string_lossy().starts_with(begin))
    });
    let mut parts = vec![program.to_owned(), place.join("pyvenv.cfg")];
    parts.extend(libraries.map(|entry| entry.path()));
    parts
}

/// The directory above `bin`, or above the `shims` of pyenv.
fn installation(program: &Path) -> Option<PathBuf> {
    let directory = program.parent()?.canonicalize().ok()?;
    match directory.file_name()?.to_str() {
        Some("bin" | "shims") => directory.parent().map(Path::to_owned),
        _ => Some(directory),
    }
}

fn on_path(python: &Path) -> Option<PathBuf> {
    if python.is_absolute() {
        return Some(python.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(python)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests;
