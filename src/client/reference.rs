//! References to files as they are typed: `[workspace/]fileset[#path]`.

use std::str::FromStr;

/// A fileset, or something in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// The workspace; the current one when absent.
    pub workspace: Option<String>,
    /// The fileset.
    pub fileset: String,
    /// A path in it, without a slash at either end; empty = all of it.
    pub path: String,
    /// Whether the path was typed with a slash at its end.
    pub is_dir: bool,
}

/// Text that is no reference.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no file reference ({reason}); expected [workspace/]fileset[#path]")]
pub struct NoFileRef {
    text: String,
    reason: &'static str,
}

impl FromStr for FileRef {
    type Err = NoFileRef;

    fn from_str(text: &str) -> Result<Self, NoFileRef> {
        let bad = |reason| Err(NoFileRef { text: text.to_owned(), reason });
        let (name, path) = text.split_once('#').unwrap_or((text, ""));
        let (workspace, fileset) = match name.split_once('/') {
            Some((workspace, fileset)) => (Some(workspace), fileset),
            None => (None, name),
        };
        for name in [Some(fileset), workspace].into_iter().flatten() {
            match name {
                "" => return bad("a name is empty"),
                // In an address it would lead elsewhere.
                "." | ".." => return bad("a dot is no name"),
                _ => {}
            }
        }
        if fileset.contains('/') {
            return bad("a path stands behind '#'");
        }
        if path.starts_with('/') {
            return bad("the path is absolute");
        }
        if path.split('/').any(|part| part == "..") {
            return bad("the path leads out of the fileset");
        }
        let parts: Vec<_> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        Ok(Self {
            workspace: workspace.map(str::to_owned),
            fileset: fileset.to_owned(),
            path: parts.join("/"),
            is_dir: path.is_empty() || path.ends_with('/'),
        })
    }
}

#[cfg(test)]
mod tests;
