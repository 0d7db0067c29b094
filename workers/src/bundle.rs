//! Bundles: gzipped tars that hold one directory under one top-level name.
//!
//! Links are stored as links and never followed; modes, empty directories, hard links and names
//! that are not UTF-8 round-trip. Sockets, FIFOs and devices are left out and named. Everything
//! streams: no function here holds a whole file, let alone a whole tree.

mod entry;
mod pipe;
mod read;
mod skipped;
mod tree;
mod write;

pub use pipe::{pipe, send};
pub use read::{FileFound, Limits, Pick, UnpackError, copy_entries, files, unpack};
pub use skipped::{SkipList, display_name};
pub use write::{Writer, write_directory};

#[cfg(test)]
mod tests;
