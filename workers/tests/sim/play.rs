//! Plays a plan: one world, one thread, paused time; and says what was wrong with it afterwards.

use std::fmt;
use std::fs;
use std::sync::Arc;

use streams::phase::Phase;
use tokio::runtime::Builder;
use tokio::time::{Duration, timeout};

use crate::fixture::Fixture;
use crate::history::Told;
use crate::invariants::{self, Wrong};
use crate::plan::Plan;
use crate::planted::Planted;
use crate::world::World;
use crate::{control, worker};

/// After the last event of a plan every job must end within this time, in the world's clock:
/// longer than any budget in the chain, and any sleep of a process.
const END: Duration = Duration::from_secs(3 * 3600);

/// And within this nothing of it may be left.
const QUIET: Duration = Duration::from_secs(3600);

/// How often it is looked whether that is so.
const LOOK: Duration = Duration::from_secs(2);

/// A world after its end.
pub(crate) struct Played {
    pub(crate) world: Arc<World>,
    pub(crate) wrong: Vec<Wrong>,
}

/// Plays it to its end.
pub(crate) fn play(
    plan: Plan,
    planted: Option<Planted>,
    fixture: &Arc<Fixture>,
    read_along: bool,
) -> Played {
    let mut builder = Builder::new_current_thread();
    // One thread that may block, so that what is done there has one order.
    builder.enable_time().start_paused(true).max_blocking_threads(1);
    let runtime = builder.build().expect("a runtime");
    let world = runtime.block_on(async {
        let world = World::new(plan, planted, fixture, read_along);
        for number in 0..world.plan.workers.len() {
            tokio::spawn(worker::live(Arc::clone(&world), number));
        }
        let control = tokio::spawn(control::live(Arc::clone(&world)));
        let bound = world.plan.last_event() + END;
        let ended = timeout(bound, async {
            while !all_archived(&world) {
                world.moved.notified().await;
            }
            control.await.expect("the control plane does not panic");
        });
        // What has not ended by then, and what is left, the invariants name.
        let _ = ended.await;
        let quiet = timeout(QUIET, async {
            while invariants::is_busy(&world) {
                tokio::time::sleep(LOOK).await;
            }
        });
        let _ = quiet.await;
        world
    });
    let wrong = runtime.block_on(invariants::check(&world));
    drop(runtime);
    // There is none where no worker was started.
    let _ = fs::remove_dir_all(&world.directory);
    Played { world, wrong }
}

fn all_archived(world: &World) -> bool {
    let history = world.history();
    (0..world.plan.jobs.len()).all(|job| history.tells(job, Phase::Archived))
}

impl Played {
    /// Whether a job has run to its good end.
    pub(crate) fn is_completed(&self, job: usize) -> bool {
        let history = self.world.history();
        let archived = |told: &&Told| told.job == job && told.phase == Phase::Archived;
        let archived = history.facts.iter().find(archived);
        archived.and_then(Told::outcome).is_some_and(|outcome| outcome.succeeded())
    }

    /// The history for people, with what was wrong above it.
    pub(crate) fn report(&self) -> impl fmt::Display + use<'_> {
        struct Report<'a>(&'a Played);
        impl fmt::Display for Report<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Played { world, wrong } = self.0;
                for Wrong { invariant, what } in wrong {
                    writeln!(f, "seed {}: {invariant}: {what}", world.plan.seed)?;
                }
                writeln!(f, "{}", world.plan)?;
                write!(f, "{}", world.history().text())
            }
        }
        Report(self)
    }
}
