//! `index.jsonl`: what became of each line. While a batch runs, entries are added to its end, and
//! the last one of a line counts; once it is over, each line has one, in order. A process that is
//! killed leaves at most a torn last entry, which is dropped. Where entries stand is all that is
//! kept in memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::worst;
use crate::exit::Exit;

/// Where the entry of a line stands, and what it says.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    length: usize,
    /// How the line ended; none while its job goes on.
    exit: Option<Exit>,
}

/// The index of a directory.
pub(super) struct Index {
    path: PathBuf,
    file: File,
    end: u64,
    lines: BTreeMap<u32, Place>,
}

impl Index {
    /// Opens one, or makes it.
    pub(super) fn open(path: PathBuf) -> anyhow::Result<Self> {
        Self::read(path.clone()).with_context(|| format!("cannot read {}", path.display()))
    }

    fn read(path: PathBuf) -> anyhow::Result<Self> {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
        let mut index = Self { path, file, end: 0, lines: BTreeMap::new() };
        let mut reader = BufReader::new(index.file.try_clone()?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            let entry = serde_json::from_slice(&line)
                .with_context(|| format!("the entry at byte {} is no JSON", index.end))?;
            index.note(&entry, line.len())?;
            line.clear();
        }
        index.file.set_len(index.end)?;
        Ok(index)
    }

    /// Adds an entry.
    pub(super) fn put(&mut self, entry: &Value) -> anyhow::Result<()> {
        let line = format!("{entry}\n");
        let written = self.file.write_all_at(line.as_bytes(), self.end);
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.note(entry, line.len())
    }

    fn note(&mut self, entry: &Value, length: usize) -> anyhow::Result<()> {
        let number = entry["line"].as_u64().and_then(|line| u32::try_from(line).ok());
        let number = number.with_context(|| format!("entry {entry} names no line"))?;
        let place = Place { at: self.end, length, exit: worst::of_line(entry) };
        self.lines.insert(number, place);
        self.end += length as u64;
        Ok(())
    }

    /// The entry of a line.
    pub(super) fn entry(&self, line: u32) -> anyhow::Result<Option<Value>> {
        let Some(place) = self.lines.get(&line) else { return Ok(None) };
        Ok(Some(serde_json::from_slice(&self.bytes(place)?)?))
    }

    fn bytes(&self, place: &Place) -> anyhow::Result<Vec<u8>> {
        let mut bytes = vec![0; place.length];
        let read = self.file.read_exact_at(&mut bytes, place.at);
        read.with_context(|| format!("cannot read {}", self.path.display()))?;
        Ok(bytes)
    }

    /// How each line ended that has.
    pub(super) fn exits(&self) -> impl Iterator<Item = Exit> {
        self.lines.values().filter_map(|place| place.exit)
    }

    /// Puts the entries in the order of their lines, each once.
    pub(super) fn tidy(&mut self) -> anyhow::Result<()> {
        let temporary = self.path.with_extension("jsonl.part");
        let file = self.rewrite(&temporary);
        let file = file.with_context(|| format!("cannot write {}", temporary.display()))?;
        fs::rename(&temporary, &self.path)
            .with_context(|| format!("cannot put {} in place", self.path.display()))?;
        self.file = file;
        let mut end = 0;
        for place in self.lines.values_mut() {
            place.at = end;
            end += place.length as u64;
        }
        self.end = end;
        Ok(())
    }

    fn rewrite(&self, path: &Path) -> anyhow::Result<File> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        let mut writer = BufWriter::new(&file);
        for place in self.lines.values() {
            writer.write_all(&self.bytes(place)?)?;
        }
        writer.flush()?;
        drop(writer);
        file.sync_all()?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests;
