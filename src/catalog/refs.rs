//! Names and references: their grammars, and the canonical form of what a job's working
//! directory is filled from. Nothing here looks anything up.

use std::fmt;

/// The pattern of names, as validation answers quote it.
pub(crate) const NAME_PATTERN: &str = r"^[a-z](?!.*--)[a-z0-9\-@.+_]{1,62}(?<!-)$";

/// The longest name.
pub(crate) const NAME_LENGTH: usize = 63;

/// What a job's own fileset is called, followed by the job's name.
pub(crate) const JOB_FILESET: &str = "job-fileset-";

/// A part of a fileset, with the workspace spelled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilesetRef {
    /// The workspace.
    pub workspace: String,
    /// The fileset.
    pub fileset: String,
    /// A normalised relative path; empty for the root.
    pub path: String,
}

impl fmt::Display for FilesetRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.workspace, self.fileset, self.path)
    }
}

impl FilesetRef {
    /// The form of a directory: a slash at the end, except at the root.
    pub(crate) fn directory(&self) -> String {
        if self.path.is_empty() { self.to_string() } else { format!("{self}/") }
    }
}

/// Whether a word is a name: of a workspace, agent, fileset, secret or job.
pub(crate) fn is_name(word: &str) -> bool {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-@.+_".contains(c);
    (2..=NAME_LENGTH).contains(&word.len())
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(rest)
        && !word.contains("--")
        && !word.ends_with('-')
}

/// Checks `name` or `workspace/name` of an agent.
pub(crate) fn agent_ref(word: &str) -> Result<String, String> {
    let part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
    };
    let parts: Vec<_> = word.split('/').collect();
    if parts.len() <= 2 && parts.into_iter().all(part) {
        return Ok(word.to_owned());
    }
    Err(format!("Agent ref '{word}' must be an entity name or a 'workspace/name' ref."))
}

/// Whether a word refers to a secret: `name` or `workspace/name`.
pub(crate) fn is_secret_ref(word: &str) -> bool {
    let char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_@.+".contains(c);
    let parts: Vec<_> = word.split('/').collect();
    parts.len() <= 2 && parts.iter().all(|part| !part.is_empty() && part.chars().all(char))
}

/// Splits `name` or `workspace/name` at the first slash.
pub(crate) fn in_workspace<'a>(reference: &'a str, workspace: &'a str) -> (&'a str, &'a str) {
    reference.split_once('/').unwrap_or((workspace, reference))
}

/// Reads a reference to a fileset or a part of one. `field` is what the failure names.
pub(crate) fn fileset_ref(
    field: &str,
    reference: &str,
    workspace: &str,
) -> Result<FilesetRef, String> {
    let refuse = |reason: &str| Err(format!("{field} {reason}"));
    if reference.trim().is_empty() {
        return refuse("must not be empty.");
    }
    if reference.contains("://") {
        return refuse("must use 'workspace/fileset#path' or 'fileset#path' syntax.");
    }
    if reference.matches('#').count() > 1 {
        return refuse("contains more than one '#'.");
    }
    let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    if name.matches('/').count() > 1 {
        return refuse("must use '#' before fileset paths.");
    }
    if fragment.starts_with('/') {
        return refuse("fragment must be relative.");
    }
    if fragment.contains('\\') {
        return refuse("fragment must use '/' separators.");
    }
    if fragment.contains('\0') || fragment.split('/').any(|segment| segment == "..") {
        return refuse("fragment must not contain path escapes.");
    }
    let (workspace, fileset) = in_workspace(name, workspace);
    if fileset.is_empty() || workspace.is_empty() {
        return refuse("must include a fileset name.");
    }
    Ok(FilesetRef {
        workspace: workspace.to_owned(),
        fileset: fileset.to_owned(),
        path: collapse(fragment),
    })
}

/// Checks where a mount goes and writes it without `.` and doubled slashes.
pub(crate) fn mount_path(path: &str) -> Result<String, String> {
    let refuse = |reason: &str| Err(format!("mount_path {reason}"));
    if path.contains('\\') {
        return refuse("must use '/' separators.");
    }
    if path.contains('\0') {
        return refuse("must not contain a NUL character.");
    }
    let collapsed = collapse(path);
    if collapsed.is_empty() {
        return refuse("must be a non-empty relative path.");
    }
    if path.starts_with('/') || collapsed.split('/').any(|segment| segment == "..") {
        return refuse("must be a relative path and must not contain path escapes.");
    }
    Ok(collapsed)
}

/// Two mounts of which one lies in the other.
pub(crate) fn overlap<'a>(mounts: &[&'a str]) -> Option<(&'a str, &'a str)> {
    mounts.iter().enumerate().find_map(|(index, one)| {
        let other = mounts[index + 1..].iter().find(|other| nested(one, other))?;
        Some((*one, *other))
    })
}

fn nested(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('/'), other.split('/'));
    loop {
        match (one.next(), other.next()) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), Some(_)) => return false,
            _ => return true,
        }
    }
}

fn collapse(path: &str) -> String {
    let segments = path.split('/').filter(|segment| !segment.is_empty() && *segment != ".");
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests;
