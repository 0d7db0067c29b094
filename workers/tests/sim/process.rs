//! A process of the platform: everything that it asks of the world passes here, where the plan
//! has it fail, be late, sleep or die. What is dead has no effect any more.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::{Duration, Instant, sleep, sleep_until};

use crate::calls::{Fault, Op, When};
use crate::world::World;

/// One process, from its start to its end.
pub(crate) struct Process {
    pub(crate) world: Arc<World>,
    /// Which worker it is; the same for the one that is started after it.
    pub(crate) number: usize,
    pulse: Mutex<Pulse>,
    died: Notify,
}

#[derive(Default)]
struct Pulse {
    dead: bool,
    asleep_until: Option<Instant>,
}

/// A call that failed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the simulation has it fail")]
pub(crate) struct Broken {
    /// Which it was.
    pub(crate) nth: u32,
}

impl Process {
    pub(crate) fn new(world: Arc<World>, number: usize) -> Arc<Self> {
        Arc::new(Self { world, number, pulse: Mutex::default(), died: Notify::new() })
    }

    /// Makes a call, as the plan wants it to go.
    pub(crate) async fn call<T>(
        &self,
        op: Op,
        job: Option<usize>,
        effect: impl Future<Output = T>,
    ) -> Result<T, Broken> {
        let call = self.world.counted(self.number, op, job);
        let broken = Broken { nth: call.nth };
        let fault = self.world.strike(call);
        self.awake(op).await;
        if op.takes_time() {
            sleep(self.world.plan.latency(call)).await;
            self.awake(op).await;
        }
        match fault {
            Some(Fault::Crash(When::Before)) => self.crash().await,
            Some(Fault::Sleep(When::Before, long)) => self.fall_asleep(long),
            Some(Fault::Late(long)) => sleep(long).await,
            Some(Fault::Fails(When::Before)) => return Err(broken),
            _ => {}
        }
        self.awake(op).await;
        if op.is_of_queue() && self.world.queue_is_away(self.number) {
            return Err(broken);
        }
        let done = effect.await;
        match fault {
            Some(Fault::Crash(When::After)) => self.crash().await,
            Some(Fault::Sleep(When::After, long)) => self.fall_asleep(long),
            Some(Fault::Fails(When::After)) => return Err(broken),
            _ => {}
        }
        self.awake(op).await;
        Ok(done)
    }

    /// Waits while the process sleeps, and for ever once it is dead.
    async fn awake(&self, op: Op) {
        loop {
            let (dead, until) = {
                let pulse = self.pulse.lock().expect("no poison");
                (pulse.dead, pulse.asleep_until)
            };
            if dead {
                std::future::pending::<()>().await;
            }
            match until {
                Some(until) if until > Instant::now() && op != Op::ReadLog => {
                    sleep_until(until).await;
                }
                _ => return,
            }
        }
    }

    fn fall_asleep(&self, long: Duration) {
        let until = Instant::now() + long;
        self.pulse.lock().expect("no poison").asleep_until = Some(until);
        self.world.history().note_sleep(self.world.now() + long);
    }

    async fn crash(&self) {
        self.kill();
        std::future::pending::<()>().await;
    }

    /// From here on nothing of it has an effect.
    pub(crate) fn kill(&self) {
        self.pulse.lock().expect("no poison").dead = true;
        self.died.notify_one();
    }

    /// Waits until it is dead.
    pub(crate) async fn death(&self) {
        self.died.notified().await;
    }

    /// Tells what happens, when somebody reads along.
    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        self.world.tell(|| format!("process {}: {}", self.number, what()));
    }
}
