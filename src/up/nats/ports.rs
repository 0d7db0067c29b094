//! The file in which nats-server says where it listens, written once it accepts connections.

use std::path::{Path, PathBuf};

use serde::Deserialize;

#[derive(Deserialize)]
struct Ports {
    nats: Vec<String>,
}

/// Removes what an earlier server left.
pub(super) fn clear(dir: &Path) {
    for path in files(dir) {
        let _ = std::fs::remove_file(path);
    }
}

/// The port of the server with this pid, once it is known.
pub(super) fn read(dir: &Path, pid: u32) -> Option<u16> {
    let suffix = format!("_{pid}.ports");
    let path = files(dir).find(|path| path.to_string_lossy().ends_with(&suffix))?;
    let text = std::fs::read_to_string(path).ok()?;
    // Half a file is no JSON; the next look finds the whole.
    let ports: Ports = serde_json::from_str(&text).ok()?;
    ports.nats.first()?.rsplit(':').next()?.parse().ok()
}

fn files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ports"))
}
