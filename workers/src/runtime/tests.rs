use super::*;

#[test]
fn what_is_given_back_keeps_no_steady_pace() {
    let after = Duration::from_secs(60);
    let waits: Vec<_> = (1..=8).map(|times| out_of_step(after, 7, times)).collect();
    for (n, wait) in waits.iter().enumerate() {
        assert!((after / 2..after).contains(wait), "{wait:?}");
        assert!(!waits[..n].contains(wait), "{waits:?}");
    }
}
