//! Regular files below a directory, for uploads.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// A file to be uploaded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    /// Its path below the directory, with slashes.
    pub(super) relative: String,
    /// Where it is.
    pub(super) path: PathBuf,
    /// Its bytes.
    pub(super) size: u64,
}

/// What to do with a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// Take the file that it leads to; leave out directories and what leads nowhere.
    FollowToFiles,
    /// Refuse the whole tree.
    Refuse,
}

/// Walks a directory in the order of paths. `left_out` hears what is no regular file.
pub(super) fn walk(
    root: &Path,
    links: Links,
    left_out: &mut dyn FnMut(&Path, &str),
) -> anyhow::Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut waiting = vec![(root.to_owned(), String::new())];
    while let Some((dir, prefix)) = waiting.pop() {
        let entries =
            std::fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
        for entry in entries {
            let path = entry.with_context(|| format!("cannot read {}", dir.display()))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                bail!("{}: the name is not UTF-8 and cannot be uploaded", path.display());
            };
            let relative = format!("{prefix}{name}");
            let metadata = path
                .symlink_metadata()
                .with_context(|| format!("cannot read {}", path.display()))?;
            let metadata = match (metadata.is_symlink(), links) {
                (false, _) => metadata,
                (true, Links::Refuse) => {
                    bail!("{}: links are not taken; replace it with the file", path.display())
                }
                (true, Links::FollowToFiles) => match path.metadata() {
                    Ok(target) if target.is_file() => target,
                    _ => {
                        left_out(&path, "a link that leads to no regular file");
                        continue;
                    }
                },
            };
            if metadata.is_dir() {
                waiting.push((path, format!("{relative}/")));
            } else if metadata.is_file() {
                found.push(Found { relative, path, size: metadata.len() });
            } else {
                left_out(&path, "no regular file");
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
