//! What was left out of a bundle and why, bounded as names are.

use errand_runner::names::{LIST_BYTES, NAMED, display_name, json_bytes};
use streams::fact::Skipped;

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
