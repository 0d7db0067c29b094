use streams::topology::{Limits, streams};

use super::*;

#[test]
fn the_streams_fit_whatever_the_disk_has_free() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let launch = Launch { program: "x".into(), dir: dir.path().into(), token: "t".to_owned() };
    let written = launch.write_config(None).expect("the directory is there");
    let text = std::fs::read_to_string(written).expect("it is written");
    let (_, allowed) = text.split_once("max_file_store: ").expect("the server is told");
    let digits: String = allowed.chars().take_while(char::is_ascii_digit).collect();
    let allowed: u64 = digits.parse().expect("bytes");
    let asked: u64 = streams(Limits::default()).iter().map(|stream| stream.max_bytes).sum();
    assert!(asked > 0 && asked < allowed / 10, "{asked} of {allowed}");
}
