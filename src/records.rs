//! Records: what the platform knows of workspaces, agents, filesets, secrets and jobs, in SQLite
//! or PostgreSQL.
//!
//! One SQL text serves both: times are microseconds in BIGINT, documents are JSON in TEXT, flags
//! are 0 and 1. Only this folder says sqlx. Nothing here talks to the queue or the object store,
//! and no secret's plain value ever arrives here.

mod connect;
mod error;
pub mod filter;
mod listing;
mod named;
mod page;
mod statement;
mod writer;

mod agents;
mod batches;
mod blobs;
mod environments;
mod filesets;
mod jobs;
mod projection;
mod rebuild;
mod secrets;
mod tokens;
mod workspaces;

use std::sync::Arc;

pub use agents::{Agent, Agents, NewAgent};
pub use batches::{Batch, Batches, Member, NewBatch, Progress, Refusal, SEAL_AFTER_SECONDS, Tally};
pub use blobs::{Blobs, Pins};
pub use environments::{Environment, EnvironmentKind, Environments, NewEnvironment};
pub use error::Error;
pub use filesets::{Fileset, FilesetChange, Filesets, NewFileset};
pub use jobs::{
    Admitted, Due, Duty, Job, Jobs, Kin, NewJob, Notification, NotificationEnd, Outline, ResultRow,
    Standing, Try, Unfinished,
};
pub use page::{Cursor, Direction, Listed, Page, Select, Sort, SortKey};
pub use projection::{Change, News, Projected, Proof};
pub use rebuild::{Rebuilt, Told};
pub use secrets::{NewSecret, SecretChange, SecretRow, Secrets};
pub use tokens::{NewToken, TokenRow, Tokens};
pub use workspaces::{Contents, Workspace, Workspaces};

use writer::{Run, Writer};

/// What every call here answers.
pub type Result<T> = std::result::Result<T, Error>;

/// The open records. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Records(Arc<Open>);

struct Open {
    reads: sqlx::AnyPool,
    writer: Writer,
}

impl Records {
    /// Opens `sqlite:///absolute/path.db` (made when missing) or `postgres://…` and brings its
    /// tables up to date.
    pub async fn connect(url: &str) -> Result<Self> {
        let (reads, writer) = connect::open(url).await?;
        Ok(Self(Arc::new(Open { reads, writer })))
    }

    /// Finishes the writes that were asked for and closes every connection.
    pub async fn close(&self) {
        self.0.writer.close().await;
        self.0.reads.close().await;
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<()> {
        statement::sql("SELECT 1").one(self.reads()).await.map(drop)
    }

    /// The workspaces.
    pub fn workspaces(&self) -> Workspaces<'_> {
        Workspaces(self)
    }

    /// The registered agents.
    pub fn agents(&self) -> Agents<'_> {
        Agents(self)
    }

    /// The environments, environment specs or compute specs.
    pub fn environments(&self, kind: EnvironmentKind) -> Environments<'_> {
        Environments { records: self, kind }
    }

    /// The filesets and their files.
    pub fn filesets(&self) -> Filesets<'_> {
        Filesets(self)
    }

    /// What names blobs.
    pub fn blobs(&self) -> Blobs<'_> {
        Blobs(self)
    }

    /// The sealed secrets.
    pub fn secrets(&self) -> Secrets<'_> {
        Secrets(self)
    }

    /// What callers of the API show.
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens(self)
    }

    /// The jobs.
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs(self)
    }

    /// The batches.
    pub fn batches(&self) -> Batches<'_> {
        Batches(self)
    }

    /// Takes in what the queue says of jobs. For the projector only.
    ///
    /// Facts may repeat, come late and in any order. No record is ever made here: the jobs that
    /// have none are named in the answer.
    pub async fn project(&self, changes: &[Change]) -> Result<Projected> {
        projection::project(self, changes).await
    }

    fn reads(&self) -> &sqlx::AnyPool {
        &self.0.reads
    }

    async fn write<A, T>(&self, input: A, run: Run<A, T>) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.0.writer.write(input, run).await
    }
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The pools would show the database's password.
        f.write_str("Records(…)")
    }
}

/// A fresh id of the form `<kind>-<base58>`, ordered by nothing.
fn fresh_id(kind: &str) -> String {
    format!("{kind}-{}", bs58::encode(uuid::Uuid::now_v7().as_bytes()).into_string())
}

#[cfg(test)]
pub(crate) mod tests;
