//! What the steps need of the world of records and does not live here: the root crate has it.

use std::collections::BTreeMap;
use std::io;

use async_trait::async_trait;
use bytes::Bytes;
/// The shortest value of a secret, in bytes, that is masked.
pub use errand_runner::SHORTEST_MASKED;
use futures_util::stream::BoxStream;
use streams::fact::Submitted;
use streams::id::JobId;
use streams::snapshot::Snapshot;

/// What admission said of a job.
#[derive(Clone, Debug)]
pub enum Admission {
    /// Its record stands, with this snapshot. The same for every caller, ever.
    Admitted(Box<Snapshot>),
    /// Its spec cannot be run: the text that the HTTP API gives for it.
    Refused(String),
    /// It was deleted, or it is finished and its facts have left the streams; nothing of it may
    /// come back.
    Deleted,
}

/// A port that did not answer; the step is tried again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// Admission: the only way in which a job record is made.
#[async_trait]
pub trait Catalog: Send + Sync + 'static {
    /// Idempotent by id, unique by name in its workspace. A job that has a record already keeps
    /// its snapshot, whatever the message says.
    async fn admit(
        &self,
        job: JobId,
        workspace: &str,
        submitted: &Submitted,
    ) -> Result<Admission, Unavailable>;
}

/// Why secrets could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// One of them does not exist any more.
    #[error("secret '{reference}' for variable {variable} does not exist")]
    Missing {
        /// The variable that it was to fill.
        variable: String,
        /// The reference.
        reference: String,
    },
    /// The store did not answer.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Opens secrets, at launch and only then.
#[async_trait]
pub trait Secrets: Send + Sync + 'static {
    /// The values of `variable → reference`; a bare reference means the job's workspace.
    async fn open(
        &self,
        workspace: &str,
        references: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, SecretsError>;
}

/// Why files could not be put into a fileset.
#[derive(Debug, thiserror::Error)]
pub enum FilesetsError {
    /// They do not fit there.
    #[error("{0}")]
    Refused(String),
    /// The store or the records did not answer.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Puts files into filesets.
#[async_trait]
pub trait Filesets: Send + Sync + 'static {
    /// Makes a fileset unless it is there.
    async fn ensure(&self, workspace: &str, fileset: &str) -> Result<(), FilesetsError>;

    /// Writes one file under each of these paths, over older ones. It may be done again.
    async fn put(
        &self,
        workspace: &str,
        fileset: &str,
        paths: &[String],
        mode: u32,
        bytes: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), FilesetsError>;
}
