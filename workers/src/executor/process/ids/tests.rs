use tempfile::TempDir;

use super::*;

const RANGE: IdRange = IdRange { first: 5000, count: 3 };

#[test]
fn a_number_is_one_runs_until_that_is_gone() {
    let runs = TempDir::new().expect("a temporary directory");
    let (one, other) = (Ids::new(runs.path()), Ids::new(runs.path()));
    let taken = [one.take(RANGE, "a"), other.take(RANGE, "b"), one.take(RANGE, "c")];
    let mut taken = taken.map(|id| id.expect("there are three"));
    taken.sort_unstable();
    assert_eq!(taken, [5000, 5001, 5002]);
    let full = one.take(RANGE, "d").expect_err("there are three");
    assert_eq!(full.to_string(), "all 3 users of agents are taken; widen worker.agent_ids");

    fs::create_dir(runs.path().join("b")).expect("room on the disk");
    fs::create_dir(runs.path().join(".c.partial")).expect("room on the disk");
    one.sweep(|run| runs.path().join(format!(".{run}.partial"))).expect("it can be swept");
    one.take(RANGE, "e").expect("that of a is free");
    one.take(RANGE, "f").expect_err("b and c are there");
    other.free("b").expect("it can be freed");
    one.take(RANGE, "f").expect("that of b is free");
}

#[test]
fn long_names_take_numbers_of_the_range_too() {
    let runs = TempDir::new().expect("a temporary directory");
    let range = IdRange { first: u32::MAX - 7, count: 7 };
    for n in 0..range.count {
        let run = format!("{}-{n}", "\u{7f}".repeat(40));
        let id = Ids::new(runs.path()).take(range, &run).expect("there are seven");
        assert!((range.first..u32::MAX).contains(&id), "{id}");
    }
}
