//! The tests: quiet worlds, every call of a quiet world gone wrong, and seeds.
//!
//! `ERRAND_SIM_SEED=n` plays one seed and tells all that happens in it; `ERRAND_SIM_SEEDS=n` plays
//! so many, from `ERRAND_SIM_FIRST` on. `./dev simulate [SEEDS] [FIRST]` does the latter.

use std::env;
use std::iter;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::time::Duration;

use crate::calls::{Call, Fault, Op, When};
use crate::fixture::Fixture;
use crate::plan::{Follows, Plan};
use crate::play::play;

/// How many seeds are played when nobody says.
const SEEDS: u64 = 10_000;

/// How many of them twice.
const TWICE: u64 = 200;

/// How many may fail before the rest is not looked at any more.
const NAMED: usize = 5;

/// Longer than it takes until a claim may be taken over elsewhere.
const LONG: Duration = Duration::from_secs(400);

#[test]
fn a_quiet_world_is_as_it_must_be() {
    let fixture = Fixture::new();
    for follows in [Follows::Nothing, Follows::Message, Follows::Program] {
        for places in [1, 2] {
            let played = play(Plan::quiet(places, follows), None, &fixture, true);
            assert!(played.wrong.is_empty(), "{}", played.report());
            assert!(played.is_completed(0), "{}", played.report());
        }
    }
}

/// Every crash point × every step, and more: each call that is made, before and after its effect.
#[test]
fn no_crash_and_no_sleep_at_any_call_breaks_what_must_hold() {
    let fixture = Fixture::new();
    let mut plans = Vec::new();
    for (places, follows) in [(1, Follows::Program), (2, Follows::Message)] {
        let quiet = Plan { is_cleared: false, ..Plan::quiet(places, follows) };
        let noted = Plan { notes_calls: true, ..quiet.clone() };
        let calls = play(noted, None, &fixture, false).world.history().calls.clone();
        for call in calls.into_iter().filter(is_worth_it) {
            let faults = [When::Before, When::After]
                .map(|when| [Fault::Crash(when), Fault::Sleep(when, LONG), Fault::Fails(when)]);
            for fault in faults.into_iter().flatten().filter(|fault| is_sound(call, *fault)) {
                let mut plan = quiet.clone();
                plan.faults.insert(call, fault);
                plans.push(plan);
            }
        }
    }
    assert!(plans.len() > 400, "there are calls enough: {}", plans.len());
    none_breaks(&fixture, plans.len(), |index| plans[index].clone());
}

/// What is asked again and again is worth a few looks.
const fn is_worth_it(call: &Call) -> bool {
    let most = match call.op {
        Op::Look => 4,
        Op::Fetch | Op::Consumers | Op::Runs => 2,
        _ => u32::MAX,
    };
    call.nth <= most
}

/// What takes no time cannot be slept through.
const fn is_sound(call: Call, fault: Fault) -> bool {
    call.op.takes_time() || !matches!(fault, Fault::Sleep(..))
}

#[test]
fn no_seed_breaks_what_must_hold() {
    let fixture = Fixture::new();
    if let Some(seed) = asked("SEED") {
        let played = play(Plan::of(seed), None, &fixture, true);
        eprintln!("{}", played.report());
        assert!(played.wrong.is_empty(), "seed {seed} breaks what must hold");
        return;
    }
    let (first, count) = (asked("FIRST").unwrap_or(0), asked("SEEDS").unwrap_or(SEEDS));
    let count = usize::try_from(count).expect("so many can be counted");
    none_breaks(&fixture, count, |index| Plan::of(first + index as u64));
}

#[test]
fn a_seed_is_played_the_same_again() {
    let fixture = Fixture::new();
    for seed in (0..TWICE).map(|number| number * 37) {
        let essence = || play(Plan::of(seed), None, &fixture, false).world.history().essence();
        assert_eq!(essence(), essence(), "seed {seed}");
    }
}

/// `ERRAND_SIM_<name>`, a number.
fn asked(name: &str) -> Option<u64> {
    let word = env::var(format!("ERRAND_SIM_{name}")).ok()?;
    Some(word.parse().unwrap_or_else(|_| panic!("ERRAND_SIM_{name} is a number, not '{word}'")))
}

/// Plays so many plans on all processors. The first that fails is played again for its history.
fn none_breaks(
    fixture: &std::sync::Arc<Fixture>,
    count: usize,
    plan: impl Fn(usize) -> Plan + Sync,
) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || {
        let failures = || failed.lock().expect("no poison").len();
        let numbers = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        for index in numbers.take_while(|index| *index < count && failures() < NAMED) {
            let played = play(plan(index), None, fixture, false);
            for wrong in &played.wrong {
                eprintln!("seed {}: {}: {}", played.world.plan.seed, wrong.invariant, wrong.what);
            }
            if !played.wrong.is_empty() {
                failed.lock().expect("no poison").push(index);
            }
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    if let Some(index) = failed.into_inner().expect("no poison").into_iter().min() {
        let played = play(plan(index), None, fixture, true);
        let seed = played.world.plan.seed;
        panic!("{}\nERRAND_SIM_SEED={seed} plays it again", played.report());
    }
}
