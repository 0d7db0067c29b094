//! Bundles: gzipped tars that hold one directory under one top-level name.
//!
//! Links are stored as links and never followed; modes, times, empty directories, hard links,
//! holes and names that are not UTF-8 round-trip. Sockets, FIFOs and devices are left out and
//! named. Everything streams: no function here holds a whole file, let alone a whole tree.

mod ahead;
mod changes;
mod contents;
mod descent;
mod entries;
mod entry;
mod given;
mod pipe;
mod progress;
mod read;
mod save;
mod skipped;
mod sparse;
mod tree;
mod unpack;
mod walk;
mod write;

pub use changes::Found;
pub use errand_runner::names::display_name;
pub use given::{GIVEN, Given};
pub use pipe::{pipe, send};
pub use read::{FileFound, Limits, Pick, UnpackError, copy_entries, files};
pub use save::{Report, write_directory};
pub use skipped::SkipList;
pub use tree::Owner;
pub use unpack::{unpack, unpack_given};
pub use walk::{each_file, remove_tree};
pub use write::Writer;

#[cfg(test)]
mod tests;
