//! Deterministic simulation of the whole chain: the real runtime, steps, claims and janitor of two
//! workers, on the broker in memory, under a paused clock, with all that may go wrong.

mod calls;
mod control;
mod dice;
mod fixture;
mod history;
mod host;
mod invariants;
mod objects;
mod place;
mod plan;
mod planted;
mod play;
mod process;
mod queue;
mod worker;
mod world;

use fixture::Fixture;
use plan::{Follows, Plan};
use play::play;

#[test]
fn a_quiet_world_is_as_it_must_be() {
    let fixture = Fixture::new();
    for follows in [Follows::Nothing, Follows::Message, Follows::Program] {
        let played = play(Plan::quiet(2, follows), None, &fixture, true);
        assert!(played.wrong.is_empty(), "{}", played.report());
        let began = std::time::Instant::now();
        for _ in 0..200 {
            play(Plan::quiet(2, follows), None, &fixture, false);
        }
        eprintln!("{follows:?} {:?} a world", began.elapsed() / 200);
        eprintln!("{}", played.report());
    }
}
