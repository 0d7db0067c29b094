//! Who is killed, when, and how: drawn from a seed.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::harness::{Nats, Part, Platform, Postgres, Stall, send};
use crate::outage::with_lasting_keys;

/// How often each is struck in a run, whatever its length, and how seldom at least.
const BLOWS: u32 = 8;
const SELDOM: Duration = Duration::from_secs(30);

/// How long it stays away, at most.
const AWAY: Duration = Duration::from_secs(5);

/// How long it may take until it is back, with others away in turn.
const BACK: Duration = Duration::from_secs(180);

/// splitmix64.
pub struct Dice(u64);

/// What can be struck.
pub enum Victim<'a> {
    Part(&'a mut Part),
    Queue(&'a mut Nats),
    Store(&'a mut Platform, &'a Stall),
    Database(&'a Postgres),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    Kill,
    Term,
    /// It stands still for a while.
    Stop,
}

/// One victim's life, until peace begins.
pub struct Life<'a> {
    pub name: &'static str,
    pub victim: Victim<'a>,
    pub dice: Dice,
    pub length: Duration,
    pub peace: CancellationToken,
}

pub type Tally = (&'static str, BTreeMap<Blow, usize>);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^ (drawn >> 31)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        most.mul_f64((self.draw() % 1_000) as f64 / 1_000.0)
    }
}

/// Lets them live, each in a thread of its own; afterwards all of them run.
pub fn suffer<const N: usize>(lives: [Life<'_>; N]) -> Vec<Tally> {
    let runtime = Handle::current();
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let threads = lives.map(|life| scope.spawn(|| runtime.block_on(life.live())));
            threads.into_iter().map(|thread| thread.join().expect("nobody panics")).collect()
        })
    })
}

impl Life<'_> {
    async fn live(mut self) -> Tally {
        let mut struck = BTreeMap::new();
        let pause = (self.length / BLOWS).min(SELDOM);
        // The first one comes in any case, the others on the average as often as that.
        let mut wait = self.dice.up_to(pause);
        loop {
            tokio::select! {
                () = self.peace.cancelled() => return (self.name, struck),
                () = sleep(wait) => {}
            }
            let blows = self.victim.blows();
            let blow = blows[self.dice.draw() as usize % blows.len()];
            self.victim.strike(self.name, blow).await;
            *struck.entry(blow).or_default() += 1;
            sleep(self.dice.up_to(AWAY)).await;
            self.victim.recover(self.name, blow).await;
            wait = self.dice.up_to(pause * 2);
        }
    }
}

impl Victim<'_> {
    const fn blows(&self) -> &'static [Blow] {
        match self {
            Self::Part(_) => &[Blow::Kill, Blow::Kill, Blow::Term, Blow::Stop],
            Self::Queue(_) | Self::Store(..) => &[Blow::Kill, Blow::Kill, Blow::Stop],
            Self::Database(_) => &[Blow::Kill],
        }
    }

    async fn strike(&mut self, name: &str, blow: Blow) {
        match (self, blow) {
            (Self::Part(part), blow) => {
                assert!(part.runs(), "{name} ended by itself: {}", part.log());
                match blow {
                    Blow::Kill => part.kill(),
                    Blow::Stop => part.signal(Signal::STOP),
                    Blow::Term => {
                        part.signal(Signal::TERM);
                        part.has_ended().await;
                    }
                }
            }
            (Self::Queue(nats), Blow::Stop) => nats.signal(Signal::STOP),
            (Self::Queue(nats), _) => nats.kill().await,
            (Self::Store(lender, _), Blow::Stop) => send(lender.pid(), Signal::STOP),
            (Self::Store(lender, _), _) => lender.kill().await,
            (Self::Database(postgres), _) => postgres.kill(),
        }
    }

    async fn recover(&mut self, name: &str, blow: Blow) {
        match (self, blow) {
            (Self::Part(part), Blow::Stop) => part.signal(Signal::CONT),
            (Self::Part(part), _) => {
                // What it needs may be away in its turn; a service manager would do this.
                let began = Instant::now();
                while !part.start_again() {
                    assert!(began.elapsed() < BACK, "{name} is not back: {}", part.log());
                    sleep(Duration::from_millis(200)).await;
                }
            }
            (Self::Queue(nats), Blow::Stop) => nats.signal(Signal::CONT),
            (Self::Queue(nats), _) => nats.start_again().await,
            (Self::Store(lender, _), Blow::Stop) => send(lender.pid(), Signal::CONT),
            (Self::Store(lender, door), _) => {
                lender.start_again(with_lasting_keys());
                door.lead_to(lender);
            }
            (Self::Database(postgres), _) => postgres.start_again(),
        }
    }
}

pub fn print_table(tallies: &[Tally]) {
    println!("\n{:<18}{:>6}{:>6}{:>6}", "", "kill", "term", "stop");
    for (name, struck) in tallies {
        let times = |blow| struck.get(&blow).copied().unwrap_or_default();
        let [kill, term, stop] = [Blow::Kill, Blow::Term, Blow::Stop].map(times);
        println!("{name:<18}{kill:>6}{term:>6}{stop:>6}");
        assert!(kill + term + stop > 0, "{name} was left alone");
    }
}
