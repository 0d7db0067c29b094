//! The files of a fileset. A path is a file or a directory, never both, and directories exist
//! only through the files below them.

use futures_util::FutureExt;
use sqlx::AnyConnection;
use streams::snapshot::FileEntry;

use super::Filesets;
use crate::records::statement::{Row, assembled, places, sql};
use crate::records::{Error, Result};

/// Longer paths fit neither an object's key nor an index of PostgreSQL.
const MAX_PATH_BYTES: usize = 1024;

impl Filesets<'_> {
    /// Adds a file or replaces it. [`Error::Conflict`] when its path is a directory or leads
    /// through a file, [`Error::NotFound`] when there is no such fileset.
    pub async fn put_file(&self, fileset: &str, entry: FileEntry) -> Result<()> {
        if entry.path.len() > MAX_PATH_BYTES {
            let length = entry.path.len();
            return Err(Error::Text(format!(
                "path has {length} bytes, shorten it to {MAX_PATH_BYTES}"
            )));
        }
        let input = (fileset.to_owned(), entry);
        self.0.write(input, |(fileset, entry), db| put(fileset, entry, db).boxed()).await
    }

    /// Finds a file.
    pub async fn get_file(&self, fileset: &str, path: &str) -> Result<FileEntry> {
        let found = sql("SELECT * FROM files WHERE fileset = $1 AND path_key = $2");
        found.text(fileset).text(&key(path)).row_as(self.0.reads(), read).await
    }

    /// The files at or below a path, sorted by the bytes of their paths. The empty path stands
    /// for all, a directory for what is in it, a file for itself.
    pub async fn files(&self, fileset: &str, under: &str) -> Result<Vec<FileEntry>> {
        let found = if under.is_empty() {
            sql("SELECT * FROM files WHERE fileset = $1 ORDER BY path_key").text(fileset)
        } else {
            let (first, beyond) = below(under);
            sql("SELECT * FROM files
                 WHERE fileset = $1 AND (path_key = $2 OR (path_key >= $3 AND path_key < $4))
                 ORDER BY path_key")
            .text(fileset)
            .texts([&*key(under), &first, &beyond])
        };
        found.all(self.0.reads()).await?.iter().map(read).collect()
    }

    /// Removes a file and returns what it was.
    pub async fn delete_file(&self, fileset: &str, path: &str) -> Result<FileEntry> {
        let input = (fileset.to_owned(), path.to_owned());
        self.0
            .write(input, |(fileset, path), db| {
                async move {
                    raise_version(fileset, db).await?;
                    sql("DELETE FROM files WHERE fileset = $1 AND path_key = $2 RETURNING *")
                        .text(fileset)
                        .text(&key(path))
                        .row_as(db, read)
                        .await
                }
                .boxed()
            })
            .await
    }
}

async fn put(fileset: &str, entry: &FileEntry, db: &mut AnyConnection) -> Result<()> {
    // This also locks the fileset's row, so that two writers cannot make `a` and `a/b` at once.
    raise_version(fileset, db).await?;
    if stands_in_the_way(fileset, &entry.path, db).await? {
        return Err(Error::Conflict);
    }
    sql("INSERT INTO files (fileset, path_key, path, mode, size, sha256)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (fileset, path_key) DO UPDATE
         SET mode = excluded.mode, size = excluded.size, sha256 = excluded.sha256")
    .text(fileset)
    .text(&key(&entry.path))
    .text(&entry.path)
    .int(entry.mode)
    .int(i64::try_from(entry.size).unwrap_or(i64::MAX))
    .text(&entry.sha256)
    .run(db)
    .await
    .map(drop)
}

async fn raise_version(fileset: &str, db: &mut AnyConnection) -> Result<()> {
    sql("UPDATE filesets SET version = version + 1 WHERE id = $1").text(fileset).touch(db).await
}

/// Whether the path is a directory already, or one of its directories is a file.
async fn stands_in_the_way(fileset: &str, path: &str, db: &mut AnyConnection) -> Result<bool> {
    let directories: Vec<String> =
        path.match_indices('/').filter_map(|(end, _)| path.get(..end)).map(key).collect();
    let (first, beyond) = below(path);
    let above = match directories.len() {
        0 => String::new(),
        count => format!(" OR path_key IN ({})", places(4, count)),
    };
    let found = assembled(format!(
        "SELECT path FROM files
         WHERE fileset = $1 AND ((path_key >= $2 AND path_key < $3){above}) LIMIT 1"
    ));
    let found = found.text(fileset).texts([&*first, &beyond]);
    Ok(found.texts(directories.iter().map(String::as_str)).one(db).await?.is_some())
}

fn key(path: &str) -> String {
    hex::encode(path)
}

/// The keys of what lies below a directory: from the first up to, and without, the second.
fn below(directory: &str) -> (String, String) {
    let key = key(directory);
    // `0` follows `/` in ASCII.
    (format!("{key}{}", hex::encode("/")), format!("{key}{}", hex::encode("0")))
}

fn read(row: &Row) -> Result<FileEntry> {
    Ok(FileEntry {
        path: row.text("path")?,
        mode: row.number("mode")?,
        size: row.number("size")?,
        sha256: row.text("sha256")?,
    })
}
