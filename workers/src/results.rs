//! Saving results: streamed, verified, and listed only when they are whole.

use std::io;
use std::path::{Path, PathBuf};

use errand_runner::run_dir;
use jiff::Timestamp;
use serde_json::Value;
use streams::fact::{OutputChanges, ResultKind, SavedResult, Skipped};
use streams::id::{Attempt, JobId};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::bundle::{self, Found, SkipList};
use crate::store::{self, Store, key};

/// The results that every run has, by name.
pub mod name {
    /// What the agent was given.
    pub const INPUT_WORKDIR: &str = "input_workdir";
    /// What it left behind.
    pub const OUTPUT_WORKDIR: &str = "output_workdir";
    /// Fabric's artifacts with the agent's output.
    pub const OUTPUT_ARTIFACTS: &str = "output_artifacts";
    /// What Fabric returned.
    pub const FABRIC_RUN_RESULT: &str = "fabric_run_result";
    /// Why it did not return.
    pub const FABRIC_ERROR: &str = "fabric_error";
}

/// Bytes of a file that are read at once.
const FILE_CHUNK_BYTES: usize = 256 * 1024;

/// Why a result is not saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The directory cannot be read.
    #[error("result '{name}' cannot be read: {source}")]
    Read {
        /// The result.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The store refused it.
    #[error("result '{name}' cannot be stored: {source}")]
    Store {
        /// The result.
        name: String,
        /// Why.
        source: store::Error,
    },
    /// The time for saving was over.
    #[error("result '{name}' was not saved within {seconds} s (worker.saving_seconds)")]
    Late {
        /// The result.
        name: String,
        /// The time.
        seconds: u64,
    },
}

/// Where the results of one attempt go.
#[derive(Clone)]
pub struct Results {
    /// The store.
    pub store: Store,
    /// The job's workspace.
    pub workspace: String,
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: Attempt,
    /// Whether the agent was interrupted, so that files may be half written.
    pub interrupted: bool,
    /// Whether a secret may be in the name of a file: then no name is told.
    pub hides_names: bool,
}

/// What stands for a name that is not told.
const HIDDEN: &str = "***";

impl Results {
    /// Saves a directory as a bundle.
    pub async fn directory(&self, name: &str, root: PathBuf) -> Result<SavedResult, SaveError> {
        self.compared(name, root, None).await
    }

    /// Saves a directory as a bundle, and says how it differs from what was given, by the list of
    /// that in a run directory.
    pub async fn compared(
        &self,
        name: &str,
        root: PathBuf,
        given: Option<PathBuf>,
    ) -> Result<SavedResult, SaveError> {
        let key = key::result_directory(&self.workspace, self.job, self.attempt, name);
        let mut upload = self.store.upload(&key);
        let (out, chunks) = bundle::pipe();
        let top = name.to_owned();
        // The writing end must be dropped on its thread: the upload ends when it is gone.
        let span = tracing::Span::current();
        let writing = tokio::task::spawn_blocking(move || {
            let _entered = span.entered();
            bundle::write_directory(&root, &top, out, given.as_deref()).map(|(_, report)| report)
        });
        let sent = bundle::send(chunks, &mut upload).await;
        let written = writing.await.map_err(io::Error::other).and_then(|written| written);
        // When the store fails the writer fails too, for want of a reader: the store's is the cause.
        let report = match (sent, written) {
            (Ok(()), Ok(report)) => report,
            (Err(source), _) => {
                upload.abort().await;
                return Err(SaveError::Store { name: name.to_owned(), source });
            }
            (Ok(()), Err(source)) => {
                upload.abort().await;
                return Err(SaveError::Read { name: name.to_owned(), source });
            }
        };
        let stored = |source| SaveError::Store { name: name.to_owned(), source };
        let object = upload.finish().await.map_err(stored)?;
        let output_changes = match report.changes {
            Some(found) => Some(self.changes(found).await.map_err(stored)?),
            None => None,
        };
        let saved = self.saved(name, ResultKind::Directory, object, report.skipped);
        Ok(SavedResult {
            // A file that was written to meanwhile may be torn.
            complete: saved.complete && report.changed.is_empty(),
            changed_while_saved: report.changed.into_iter().map(|path| self.told(path)).collect(),
            output_changes,
            ..saved
        })
    }

    fn told(&self, path: String) -> String {
        if self.hides_names { HIDDEN.to_owned() } else { path }
    }

    /// What is told of changes in a fact; all of them go to the store when that is not all.
    async fn changes(&self, found: Found) -> Result<OutputChanges, store::Error> {
        if self.hides_names {
            return Ok(OutputChanges { totals: found.totals(), ..OutputChanges::default() });
        }
        let ([added, modified, deleted], totals) = (found.named(), found.totals());
        let mut changes = OutputChanges { added, modified, deleted, totals, all: None };
        if found.is_cut() {
            let key = key::output_changes(&self.workspace, self.job, self.attempt);
            let mut upload = self.store.upload(&key);
            let (out, chunks) = bundle::pipe();
            let writing = tokio::task::spawn_blocking(move || found.write_all(out));
            let sent = bundle::send(chunks, &mut upload).await;
            let written = writing.await.map_err(io::Error::other).and_then(|written| written);
            let written = written.map_err(|error| store::Error::new("write", &key, error));
            if let Err(error) = sent.and(written) {
                upload.abort().await;
                return Err(error);
            }
            changes.all = Some(upload.finish().await?);
        }
        Ok(changes)
    }

    /// Saves a regular file as it is.
    pub async fn file(&self, name: &str, path: &Path) -> Result<SavedResult, SaveError> {
        let read = |source| SaveError::Read { name: name.to_owned(), source };
        let stored = |source| SaveError::Store { name: name.to_owned(), source };
        let mut file = File::from_std(run_dir::open_regular(path).map_err(read)?);
        let key = key::result_file(&self.workspace, self.job, self.attempt, name);
        let mut upload = self.store.upload(&key);
        let mut chunk = vec![0; FILE_CHUNK_BYTES];
        let sent = loop {
            match file.read(&mut chunk).await {
                Ok(0) => break Ok(()),
                Ok(count) => match upload.write(&chunk[..count]).await {
                    Ok(()) => {}
                    Err(error) => break Err(stored(error)),
                },
                Err(error) => break Err(read(error)),
            }
        };
        if let Err(error) = sent {
            upload.abort().await;
            return Err(error);
        }
        let object = upload.finish().await.map_err(stored)?;
        let saved = self.saved(name, ResultKind::File, object, SkipList::default());
        Ok(SavedResult { complete: !self.interrupted, ..saved })
    }

    /// Saves a JSON record, indented, with a newline at its end.
    pub async fn record(&self, name: &str, value: &Value) -> Result<SavedResult, SaveError> {
        let key = key::result_record(&self.workspace, self.job, self.attempt, name);
        let mut bytes = serde_json::to_vec_pretty(value)
            .map_err(|error| SaveError::Read { name: name.to_owned(), source: error.into() })?;
        bytes.push(b'\n');
        let object = self.store.put(&key, bytes.into()).await;
        let object = object.map_err(|source| SaveError::Store { name: name.to_owned(), source })?;
        Ok(self.saved(name, ResultKind::File, object, SkipList::default()))
    }

    fn saved(
        &self,
        name: &str,
        kind: ResultKind,
        object: streams::snapshot::ObjectRef,
        skipped: SkipList,
    ) -> SavedResult {
        // A record is written in one piece, whatever became of the agent.
        let partial = kind == ResultKind::Directory && self.interrupted;
        SavedResult {
            name: name.to_owned(),
            kind,
            object,
            complete: !partial && skipped.is_empty(),
            skipped: skipped
                .named
                .into_iter()
                .map(|it| Skipped { path: self.told(it.path), ..it })
                .collect(),
            skipped_more: skipped.more,
            changed_while_saved: Vec::new(),
            secret_detected: Vec::new(),
            unsearched: false,
            output_changes: None,
            saved_at: Timestamp::now(),
        }
    }
}

/// Makes sure that a directory of a run is one of its own. Who ran there may have removed it; an
/// empty one is what it left then. It may also have put a link in its place, which must not lead
/// the platform to files of its own.
pub(crate) fn own(run: &Path, root: &Path) -> io::Result<()> {
    if root.symlink_metadata().is_err() {
        run_dir::make_inside(run, root)?;
    }
    let leads_out = !root.canonicalize()?.starts_with(run.canonicalize()?);
    if leads_out || root.symlink_metadata()?.is_symlink() {
        return Err(io::Error::other("the agent put a link in its place"));
    }
    Ok(())
}
