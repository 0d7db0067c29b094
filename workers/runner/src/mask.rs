//! Takes secret values out of text, in the encodings that programs usually print them in.
//!
//! Masked wherever they stand whole: the value, with and without its line ends, its lines, and its
//! base64, hex, `\xNN`, URL, JSON, HTML and shell forms (`forms`); base64 and hex also where line
//! ends break them (`wrapped`).
//!
//! Not masked: values under [`SHORTEST`] bytes (masking `1` or `true` would destroy the log and
//! protect nothing), the encodings of values over 16 KiB (which are masked as they are), a value
//! that is itself broken or cut, wrapped forms whose lines have a prefix or another line between
//! them (`xxd`, `od`), forms spread over several JSON strings, and other encodings (encrypted,
//! compressed, reversed, encoded twice).

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::Value;

use forms::Forms;
use wrapped::Wrapped;

mod forms;
mod wrapped;

pub(crate) use errand_runner::SHORTEST_MASKED as SHORTEST;
pub(crate) use wrapped::{Edges, Seam};

const STARS: &[u8] = b"***";

/// Where a stretch of a text begins and ends.
type Span = (usize, usize);

/// All secrets of a run.
pub(crate) struct Mask {
    automaton: Option<AhoCorasick>,
    wrapped: Wrapped,
    longest: usize,
}

impl Mask {
    /// Prepares the values.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let Forms { whole, wrapped } = Forms::of(values);
        let longest = whole.iter().map(Vec::len).max().unwrap_or(0);
        // Overlapping matches are wanted, so that of two values that share a border no half
        // stays; the compact automaton keeps a long key at a few bytes of memory a byte.
        let automaton = (!whole.is_empty()).then(|| {
            AhoCorasick::builder()
                .match_kind(MatchKind::Standard)
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(&whole)
                .expect("secrets are far below the automaton's limit of 2^31 states")
        });
        Self { automaton, wrapped: Wrapped::new(&wrapped), longest }
    }

    /// Whether there is anything to look for.
    pub(crate) fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    /// Whether a stream holds a secret in one piece. Reads until it meets one, or to the end.
    pub(crate) fn finds_in(&self, stream: impl std::io::Read) -> std::io::Result<bool> {
        let found = self.automaton.as_ref().and_then(|it| it.stream_find_iter(stream).next());
        found.transpose().map(|found| found.is_some())
    }

    /// The longest pattern: who cuts a text must look so many bytes beyond the cut.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Replaces every secret.
    pub(crate) fn bytes<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        self.bytes_until(text, text.len())
    }

    /// Replaces every secret and cuts at `end`; a secret that crosses the cut is replaced whole.
    pub(crate) fn bytes_until<'a>(&self, text: &'a [u8], end: usize) -> Cow<'a, [u8]> {
        self.replace(text, end, &self.edges(text))
    }

    /// The same for one line, or its beginning, of a stream that a [`Seam`] has read.
    pub(crate) fn line_until<'a>(&self, line: &'a [u8], end: usize, edges: Edges) -> Cow<'a, [u8]> {
        self.replace(line, end, &edges)
    }

    /// Replaces every secret in a text.
    pub(crate) fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// Replaces every secret in the strings of a JSON value.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The edges of all lines of a text.
    fn edges(&self, text: &[u8]) -> Vec<Span> {
        let mut seam = Seam::default();
        let mut edges = Vec::new();
        let mut start = 0;
        for line in text.split(|byte| *byte == b'\n') {
            seam.read(self, line);
            edges.extend(seam.end_line(self).map(|(from, to)| (start + from, start + to)));
            start += line.len() + 1;
        }
        edges
    }

    fn replace<'a>(&self, text: &'a [u8], end: usize, edges: &[Span]) -> Cow<'a, [u8]> {
        let end = end.min(text.len());
        let spans = self.spans(text, edges);
        if spans.first().is_none_or(|span| span.0 >= end) {
            return Cow::Borrowed(&text[..end]);
        }
        let mut masked = Vec::with_capacity(end);
        let mut clear_from = 0;
        for (from, to) in spans.into_iter().take_while(|span| span.0 < end) {
            masked.extend_from_slice(&text[clear_from..from]);
            masked.extend_from_slice(STARS);
            clear_from = to;
        }
        masked.extend_from_slice(text.get(clear_from..end).unwrap_or_default());
        Cow::Owned(masked)
    }

    /// The covered stretches, in order and disjoint.
    fn spans(&self, text: &[u8], edges: &[Span]) -> Vec<Span> {
        let mut found: Vec<Span> = edges.iter().copied().filter(|(from, to)| from < to).collect();
        if let Some(automaton) = &self.automaton {
            let whole = automaton.find_overlapping_iter(text);
            found.extend(whole.map(|found| (found.start(), found.end())));
        }
        found.sort_unstable();
        let mut spans: Vec<Span> = Vec::with_capacity(found.len());
        for (from, to) in found {
            match spans.last_mut() {
                Some(last) if from < last.1 => last.1 = last.1.max(to),
                _ => spans.push((from, to)),
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests;
