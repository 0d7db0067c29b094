//! Everything is killed at random while jobs of all kinds run: the server, the workers, the queue,
//! the object store, the database, each a process of its own. Afterwards they are left in peace,
//! and every job must have ended truthfully. `./dev chaos [SECONDS]`; `ERRAND_SEED` draws the same
//! blows again, though how the processes take them is another matter.

mod blows;
mod findings;
mod kinds;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use futures_util::future::join_all;
use streams::topology::Limits;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::harness::{Database, HERE, Nats, Parts, Platform, Stall, open_directory};
use crate::outage::with_lasting_keys;
use blows::{Dice, Life, Victim};
use kinds::{Client, KINDS};

/// What `./dev test` takes, and how many jobs there are in the longer run.
const SECONDS: u64 = 45;
const JOBS: usize = 20;
const EACH_SECOND: f64 = 0.5;

/// How long a job may take, and then in peace: what failed again and again waits up to a minute
/// each time, and may come to the wrong place several times.
const PEACE: Duration = Duration::from_secs(600);

/// Uploads that nobody finished are given up after this.
const UNFINISHED_SECONDS: u64 = 30;

const ELSEWHERE: &str = "elsewhere";
const ALL_STEPS: &str = "resolve,stage,invoke,act,archive";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_is_killed_every_job_ends_truthfully_and_runs_once() {
    let number = |name| std::env::var(name).ok().map(|it| it.parse().expect("a number"));
    let seed: u64 = number("ERRAND_SEED").unwrap_or(5);
    let longer = number("ERRAND_CHAOS_SECONDS");
    let jobs = longer.map_or(JOBS, |seconds| (seconds as f64 * EACH_SECOND) as usize);
    let length = Duration::from_secs(longer.unwrap_or(SECONDS));
    println!("{jobs} jobs in {} s of chaos, ERRAND_SEED={seed}", length.as_secs());

    let lender = Platform::with(with_lasting_keys()).await;
    let (door, nats) = (Stall::to(&lender).await, Nats::start());
    let queue = (nats.url().await, Limits::default());
    let mut parts = Parts::of(lender, &door.endpoint, queue, Database::Postgres);
    parts.nats = Some(nats);
    let outside = open_directory();
    let ran = outside.path().join("ran");
    fs::write(&ran, "").expect("it is written");
    fs::set_permissions(&ran, Permissions::from_mode(0o666)).expect("it is ours");
    let actions = outside.path().join("actions");
    kinds::install_action(&actions, &ran);
    parts.set("actions.directory", actions.display());
    parts.set("retention.unfinished_seconds", UNFINISHED_SECONDS);
    let mut server = parts.server();
    let mut workers = [HERE, HERE, ELSEWHERE]
        .map(|place| parts.worker_at(place, ALL_STEPS, &[("worker.slots", "4")]));
    let client = Client::new(server.api());
    client.prepare(&ran).await;

    let (began, peace) = (Instant::now(), CancellationToken::new());
    let running = (0..jobs).map(|n| {
        let (client, kind) = (client.clone(), &KINDS[n % KINDS.len()]);
        let submission = began + length.mul_f64(0.9 * n as f64 / jobs as f64);
        tokio::spawn(async move {
            sleep_until(submission).await;
            client.run(n, kind, began + length + PEACE).await
        })
    });
    let running: Vec<_> = running.collect();
    let ending = peace.clone();
    tokio::spawn(async move {
        sleep_until(began + length).await;
        ending.cancel();
    });
    let [first, second, third] = &mut workers;
    let victims = [
        ("server", Victim::Part(&mut server)),
        ("worker 1", Victim::Part(first)),
        ("worker 2", Victim::Part(second)),
        ("worker elsewhere", Victim::Part(third)),
        ("queue", Victim::Queue(parts.nats.as_mut().expect("it is ours"))),
        ("store", Victim::Store(&mut parts.lender, &door)),
        ("database", Victim::Database(parts.postgres.as_ref().expect("it is ours"))),
    ];
    let mut dice = Dice::new(seed);
    let lives = victims.map(|(name, victim)| Life {
        name,
        victim,
        dice: Dice::new(dice.draw()),
        length,
        peace: peace.clone(),
    });
    // Each in a thread of its own: who is started waits for others who are away.
    let tallies = blows::suffer(lives);
    let ended = join_all(running).await.into_iter().map(|ended| ended.expect("nobody panics"));
    let ended: Vec<_> = ended.collect();

    kinds::print_table(&ended);
    blows::print_table(&tallies);
    let places = [HERE, ELSEWHERE].map(|place| parts.place(place).join("runs"));
    let objects = parts.lender.data().join("objects");
    let broker = parts.broker().await;
    let found = findings::of(&ended, &ran, &*broker, &places, &objects).await;
    println!("found: {}", if found.is_empty() { "nothing" } else { "" });
    found.iter().for_each(|finding| println!("  {finding}"));
    assert!(found.is_empty(), "{} findings, ERRAND_SEED={seed}", found.len());
}
