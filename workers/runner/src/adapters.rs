//! Fabric adapters by their descriptors: which one an agent needs, and which are installed. A
//! worker asks before it begins with a job. Whether one that is there works is found out by who
//! starts it; nothing here knows Fabric.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// The adapter that is part of the program `errand-runner`.
pub const SCRIPT: &str = "errand.script";

/// Harness kinds and the adapters that serve them.
pub const KINDS: [(&str, &str); 8] = [
    ("claude", "nvidia.fabric.claude"),
    ("codex", "nvidia.fabric.codex"),
    ("deepagents", "nvidia.fabric.langchain.deepagents"),
    ("hermes", "nvidia.fabric.hermes"),
    ("nooa-bench-agent", "nvidia.fabric.nooa.bench-agent"),
    ("pi", "nvidia.fabric.pi"),
    ("remote-agent", "nvidia.fabric.remote-agent"),
    ("script", SCRIPT),
];

/// Kinds with this beginning are ids of adapters.
pub const QUALIFIED: &str = "nvidia.fabric.";

/// Bytes of a descriptor that are read at most.
const DESCRIPTOR_BYTES: u64 = 1024 * 1024;

/// What an agent needs to have installed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needed {
    /// An adapter, by its id.
    Adapter(String),
    /// A workflow, by its target's id.
    Workflow(String),
}

impl fmt::Display for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adapter(id) => write!(f, "adapter '{id}'"),
            Self::Workflow(id) => write!(f, "workflow '{id}'"),
        }
    }
}

/// The adapter that serves a harness of this kind; `None` when there is no such kind.
pub fn of_kind(kind: &str) -> Option<&str> {
    if kind.len() > QUALIFIED.len() && kind.starts_with(QUALIFIED) {
        return Some(kind);
    }
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, id)| *id)
}

/// What an agent needs beside the runner itself. `None` also for a definition that names nothing
/// which can be: it is refused when it is to be started.
pub fn needed(agent: &Value) -> Option<Needed> {
    if !agent["workflow"].is_null() {
        return agent["workflow"]["target_id"].as_str().map(|id| Needed::Workflow(id.to_owned()));
    }
    let harness = &agent["harnesses"][agent["default_harness"].as_str()?];
    let id = of_kind(harness["kind"].as_str()?)?;
    (id != SCRIPT).then(|| Needed::Adapter(id.to_owned()))
}

/// Whether it is certain that nothing in these directories describes what is needed. Where one
/// cannot be read, or holds a descriptor that cannot be, it is not.
pub fn lacks(directories: &[impl AsRef<Path>], needed: &Needed) -> bool {
    let mut found = BTreeSet::new();
    let mut there = directories.iter().map(AsRef::as_ref).filter(|directory| directory.is_dir());
    let read = there.try_for_each(|directory| collect(directory, &mut found));
    read.is_ok() && !found.contains(needed)
}

/// What the descriptors of a tree describe. As Fabric does, it follows no link to a directory.
fn collect(directory: &Path, found: &mut BTreeSet<Needed>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), found)?;
        } else {
            found.extend(described(&entry.path())?);
        }
    }
    Ok(())
}

/// What a file describes, if it is a descriptor.
fn described(path: &Path) -> io::Result<Option<Needed>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (field, kind): (_, fn(String) -> Needed) = if name.ends_with(".fabric-adapter.json") {
        ("adapter_id", Needed::Adapter)
    } else if name.ends_with(".fabric-target.json") {
        ("id", Needed::Workflow)
    } else {
        return Ok(None);
    };
    // A link to a file is as good as the file.
    let path = path.canonicalize()?;
    if path.is_dir() {
        return Ok(None);
    }
    let descriptor: Value =
        serde_json::from_slice(&crate::run_dir::read_bounded(&path, DESCRIPTOR_BYTES)?)?;
    let id = descriptor[field].as_str().ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some(kind(id.to_owned())))
}

#[cfg(test)]
mod tests;
