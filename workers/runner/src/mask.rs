//! Takes secret values out of text, in the encodings that programs usually print them in.
//!
//! It works on whole lines; who reads in chunks assembles lines first (see `log::Follower`), so
//! no secret can hide on a border. Values under [`SHORTEST`] bytes are left alone: masking `1`
//! or `true` would destroy the log and protect nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// The shortest value, in bytes, that is masked.
pub(crate) const SHORTEST: usize = 8;

/// Longer values are masked as they are, but not in other encodings: the automaton would be huge.
const LONGEST_ENCODED: usize = 16 * 1024;

const STARS: &[u8] = b"***";

/// What JavaScript's and Python's encoders leave alone.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const UNRESERVED_AND_SLASH: &AsciiSet = &UNRESERVED.remove(b'/');

/// All secrets of a run.
pub(crate) struct Mask {
    automaton: Option<AhoCorasick>,
    longest: usize,
}

impl Mask {
    /// Prepares the values.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns = BTreeSet::new();
        for value in values {
            add_forms(value, &mut patterns);
        }
        patterns.retain(|pattern| pattern.len() >= SHORTEST);
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        // Overlapping matches are wanted, so that of two values that share a border no half
        // stays; the compact automaton keeps a long key at a few bytes of memory a byte.
        let automaton = (!patterns.is_empty()).then(|| {
            AhoCorasick::builder()
                .match_kind(MatchKind::Standard)
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(&patterns)
                .expect("secrets are far below the automaton's limit of 2^31 states")
        });
        Self { automaton, longest }
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
        let end = end.min(text.len());
        let spans = self.spans(text);
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

    /// The covered stretches, in order and disjoint.
    fn spans(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let Some(automaton) = &self.automaton else {
            return Vec::new();
        };
        let mut found: Vec<(usize, usize)> = automaton
            .find_overlapping_iter(text)
            .map(|found| (found.start(), found.end()))
            .collect();
        found.sort_unstable();
        let mut spans: Vec<(usize, usize)> = Vec::with_capacity(found.len());
        for (from, to) in found {
            match spans.last_mut() {
                Some(last) if from < last.1 => last.1 = last.1.max(to),
                _ => spans.push((from, to)),
            }
        }
        spans
    }
}

fn add_forms(value: &str, patterns: &mut BTreeSet<Vec<u8>>) {
    if value.len() < SHORTEST {
        return;
    }
    let compact: String = value.split(['\r', '\n']).collect();
    patterns.insert(value.into());
    patterns.insert(compact.into());
    patterns.extend(value.lines().map(|line| line.as_bytes().to_vec()));
    patterns.extend(value.lines().map(|line| line.trim().as_bytes().to_vec()));
    if value.len() > LONGEST_ENCODED {
        return;
    }
    add_base64(value.as_bytes(), patterns);
    for set in [NON_ALPHANUMERIC, UNRESERVED, UNRESERVED_AND_SLASH] {
        let encoded = utf8_percent_encode(value, set).to_string();
        patterns.insert(encoded.replace("%20", "+").into());
        patterns.insert(encoded.into());
    }
    add_json(value, patterns);
}

/// A value inside a longer base64 text looks different at each of the three alignments. Only the
/// characters that the value alone decides can be looked for.
fn add_base64(value: &[u8], patterns: &mut BTreeSet<Vec<u8>>) {
    for before in 0..3 {
        let mut padded = vec![0; before];
        padded.extend_from_slice(value);
        let first = [0, 2, 3][before];
        let last = padded.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            let whole = &encoded.as_bytes()[first..last];
            patterns.insert(whole.to_vec());
            if before == 0 {
                // The usual tools break their output at these widths.
                for width in [64, 76] {
                    patterns.extend(whole.chunks(width).map(<[u8]>::to_vec));
                }
            }
        }
    }
}

/// As it stands inside a JSON string, with and without escapes for what is not ASCII.
fn add_json(value: &str, patterns: &mut BTreeSet<Vec<u8>>) {
    let quoted = Value::from(value).to_string();
    let inner = &quoted[1..quoted.len() - 1];
    let mut ascii = String::with_capacity(inner.len());
    for letter in inner.chars() {
        if letter.is_ascii() {
            ascii.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    patterns.insert(inner.replace('/', "\\/").into());
    patterns.insert(inner.into());
    patterns.insert(ascii.into());
}

#[cfg(test)]
mod tests;
