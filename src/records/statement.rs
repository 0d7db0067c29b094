//! Statements and rows: the one place where values of ours become values of a database and back.
//!
//! Text with a NUL character is refused here, on both databases alike: PostgreSQL cannot keep it.
//! JSON needs no such care, it writes the character as an escape.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Executor, Row as _};

use super::{Error, Result};

/// A statement with its values, in the order of `$1`, `$2`, ….
pub(super) struct Statement {
    query: Query<'static, Any, AnyArguments>,
    refused: Option<Error>,
}

/// How a row becomes what it stands for.
pub(super) type Read<T> = fn(&Row) -> Result<T>;

/// A statement of fixed text.
pub(super) fn sql(text: &'static str) -> Statement {
    Statement { query: sqlx::query(text), refused: None }
}

/// A statement that is put together from fixed pieces. Values never belong into `text`.
pub(super) fn assembled(text: String) -> Statement {
    Statement { query: sqlx::query(AssertSqlSafe(text)), refused: None }
}

/// `$from, $from+1, …`: places for `count` values.
pub(super) fn places(from: usize, count: usize) -> String {
    (from..from + count).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}

/// A statement that is put together, planned for the values that it has and then forgotten: for texts that hardly come
/// twice, and whose best plan hangs on the values.
pub(super) fn planned(text: String) -> Statement {
    let statement = assembled(text);
    Statement { query: statement.query.persistent(false), ..statement }
}

impl Statement {
    /// A text.
    pub(super) fn text(self, text: &str) -> Self {
        self.optional_text(Some(text))
    }

    /// A text that may be absent.
    pub(super) fn optional_text(mut self, text: Option<&str>) -> Self {
        if let Some(text) = text.filter(|text| text.contains('\0')) {
            let shown: String = text.escape_debug().take(80).collect();
            self.refused.get_or_insert_with(|| {
                Error::Text(format!("text '{shown}' contains a NUL character, leave it out"))
            });
        }
        self.query = self.query.bind(text.map(str::to_owned));
        self
    }

    /// Several texts.
    pub(super) fn texts<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        texts.into_iter().fold(self, Self::text)
    }

    /// An integer or a flag.
    pub(super) fn int(self, value: impl Into<i64>) -> Self {
        self.optional_int(Some(value.into()))
    }

    /// An integer that may be absent.
    pub(super) fn optional_int(mut self, value: Option<i64>) -> Self {
        self.query = self.query.bind(value);
        self
    }

    /// A time.
    pub(super) fn time(self, at: Timestamp) -> Self {
        self.optional_time(Some(at))
    }

    /// A time that may be absent.
    pub(super) fn optional_time(self, at: Option<Timestamp>) -> Self {
        self.optional_int(at.map(Timestamp::as_microsecond))
    }

    /// A document.
    pub(super) fn json(self, value: &impl Serialize) -> Self {
        self.optional_json(Some(value))
    }

    /// A document that may be absent.
    pub(super) fn optional_json(mut self, value: Option<&impl Serialize>) -> Self {
        match value.map(serde_json::to_string).transpose() {
            Ok(text) => self.query = self.query.bind(text),
            Err(error) => {
                self.refused.get_or_insert(Error::Text(format!("value is no JSON: {error}")));
            }
        }
        self
    }

    /// Runs it; how many rows it touched.
    pub(super) async fn run<'e>(self, db: impl Executor<'e, Database = Any>) -> Result<u64> {
        Ok(self.ready()?.execute(db).await?.rows_affected())
    }

    /// Runs it and fails with [`Error::NotFound`] when it touched no row.
    pub(super) async fn touch<'e>(self, db: impl Executor<'e, Database = Any>) -> Result<()> {
        match self.run(db).await? {
            0 => Err(Error::NotFound),
            _ => Ok(()),
        }
    }

    /// Its rows.
    pub(super) async fn all<'e>(self, db: impl Executor<'e, Database = Any>) -> Result<Vec<Row>> {
        Ok(self.ready()?.fetch_all(db).await?.into_iter().map(Row).collect())
    }

    /// Its only row, if there is one.
    pub(super) async fn one<'e>(
        self,
        db: impl Executor<'e, Database = Any>,
    ) -> Result<Option<Row>> {
        Ok(self.ready()?.fetch_optional(db).await?.map(Row))
    }

    /// Its only row.
    pub(super) async fn row<'e>(self, db: impl Executor<'e, Database = Any>) -> Result<Row> {
        self.one(db).await?.ok_or(Error::NotFound)
    }

    /// What its only row stands for.
    pub(super) async fn row_as<'e, T>(
        self,
        db: impl Executor<'e, Database = Any>,
        read: Read<T>,
    ) -> Result<T> {
        read(&self.row(db).await?)
    }

    fn ready(self) -> Result<Query<'static, Any, AnyArguments>> {
        match self.refused {
            Some(error) => Err(error),
            None => Ok(self.query),
        }
    }
}

/// A row of an answer.
pub(super) struct Row(AnyRow);

impl Row {
    /// A text.
    pub(super) fn text(&self, column: &str) -> Result<String> {
        Ok(self.0.try_get(column)?)
    }

    /// A text that may be absent.
    pub(super) fn optional_text(&self, column: &str) -> Result<Option<String>> {
        Ok(self.0.try_get(column)?)
    }

    /// A text that is the spelling of something.
    pub(super) fn word<T: std::str::FromStr>(&self, column: &str) -> Result<T>
    where
        T::Err: std::fmt::Display,
    {
        self.text(column)?.parse().map_err(|error| corrupt(column, &error))
    }

    /// The same that may be absent.
    pub(super) fn optional_word<T: std::str::FromStr>(&self, column: &str) -> Result<Option<T>>
    where
        T::Err: std::fmt::Display,
    {
        let word = self.optional_text(column)?;
        word.map(|word| word.parse().map_err(|error| corrupt(column, &error))).transpose()
    }

    /// An integer.
    pub(super) fn int(&self, column: &str) -> Result<i64> {
        Ok(self.0.try_get(column)?)
    }

    /// An integer that may be absent.
    pub(super) fn optional_int(&self, column: &str) -> Result<Option<i64>> {
        Ok(self.0.try_get(column)?)
    }

    /// An integer of a narrower type.
    pub(super) fn number<T: TryFrom<i64>>(&self, column: &str) -> Result<T>
    where
        T::Error: std::fmt::Display,
    {
        self.int(column)?.try_into().map_err(|error| corrupt(column, &error))
    }

    /// A flag.
    pub(super) fn flag(&self, column: &str) -> Result<bool> {
        Ok(self.int(column)? != 0)
    }

    /// A time.
    pub(super) fn time(&self, column: &str) -> Result<Timestamp> {
        time(column, self.int(column)?)
    }

    /// A time that may be absent.
    pub(super) fn optional_time(&self, column: &str) -> Result<Option<Timestamp>> {
        self.optional_int(column)?.map(|at| time(column, at)).transpose()
    }

    /// A document.
    pub(super) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        serde_json::from_str(&self.text(column)?).map_err(|error| corrupt(column, &error))
    }

    /// A document that may be absent.
    pub(super) fn optional_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>> {
        let text = self.optional_text(column)?;
        text.map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| corrupt(column, &error))
    }
}

fn time(column: &str, at: i64) -> Result<Timestamp> {
    Timestamp::from_microsecond(at).map_err(|error| corrupt(column, &error))
}

pub(super) fn corrupt(column: &str, error: &impl std::fmt::Display) -> Error {
    Error::Corrupt { what: column.to_owned(), reason: error.to_string() }
}
