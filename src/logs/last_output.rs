//! When an agent said something last, from the newest batch of its log alone: the lines of the
//! platform are none of its words, and what is older than that batch is not looked for.

use jiff::Timestamp;
use streams::broker::{Broker, Error};
use streams::id::{Attempt, JobId};
use streams::log::{Lines, LogBatch, LogStream};
use streams::subject;
use streams::topology::StreamName;

/// The time of the last line that this attempt of a job's agent wrote; `None` before the first.
pub async fn last_output(
    broker: &dyn Broker,
    workspace: &str,
    job: JobId,
    attempt: Attempt,
) -> Result<Option<Timestamp>, Error> {
    let subject = subject::logs(workspace, job);
    let Some(stored) = broker.last(StreamName::Logs, &subject).await? else { return Ok(None) };
    // A batch that cannot be read says nothing here; whoever reads the log is told.
    let batch = serde_json::from_slice::<LogBatch>(&stored.payload).ok();
    Ok(batch.filter(|batch| batch.attempt == attempt).and_then(|batch| match batch.lines {
        Lines::Inline(lines) => {
            lines.iter().rfind(|line| line.stream != LogStream::Platform).map(|line| line.at)
        }
        // An agent that fills the store writes all the time.
        Lines::Stored(_) => Some(stored.at),
    }))
}
