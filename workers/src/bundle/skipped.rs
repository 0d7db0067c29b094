//! What was left out of a bundle, and why; bounded, because an agent may leave a million FIFOs.

use streams::fact::Skipped;

/// So many are named; the rest is counted. They ride in a fact.
const NAMED: usize = 20;

/// Bytes of a name that are shown.
const SHOWN_BYTES: usize = 200;

/// A bounded list of what was left out.
#[derive(Clone, Debug, Default)]
pub struct SkipList {
    /// The first of them.
    pub named: Vec<Skipped>,
    /// How many more there were.
    pub more: u64,
}

impl SkipList {
    /// Adds an entry.
    pub fn push(&mut self, name: &[u8], reason: impl Into<String>) {
        if self.named.len() < NAMED {
            let skipped = Skipped { path: display_name(name), reason: reason.into() };
            self.named.push(skipped);
        } else {
            self.more += 1;
        }
    }

    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
}

/// A name for people and JSON: UTF-8 as it is, other bytes and backslashes as `\xNN`, cut when
/// it is long.
pub fn display_name(name: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in name[..name.len().min(SHOWN_BYTES)].utf8_chunks() {
        shown.push_str(&chunk.valid().replace('\\', "\\x5c"));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    if name.len() > SHOWN_BYTES {
        shown.push('…');
    }
    shown
}
