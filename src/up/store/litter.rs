//! What s3s-fs leaves in its root, and nobody removes: the files beside an object that say what
//! it is, the parts of uploads that were not finished, directories that are empty now. This is
//! the one place that knows their names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use uuid::Uuid;

/// Directories of a bucket that stay: `jobs/<workspace>`, `blobs/<two digits>`.
const LASTING_DEPTH: usize = 2;

/// The directory that a server has.
pub(super) struct Litter {
    root: PathBuf,
}

impl Litter {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The file that an object is in, whose key s3s-fs has found to be one.
    pub(super) fn object(&self, bucket: &str, key: &str) -> PathBuf {
        self.root.join(bucket).join(key)
    }

    /// Forgets all uploads. At the start nobody can go on with one: the keys are new each time.
    pub(super) fn forget_uploads(&self) -> io::Result<()> {
        self.remove_where(|name| {
            name.starts_with(".upload-")
                || name.starts_with(".upload_id-")
                || (name.starts_with(".bucket-") && name.contains(".upload-"))
        })
    }

    /// Forgets one upload, which is over.
    pub(super) fn forget_upload(&self, id: Uuid) -> io::Result<()> {
        let (info, parts) = (format!(".upload-{id}.json"), format!(".upload_id-{id}.part-"));
        let beside = format!(".upload-{id}.metadata.json");
        self.remove_where(|name| {
            name == info || name.starts_with(&parts) || name.ends_with(&beside)
        })
    }

    /// Forgets what an older object of that name had for a checksum.
    pub(super) fn forget_sums(&self, bucket: &str, key: &str) -> io::Result<()> {
        remove(&self.root.join(beside(bucket, key, ".internal.json")))
    }

    /// Forgets an object that is gone.
    pub(super) fn forget_object(&self, bucket: &str, key: &str) -> io::Result<()> {
        self.forget_sums(bucket, key)?;
        remove(&self.root.join(beside(bucket, key, ".metadata.json")))?;
        let depth = key.matches('/').count();
        let parents = Path::new(key).ancestors().skip(1);
        for parent in parents.take(depth.saturating_sub(LASTING_DEPTH)) {
            // It stays, and so do those above, while there is something in it.
            if fs::remove_dir(self.root.join(bucket).join(parent)).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn remove_where(&self, is_litter: impl Fn(&str) -> bool) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)?.filter_map(Result::ok) {
            if entry.file_name().to_str().is_some_and(&is_litter) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// The name of a file that s3s-fs keeps of an object.
fn beside(bucket: &str, key: &str, rest: &str) -> String {
    format!(".bucket-{}.object-{}{rest}", BASE64.encode(bucket), BASE64.encode(key))
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
