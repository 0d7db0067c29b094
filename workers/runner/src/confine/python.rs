//! Where a Python interpreter keeps what it needs to run, told from its path alone: running it to
//! ask would cost every run a third of a second.

use std::fs;
use std::path::{Path, PathBuf};

use errand_runner::{Launch, Sandbox};

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
/// environment also the one that it was made from.
pub(super) fn places(python: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let mut next = on_path(python);
    for _ in 0..HOPS {
        let Some(program) = next else { break };
        let Some(place) = installation(&program) else { break };
        let config = fs::read_to_string(place.join("pyvenv.cfg")).unwrap_or_default();
        let home = config.lines().find_map(|line| line.strip_prefix("home = "));
        places.extend(home.and_then(|home| installation(&Path::new(home.trim()).join("python"))));
        places.push(place);
        // An absolute target replaces the path before it.
        next = fs::read_link(&program).ok().map(|target| program.with_file_name(target));
    }
    places
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
