//! How far a batch is, in one line: a bar on a terminal, and elsewhere a line now and then.

use std::time::{Duration, Instant};

use crate::cli::render::Output;

/// Characters of the bar.
const WIDTH: u64 = 24;

/// How often something is said where nobody watches.
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Lines there are; none while that is not known.
    pub(super) of: Option<u64>,
    /// Lines that are over, one way or the other.
    pub(super) done: u64,
    /// Those of them that did not complete.
    pub(super) failed: u64,
    /// Jobs that go on, or wait.
    pub(super) running: u64,
}

/// The one line.
pub(super) struct Bar {
    out: Output,
    begun: Instant,
    /// What was done when it began.
    before: u64,
    said: Option<Instant>,
}

impl Bar {
    pub(super) fn new(out: Output, done: u64) -> Self {
        Self { out, begun: Instant::now(), before: done, said: None }
    }

    /// Shows where things are.
    pub(super) fn show(&mut self, counts: &Counts) {
        let line = line(counts, self.before, self.begun.elapsed());
        if self.out.is_watched() {
            self.out.progress(&line);
        } else if self.said.is_none_or(|at| at.elapsed() >= NOW_AND_THEN) {
            self.said = Some(Instant::now());
            self.out.note(&line);
        }
    }

    /// Shows where things ended.
    pub(super) fn end(&self, counts: &Counts) {
        self.out.progress("");
        self.out.note(&line(counts, self.before, self.begun.elapsed()));
    }
}

/// `[######------] 4123 of 10000, 12 failed, 480 running, 21.3/s, 4m 36s left`
fn line(counts: &Counts, before: u64, took: Duration) -> String {
    let Counts { of, done, failed, running } = *counts;
    let mut line = match of {
        Some(of) if of > 0 => {
            let full = (done.min(of) * WIDTH / of) as usize;
            let bar = ["#".repeat(full), "-".repeat(WIDTH as usize - full)].concat();
            format!("[{bar}] {done} of {of}")
        }
        _ => format!("{done} done"),
    };
    line.push_str(&format!(", {failed} failed, {running} running"));
    let rate = done.saturating_sub(before) as f64 / took.as_secs_f64().max(0.001);
    if rate > 0.0 {
        line.push_str(&format!(", {rate:.1}/s"));
        let left = of.map_or(0, |of| of.saturating_sub(done));
        let left = Duration::try_from_secs_f64(left as f64 / rate).unwrap_or_default().as_secs();
        if left > 0 {
            line.push_str(&format!(", {}m {:02}s left", left / 60, left % 60));
        }
    }
    line
}

#[cfg(test)]
mod tests;
