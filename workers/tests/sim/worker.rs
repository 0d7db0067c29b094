//! A worker: the real runtime with the real steps, in a process of this world, started again when
//! it has died.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use streams::broker::Broker;
use streams::fact::Submitted;
use streams::id::JobId;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use workers::actions::Programs;
use workers::claims::Claims;
use workers::ends::Ends;
use workers::executor::Executor;
use workers::holds::Holds;
use workers::janitor::Janitor;
use workers::logs::{LogReader, LogSink};
use workers::patience::Patience;
use workers::ports::{
    Admission, Catalog, Filesets, FilesetsError, Secrets, SecretsError, Unavailable,
};
use workers::runtime::{self, Steps};
use workers::seats::{self, Seats};
use workers::status::StatusFeed;
use workers::steps::{Act, Archive, Invoke, Resolve, RunSettings, Stage};
use workers::store::Store;

use crate::calls::Op;
use crate::host::Host;
use crate::objects;
use crate::plan::LOST_AFTER;
use crate::planted::Planted;
use crate::process::{Broken, Process};
use crate::queue::Queue;
use crate::world::World;

/// Bytes of a script's output that are kept; no script is run.
const OUTPUT: u64 = 1024;

/// How long until somebody has started a worker again.
const RESTART: (u64, u64) = (200, 8000);

/// Lives as worker after worker, until its place is lost.
pub(crate) async fn live(world: Arc<World>, number: usize) {
    let place = world.plan.workers[number];
    for life in 0.. {
        let process = Process::new(Arc::clone(&world), number);
        world.enter(&process);
        world.tell(|| format!("process {number} starts at place {place}"));
        let working = tokio::spawn(work(Arc::clone(&process), place));
        process.death().await;
        world.tell(|| format!("process {number} is dead"));
        working.abort();
        let _ = working.await;
        if world.places()[place].lost.is_some() {
            return;
        }
        tokio::time::sleep(world.plan.pause(number, life, RESTART)).await;
    }
}

async fn work(process: Arc<Process>, place: usize) {
    let broker: Arc<dyn Broker> = Arc::new(Queue(Arc::clone(&process)));
    let executor: Arc<dyn Executor> =
        Arc::new(Host { process: Arc::clone(&process), place, started: Mutex::default() });
    let steps = steps(&process, &broker, &executor, place).expect("a worker can be made");
    let stop = CancellationToken::new();
    let janitor = Janitor { broker: Arc::clone(&broker), executor };
    tokio::join!(runtime::run(broker, steps, stop.clone()), janitor.run(stop));
}

fn steps(
    process: &Arc<Process>,
    broker: &Arc<dyn Broker>,
    executor: &Arc<dyn Executor>,
    place: usize,
) -> io::Result<Steps> {
    let world = &process.world;
    let store = Store::of_client(objects::client(Arc::clone(process)), "objects".to_owned());
    let records = Arc::new(Records(Arc::clone(process)));
    let claims = || {
        let locks = world.directory.join(place.to_string());
        let is_hasty = world.planted == Some(Planted::Impatience) && place > 0;
        let lost_after = if is_hasty { Duration::from_secs(1) } else { LOST_AFTER };
        Claims::new(Arc::clone(broker), format!("place-{place}"), locks, lost_after)
    };
    let ends = Ends::new(Arc::clone(broker));
    let logs = LogSink::new(Arc::clone(broker), store.clone());
    let actions = world.fixture.actions();
    let invoke = Invoke {
        claims: claims()?,
        ends: ends.clone(),
        holds: Holds::new(Arc::clone(broker)),
        seats: Seats::new(Arc::clone(broker), seats::Limits::default()),
        executor: Arc::clone(executor),
        actions: Arc::clone(&actions),
        secrets: records.clone(),
        store: store.clone(),
        logs: logs.clone(),
        status: StatusFeed::new(Arc::clone(broker)),
        settings: RunSettings {
            grace: Duration::from_secs(1),
            adapter_dirs: Vec::new(),
            python: None,
            output_limit_bytes: OUTPUT,
        },
        patience: Patience::default(),
        saving: Patience::default(),
    };
    let programs = Programs {
        claims: claims()?.on_actions(),
        executor: Arc::clone(executor),
        secrets: records.clone(),
        logs,
        slots: Semaphore::new(2),
        output_limit_bytes: OUTPUT,
    };
    let act = Act {
        actions,
        store: store.clone(),
        broker: Arc::clone(broker),
        secrets: records.clone(),
        filesets: records.clone(),
        programs,
        patience: Patience::default(),
    };
    let stage = Stage {
        store: store.clone(),
        ends,
        patience: Patience::default(),
        budget: Patience::default(),
    };
    Ok(Steps {
        resolve: Some(Resolve { catalog: records, store: store.clone() }),
        stage: Some(stage),
        invoke: Some((invoke, world.plan.slots)),
        act: Some(act),
        archive: Some(Archive { store, logs: LogReader::new(Arc::clone(broker)) }),
    })
}

/// The records, as one process sees them.
struct Records(Arc<Process>);

impl From<Broken> for Unavailable {
    fn from(broken: Broken) -> Self {
        Self(broken.to_string())
    }
}

#[async_trait]
impl Catalog for Records {
    async fn admit(
        &self,
        job: JobId,
        _workspace: &str,
        _submitted: &Submitted,
    ) -> Result<Admission, Unavailable> {
        let world = &self.0.world;
        let number = world.job_in(&job.to_string());
        let effect = async {
            let job = number.map(|number| &world.plan.jobs[number]);
            match job {
                Some(job) if job.refused => Admission::Refused("it cannot be run".to_owned()),
                Some(job) => Admission::Admitted(Box::new(job.snapshot())),
                None => Admission::Deleted,
            }
        };
        Ok(self.0.call(Op::Admit, number, effect).await?)
    }
}

#[async_trait]
impl Secrets for Records {
    async fn open(
        &self,
        _workspace: &str,
        _references: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, SecretsError> {
        let opened = self.0.call(Op::Secrets, None, async { BTreeMap::new() }).await;
        opened.map_err(|broken| SecretsError::Unavailable(broken.into()))
    }
}

#[async_trait]
impl Filesets for Records {
    async fn ensure(&self, _workspace: &str, fileset: &str) -> Result<(), FilesetsError> {
        Err(FilesetsError::Refused(format!("there is no fileset '{fileset}' in this world")))
    }

    async fn put(
        &self,
        workspace: &str,
        fileset: &str,
        _paths: &[String],
        _mode: u32,
        _bytes: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), FilesetsError> {
        self.ensure(workspace, fileset).await
    }
}
