//! Why records did not answer, and what the databases' own errors mean.

/// Why records did not answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Something of that name stands already.
    #[error("a record of that name exists already")]
    Conflict,
    /// Nothing of that name is there.
    #[error("no such record")]
    NotFound,
    /// A text that no database of ours can keep.
    #[error("{0}")]
    Text(String),
    /// The database cannot be reached or refuses to work.
    #[error("records are not available: {0}")]
    Unavailable(String),
    /// Others held the database for too long, or two writes stood in each other's way.
    #[error("records are busy: {0}")]
    Busy(String),
    /// A row does not hold what this program once wrote.
    #[error("record column '{what}' is corrupt: {reason}")]
    Corrupt {
        /// The column.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// Whether the same write may succeed when it is simply made again.
    pub(super) const fn is_passing(&self) -> bool {
        matches!(self, Self::Busy(_))
    }
}

/// `BUSY` and `LOCKED` of SQLite, serialization failure and deadlock of PostgreSQL.
fn is_passing(code: &str) -> bool {
    // The extended codes of SQLite carry the primary one in their lowest byte.
    let sqlite =
        code.len() <= 4 && code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6));
    sqlite || matches!(code, "40001" | "40P01")
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(refusal) if refusal.is_unique_violation() => Self::Conflict,
            sqlx::Error::Database(refusal)
                if refusal.code().is_some_and(|code| is_passing(&code)) =>
            {
                Self::Busy(refusal.to_string())
            }
            sqlx::Error::ColumnDecode { index, source } => {
                Self::Corrupt { what: index, reason: source.to_string() }
            }
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<sqlx::migrate::MigrateError> for Error {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        Self::Unavailable(format!("tables cannot be brought up to date: {error}"))
    }
}
