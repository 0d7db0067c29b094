//! Names that are told in a fact: what was left out of a bundle and why, what changed. Bounded in
//! number and in bytes, because an agent may leave a million FIFOs with names of a kilobyte.

use streams::fact::Skipped;

/// So many are named; the rest is counted. They ride in a fact.
const NAMED: usize = 20;

/// Bytes of a name that are shown.
const SHOWN_BYTES: usize = 200;

/// Bytes of JSON that a list takes.
const LIST_BYTES: usize = 6 * 1024;

/// A bounded list of what was left out.
#[derive(Clone, Debug, Default)]
pub struct SkipList {
    /// The first of them.
    pub named: Vec<Skipped>,
    /// How many more there were.
    pub more: u64,
    bytes: usize,
}

impl SkipList {
    /// Adds an entry.
    pub fn push(&mut self, name: &[u8], reason: impl Into<String>) {
        let skipped = Skipped { path: display_name(name), reason: reason.into() };
        self.bytes += json_bytes(&skipped.path) + json_bytes(&skipped.reason);
        if self.named.len() < NAMED && self.bytes <= LIST_BYTES {
            self.named.push(skipped);
        } else {
            self.more += 1;
        }
    }

    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.more == 0
    }
}

/// A bounded list of names.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The first of them.
    pub(super) named: Vec<String>,
    /// How many there were in all.
    pub(super) total: u64,
    /// Whether a name is missing or cut.
    pub(super) is_cut: bool,
    most: usize,
    bytes: usize,
}

impl Names {
    /// A list of at most so many.
    pub(super) const fn new(most: usize) -> Self {
        Self { named: Vec::new(), total: 0, is_cut: false, most, bytes: 0 }
    }

    pub(super) fn push(&mut self, name: &[u8]) {
        self.total += 1;
        self.is_cut |= name.len() > SHOWN_BYTES;
        if self.named.len() >= self.most || self.bytes > LIST_BYTES {
            self.is_cut = true;
            return;
        }
        let shown = display_name(name);
        self.bytes += json_bytes(&shown);
        if self.bytes > LIST_BYTES {
            self.is_cut = true;
        } else {
            self.named.push(shown);
        }
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new(NAMED)
    }
}

/// What a text takes in JSON, where a control character takes six bytes.
fn json_bytes(text: &str) -> usize {
    text.bytes().map(|byte| if byte < b' ' { 6 } else { 1 }).sum::<usize>() + 16
}

/// A name for people and JSON: UTF-8 as it is, other bytes and backslashes as `\xNN`, cut when
/// it is long.
pub fn display_name(name: &[u8]) -> String {
    let mut shown = whole_name(&name[..name.len().min(SHOWN_BYTES)]);
    if name.len() > SHOWN_BYTES {
        shown.push('…');
    }
    shown
}

/// The same for a name of any length: from it the bytes can be had again.
pub(super) fn whole_name(name: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in name.utf8_chunks() {
        shown.push_str(&chunk.valid().replace('\\', "\\x5c"));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}
