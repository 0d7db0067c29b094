//! What facts and news make of a job, without a database.
//!
//! Every change commutes with every other: whatever the order in which a job's facts arrive and
//! however often, the same job comes out. What users see is derived when it is asked for.

mod runs;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use streams::attempt::AttemptEnd;
use streams::id::{Attempt, JobId};
use streams::job::{self, Step, Transition};
use streams::outcome::{Outcome, Status};
use streams::phase::Phase;
use streams::status::StatusMessage;

use runs::Runs;

use crate::records::Result;
use crate::records::projection::{Change, News, Proof};
use crate::records::statement::{Row, Statement, sql};

/// The changing part of a job.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::records) struct Life {
    pub(in crate::records) id: JobId,
    pub(in crate::records) name: String,
    pub(in crate::records) workspace: String,
    pub(super) facts: job::Job,
    pub(super) phase_times: BTreeMap<Phase, Timestamp>,
    runs: Runs,
    running: Option<Running>,
    patched_details: Map<String, Value>,
}

/// What the worker of the last attempt that was seen to run says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Running {
    attempt: Attempt,
    /// The first that was heard of it.
    since: Timestamp,
    /// The last that was heard of it, and when.
    details: Map<String, Value>,
    details_at: Timestamp,
}

/// The key of the details under which a worker tells of earlier attempts.
const ATTEMPTS: &str = "attempts";

/// The keys of the details that say how a job ended.
const ENDING_KEYS: [&str; 3] = ["message", "exit_code", "code"];

impl Life {
    /// Takes in a change. Returns what to tell the world: what advanced the job, and what was
    /// delivered before, because that may not have been told.
    pub(in crate::records) fn apply(&mut self, change: &Change) -> Option<StatusMessage> {
        match &change.news {
            News::Running { attempt, details } => {
                self.running(*attempt, change.at, details);
                None
            }
            News::Waiting { details } => {
                self.runs.waits(change.at, details);
                None
            }
            News::Fact(proof) => {
                let is_news = self.proved(proof, change.at);
                (is_news || change.redelivered).then(|| self.message(proof, change.at))
            }
        }
    }

    /// That the job was made, if nobody was told by the time that something comes after it. The
    /// first fact of one that was not made over HTTP is read before there is a record.
    pub(in crate::records) fn untold(&self, change: &Change) -> Option<StatusMessage> {
        let News::Fact(proof) = &change.news else { return None };
        let is_untold = self.phase_times.is_empty() && self.facts.phase == Phase::Submitted;
        let made = Proof {
            phase: Phase::Submitted,
            outcome: None,
            run: None,
            attempts: Vec::new(),
            results: Vec::new(),
        };
        (is_untold && proof.phase > Phase::Submitted).then(|| self.message(&made, change.at))
    }

    /// Returns whether the job was not known to be there or further.
    fn proved(&mut self, proof: &Proof, at: Timestamp) -> bool {
        let step = Step { phase: proof.phase, outcome: proof.outcome.clone() };
        let transition = self.facts.apply(&step);
        let is_first = !self.phase_times.contains_key(&proof.phase);
        self.phase_times.entry(proof.phase).or_insert(at);
        self.runs.proved(proof.run.as_ref(), &proof.attempts);
        if transition == Transition::Advanced && proof.phase == Phase::Archived {
            // The newest word counts, and that is how the job ended. What callers say from now
            // on is newer still.
            self.patched_details.retain(|key, _| !ENDING_KEYS.contains(&key.as_str()));
        }
        is_first && transition != Transition::Stale
    }

    fn running(&mut self, attempt: Attempt, at: Timestamp, details: &Map<String, Value>) {
        self.facts.started(attempt);
        let news = Running { attempt, since: at, details: details.clone(), details_at: at };
        self.running = Some(match self.running.take() {
            Some(known) => known.with(news),
            None => news,
        });
    }

    /// What users see.
    pub(super) fn status(&self) -> Status {
        self.facts.status()
    }

    /// The start of the agent that counts, or the one that runs.
    pub(super) fn attempt(&self) -> Option<Attempt> {
        attempt_of(&self.runs, self.running.as_ref())
    }

    pub(super) fn started_at(&self) -> Option<Timestamp> {
        let counts = self.runs.counts.as_ref();
        counts.map(|run| run.started_at).or(self.running.as_ref().map(|it| it.since))
    }

    /// The starts of the agent that are over; while another one runs, as its worker says.
    pub(super) fn attempts(&self) -> Vec<AttemptEnd> {
        if !self.runs.attempts.is_empty() {
            return self.runs.attempts.clone();
        }
        let told = self.running.as_ref().and_then(|running| running.details.get(ATTEMPTS));
        told.and_then(|told| Vec::deserialize(told).ok()).unwrap_or_default()
    }

    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        self.phase_times.get(&Phase::Archived).copied()
    }

    /// The reference's details, in the words that it has for subprocesses.
    pub(super) fn status_details(&self) -> Map<String, Value> {
        self.details_at(&self.facts)
    }

    fn details_at(&self, facts: &job::Job) -> Map<String, Value> {
        let mut details = self.own_details(facts);
        details.extend(self.patched_details.clone());
        details
    }

    /// Those that no caller gave.
    pub(super) fn own_details(&self, facts: &job::Job) -> Map<String, Value> {
        let mut details = Map::new();
        let mut say = |pairs: Value| details.extend(pairs.as_object().cloned().unwrap_or_default());
        let running = || self.running.as_ref().map_or(Value::Null, Running::shown);
        match facts.status() {
            Status::Created => {}
            Status::Pending => {
                say(json!({"message": "Subprocess scheduled"}));
                say(self.waits());
            }
            held @ (Status::Pausing | Status::Paused | Status::Resuming) => {
                say(json!({"message": format!("Job is {held}")}));
            }
            Status::Active => {
                say(json!({"message": "Job is running"}));
                say(running());
                say(self.waits());
            }
            Status::Cancelling => {
                say(running());
                say(json!({"message": "Job is cancelling"}));
            }
            ended @ (Status::Completed | Status::Cancelled | Status::Error) => {
                say(running());
                let (message, exit_code) = ending(ended);
                say(json!({"message": message, "exit_code": exit_code}));
                if let Some(code) = facts.outcome.as_ref().and_then(Outcome::code) {
                    say(json!({"code": code}));
                }
            }
        }
        if let Some(usage) = self.runs.counts.as_ref().and_then(|run| run.usage) {
            let (input, output) = (usage.input_tokens, usage.output_tokens);
            say(json!({"input_tokens": input, "output_tokens": output}));
        }
        details
    }

    /// What the job waits for, unless an attempt was seen to run since.
    fn waits(&self) -> Value {
        let since = self.running.as_ref().map_or(Timestamp::MIN, |running| running.details_at);
        let waits = self.runs.waits.as_ref().filter(|waits| waits.at > since);
        waits.map_or(Value::Null, |waits| waits.details.clone().into())
    }

    /// Why it ended in an error.
    pub(super) fn error_details(&self) -> Option<Value> {
        let outcome = self.facts.outcome.as_ref().filter(|_| self.status() == Status::Error)?;
        let (message, _) = ending(Status::Error);
        Some(json!({"message": message, "code": outcome.code(), "error": outcome.message()}))
    }

    /// What a fact means, also when the job is further by now.
    fn message(&self, proof: &Proof, at: Timestamp) -> StatusMessage {
        let mut then = self.facts.clone();
        if proof.phase < then.phase {
            (then.phase, then.outcome) = (proof.phase, proof.outcome.clone());
        }
        StatusMessage {
            v: 1,
            job: self.id,
            workspace: self.workspace.clone(),
            name: self.name.clone(),
            at,
            status: then.status(),
            phase: then.phase,
            attempt: self.attempt(),
            code: then.outcome.as_ref().and_then(Outcome::code),
            message: then.outcome.as_ref().map_or("", Outcome::message).to_owned(),
            details: self.details_at(&then),
        }
    }

    /// The columns that [`Self::read`] needs.
    pub(in crate::records) const COLUMNS: &'static str = "id, name, workspace, phase, outcome, run,
         phase_times, running, cancel_requested, hold, patched_details";

    pub(in crate::records) fn read(row: &Row) -> Result<Self> {
        let running: Option<Running> = row.optional_json("running")?;
        let mut facts = job::Job {
            phase: row.word("phase")?,
            outcome: row.optional_json("outcome")?,
            running: None,
            cancel_requested: row.flag("cancel_requested")?,
            hold: row.word("hold")?,
        };
        if let Some(running) = &running {
            facts.started(running.attempt);
        }
        Ok(Self {
            id: row.word("id")?,
            name: row.text("name")?,
            workspace: row.text("workspace")?,
            facts,
            phase_times: row.json("phase_times")?,
            runs: row.optional_json("run")?.unwrap_or_default(),
            running,
            patched_details: row.optional_json("patched_details")?.unwrap_or_default(),
        })
    }

    /// The statement that stores it.
    pub(in crate::records) fn store(&self) -> Statement {
        sql("UPDATE jobs SET phase = $2, status = $3, outcome = $4, run = $5, phase_times = $6,
                 ended_at = $7, running = $8, cancel_requested = $9, patched_details = $10
             WHERE id = $1")
        .text(&self.id.to_string())
        .text(self.facts.phase.token())
        .text(self.status().as_str())
        .optional_json(self.facts.outcome.as_ref())
        .optional_json(Some(&self.runs).filter(|runs| !runs.is_empty()))
        .json(&self.phase_times)
        .optional_time(self.ended_at())
        .optional_json(self.running.as_ref())
        .int(self.facts.cancel_requested)
        .json(&self.patched_details)
    }
}

/// The start of the agent that counts, or the one that runs, of a row with these two columns.
pub(super) fn attempt(row: &Row) -> Result<Option<Attempt>> {
    let (runs, running) = (row.optional_json("run")?, row.optional_json("running")?);
    Ok(attempt_of(&runs.unwrap_or_default(), running.as_ref()))
}

fn attempt_of(runs: &Runs, running: Option<&Running>) -> Option<Attempt> {
    runs.counts.as_ref().map(|run| run.attempt).or(running.map(|running| running.attempt))
}

impl Running {
    /// Its details but for the earlier attempts, which have a place of their own.
    fn shown(&self) -> Value {
        let mut details = self.details.clone();
        details.shift_remove(ATTEMPTS);
        details.into()
    }

    /// A later start replaces an earlier one. The news of a start carry all of its details, so
    /// the newest replace those before.
    fn with(self, news: Self) -> Self {
        match news.attempt.cmp(&self.attempt) {
            Ordering::Less => self,
            Ordering::Greater => news,
            Ordering::Equal => {
                let since = self.since.min(news.since);
                let newest = if news.details_at > self.details_at { news } else { self };
                Self { since, ..newest }
            }
        }
    }
}

/// What the reference says of a subprocess that ended so, and with which exit code.
const fn ending(status: Status) -> (&'static str, i32) {
    match status {
        Status::Completed => ("Job completed successfully with exit code 0", 0),
        Status::Cancelled => ("Job was cancelled with exit code 143", 143),
        _ => ("Job exited with code 1", 1),
    }
}

#[cfg(test)]
mod tests;
