//! Places outside of the platform's data where agents, who are other users, may write.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

/// A temporary directory that everybody may read and fill. What one agent makes there another
/// may write to only after `umask 0`.
pub fn open_directory() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let everybody = Permissions::from_mode(0o777);
    fs::set_permissions(directory.path(), everybody).expect("it is ours");
    directory
}
