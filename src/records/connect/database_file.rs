//! The file of an SQLite database: nobody else may read it, and it is tried with one connection
//! before a pool has it, since a pool repeats what fails and then says that time ran out.

use std::fs::{File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AnyConnection, Connection as _};

use crate::records::statement::sql;
use crate::records::{Error, Result};

/// What only the owner may do with it. SQLite gives its companions the same mode.
const MODE: u32 = 0o600;

/// What SQLite adds to the name of the files that belong to a database.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// Where sqlx notes which migrations a database has seen.
const MIGRATIONS: &str = "_sqlx_migrations";

const BEGIN_ANEW: &str = "restore it from a backup, or move it and its -wal and -shm files away \
                          to begin with empty records";

pub(super) struct DatabaseFile {
    url: String,
    path: PathBuf,
}

impl DatabaseFile {
    /// The file that a url names.
    pub(super) fn of(url: &str) -> Result<Self> {
        let options = SqliteConnectOptions::from_str(url)?;
        Ok(Self { url: url.to_owned(), path: options.get_filename().to_owned() })
    }

    /// Makes it unless it is there, and takes it and its companions away from everybody else.
    pub(super) fn keep_private(&self) -> Result<()> {
        let failed = |path: &Path, reason: io::Error| {
            Error::Unavailable(format!("{} cannot be made private: {reason}", path.display()))
        };
        let opened = File::options().append(true).create(true).mode(MODE).open(&self.path);
        opened.map_err(|reason| self.unusable(&reason.to_string(), "make it writable"))?;
        let companions = COMPANIONS.map(|end| {
            let mut path = self.path.clone().into_os_string();
            path.push(end);
            PathBuf::from(path)
        });
        for path in std::iter::once(&self.path).chain(&companions) {
            match make_private(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                made => made.map_err(|reason| failed(path, reason))?,
            }
        }
        Ok(())
    }

    /// Checks that it is a database, and ours or empty. Nothing in it is changed.
    pub(super) async fn try_out(&self) -> Result<()> {
        let tables = self.tables().await.map_err(|error| self.explain(error))?;
        if tables.is_empty() || tables.iter().any(|table| table == MIGRATIONS) {
            return Ok(());
        }
        Err(self.unusable(
            &format!("it holds tables of another program, such as '{}'", tables[0]),
            "choose another file",
        ))
    }

    /// The same error with the name of the file and what to do.
    pub(super) fn explain(&self, error: Error) -> Error {
        match error {
            Error::Unavailable(reason) => self.unusable(&reason, BEGIN_ANEW),
            other => other,
        }
    }

    async fn tables(&self) -> Result<Vec<String>> {
        let mut connection = AnyConnection::connect(&self.url).await?;
        let named = sql("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
        let tables = named.all(&mut connection).await?;
        connection.close().await?;
        tables.iter().map(|table| table.text("name")).collect()
    }

    fn unusable(&self, reason: &str, mend: &str) -> Error {
        Error::Unavailable(format!("{}: {reason}; {mend}", self.path.display()))
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    let mode = path.metadata()?.permissions().mode() & 0o7777;
    if mode == MODE { Ok(()) } else { std::fs::set_permissions(path, Permissions::from_mode(MODE)) }
}
