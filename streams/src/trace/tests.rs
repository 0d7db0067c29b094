use super::*;

const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_trace_context_is_read_and_written() {
    let read: TraceParent = GOOD.parse().expect("it is one");
    assert!(read.sampled);
    assert_eq!(read.to_string(), GOOD);
    let unsampled: TraceParent = GOOD.replace("-01", "-00").parse().expect("it is one");
    assert!(!unsampled.sampled);
}

#[test]
fn what_is_none_is_none() {
    for text in [
        "",
        "hello",
        &GOOD.to_uppercase(),
        &GOOD.replacen("00", "ff", 1),
        &GOOD.replacen("00", "01", 1),
        &GOOD[..GOOD.len() - 1],
        &format!("{GOOD}-extra"),
        &format!(" {GOOD}"),
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473ä-00f067aa0ba902b7-01",
    ] {
        assert!(text.parse::<TraceParent>().is_err(), "'{text}'");
    }
}
