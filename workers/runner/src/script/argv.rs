//! Where the words of a command are looked for: the working directory first, then the agent's own
//! files (the Fabric base directory, beside `agent.yaml`).
//!
//! A relative path that is no file in the working directory, but one of the agent's own files, is
//! replaced by the absolute path there; so `["/bin/sh", "agent.sh"]` works although the working
//! directory is the job's. The program itself is looked for on PATH before that, when it is a
//! bare name.

use std::path::{Component, Path, PathBuf};

/// Resolves a command.
pub(super) fn resolve(argv: &[String], workspace: &Path, base: &Path) -> Vec<PathBuf> {
    argv.iter()
        .enumerate()
        .map(|(position, word)| {
            let written = Path::new(word);
            if position == 0 {
                program(written, workspace, base)
            } else if is_plain(written) && !workspace.join(written).exists() {
                own_file(written, base).unwrap_or_else(|| written.to_owned())
            } else {
                written.to_owned()
            }
        })
        .collect()
}

fn program(written: &Path, workspace: &Path, base: &Path) -> PathBuf {
    if !is_plain(written) {
        return written.to_owned();
    }
    // A path with a slash means a file; where a child looks for it would otherwise depend on the
    // C library.
    let is_bare = !written.as_os_str().as_encoded_bytes().contains(&b'/');
    if is_bare && is_on_path(written) {
        return written.to_owned();
    }
    let here = workspace.join(written);
    if !is_bare && here.exists() {
        return here;
    }
    own_file(written, base).unwrap_or(if is_bare { written.to_owned() } else { here })
}

fn own_file(written: &Path, base: &Path) -> Option<PathBuf> {
    let file = base.join(written);
    file.is_file().then_some(file)
}

/// Relative, and without a way out.
fn is_plain(written: &Path) -> bool {
    written.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        && written.file_name().is_some()
}

fn is_on_path(name: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

#[cfg(test)]
mod tests;
