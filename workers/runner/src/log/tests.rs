use std::fs;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

struct Scene {
    dir: TempDir,
    log: Log,
}

impl Scene {
    fn new(secrets: &[&str], budget: u64) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mask = Mask::new(secrets.iter().copied());
        let log = Log::create(&dir.path().join("agent.log"), mask, budget).expect("a new log");
        Self { dir, log }
    }

    /// Everything in the file, after a check that lines are whole and numbered without a gap.
    fn lines(&self) -> Vec<LogLine> {
        let text = fs::read_to_string(self.dir.path().join("agent.log")).expect("the log is text");
        assert!(text.is_empty() || text.ends_with('\n'));
        let lines: Vec<LogLine> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line is a LogLine"))
            .collect();
        for (position, line) in lines.iter().enumerate() {
            assert_eq!(line.n, position as u64 + 1);
        }
        assert_eq!(lines.len() as u64, self.log.lines());
        lines
    }

    fn texts(&self) -> Vec<String> {
        self.lines().into_iter().map(|line| line.text).collect()
    }

    /// Feeds chunks through a follower, as if read from a file.
    fn feed(&mut self, chunks: &[&[u8]]) {
        let path = self.dir.path().join("none");
        let mut follower = Follower::new(path, LogStream::Stdout);
        for chunk in chunks {
            follower.take(chunk, &mut self.log);
        }
        follower.finish(&mut self.log, &mut Vec::new(), |_| true);
        self.log.flush();
    }
}

#[test]
fn chunks_become_lines() {
    let mut scene = Scene::new(&[], 1 << 20);
    scene.feed(&[b"a", b"b\nc\r\n\n", b"no end: \xff"]);
    assert_eq!(scene.texts(), ["ab", "c", "", "no end: \u{fffd}"]);
}

#[test]
fn case_e4_a_long_line_is_cut_with_its_length_and_the_next_one_is_there() {
    let mut scene = Scene::new(&[], 1 << 20);
    let long = vec![b'x'; 6_000_000];
    scene.feed(&[&long[..1_000_000], &long[1_000_000..], b"\nEND\n"]);
    let texts = scene.texts();
    assert_eq!(texts.len(), 2);
    assert_eq!(&texts[0][..LINE_LIMIT], "x".repeat(LINE_LIMIT));
    assert_eq!(&texts[0][LINE_LIMIT..], " [line cut: it has 6000000 bytes]");
    assert_eq!(texts[1], "END");
}

#[test]
fn a_cut_halves_no_letter() {
    let mut scene = Scene::new(&[], 1 << 20);
    let long = format!("x{}", "é".repeat(LINE_LIMIT));
    scene.feed(&[long.as_bytes()]);
    let text = &scene.texts()[0];
    assert!(!text.contains(char::REPLACEMENT_CHARACTER));
    assert!(text.ends_with(&format!("é [line cut: it has {} bytes]", long.len())));
}

#[test]
fn the_log_is_bounded_and_says_so_but_the_platform_is_always_heard() {
    let mut scene = Scene::new(&[], 1000);
    for _ in 0..100 {
        scene.feed(&[b"y\ny\ny\n"]);
    }
    scene.log.platform("the end");
    scene.log.close();
    let texts = scene.texts();
    let kept = texts.iter().filter(|text| *text == "y").count();
    assert!(kept < 20);
    let note = format!("The log is full: {} more lines are in output_artifacts only.", 300 - kept);
    assert_eq!(texts[kept..], ["the end".to_owned(), note]);
}

#[test]
fn a_followed_file_may_be_deleted() {
    let mut scene = Scene::new(&[], 1 << 20);
    let path = scene.dir.path().join("spool");
    let mut follower = Follower::new(path.clone(), LogStream::Stderr);
    let mut buffer = Vec::new();
    assert_eq!(follower.follow(&mut scene.log, &mut buffer), 0);
    let mut spool = fs::File::create(&path).expect("a new file");
    spool.write_all(b"one\ntw").expect("room on the disk");
    assert_eq!(follower.follow(&mut scene.log, &mut buffer), 6);
    fs::remove_file(&path).expect("the file is there");
    spool.write_all(b"o\nthree").expect("room on the disk");
    assert_eq!(follower.finish(&mut scene.log, &mut buffer, |_| true), 0);
    scene.log.flush();
    assert_eq!(scene.texts(), ["one", "two", "three"]);
    assert_eq!(scene.log.stderr_tail(), "one\ntwo\nthree");
}

#[test]
fn what_may_not_be_read_to_its_end_is_left_out_by_whole_lines() {
    let mut scene = Scene::new(&["s3cr3t-value-1"], 1 << 20);
    let path = scene.dir.path().join("spool");
    let begin = format!("{} s3cr3t", "one\n".repeat(Follower::CHUNK / 4 - 2));
    fs::write(&path, format!("{begin}-value-1\n{}", "x".repeat(Follower::CHUNK)))
        .expect("room on the disk");
    let mut follower = Follower::new(path.clone(), LogStream::Stdout);
    let left = follower.finish(&mut scene.log, &mut Vec::new(), |read| read == 0);
    assert_eq!(left, " s3cr3t-value-1\n".len() as u64 + Follower::CHUNK as u64);
    assert!(scene.texts().iter().all(|text| text == "one"));
    let length = fs::metadata(&path).expect("it is there").len();
    let mut follower = Follower::new(path, LogStream::Stdout);
    assert_eq!(follower.finish(&mut scene.log, &mut Vec::new(), |_| false), length);
}

#[test]
fn the_tail_of_stderr_is_bounded() {
    let mut scene = Scene::new(&[], 1 << 24);
    for number in 0..10_000 {
        let line = format!("line {number}");
        scene.log.agent(LogStream::Stderr, line.as_bytes(), line.len() as u64);
    }
    let tail = scene.log.stderr_tail();
    assert!(tail.len() <= STDERR_TAIL);
    assert!(tail.ends_with("line 9998\nline 9999"));
}

#[test]
fn a_form_that_goes_on_after_a_cut_line_is_masked() {
    let mut scene = Scene::new(&["s3cr3t-value-1"], 1 << 20);
    let long = "x".repeat(2 * LINE_LIMIT);
    scene.feed(&[format!("{long} czNjcjN0\nLXZhbHVlLTE=\n").as_bytes()]);
    assert_eq!(scene.texts()[1], "***E=");
}

#[test]
fn streams_and_lines_without_a_follower_are_read_apart() {
    let mut scene = Scene::new(&["s3cr3t-value-1"], 1 << 20);
    let (begin, rest) = ("czNjcjN0", "LXZhbHVlLTE=");
    let mut out = Follower::new("none".into(), LogStream::Stdout);
    let mut err = Follower::new("none".into(), LogStream::Stderr);
    out.take(format!("{begin}\n").as_bytes(), &mut scene.log);
    err.take(format!("{rest}\n{begin}\n").as_bytes(), &mut scene.log);
    out.take(format!("{rest}\n").as_bytes(), &mut scene.log);
    err.take(format!("{rest}\n").as_bytes(), &mut scene.log);
    for line in [begin, rest] {
        scene.log.agent(LogStream::Stderr, line.as_bytes(), line.len() as u64);
    }
    scene.log.flush();
    assert_eq!(scene.texts(), ["***", rest, "***", "***E=", "***E=", "***", "***E="]);
}

/// Breaks a text into lines, as `base64 -w` and `fold` do.
fn wrapped(text: &str, width: usize) -> String {
    let lines = text.as_bytes().chunks(width).map(String::from_utf8_lossy);
    Vec::from_iter(lines).join("\n")
}

/// The longest stretch of `whole` that can be read in `text`.
fn longest_seen(whole: &str, text: &str) -> usize {
    let mut longest = 0;
    for from in 0..whole.len() {
        while whole.get(from..=from + longest).is_some_and(|part| text.contains(part)) {
            longest += 1;
        }
    }
    longest
}

/// What of the base64 of `before` and `secret` the secret alone decides.
fn base64_of(before: &str, secret: &str) -> (usize, usize) {
    let bits = |text: &str| text.len() * 8;
    (bits(before).div_ceil(6), (bits(before) + bits(secret)) / 6)
}

#[test]
fn hex_wrapped_at_32_shows_nothing() {
    let secret = "0123456789abcdefghij-klmnopqrstuvwxy";
    for before in 0..40 {
        let text = format!("{}{secret} and some more text", "#".repeat(before));
        let lower = String::from_iter(text.bytes().map(|byte| format!("{byte:02x}")));
        for hex in [lower.to_uppercase(), lower] {
            let mut scene = Scene::new(&[secret], 1 << 20);
            scene.feed(&[wrapped(&hex, 32).as_bytes()]);
            let form = &hex[2 * before..2 * (before + secret.len())];
            assert!(longest_seen(form, &scene.texts().concat()) < 8, "{before} bytes before");
        }
    }
}

proptest! {
    #[test]
    fn no_width_lets_a_form_through(
        secret in "[!-~&&[^#]]{8,60}",
        before in 0_usize..90,
        width in 1_usize..100,
        url_safe: bool,
        line_end in proptest::sample::select(vec!["\n", "\r\n", "\n  "]),
        cut in 0_usize..200,
    ) {
        let before = "#".repeat(before);
        let text = format!("{before}{secret}{}", "#".repeat(40));
        let encoded = if url_safe { URL_SAFE.encode(text) } else { STANDARD.encode(text) };
        let broken = wrapped(&encoded, width).replace('\n', line_end);
        let mut scene = Scene::new(&[secret.as_str()], 1 << 20);
        let (first, second) = broken.as_bytes().split_at(cut.min(broken.len()));
        scene.feed(&[first, second]);
        let joined: String = scene.texts().iter().map(|line| line.trim()).collect();
        let (from, to) = base64_of(&before, &secret);
        prop_assert!(longest_seen(&encoded[from..to], &joined) < 8, "{joined}");
    }

    #[test]
    fn no_chunking_and_no_cut_lets_a_secret_through(
        before in (LINE_LIMIT - 40)..(LINE_LIMIT + 4),
        cuts in proptest::collection::vec(0_usize..LINE_LIMIT + 200, 0..6),
    ) {
        let secret = "s3cr3t-value-of-24-bytes";
        let mut scene = Scene::new(&[secret], 1 << 20);
        let text = format!("{secret}{}{secret}{}", "x".repeat(before), "y".repeat(60));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts
            .windows(2)
            .map(|cut| &text.as_bytes()[cut[0]..cut[1]])
            .collect();
        scene.feed(&chunks);
        let line = scene.texts().concat();
        prop_assert!(line.starts_with("***x"));
        for length in 4..=secret.len() {
            prop_assert!(!line.contains(&secret[..length]), "{length} letters got through");
        }
    }
}
