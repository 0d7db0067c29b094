//! The worker's part of the wiring: steps, and where their agents run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use streams::phase::StepName;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use workers::actions::Programs;
use workers::claims::Claims;
use workers::ends::Ends;
use workers::executor::Executor;
use workers::executor::process::Process;
use workers::executor::process::confinement::Confinement;
use workers::holds::Holds;
use workers::janitor::Janitor;
use workers::logs::{LogReader, LogSink};
use workers::patience::Patience;
use workers::runtime::{self, Steps};
use workers::seats::Seats;
use workers::status::StatusFeed;
use workers::steps::{Act, Archive, Invoke, Resolve, RunSettings, Stage};

use super::{Parts, place};
use crate::config::Config;
use crate::files::Files;

/// Bytes of a script's stdout and stderr that are kept, each.
const OUTPUT_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// Where the program beside the agents is: beside this one, unless a variable names it.
pub fn runner_program() -> PathBuf {
    if let Some(program) = std::env::var_os("ERRAND_RUNNER") {
        return program.into();
    }
    let own = std::env::current_exe().unwrap_or_default();
    own.with_file_name("errand-runner")
}

/// Whether programs run in one of these steps.
pub(super) fn run_programs(steps: &[StepName]) -> bool {
    steps.iter().any(|step| matches!(step, StepName::Invoke | StepName::Act))
}

/// Sets the steps up; those that run programs need a confinement. The work that is returned ends
/// when told to stop; agents then go on.
pub(super) fn start_worker(
    config: &Config,
    parts: &Parts,
    steps: &[StepName],
    confinement: Option<Confinement>,
    stop: CancellationToken,
) -> anyhow::Result<impl Future<Output = ()> + Send + use<>> {
    let (broker, store) = (&parts.broker, &parts.store);
    let executor = confinement.map(|it| executor(config, parts, it)).transpose()?;
    let mut set = Steps::default();
    for step in steps {
        match step {
            StepName::Resolve => {
                let catalog = Arc::new(parts.catalog.clone());
                set.resolve = Some(Resolve { catalog, store: store.clone() });
            }
            StepName::Stage => {
                let ends = Ends::new(Arc::clone(broker));
                let (store, patience) = (store.clone(), Patience::default());
                let budget = budget(config.worker.staging_seconds);
                set.stage = Some(Stage { store, ends, patience, budget });
            }
            StepName::Invoke => {
                if let Some(executor) = &executor {
                    let slots = usize::try_from(config.worker.slots)?;
                    set.invoke = Some((invoke(config, parts, executor)?, slots));
                }
            }
            StepName::Act => {
                if let Some(executor) = &executor {
                    set.act = Some(act(config, parts, executor)?);
                }
            }
            StepName::Archive => {
                let logs = LogReader::new(Arc::clone(broker));
                set.archive = Some(Archive { store: store.clone(), logs });
            }
        }
    }
    let janitor =
        executor.map(|executor| Janitor { broker: Arc::clone(broker), executor }.run(stop.clone()));
    let work = runtime::run(Arc::clone(broker), set, stop);
    Ok(async move {
        let clearing = async {
            if let Some(janitor) = janitor {
                janitor.await;
            }
        };
        tokio::join!(work, clearing);
    })
}

/// What keeps the agents of this machine apart, as far as the configuration lets it.
pub fn confinement(config: &Config) -> anyhow::Result<Confinement> {
    let (runner, worker) = (existing_runner()?, &config.worker);
    let (wanted, network, ids) = (worker.sandbox, worker.network, worker.agent_ids);
    Ok(Confinement::find(wanted, network, ids, &runner, &config.data_dir().join("runs"))?)
}

fn existing_runner() -> anyhow::Result<PathBuf> {
    let runner = runner_program();
    if !runner.is_file() {
        anyhow::bail!(
            "the program {} does not exist: build it (cargo build -p errand-runner), or name it \
             with ERRAND_RUNNER",
            runner.display()
        );
    }
    Ok(runner)
}

fn executor(
    config: &Config,
    parts: &Parts,
    confinement: Confinement,
) -> anyhow::Result<Arc<dyn Executor>> {
    let runner = existing_runner()?;
    let runs = config.data_dir().join("runs");
    let most = Some(config.worker.max_processes).filter(|most| *most > 0);
    let process = Process::new(runs.clone(), runner, parts.store.clone())
        .and_then(|process| process.in_groups(parts.groups.clone(), most))
        .with_context(|| format!("cannot make {}", runs.display()))?;
    Ok(Arc::new(process.confined(confinement)))
}

fn invoke(config: &Config, parts: &Parts, executor: &Arc<dyn Executor>) -> anyhow::Result<Invoke> {
    let broker = || Arc::clone(&parts.broker);
    let jobs = &config.agents_jobs;
    Ok(Invoke {
        claims: claims(config, parts)?,
        ends: Ends::new(broker()),
        holds: Holds::new(broker()),
        seats: Seats::new(broker(), config.running_limits()),
        executor: Arc::clone(executor),
        actions: Arc::clone(&parts.actions),
        secrets: Arc::new(parts.secrets.clone()),
        store: parts.store.clone(),
        logs: LogSink::new(broker(), parts.store.clone()),
        status: StatusFeed::new(broker()),
        settings: RunSettings {
            grace: Duration::from_secs(config.worker.grace_seconds),
            adapter_dirs: jobs.adapter_dirs.iter().map(|dir| real(dir)).collect(),
            python: jobs.adapter_python.as_ref().map(|python| python.display().to_string()),
            output_limit_bytes: OUTPUT_LIMIT_BYTES,
        },
        patience: Patience::default(),
        saving: budget(config.worker.saving_seconds),
    })
}

fn budget(seconds: u64) -> Patience {
    Patience::new(Duration::from_secs(seconds))
}

/// Agents may see a directory only where it really is, and not the links that lead there.
fn real(dir: &Path) -> String {
    dir.canonicalize().as_deref().unwrap_or(dir).display().to_string()
}

fn act(config: &Config, parts: &Parts, executor: &Arc<dyn Executor>) -> anyhow::Result<Act> {
    let secrets = Arc::new(parts.secrets.clone());
    let programs = Programs {
        claims: claims(config, parts)?.on_actions(),
        executor: Arc::clone(executor),
        secrets: secrets.clone(),
        logs: LogSink::new(Arc::clone(&parts.broker), parts.store.clone()),
        slots: Semaphore::new(usize::try_from(config.worker.slots)?),
        output_limit_bytes: OUTPUT_LIMIT_BYTES,
    };
    Ok(Act {
        actions: Arc::clone(&parts.actions),
        store: parts.store.clone(),
        broker: Arc::clone(&parts.broker),
        secrets,
        filesets: Arc::new(Files::new(parts.records.clone(), parts.store.clone())),
        programs,
        patience: Patience::default(),
    })
}

fn claims(config: &Config, parts: &Parts) -> anyhow::Result<Claims> {
    let locks = config.data_dir().join("workers");
    let lost_after = Duration::from_secs(config.claims.lost_after_seconds);
    let place = place::name(&config.data_dir(), config.worker.place.as_deref())?;
    Claims::new(Arc::clone(&parts.broker), place, locks.clone(), lost_after)
        .with_context(|| format!("cannot use {}", locks.display()))
}
