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
use std::collections::BTreeSet;
use std::ops::Bound;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::{Map, Value};

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
    /// Every pattern, to be looked up by how it begins.
    whole: BTreeSet<Vec<u8>>,
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
        Self { automaton, wrapped: Wrapped::new(&wrapped), longest, whole }
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

    /// Replaces every secret in a text that was cut at its end, and there the beginning of one.
    pub(crate) fn cut_text(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let lengths = SHORTEST / 2..self.longest.min(bytes.len() + 1);
        let begins = |length: &usize| {
            let end = &bytes[bytes.len() - length..];
            let next = self.whole.range::<[u8], _>((Bound::Included(end), Bound::Unbounded)).next();
            next.is_some_and(|form| form.starts_with(end))
        };
        match lengths.rev().find(begins) {
            Some(length) => {
                let clear = self.bytes_until(bytes, bytes.len() - length);
                format!("{}***", String::from_utf8_lossy(&clear))
            }
            None => self.text(text),
        }
    }

    /// Replaces every secret in a record: in strings, in numbers, and in the keys of what its fields
    /// hold. Its own keys are the platform's.
    pub(crate) fn record(&self, record: &mut Value) {
        match record {
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            other => self.value(other),
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.value(field));
                if fields.keys().any(|key| self.text(key) != *key) {
                    self.keys(fields);
                }
            }
            Value::Number(number) => {
                let text = number.to_string();
                let masked = self.text(&text);
                if masked != text {
                    *value = masked.into();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Replaces secrets in keys. Two that become the same are told apart by a number.
    fn keys(&self, fields: &mut Map<String, Value>) {
        for (key, field) in std::mem::take(fields) {
            let masked = self.text(&key);
            let mut name = masked.clone();
            let mut number = 2;
            while fields.contains_key(&name) {
                name = format!("{masked} ({number})");
                number += 1;
            }
            fields.insert(name, field);
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
