//! The tests: quiet worlds, seeds, and every call of a quiet world gone wrong.

use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::fixture::Fixture;
use crate::plan::{Follows, Plan};
use crate::play::play;

/// How many seeds are played when nobody says.
const SEEDS: u64 = 10_000;

/// How many that fail are named before the rest is not looked at any more.
const NAMED: usize = 5000;

/// `ERRAND_SIM_<name>`, a number.
fn asked(name: &str) -> Option<u64> {
    let word = env::var(format!("ERRAND_SIM_{name}")).ok()?;
    Some(word.parse().unwrap_or_else(|_| panic!("ERRAND_SIM_{name} is a number, not '{word}'")))
}

#[test]
fn a_quiet_world_is_as_it_must_be() {
    let fixture = Fixture::new();
    for follows in [Follows::Nothing, Follows::Message, Follows::Program] {
        for places in [1, 2] {
            let played = play(Plan::quiet(places, follows), None, &fixture, true);
            assert!(played.wrong.is_empty(), "{}", played.report());
        }
    }
}

/// `ERRAND_SIM_SEED=n` plays one and tells all that happens, `ERRAND_SIM_SEEDS=n` so many, from
/// `ERRAND_SIM_FIRST` on.
#[test]
fn no_seed_breaks_what_must_hold() {
    let fixture = Fixture::new();
    if let Some(seed) = asked("SEED") {
        let played = play(Plan::of(seed), None, &fixture, true);
        eprintln!("{}", played.report());
        assert!(played.wrong.is_empty(), "seed {seed} breaks what must hold");
        return;
    }
    let first = asked("FIRST").unwrap_or(0);
    let next = AtomicU64::new(first);
    let end = first + asked("SEEDS").unwrap_or(SEEDS);
    let failed = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || failed.lock().expect("no poison").len() >= NAMED {
                        return;
                    }
                    let played = play(Plan::of(seed), None, &fixture, false);
                    for wrong in played.wrong {
                        eprintln!("seed {seed}: {}: {}", wrong.invariant, wrong.what);
                        failed.lock().expect("no poison").push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no poison");
    if let Some(seed) = failed.first() {
        let played = play(Plan::of(*seed), None, &fixture, true);
        panic!("{}\nERRAND_SIM_SEED={seed} plays it again", played.report());
    }
}
