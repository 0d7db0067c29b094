//! The lines of one answer. They have so many bytes at most: of long lines fewer than asked for
//! are answered, and whoever asks goes on from there.

use std::collections::VecDeque;

use streams::log::LogLine;

use super::Window;

/// Bytes of text that one answer has, unless its one line has more.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// What a line takes beside its text.
const LINE_BYTES: usize = 64;

/// Lines that are collected, in their order.
#[derive(Debug)]
pub(super) struct Page {
    lines: VecDeque<LogLine>,
    bytes: usize,
    /// Whether the last ones are kept, of a window that is asked for from its end.
    keeps_newest: bool,
}

impl Page {
    pub(super) fn of(window: Window) -> Self {
        let keeps_newest = match window {
            Window::From { .. } | Window::Above { .. } => false,
            Window::Before { .. } | Window::Tail(_) => true,
        };
        Self { lines: VecDeque::new(), bytes: 0, keeps_newest }
    }

    /// Takes a line. Says whether a further one may have room.
    pub(super) fn push(&mut self, line: LogLine) -> bool {
        let bytes = size(&line);
        if !self.keeps_newest && self.bytes + bytes > MOST_BYTES && !self.lines.is_empty() {
            return false;
        }
        self.bytes += bytes;
        self.lines.push_back(line);
        while self.bytes > MOST_BYTES && self.lines.len() > 1 {
            self.bytes -= self.lines.pop_front().as_ref().map_or(0, size);
        }
        true
    }

    /// The lines of a window with these places, and the place of the first.
    pub(super) fn finish(self, first: u64, end: u64) -> (u64, Vec<LogLine>) {
        let first = if self.keeps_newest { end - self.lines.len() as u64 } else { first };
        (first, self.lines.into())
    }
}

fn size(line: &LogLine) -> usize {
    line.text.len() + LINE_BYTES
}

#[cfg(test)]
mod tests {
    use streams::log::LogStream;

    use super::*;

    fn filled(window: Window, lines: u64, bytes: usize) -> (u64, Vec<u64>) {
        let mut page = Page::of(window);
        for n in 0..lines {
            let text = "x".repeat(bytes);
            let at = jiff::Timestamp::UNIX_EPOCH;
            if !page.push(LogLine { n, stream: LogStream::Stdout, at, text }) {
                break;
            }
        }
        let (first, lines) = page.finish(100, 100 + lines);
        (first, lines.iter().map(|line| line.n).collect())
    }

    #[test]
    fn a_page_of_long_lines_has_fewer() {
        let mebibyte = 1024 * 1024 - LINE_BYTES;
        let forward = Window::From { first: 100, limit: 9 };
        assert_eq!(filled(forward, 3, 10), (100, vec![0, 1, 2]));
        assert_eq!(filled(forward, 9, mebibyte), (100, vec![0, 1, 2, 3]));
        assert_eq!(filled(Window::Tail(9), 9, mebibyte), (105, vec![5, 6, 7, 8]));
        assert_eq!(filled(Window::Before { end: 109, limit: 9 }, 3, 10), (100, vec![0, 1, 2]));
    }

    #[test]
    fn one_line_is_always_answered() {
        let long = 5 * 1024 * 1024;
        assert_eq!(filled(Window::Above { number: 1, limit: 9 }, 2, long), (100, vec![0]));
        assert_eq!(filled(Window::Tail(9), 2, long), (101, vec![1]));
    }
}
