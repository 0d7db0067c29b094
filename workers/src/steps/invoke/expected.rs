//! `expect_files`: an agent that says that it succeeded must have left them. A harness that was
//! ended half way may say so too, and then this is what tells.

use std::path::Path;

use errand_runner::{End, Failure, Outcome as RunOutcome};
use streams::snapshot::Snapshot;
use tokio::task::spawn_blocking;

use super::Invoke;
use crate::actions::Pattern;
use crate::bundle;
use crate::executor::{Places, RunName};
use crate::results::own;
use crate::step::StepError;

impl Invoke {
    /// How a run ended in view of what it left. It is asked before anything is decided, and the
    /// directory stands until the job is finished: whoever comes later comes to the same answer.
    pub(super) async fn with_what_it_left(
        &self,
        snapshot: &Snapshot,
        run: RunName,
        told: RunOutcome,
    ) -> Result<RunOutcome, StepError> {
        if told.end != End::Succeeded || snapshot.expect_files.is_empty() {
            return Ok(told);
        }
        let Places { root, workdir, .. } =
            self.executor.places(run, &snapshot.spec.agent.config)?;
        let expected = snapshot.expect_files.clone();
        let looked = spawn_blocking(move || missing(&root, &workdir, &expected)).await;
        let missing = looked.map_err(StepError::retry)?;
        if missing.is_empty() {
            return Ok(told);
        }
        let message = format!(
            "the agent said that it succeeded and left no file at {} (expect_files)",
            missing.join(", ")
        );
        Ok(RunOutcome { end: End::Failed, failure: Some(Failure::NoResult), message, ..told })
    }
}

/// The expected paths at which there is no file: all of them in a directory that cannot be read.
fn missing(run: &Path, workdir: &Path, expected: &[String]) -> Vec<String> {
    let patterns = expected.iter().filter_map(|path| Some((path, Pattern::parse(path).ok()?)));
    let mut unmatched: Vec<_> = patterns.collect();
    let walked = own(run, workdir).and_then(|()| {
        bundle::each_file(workdir, |path| {
            let path = String::from_utf8_lossy(path);
            unmatched.retain(|(_, pattern)| !pattern.matches(&path));
        })
    });
    match walked {
        Ok(()) => unmatched.iter().map(|(path, _)| format!("'{path}'")).collect(),
        Err(error) => vec![format!("'{}': {error}", expected.join("', '"))],
    }
}
