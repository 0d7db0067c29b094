//! What the runner is told, and how its answer reads in the platform's words.

use std::collections::BTreeMap;

use errand_runner::{
    End, Failure, Launch, Network, Outcome as RunOutcome, Sandbox, Secrets, Usage as RunUsage,
};
use serde_json::{Map, Value, json};
use streams::code::Code;
use streams::fact::{Staged, Usage};
use streams::outcome::{Outcome, bounded};
use streams::snapshot::Snapshot;

use super::Invoke;
use crate::executor::{RunName, RunPlan};
use crate::step::{Context, StepError};

/// The one step that a job has in the reference's words.
const STEP: &str = "execute-agent";

pub(super) fn plan(
    job: &Context,
    staged: &Staged,
    snapshot: &Snapshot,
    run: RunName,
    secrets: BTreeMap<String, String>,
    invoke: &Invoke,
) -> Result<RunPlan, StepError> {
    let workdir = staged.input_workdir.as_ref();
    let workdir = workdir.ok_or_else(|| StepError::retry("job has no working directory"))?;
    let launch = Launch {
        version: 1,
        run: run.to_string(),
        job_name: snapshot.name.clone(),
        workspace: job.workspace.clone(),
        agent: snapshot.spec.agent.config.clone(),
        input: snapshot.input.clone(),
        context: context(job, snapshot),
        timeout_seconds: snapshot.timeout_seconds,
        idle_timeout_seconds: snapshot.idle_timeout_seconds,
        grace_seconds: invoke.settings.grace.as_secs_f64(),
        lease_seconds: Some(invoke.claims.lease().as_secs_f64()),
        env: variables(job, snapshot, run),
        adapter_dirs: invoke.settings.adapter_dirs.clone(),
        python: invoke.settings.python.clone(),
        readable: Vec::new(),
        output_limit_bytes: invoke.settings.output_limit_bytes,
        limits: RunPlan::limits(&snapshot.resources),
        cgroup: None,
        sandbox: Sandbox::None,
        network: Network::Host,
    };
    let (workdir, ethos) = (workdir.object.clone(), staged.ethos.clone());
    let secrets = Secrets { variables: secrets, masked: Vec::new() };
    Ok(RunPlan { launch, workdir, ethos, secrets })
}

/// The user's context and the platform's part of it.
fn context(job: &Context, snapshot: &Snapshot) -> Map<String, Value> {
    let agent = &snapshot.spec.agent;
    let mut context = snapshot.context.clone();
    let platform = json!({
        "job_id": snapshot.name,
        "job_workspace": job.workspace,
        "agent": format!("{}/{}", agent.workspace, agent.name),
    });
    context.insert("nemo_helix".to_owned(), platform);
    context
}

/// The variables by which agents of the reference know their job, and by which OpenTelemetry knows
/// the span that an agent's own are parts of.
fn variables(job: &Context, snapshot: &Snapshot, run: RunName) -> BTreeMap<String, String> {
    [
        ("NEMO_JOB_ID", snapshot.name.clone()),
        ("NEMO_JOB_WORKSPACE", job.workspace.clone()),
        ("NEMO_JOB_ATTEMPT_ID", job.job.attempt_id(run.attempt)),
        ("NEMO_JOB_STEP", STEP.to_owned()),
        ("NEMO_JOB_TASK", job.job.task_name(run.attempt)),
        ("NEMO_JOB_FILESET", format!("job-fileset-{}", snapshot.name)),
        ("TRACEPARENT", job.trace().of_agent(run.attempt).to_string()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// How the job ends when nothing else decides it.
pub(super) fn outcome(told: &RunOutcome) -> Outcome {
    let message = bounded(told.message.clone());
    let code = told.failure.map_or(Code::AgentFailed, code);
    match told.end {
        End::Succeeded => Outcome::Succeeded,
        End::TimedOut => Outcome::TimedOut { code, message },
        End::Stopped if code == Code::Cancelled => Outcome::Cancelled { message },
        End::Failed | End::Raised | End::Stopped => Outcome::Failed { code, message },
    }
}

pub(super) const fn code(failure: Failure) -> Code {
    match failure {
        Failure::Timeout => Code::Timeout,
        Failure::AgentFailed => Code::AgentFailed,
        Failure::AgentCrashed => Code::AgentCrashed,
        Failure::NoResult => Code::NoResult,
        Failure::AdapterMissing => Code::AdapterMissing,
        Failure::AdapterProtocol => Code::AdapterProtocol,
        Failure::ModelAuth => Code::ModelAuth,
        Failure::ModelRateLimited => Code::ModelRateLimited,
        Failure::Cancelled => Code::Cancelled,
        Failure::WorkerLost => Code::WorkerLost,
        Failure::DiskFull => Code::DiskFull,
        Failure::SecretMissing => Code::SecretMissing,
        Failure::OomKilled => Code::OomKilled,
        Failure::IdleTimeout => Code::IdleTimeout,
        Failure::Unschedulable => Code::Unschedulable,
    }
}

pub(super) const fn usage(usage: RunUsage) -> Usage {
    Usage { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens }
}
