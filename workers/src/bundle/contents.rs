//! A digest of what a file reads as, whatever of it is stored as a hole. Blocks of zeros are told
//! by where they are not, so that a hole costs nothing and a punched one changes nothing.

use sha2::{Digest as _, Sha256};

const BLOCK_BYTES: usize = 4096;
const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// The digest.
pub(super) type Digest = [u8; 32];

/// Computes it; the same one is used for one file after the other.
#[derive(Default)]
pub(super) struct Contents {
    /// Blocks that are not zero, one after the other.
    data: Sha256,
    /// Where they are: begin and end of each run.
    runs: Sha256,
    run: (u64, u64),
    /// A block that is not whole yet, and its number.
    partial: Vec<u8>,
    block: u64,
}

impl Contents {
    /// Adds data; it comes in the order of offsets.
    pub(super) fn add(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let block = offset / BLOCK_BYTES as u64;
            let within = usize::try_from(offset % BLOCK_BYTES as u64).unwrap_or_default();
            let (now, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - within));
            if block != self.block {
                self.end_partial();
                self.block = block;
            }
            if now.len() == BLOCK_BYTES {
                self.whole(block, now);
            } else {
                // What is missing before it is a hole.
                self.partial.resize(within, 0);
                self.partial.extend_from_slice(now);
            }
            offset += now.len() as u64;
            bytes = rest;
        }
    }

    /// The digest of a file of this size; the next one may begin.
    pub(super) fn finish(&mut self, size: u64) -> Digest {
        if self.block == size / BLOCK_BYTES as u64 {
            // The last block has no length of its own: zeros at its end may be a hole.
            let end = self.partial.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            self.partial.truncate(end);
            let partial = std::mem::take(&mut self.partial);
            self.put(self.block, &partial);
            self.partial = partial;
            self.partial.clear();
        } else {
            self.end_partial();
        }
        self.end_run();
        (self.run, self.block) = ((0, 0), 0);
        let mut all = Sha256::new_with_prefix(size.to_le_bytes());
        all.update(self.runs.finalize_reset());
        all.update(self.data.finalize_reset());
        all.finalize().into()
    }

    fn end_partial(&mut self) {
        if self.partial.is_empty() {
            return;
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.resize(BLOCK_BYTES, 0);
        self.whole(self.block, &partial);
        partial.clear();
        self.partial = partial;
    }

    fn whole(&mut self, block: u64, bytes: &[u8]) {
        if bytes != ZEROS {
            self.put(block, bytes);
        }
    }

    fn put(&mut self, block: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if block != self.run.1 {
            self.end_run();
            self.run.0 = block;
        }
        self.run.1 = block + 1;
        self.data.update(bytes);
    }

    fn end_run(&mut self) {
        self.runs.update(self.run.0.to_le_bytes());
        self.runs.update(self.run.1.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
