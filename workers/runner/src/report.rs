//! What the processes inside tell the supervisor, through files in `io/` of the run directory.
//!
//! The host writes `invoked` when the invocation begins and `host.json` when it has ended; output
//! of the agent grows in three more. Nothing here is masked: the supervisor masks what it passes
//! on.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use errand_runner::{Failure, RunDir, run_dir};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The invocation has begun.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Invoked {
    pub(crate) at: Timestamp,
}

/// The invocation has ended, or never began.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// Fabric returned this run result (its own JSON form).
    Returned(Value),
    /// Fabric could not start or finish the invocation.
    Raised(Raised),
}

/// Why Fabric gave no result, in the words of `fabric_error`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Raised {
    pub(crate) kind: Kind,
    pub(crate) failure: Failure,
    /// One sentence for a person.
    pub(crate) sentence: String,
    /// The whole text, diagnostics included.
    pub(crate) message: String,
    /// The error below, in its own words.
    pub(crate) cause: Option<String>,
    /// What Fabric kept of the adapter's stderr.
    pub(crate) diagnostics: String,
    /// Whether the adapter was there and went away.
    pub(crate) crashed: bool,
}

/// The classes of the reference's Python errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Config,
    Start,
    Execution,
    Timeout,
}

impl Kind {
    /// `type` of `fabric_error`.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Config => "FabricConfigError",
            Self::Start => "FabricRuntimeStartError",
            Self::Execution => "FabricRuntimeExecutionError",
            Self::Timeout => "FabricRuntimeTimeoutError",
        }
    }

    /// `cause_type` of `fabric_error`, when there is a cause.
    pub(crate) fn class_of_cause(self) -> &'static str {
        match self {
            Self::Timeout => "TimeoutError",
            Self::Config | Self::Start | Self::Execution => "FabricRuntimeError",
        }
    }
}

impl Raised {
    /// A refusal before any adapter was started.
    pub(crate) fn refused(failure: Failure, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self {
            kind: Kind::Config,
            failure,
            message: sentence.clone(),
            sentence,
            cause: None,
            diagnostics: String::new(),
            crashed: false,
        }
    }

    /// A result that cannot be kept for its length.
    pub(crate) fn too_long() -> Self {
        let sentence = format!(
            "the agent's run result is longer than {} MiB of JSON: let the agent write what is \
             large into files",
            MOST_BYTES / (1024 * 1024)
        );
        Self { kind: Kind::Execution, ..Self::refused(Failure::AdapterProtocol, sentence) }
    }
}

/// Where the beginning of the invocation is noted.
pub(crate) fn invoked_path(run: &RunDir) -> PathBuf {
    run.io().join("invoked")
}

/// Where its end is noted.
pub(crate) fn report_path(run: &RunDir) -> PathBuf {
    run.io().join("host.json")
}

/// Bytes of JSON that a report may have. Kept as values it takes many times that, and the agent
/// decides how many.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// Bytes of JSON that a run result may have in the outcome. There the response stands twice; what
/// is still longer has grown in being written anew, as a number like `1e9` does.
pub(crate) const MOST_BYTES_OF_A_RESULT: usize = 2 * MOST_BYTES as usize;

/// Reads when the invocation began, if it has. The file is looked at again and again, so a long
/// one must not take long.
pub(crate) fn read_invoked(run: &RunDir) -> Option<Invoked> {
    let bytes = run_dir::read_bounded(&invoked_path(run), 1024).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Reads the report, if there is one that can be understood. One that is too long is taken for
/// the failure that it is.
pub(crate) fn read(run: &RunDir) -> Option<Report> {
    match run_dir::read_bounded(&report_path(run), MOST_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes).ok(),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Some(Report::Raised(Raised::too_long()))
        }
        Err(_) => None,
    }
}

/// Writes one of the host's two so that a reader sees all of it or nothing. It need not survive a loss
/// of power, for then nobody is left to read it, so nothing waits for the disk.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let partial = path.with_extension("partial");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    fs::rename(partial, path)
}
