//! A place: the run directories of one host and who lives in them, by the runner's contract.
//!
//! Nothing moves here by itself. What a run has come to follows from when it was started, what
//! its agent is like, and what was done to its directory since.

use std::collections::BTreeMap;

use errand_runner::{End, Failure, Life, Outcome, SecretsFound};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use streams::id::Attempt;
use tokio::time::Duration;

use crate::plan::Agent;

/// Between the two signals.
const GRACE: Duration = Duration::from_secs(1);

/// The run directories here; a job is named by its number.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) runs: BTreeMap<(usize, Attempt), Run>,
    /// Since when the place is gone.
    pub(crate) lost: Option<Duration>,
}

/// One run directory.
pub(crate) struct Run {
    pub(crate) agent: Agent,
    /// How long it may run, and how long without its lease.
    pub(crate) limit: Duration,
    pub(crate) lease: Duration,
    pub(crate) started: Option<Duration>,
    /// When the claim was held, by the lease.
    pub(crate) renewed: Duration,
    pub(crate) stop: Option<(Duration, String)>,
}

/// What ends a run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    Itself,
    Limit,
    Stop(String),
    Lease,
    SupervisorDied,
}

impl Run {
    pub(crate) const fn prepared(agent: Agent, limit: Duration, lease: Duration) -> Self {
        let renewed = Duration::ZERO;
        Self { agent, limit, lease, started: None, renewed, stop: None }
    }

    /// When and why it ends, as things stand.
    fn end(&self) -> Option<(Duration, Cause)> {
        let started = self.started?;
        let mut ends = vec![(started + self.limit, Cause::Limit)];
        ends.push((self.renewed + self.lease, Cause::Lease));
        ends.extend(self.agent.runs_for().map(|long| (started + long, Cause::Itself)));
        ends.extend(self.agent.supervisor_dies().map(|at| (started + at, Cause::SupervisorDied)));
        if let Some((at, reason)) = &self.stop {
            ends.push(((*at).max(started) + GRACE, Cause::Stop(reason.clone())));
        }
        ends.into_iter().min_by_key(|(at, _)| *at)
    }

    /// When it ended, if it has by now.
    pub(crate) fn ended(&self, now: Duration) -> Option<Duration> {
        self.end().map(|(at, _)| at).filter(|at| *at <= now)
    }

    /// Renews the lease; a supervisor that is gone does not see it.
    pub(crate) fn renew(&mut self, now: Duration, held: Duration) {
        if self.ended(now).is_none() {
            self.renewed = self.renewed.max(held);
        }
    }

    pub(crate) fn ask_to_stop(&mut self, now: Duration, reason: &str) {
        if self.ended(now).is_none() && self.stop.is_none() {
            self.stop = Some((now, reason.to_owned()));
        }
    }

    pub(crate) fn life(&self, now: Duration) -> Life {
        match self.end() {
            None => Life::Fresh,
            Some((at, _)) if at > now => Life::Running,
            Some((_, Cause::SupervisorDied)) => Life::Lost,
            Some((at, cause)) => {
                Life::Ended(Box::new(outcome(&cause, self.agent, now.saturating_sub(at))))
            }
        }
    }
}

fn outcome(cause: &Cause, agent: Agent, ago: Duration) -> Outcome {
    let (end, failure, message) = match cause {
        Cause::Itself if agent.succeeds() => (End::Succeeded, None, ""),
        Cause::Itself => (End::Failed, Some(Failure::AgentFailed), "the agent says that it failed"),
        Cause::Limit => (End::TimedOut, Some(Failure::Timeout), "it ran too long"),
        Cause::Stop(reason) if reason == "cancel" => {
            (End::Stopped, Some(Failure::Cancelled), "it was cancelled")
        }
        Cause::Stop(_) | Cause::Lease => {
            (End::Stopped, Some(Failure::WorkerLost), "no worker looks after it")
        }
        Cause::SupervisorDied => unreachable!("nobody is left to write an outcome"),
    };
    let returned = *cause == Cause::Itself;
    let ago = SignedDuration::try_from(ago).unwrap_or_default();
    let at = Timestamp::now() - ago;
    Outcome {
        version: 1,
        end,
        failure,
        message: message.to_owned(),
        interrupted: !returned,
        started_at: at,
        invoked_at: Some(at),
        ended_at: at,
        run_result: returned.then(|| json!({"output": "done"})),
        error: (!returned).then(|| json!({"message": message})),
        usage: None,
        log_lines: 2,
        killed: 0,
        left: 0,
        secrets_found: SecretsFound::default(),
    }
}
