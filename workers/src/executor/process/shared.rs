//! What a run has left where everybody may write: memory, disk, or a secret for whoever is given
//! its user next.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::bundle::remove_tree;

/// Where everybody may write on a usual system. What lies deeper than here is in a directory of
/// somebody's, and goes with it.
const PLACES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];

/// Removes what belongs to a user of whom no process is left. What cannot be removed is told: no
/// run is kept waiting for it.
pub(super) fn remove_of(user: u32) {
    for place in PLACES {
        if let Err(error) = remove_in(Path::new(place), user) {
            tracing::warn!(place, user, %error, "what a run has left there stays");
        }
    }
}

fn remove_in(place: &Path, user: u32) -> io::Result<()> {
    let entries = match fs::read_dir(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries.filter_map(Result::ok) {
        // Of links, their own.
        match entry.metadata() {
            Ok(meta) if meta.uid() != user => {}
            Ok(meta) if meta.is_dir() => remove_tree(&entry.path())?,
            Ok(_) => fs::remove_file(entry.path())?,
            // It went meanwhile.
            Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    const USER: u32 = 3_111_000_111;

    #[test]
    fn what_a_user_left_goes_and_nothing_else() {
        let place = tempfile::tempdir_in("/tmp").expect("a temporary directory");
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("tree/below")).expect("room on the disk");
        for name in ["file", "tree/below/file", "other"] {
            fs::write(at(name), "x").expect("room on the disk");
        }
        symlink(at("other"), at("link")).expect("room on the disk");
        for name in ["file", "tree"] {
            chown(at(name), Some(USER), None).expect("root runs these tests");
        }
        std::os::unix::fs::lchown(at("link"), Some(USER), None).expect("root runs these tests");
        remove_in(place.path(), USER).expect("it is removed");
        let left = fs::read_dir(place.path()).expect("it is there").filter_map(Result::ok);
        assert_eq!(Vec::from_iter(left.map(|entry| entry.file_name())), ["other"]);
        remove_in(&at("none"), USER).expect("there is nothing");
    }
}
