//! How far a directory is saved. Small ones are saved before anybody asks; only when it takes long
//! is the tree measured, and a line logged at each tenth.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use super::walk::{Step, walk};

/// So long nothing is said.
const QUIET: Duration = Duration::from_secs(5);

/// Counts what is saved of one directory.
pub(super) struct Progress<'a> {
    root: &'a Path,
    name: &'a str,
    begun: Instant,
    done: u64,
    total: Option<u64>,
    /// The tenth that is told next.
    next: u64,
}

impl<'a> Progress<'a> {
    pub(super) fn new(root: &'a Path, name: &'a str) -> Self {
        Self { root, name, begun: Instant::now(), done: 0, total: None, next: 1 }
    }

    /// Counts bytes and entries; an entry is worth a block.
    pub(super) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        let total = match self.total {
            Some(total) => total,
            None if self.begun.elapsed() < QUIET => return,
            None => {
                let total = measure(self.root);
                // What is passed already is not told any more.
                self.next = tenths(self.done, total) + 1;
                *self.total.insert(total)
            }
        };
        let tenths = tenths(self.done, total);
        if tenths >= self.next {
            self.next = tenths + 1;
            tracing::info!("saving {}: {} %", self.name, 10 * tenths);
        }
    }
}

/// What an entry counts beside its data.
pub(super) const ENTRY_BYTES: u64 = 512;

fn tenths(done: u64, total: u64) -> u64 {
    (u128::from(done) * 10 / u128::from(total.max(1))).try_into().map_or(10, |it: u64| it.min(10))
}

/// The bytes that a tree takes, without its holes; what cannot be seen counts nothing.
fn measure(root: &Path) -> u64 {
    let mut total = 0;
    let _ = walk(root, &mut |_, step| {
        if let Step::Entry(entry) = step {
            let size = entry.stat.st_size.unsigned_abs();
            let real = entry.stat.st_blocks.unsigned_abs() * 512;
            let is_first = entry.kind == FileType::RegularFile && entry.stat.st_nlink == 1;
            total += ENTRY_BYTES + if is_first { size.min(real) } else { 0 };
        }
        Ok(())
    });
    total
}
