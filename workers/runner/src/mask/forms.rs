//! The forms in which programs usually print a value.
//!
//! A form is what the value alone decides: no padding, and of base64 no character that also
//! holds bits of a neighbour. Where to look for the forms is no matter of this module.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::SHORTEST;

/// Longer values are masked as they are, but not in other encodings: the automata would be huge.
const LONGEST_ENCODED: usize = 16 * 1024;

/// What JavaScript's and Python's encoders leave alone.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const UNRESERVED_AND_SLASH: &AsciiSet = &UNRESERVED.remove(b'/');

/// What libraries make of `"` and `'` in HTML.
const HTML_QUOTES: [(&str, &str); 7] = [
    ("\"", "'"),
    ("&quot;", "'"),
    ("&quot;", "&#39;"),
    ("&quot;", "&#039;"),
    ("&quot;", "&#x27;"),
    ("&quot;", "&apos;"),
    ("&#34;", "&#39;"),
];

/// The forms of all values.
#[derive(Default)]
pub(super) struct Forms {
    /// Every form.
    pub(super) whole: BTreeSet<Vec<u8>>,
    /// Those that programs break into lines, unbroken.
    pub(super) wrapped: BTreeSet<Vec<u8>>,
}

impl Forms {
    pub(super) fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms = Self::default();
        for value in values.into_iter().filter(|value| value.len() >= SHORTEST) {
            forms.add(value);
        }
        forms.whole.retain(|form| form.len() >= SHORTEST);
        forms
    }

    fn add(&mut self, value: &str) {
        self.whole.extend(value.lines().map(|line| line.as_bytes().to_vec()));
        self.whole.extend(value.lines().map(|line| line.trim().as_bytes().to_vec()));
        for variant in variants(value) {
            self.whole.insert(variant.as_bytes().to_vec());
            if (SHORTEST..=LONGEST_ENCODED).contains(&variant.len()) {
                self.add_encoded(&variant);
            }
        }
    }

    fn add_encoded(&mut self, value: &str) {
        self.add_base64(value.as_bytes());
        self.add_hex(value.as_bytes());
        for set in [NON_ALPHANUMERIC, UNRESERVED, UNRESERVED_AND_SLASH] {
            let encoded = utf8_percent_encode(value, set).to_string();
            self.whole.insert(encoded.replace("%20", "+").into());
            self.whole.insert(encoded.into());
        }
        self.add_json(value);
        self.add_html(value);
        // As a shell's trace quotes it.
        self.whole.insert(value.replace('\'', r"'\''").into());
    }

    /// A value inside a longer base64 text looks different at each of the three alignments.
    fn add_base64(&mut self, value: &[u8]) {
        for before in 0..3 {
            let mut padded = vec![0; before];
            padded.extend_from_slice(value);
            let first = [0, 2, 3][before];
            let last = padded.len() * 8 / 6;
            for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
                let form = &encoded.as_bytes()[first..last];
                self.whole.insert(form.to_vec());
                self.wrapped.insert(form.to_vec());
                if before == 0 {
                    // Of the value alone, as the usual tools break it, each line is known even
                    // where its neighbours are not shown.
                    for width in [64, 76] {
                        self.whole.extend(form.chunks(width).map(<[u8]>::to_vec));
                    }
                }
            }
        }
    }

    /// Plain digits, and `\x` before each byte or before those only that are not printable.
    fn add_hex(&mut self, value: &[u8]) {
        let lower = String::from_iter(value.iter().map(|byte| format!("{byte:02x}")));
        for digits in [lower.to_uppercase(), lower] {
            let escaped = digits.as_bytes().chunks(2).flat_map(|byte| [b"\\x", byte].concat());
            self.whole.insert(escaped.collect());
            self.whole.insert(digits.clone().into());
            self.wrapped.insert(digits.into());
        }
        self.whole.insert(value.escape_ascii().collect());
    }

    /// As it stands inside a JSON string, with and without escapes for what is not ASCII.
    fn add_json(&mut self, value: &str) {
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
        self.whole.insert(inner.replace('/', "\\/").into());
        // Go's encoder does so, that its JSON may stand in a web page.
        let in_page = inner.replace('<', "\\u003c").replace('>', "\\u003e");
        self.whole.insert(in_page.replace('&', "\\u0026").into());
        self.whole.insert(inner.into());
        self.whole.insert(ascii.into());
    }

    fn add_html(&mut self, value: &str) {
        let text = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        for (double, single) in HTML_QUOTES {
            self.whole.insert(text.replace('"', double).replace('\'', single).into());
        }
    }
}

/// A value as programs read it before they encode it: whole, with one kind of line end, without
/// those at its end (a shell's `$(…)` takes them away), without any, without blanks around it.
fn variants(value: &str) -> BTreeSet<String> {
    let unix = value.replace("\r\n", "\n");
    let mut variants = BTreeSet::new();
    for text in [value, &unix] {
        for end in [text, text.trim_end_matches(['\r', '\n']), text.trim()] {
            variants.insert(end.to_owned());
        }
    }
    variants.insert(value.split(['\r', '\n']).collect());
    variants
}
