//! From what happened to `outcome.json`: which end, which code, which words.

use std::path::PathBuf;

use errand_runner::{End as OutcomeEnd, Failure, Outcome, SecretsFound};
use jiff::Timestamp;
use rustix::process::WaitStatus;
use serde_json::{Value, json};

use super::limits::Limits;
use super::watch::End;
use crate::limit;
use crate::log::Log;
use crate::report::{self, Kind, Raised, Report};

mod result;

/// What the session saw.
pub(super) struct Ended {
    pub(super) end: End,
    pub(super) host_status: Option<WaitStatus>,
    pub(super) killed: u32,
    pub(super) invoked_at: Option<Timestamp>,
    pub(super) limit_seconds: f64,
    pub(super) lease_seconds: Option<f64>,
    /// What the host itself wrote on stderr; normally nothing.
    pub(super) host_words: String,
}

/// An outcome in the making.
pub(super) struct Verdict {
    outcome: Outcome,
}

impl Verdict {
    /// The run could not begin.
    pub(super) fn raised(raised: Raised) -> Self {
        let mut verdict = Self::empty(None, 0);
        verdict.set_raised(OutcomeEnd::Raised, raised);
        verdict
    }

    /// The supervisor itself broke off, once nothing of the agent was left.
    pub(super) fn broken_off(ended: &Ended) -> Self {
        let mut verdict = Self::empty(ended.invoked_at, ended.killed);
        let sentence = "how the agent ended cannot be told: errand-runner met a fault of its own \
                        while it looked at what the agent left; report it, with the worker's log";
        let raised = raised(Kind::Execution, Failure::AdapterProtocol, sentence.into());
        verdict.set_raised(OutcomeEnd::Raised, raised);
        verdict
    }

    /// Weighs what the session saw against what the host reported.
    pub(super) fn of(ended: &Ended, reported: Option<Report>) -> Self {
        let mut verdict = Self::empty(ended.invoked_at, ended.killed);
        match &ended.end {
            End::Host => match reported {
                Some(Report::Returned(result)) => verdict.set_returned(ended, &result),
                Some(Report::Raised(raised)) if raised.failure == Failure::Timeout => {
                    verdict.set_raised(OutcomeEnd::TimedOut, raised);
                }
                Some(Report::Raised(raised)) => verdict.set_raised(OutcomeEnd::Raised, raised),
                None => verdict.set_raised(OutcomeEnd::Raised, host_broke(ended)),
            },
            End::Limit => verdict.set_raised(OutcomeEnd::TimedOut, timed_out(ended)),
            End::Idle(seconds) => verdict.set_raised(OutcomeEnd::TimedOut, idle(*seconds)),
            End::NotStarted => verdict.set_raised(OutcomeEnd::Raised, not_started()),
            End::Asked(reason) => verdict.set_raised(OutcomeEnd::Stopped, asked(reason)),
            End::Lease => verdict.set_raised(OutcomeEnd::Stopped, lease_over(ended)),
        }
        verdict
    }

    /// An agent that has failed, and of whose processes one was killed for want of memory, has
    /// failed for that. One that succeeded all the same has succeeded; an end that was wanted
    /// (the limit of time, a cancel) stays what it is.
    pub(super) fn weigh_limits(&mut self, limits: &Limits) {
        let Some(reason) = &limits.want_of_memory else { return };
        match self.outcome.end {
            OutcomeEnd::Raised => {
                let raised = raised(Kind::Execution, Failure::OomKilled, reason.clone());
                self.set_raised(OutcomeEnd::Raised, Raised { crashed: true, ..raised });
            }
            OutcomeEnd::Failed => {
                let own = std::mem::replace(&mut self.outcome.message, reason.clone());
                self.outcome.failure = Some(Failure::OomKilled);
                self.outcome.interrupted = true;
                if let Some(result) = &mut self.outcome.run_result {
                    let error = &mut result["error"];
                    if !error.is_object() {
                        *error = json!({"retryable": false, "metadata": {}});
                    }
                    error["code"] = json!(Failure::OomKilled);
                    error["message"] = format!("{reason}; {own}").into();
                }
            }
            OutcomeEnd::Succeeded | OutcomeEnd::TimedOut | OutcomeEnd::Stopped => {}
        }
    }

    /// Lists files that were moved into the artifacts, when there is a result to list them in.
    pub(super) fn add_artifacts(&mut self, artifacts: Vec<Value>) {
        let result = self.outcome.run_result.as_mut();
        let listed = result.and_then(|it| it.pointer_mut("/artifacts/artifacts"));
        if let Some(listed) = listed.and_then(Value::as_array_mut) {
            listed.extend(artifacts);
        }
    }

    /// Where secrets are in what is left.
    pub(super) fn add_secrets_found(&mut self, found: SecretsFound) {
        self.outcome.secrets_found = found;
    }

    /// How many processes are left that could not be killed.
    pub(super) fn set_left(&mut self, left: usize) {
        self.outcome.left = u32::try_from(left).unwrap_or(u32::MAX);
    }

    /// Whether the agent did what it was asked for.
    pub(super) fn is_success(&self) -> bool {
        self.outcome.end == OutcomeEnd::Succeeded
    }

    /// Files in which Fabric has kept the adapter's stderr; the log has it from its source.
    pub(super) fn stderr_files(&self) -> Vec<PathBuf> {
        let listed =
            self.outcome.run_result.as_ref().map(|result| &result["artifacts"]["artifacts"]);
        let files = listed.and_then(Value::as_array).into_iter().flatten();
        let own = files.filter(|file| file["name"] == "stderr");
        own.filter_map(|file| file["path"].as_str()).map(PathBuf::from).collect()
    }

    /// How the run ended, for the log.
    pub(super) fn sentence_about(&self, agent: &str) -> String {
        let begun = self.outcome.invoked_at.unwrap_or(self.outcome.ended_at);
        let seconds = self.outcome.ended_at.duration_since(begun).as_secs_f64();
        let message = &self.outcome.message;
        match (self.outcome.end, &self.outcome.run_result) {
            (OutcomeEnd::Stopped, _) => {
                format!("Agent {agent} stopped after {seconds:.1}s: {message}")
            }
            (_, Some(result)) => format!(
                "Agent {agent} returned status={} after {seconds:.1}s.",
                result["status"].as_str().unwrap_or("unknown")
            ),
            (_, None) => {
                format!("Fabric invocation failed for agent {agent} after {seconds:.1}s: {message}")
            }
        }
    }

    /// Why an agent that returned has failed, and the ids by which Fabric knows the run.
    pub(super) fn reason_of(&self, agent: &str) -> Option<String> {
        let result = self.outcome.run_result.as_ref().filter(|_| !self.is_success())?;
        let word = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
        let error = match result["error"]["code"].as_str() {
            Some(code) => format!("{code}: {}", self.outcome.message),
            None => self.outcome.message.clone(),
        };
        Some(format!(
            "Agent {agent} failed: fabric_status={} error={error} (runtime_id={} invocation_id={}).",
            word(&result["status"]),
            word(&result["runtime_id"]),
            word(&result["invocation_id"]),
        ))
    }

    /// Adds what the log knows, and masks.
    pub(super) fn finish(&mut self, log: &Log) {
        self.outcome.log_lines = log.lines();
        let mask = log.mask();
        if let Some(result) = &mut self.outcome.run_result {
            if result["output"]["response_cut"] == true {
                for at in ["/response", "/output/response"] {
                    let Some(response) = result.pointer_mut(at) else { continue };
                    if let Some(text) = response.as_str() {
                        *response = mask.cut_text(text).into();
                    }
                }
            }
            mask.record(result);
        }
        self.outcome.message = mask.text(&self.outcome.message);
        if let Some(error) = &mut self.outcome.error {
            error["stderr_tail"] = log.stderr_tail().into();
            mask.record(error);
        }
    }

    pub(super) fn into_outcome(mut self, started_at: Timestamp) -> Outcome {
        self.outcome.started_at = started_at;
        self.outcome
    }

    fn empty(invoked_at: Option<Timestamp>, killed: u32) -> Self {
        let now = limit::now();
        Self {
            outcome: Outcome {
                version: 1,
                end: OutcomeEnd::Succeeded,
                failure: None,
                message: String::new(),
                interrupted: false,
                started_at: now,
                invoked_at,
                ended_at: now,
                run_result: None,
                error: None,
                usage: None,
                log_lines: 0,
                killed,
                left: 0,
                secrets_found: SecretsFound::default(),
            },
        }
    }

    fn set_raised(&mut self, end: OutcomeEnd, raised: Raised) {
        let timed_out = end == OutcomeEnd::TimedOut;
        self.outcome.end = end;
        self.outcome.failure = Some(raised.failure);
        self.outcome.interrupted =
            raised.crashed || matches!(end, OutcomeEnd::TimedOut | OutcomeEnd::Stopped);
        self.outcome.message = raised.sentence;
        self.outcome.error = Some(json!({
            "type": raised.kind.class(),
            "message": raised.message,
            "fabric_status": if timed_out { "timeout" } else { "error" },
            "timed_out": timed_out,
            "code": raised.failure,
            "cause_type": raised.cause.as_ref().map(|_| raised.kind.class_of_cause()),
            "cause_message": raised.cause,
            "stderr_tail": "",
        }));
    }

    fn set_returned(&mut self, ended: &Ended, result: &Value) {
        let shape = result::reference_shape(result);
        if !is_kept(&shape) {
            self.set_raised(OutcomeEnd::Raised, Raised::too_long());
            return;
        }
        if result["status"] == "succeeded" {
            self.outcome.end = OutcomeEnd::Succeeded;
        } else {
            let failure = result::failure(result);
            if failure == Failure::Timeout {
                // The adapter met the limit a moment before the supervisor did.
                self.set_raised(OutcomeEnd::TimedOut, timed_out(ended));
                return;
            }
            self.outcome.end = OutcomeEnd::Failed;
            self.outcome.failure = Some(failure);
            self.outcome.interrupted = failure == Failure::AgentCrashed;
            self.outcome.message = result::message(result);
        }
        self.outcome.usage = result::usage(result);
        self.outcome.run_result = Some(shape);
    }
}

/// Whether whoever reads the outcome will take so much.
fn is_kept(result: &Value) -> bool {
    serde_json::to_vec(result).is_ok_and(|json| json.len() <= report::MOST_BYTES_OF_A_RESULT)
}

fn raised(kind: Kind, failure: Failure, sentence: String) -> Raised {
    Raised { kind, ..Raised::refused(failure, sentence) }
}

fn timed_out(ended: &Ended) -> Raised {
    let sentence = format!("Fabric runtime invocation timed out after {}s.", ended.limit_seconds);
    Raised { cause: Some(String::new()), ..raised(Kind::Timeout, Failure::Timeout, sentence) }
}

fn idle(seconds: f64) -> Raised {
    let sentence = format!("no output for {seconds} s");
    Raised { cause: Some(String::new()), ..raised(Kind::Timeout, Failure::IdleTimeout, sentence) }
}

fn not_started() -> Raised {
    let sentence = "Fabric runtime startup failed: the adapter was not ready in time";
    raised(Kind::Start, Failure::AdapterProtocol, sentence.into())
}

fn asked(reason: &str) -> Raised {
    let sentence = match reason {
        "" | "cancel" => "Fabric runtime invocation was cancelled.".to_owned(),
        other => format!("Fabric runtime invocation was stopped: {other}"),
    };
    raised(Kind::Execution, Failure::Cancelled, sentence)
}

fn lease_over(ended: &Ended) -> Raised {
    let sentence = format!(
        "Fabric runtime invocation was stopped: no worker has renewed its lease for {}s.",
        ended.lease_seconds.unwrap_or_default()
    );
    raised(Kind::Execution, Failure::WorkerLost, sentence)
}

fn host_broke(ended: &Ended) -> Raised {
    let how = match ended.host_status {
        Some(status) => match (status.terminating_signal(), status.exit_status()) {
            (Some(signal), _) => format!("it was killed by signal {signal}"),
            (None, Some(code)) => format!("it exited with code {code}"),
            (None, None) => "nobody knows how".to_owned(),
        },
        None => "it had to be killed".to_owned(),
    };
    let sentence = format!("the Fabric host ended without a report: {how}");
    let message = match ended.host_words.as_str() {
        "" => sentence.clone(),
        words => format!("{sentence}; diagnostics: {words}"),
    };
    Raised { message, crashed: true, ..raised(Kind::Execution, Failure::AgentCrashed, sentence) }
}

#[cfg(test)]
mod tests;
