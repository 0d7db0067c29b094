use std::time::Duration;

use super::{Counts, line};

#[test]
fn the_line_says_how_far_how_fast_and_how_long() {
    let counts = Counts { of: Some(10_000), done: 5_000, failed: 12, running: 480 };
    let shown = line(&counts, 1_000, Duration::from_secs(200));
    let bar = "############------------";
    let expected = format!("[{bar}] 5000 of 10000, 12 failed, 480 running, 20.0/s, 4m 10s left");
    assert_eq!(shown, expected);
}

#[test]
fn nothing_is_guessed_where_nothing_is_known() {
    let counts = Counts { of: None, done: 0, failed: 0, running: 3 };
    assert_eq!(line(&counts, 0, Duration::ZERO), "0 done, 0 failed, 3 running");
    let all = Counts { of: Some(4), done: 4, failed: 0, running: 0 };
    let shown = line(&all, 4, Duration::from_secs(1));
    assert_eq!(shown, format!("[{}] 4 of 4, 0 failed, 0 running", "#".repeat(24)));
    let none = Counts { of: Some(0), ..all };
    assert_eq!(line(&none, 4, Duration::from_secs(1)), "4 done, 0 failed, 0 running");
}
