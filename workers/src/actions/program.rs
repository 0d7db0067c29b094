//! Actions that are programs, installed by a manifest (`deploy/examples/actions`).
//!
//! A program runs as a script agent does: in a run directory of its own, beside the agent's, with
//! the runner as its supervisor, which keeps the time limit, masks secrets and ends the whole
//! process tree. It is found again by a worker that comes back, and it is never started twice:
//! one that was started and is found nowhere was interrupted, and has failed.

mod collect;
mod manifest;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use errand_runner::{
    End, Launch, Life, Network, Outcome as RunOutcome, Sandbox, Secrets as RunSecrets,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use streams::id::Attempt;
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub(crate) use manifest::{Manifest, manifests};

use super::{Done, Occasion};
use crate::claims::{Begun, Claims, Grant, Held};
use crate::executor::{self, Executor, RunName, RunPlan, SLACK};
use crate::logs::{FeedError, LogSink, give_up_if_full};
use crate::ports::{Secrets, SecretsError};
use crate::results::{Results, name};
use crate::step::StepError;

/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Between the two signals that end a program.
const GRACE: Duration = Duration::from_secs(10);

/// The program's directory, in which the agent's working directory is restored and the results
/// are expected; below the base of its run.
const SCRATCH: &str = "scratch";
const RESULTS: &str = "results";

/// A script agent starts where its working directory was unpacked; an action starts above it.
const BEGIN: &str = r#"cd .. && mkdir -p "$ERRAND_RESULTS" && exec "$@""#;

/// Runs programs.
pub struct Programs {
    /// The right to.
    pub claims: Claims,
    /// Where.
    pub executor: Arc<dyn Executor>,
    /// Opened at the start.
    pub secrets: Arc<dyn Secrets>,
    /// Where their output goes.
    pub logs: LogSink,
    /// How many at once.
    pub slots: Semaphore,
    /// Bytes of stdout and stderr that are kept, each.
    pub output_limit_bytes: u64,
}

/// A program that is to be run for a job.
struct Run<'a> {
    occasion: &'a Occasion<'a>,
    manifest: &'a Manifest,
    config: &'a Map<String, Value>,
    name: RunName,
    /// What the runner takes for its agent.
    agent: Value,
}

impl Programs {
    /// Runs a program, or goes on with it where it was left.
    pub(crate) async fn run(
        &self,
        occasion: &Occasion<'_>,
        manifest: &Manifest,
        config: &Map<String, Value>,
    ) -> Result<Done, StepError> {
        let job = occasion.job.job;
        // The next number after the agent's: its directory, its log and its results have names
        // that no attempt of the agent has.
        let name = RunName { job, attempt: Attempt(occasion.attempt().0 + 1) };
        // One that was started before is not kept waiting: its lease would run out.
        let _slot = match self.executor.look(name).await? {
            Life::Fresh => Some(self.slots.acquire().await.map_err(StepError::retry)?),
            Life::Running | Life::Ended(_) | Life::Lost => self.slots.try_acquire().ok(),
        };
        let held = match self.claims.take(job).await? {
            Grant::Held(held) => held,
            Grant::Busy(after) => return Err(StepError::Busy { after }),
            // Nobody settles claims on actions; what stands there is no permission in any case.
            Grant::Settled => return Ok(Done::failed("its claim is settled".to_owned())),
        };
        let run = Run { occasion, manifest, config, name, agent: agent(manifest) };
        tokio::select! {
            biased;
            done = self.under_claim(&run, &held) => done,
            gone = held.keep(&*self.executor, |_| name) => Err(gone.into()),
        }
    }

    async fn under_claim(&self, run: &Run<'_>, held: &Held<'_>) -> Result<Done, StepError> {
        let interrupted = |how: &str| {
            let reason = format!("it was interrupted: {how}; an action is not run twice");
            Ok(Done::failed(reason))
        };
        let executor = &*self.executor;
        match held.begun(executor, run.name).await? {
            Begun::Gone => return interrupted("what is left of it is not here"),
            Begun::No => {
                if let Some(failure) = self.start_in_time(run, held).await? {
                    return Ok(Done::failed(failure));
                }
            }
            Begun::Yes => {}
        }
        match self.wait(run).await? {
            Life::Ended(told) => self.told(run, &told).await,
            Life::Fresh | Life::Running | Life::Lost => {
                executor.sweep(run.name).await?;
                interrupted("its supervisor died while it ran")
            }
        }
    }

    /// The same as [`Self::start`], unless that has gone wrong for too long.
    async fn start_in_time(
        &self,
        run: &Run<'_>,
        held: &Held<'_>,
    ) -> Result<Option<String>, StepError> {
        let reason = match self.start(run, held).await {
            Err(StepError::Retry { reason, .. }) => run.occasion.gives_up(reason)?,
            started => {
                run.occasion.patience.forget(run.name.job);
                return started;
            }
        };
        // Whoever has lost the claim decides nothing.
        held.note_start().await?;
        let never = !self.executor.is_prepared(run.name).await?;
        Ok((never || self.executor.close(run.name).await?).then_some(reason))
    }

    /// Prepares and starts it; answers why it can never be started.
    async fn start(&self, run: &Run<'_>, held: &Held<'_>) -> Result<Option<String>, StepError> {
        let workspace = &run.occasion.job.workspace;
        let secrets = match self.secrets.open(workspace, &run.manifest.secrets).await {
            Ok(secrets) => secrets,
            Err(error @ SecretsError::Missing { .. }) => return Ok(Some(error.to_string())),
            Err(SecretsError::Unavailable(error)) => return Err(StepError::retry(error)),
        };
        let workdir = match run.occasion.result(name::OUTPUT_WORKDIR) {
            Ok(result) => result.object.clone(),
            Err(reason) => return Ok(Some(reason)),
        };
        let launch = self.launch(run).await?;
        let secrets = RunSecrets { variables: secrets, masked: self.agents_secrets(run).await? };
        let plan = RunPlan { launch, workdir, ethos: None, secrets };
        if let Err(error) = self.executor.prepare(run.name, &plan).await {
            return impossible(error).map(Some);
        }
        // From here on it may have run, whatever happens.
        let asked = Instant::now();
        held.note_start().await?;
        let Err(error) = self.executor.start(run.name, &plan, asked).await else {
            return Ok(None);
        };
        let reason = impossible(error)?;
        // No runner may begin after that; one that has is waited for.
        Ok(self.executor.close(run.name).await?.then_some(reason))
    }

    /// The values that the agent had: they may be in the directory that the program works in. One
    /// that was deleted meanwhile is a secret no longer.
    async fn agents_secrets(&self, run: &Run<'_>) -> Result<Vec<String>, StepError> {
        let mut values = Vec::new();
        for (variable, reference) in &run.occasion.snapshot.spec.secrets {
            let one = BTreeMap::from([(variable.clone(), reference.clone())]);
            match self.secrets.open(&run.occasion.job.workspace, &one).await {
                Ok(opened) => values.extend(opened.into_values()),
                Err(SecretsError::Missing { .. }) => {}
                Err(SecretsError::Unavailable(error)) => return Err(StepError::retry(error)),
            }
        }
        Ok(values)
    }

    async fn launch(&self, run: &Run<'_>) -> Result<Launch, StepError> {
        let (job, snapshot) = (run.occasion.job, run.occasion.snapshot);
        let results = self.results_dir(run)?.display().to_string();
        let variables = [
            ("ERRAND_RESULTS", results),
            ("NEMO_JOB_ID", snapshot.name.clone()),
            ("NEMO_JOB_WORKSPACE", job.workspace.clone()),
        ];
        let called = format!("of post-run action '{}'", run.manifest.kind);
        let context = json!({"nemo_helix": {"agent": called}});
        Ok(Launch {
            version: 1,
            run: run.name.to_string(),
            job_name: snapshot.name.clone(),
            workspace: job.workspace.clone(),
            agent: run.agent.clone(),
            input: self.input(run).await?.to_string(),
            context: context.as_object().cloned().unwrap_or_default(),
            timeout_seconds: run.manifest.timeout_seconds,
            idle_timeout_seconds: None,
            grace_seconds: GRACE.as_secs_f64(),
            lease_seconds: Some(self.claims.lease().as_secs_f64()),
            env: variables.map(|(name, value)| (name.to_owned(), value)).into_iter().collect(),
            adapter_dirs: Vec::new(),
            python: None,
            readable: run.manifest.file.parent().map(Into::into).into_iter().collect(),
            output_limit_bytes: self.output_limit_bytes,
            limits: RunPlan::limits(&snapshot.resources),
            cgroup: None,
            sandbox: Sandbox::None,
            network: Network::Host,
        })
    }

    /// What the program reads on standard input.
    async fn input(&self, run: &Run<'_>) -> Result<Value, StepError> {
        let (job, snapshot) = (run.occasion.job, run.occasion.snapshot);
        let limit = SignedDuration::try_from_secs_f64(run.manifest.timeout_seconds);
        let deadline = limit.ok().and_then(|limit| Timestamp::now().checked_add(limit).ok());
        Ok(json!({
            "job": snapshot.name,
            "job_id": job.job.http(),
            "workspace": job.workspace,
            "agent": run.occasion.agent(),
            "agent_config": snapshot.spec.agent.config,
            "config": run.config,
            "fabric_run_result": run.occasion.run_result(u64::MAX).await?.0,
            "deadline": deadline,
        }))
    }

    /// Passes its output on until it has ended or is lost.
    async fn wait(&self, run: &Run<'_>) -> Result<Life, StepError> {
        let job = run.occasion.job;
        let log = self.executor.places(run.name, &run.agent)?.log;
        let mut feed = self.logs.resume(&job.workspace, job.job, run.name.attempt).await?;
        let limit = Duration::try_from_secs_f64(run.manifest.timeout_seconds);
        let longest = limit.unwrap_or(Duration::MAX).saturating_add(GRACE + SLACK);
        let mut overdue = Instant::now().checked_add(longest);
        loop {
            let life = self.executor.look(run.name).await?;
            // Looked at before reading: what was written before the end is then read.
            let passed = feed.pump(&log).await;
            if life != Life::Running {
                if let Err(FeedError::Store(error)) = passed {
                    let reason = run.occasion.gives_up(error)?;
                    tracing::error!(reason, "the end of the log is lost");
                } else {
                    give_up_if_full(passed)?;
                }
                return Ok(life);
            }
            match passed {
                Err(error @ FeedError::Fenced) => return Err(error.into()),
                Err(error) => tracing::warn!(%error, "log lines are passed on later"),
                Ok(()) => {}
            }
            let now = Instant::now();
            if overdue.is_some_and(|overdue| now >= overdue) {
                tracing::error!("the runner does not end its program, and is ended itself");
                self.executor.end_runner(run.name).await?;
                overdue = now.checked_add(SLACK);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Saves what it left as results, also when it failed.
    async fn told(&self, run: &Run<'_>, told: &RunOutcome) -> Result<Done, StepError> {
        let job = run.occasion.job;
        let results = Results {
            store: run.occasion.store.clone(),
            workspace: job.workspace.clone(),
            job: job.job,
            attempt: run.name.attempt,
            interrupted: told.interrupted,
            hides_names: told.secrets_found.names,
        };
        let root = self.executor.places(run.name, &run.agent)?.root;
        let secrets = &told.secrets_found;
        let directory = self.results_dir(run)?;
        let saved = collect::save(&results, &root, &directory, secrets, run.occasion).await?;
        let failure = match told.end {
            End::Succeeded => saved.failure,
            End::TimedOut => Some(format!("it ran longer than {} s", run.manifest.timeout_seconds)),
            End::Failed | End::Raised | End::Stopped => Some(told.message.clone()),
        };
        Ok(Done { results: saved.results, failure })
    }

    fn results_dir(&self, run: &Run<'_>) -> Result<PathBuf, StepError> {
        let workdir = self.executor.places(run.name, &run.agent)?.workdir;
        Ok(workdir.with_file_name(RESULTS))
    }
}

/// The program as the runner knows programs: an agent of the script harness.
fn agent(manifest: &Manifest) -> Value {
    let mut command = vec!["/bin/sh", "-c", BEGIN, "action"];
    command.extend(manifest.command.iter().map(String::as_str));
    json!({
        "config_format": "nemo-agents-spec-v1",
        "name": manifest.kind,
        "default_harness": "script",
        "harnesses": {
            "script": {
                "kind": "script",
                "settings": {"command": command, "allow_empty": true},
            },
        },
        "environment": {
            "provider": "local",
            "workspace": format!("{SCRATCH}/{}", name::OUTPUT_WORKDIR),
            "artifacts": "artifacts",
        },
    })
}

/// What cannot be, now or ever, is a failure; what cannot be now is tried again.
fn impossible(error: executor::Error) -> Result<String, StepError> {
    match error {
        executor::Error::Impossible(reason) | executor::Error::Unschedulable(reason) => Ok(reason),
        error @ (executor::Error::Full(_) | executor::Error::Unavailable(_)) => Err(error.into()),
    }
}
