//! Private files: made once or replaced, whole or not at all, for nobody but their owner. What is
//! in them is the affair of those who make them.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// What only the owner may do with the file.
const MODE: u32 = 0o600;

/// Makes a file of one line. If another process is faster, its file stays.
pub(crate) fn create(path: &Path, line: &str) -> io::Result<()> {
    let draft = draft_of(path);
    let linked = write(&draft, line, None).and_then(|()| std::fs::hard_link(&draft, path));
    // The draft may hold a secret: it goes, whatever became of the rest.
    let removed = match std::fs::remove_file(&draft) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => removed,
        Err(error) => Err(error),
        Ok(()) => removed.and_then(|()| sync_directory(path)),
    }
}

/// Puts a file of these lines in the place of the one that is there, for the same owner and
/// group. A link to it stays one.
pub(crate) fn replace(path: &Path, lines: &str) -> io::Result<()> {
    let path = &path.canonicalize()?;
    let present = path.metadata()?;
    let owner = Some((present.uid(), present.gid()));
    let draft = draft_of(path);
    let renamed = write(&draft, lines, owner).and_then(|()| std::fs::rename(&draft, path));
    if renamed.is_err() {
        // The draft may hold a secret; that it cannot be written or moved is the worse news.
        let _ = std::fs::remove_file(&draft);
    }
    renamed.and_then(|()| sync_directory(path))
}

fn draft_of(path: &Path) -> PathBuf {
    path.with_extension(format!("{}.new", uuid::Uuid::now_v7()))
}

fn write(draft: &Path, line: &str, owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(draft)?;
    if let Some((user, group)) = owner {
        fchown(&file, Some(user), Some(group))?;
    }
    // A umask may have taken bits away.
    file.set_permissions(Permissions::from_mode(MODE))?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
