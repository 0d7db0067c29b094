//! What is said of an agent that was lost: its runner can say nothing itself. After which ends
//! another attempt may follow is no affair of this file, but of `streams::attempt`.

use errand_runner::{End, Failure, Outcome as RunOutcome, RunDir, SecretsFound, output};
use jiff::Timestamp;
use serde_json::json;
use streams::claim::Start;
use streams::code::Code;
use streams::id::Attempt;
use streams::snapshot::Snapshot;

use super::Invoke;
use crate::executor::RunName;
use crate::step::StepError;

/// How an agent can be lost.
pub(super) const SUPERVISOR: &str = "the agent's supervisor died while the agent ran";
pub(super) const PLACE: &str = "the agent was lost with the place where it ran";

/// What is said in the runner's place.
pub(super) fn told(how: &str, start: Option<&Start>) -> RunOutcome {
    let now = Timestamp::now();
    let error = json!({
        "type": "FabricRuntimeExecutionError",
        "message": how,
        "fabric_status": "error",
        "timed_out": false,
        "code": Code::WorkerLost,
        "cause_type": null,
        "cause_message": null,
        "stderr_tail": "",
    });
    RunOutcome {
        version: 1,
        end: End::Raised,
        failure: Some(Failure::WorkerLost),
        message: how.to_owned(),
        interrupted: true,
        started_at: start.map_or(now, |start| start.at),
        invoked_at: None,
        ended_at: now,
        run_result: None,
        error: Some(error),
        usage: None,
        log_lines: 0,
        killed: 0,
        left: 0,
        secrets_found: SecretsFound::default(),
    }
}

impl Invoke {
    /// Moves what the agent wrote on stdout and stderr into its artifacts, as its runner would have.
    /// Nothing of the agent is left by now.
    pub(super) fn keep_output(&self, snapshot: &Snapshot, run: RunName) -> Result<(), StepError> {
        let places = self.executor.places(run, &snapshot.spec.agent.config)?;
        // A few renames; whoever simulates the chain wants no other thread in it.
        let kept = output::keep(&RunDir::new(places.root), &places.artifacts, false);
        for problem in kept.problems {
            tracing::warn!(problem, "an output is not kept");
        }
        Ok(())
    }
}

/// Adds how often it happened to the words about an agent that was lost: every attempt before this
/// one was, or there had not been another.
pub(super) fn counted(mut told: RunOutcome, attempt: Attempt) -> RunOutcome {
    if told.failure != Some(Failure::WorkerLost) {
        return told;
    }
    let times = match attempt.0 {
        1 => String::new(),
        2 => " twice".to_owned(),
        n => format!(" {n} times"),
    };
    told.message = format!("worker died{times} while running this job: {}", told.message);
    if let Some(error) = &mut told.error {
        error["message"] = told.message.clone().into();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_how_often_it_happened() {
        for (attempt, words) in [
            (1, "worker died while running this job: x"),
            (2, "worker died twice while running this job: x"),
            (3, "worker died 3 times while running this job: x"),
        ] {
            let told = counted(told("x", None), Attempt(attempt));
            assert_eq!(told.message, words);
            assert_eq!(told.error.expect("an error")["message"], words);
        }
        let timed_out = RunOutcome { failure: Some(Failure::Timeout), ..told("x", None) };
        assert_eq!(counted(timed_out, Attempt(2)).message, "x");
    }
}
