//! Names of files that are told: in facts and logs, to people. Bounded in number and in bytes,
//! because an agent may leave a million of them, of a kilobyte each.

/// So many are named; the rest is counted. They ride in a fact.
pub const NAMED: usize = 20;

/// Bytes of a name that are shown.
const SHOWN_BYTES: usize = 200;

/// Bytes of JSON that a list takes.
pub const LIST_BYTES: usize = 6 * 1024;

/// A bounded list of names.
#[derive(Clone, Debug)]
pub struct Names {
    /// The first of them.
    pub named: Vec<String>,
    /// How many there were in all.
    pub total: u64,
    /// Whether a name is missing or cut.
    pub is_cut: bool,
    most: usize,
    bytes: usize,
}

impl Names {
    /// A list of at most so many.
    pub const fn new(most: usize) -> Self {
        Self { named: Vec::new(), total: 0, is_cut: false, most, bytes: 0 }
    }

    /// Adds a name, or counts it.
    pub fn push(&mut self, name: &[u8]) {
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

/// Bytes of JSON that a text takes in a list, where a control character takes six.
pub fn json_bytes(text: &str) -> usize {
    let bytes = |byte| match byte {
        ..b' ' => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    text.bytes().map(bytes).sum::<usize>() + 16
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
pub fn whole_name(name: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in name.utf8_chunks() {
        shown.push_str(&chunk.valid().replace('\\', "\\x5c"));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}
