//! The list of what an agent was given: a file in its run directory, written while its working
//! directory is filled, and read again when what is there then is saved. Written and read entry by
//! entry, in the order of a walk, so that neither takes memory.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use errand_runner::run_dir;

use super::contents::Digest;

/// What the list is called in a run directory.
pub const GIVEN: &str = "given.list";

/// The first line. A list of another form is none.
const BEGIN: &[u8] = b"given 1";

/// The last one, so that a list that was cut off is known for one.
const END: &[u8] = b"end";

/// Bytes of a field at most; a path may be longer than a system call takes.
const FIELD_BYTES: u64 = 1 << 20;

/// An entry of a working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) mode: u32,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Directory,
    File { size: u64, digest: Digest },
    Symlink { target: Vec<u8> },
}

/// The order of a walk that is sorted by name: by components.
pub(super) fn order(one: &[u8], other: &[u8]) -> Ordering {
    let is_slash = |byte: &u8| *byte == b'/';
    one.split(is_slash).cmp(other.split(is_slash))
}

/// Whether a path lies below a directory.
pub(super) fn is_below(name: &[u8], directory: &[u8]) -> bool {
    let rest = name.strip_prefix(directory);
    directory.is_empty() || rest.is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// A list that is being written.
pub struct Given {
    path: PathBuf,
    out: BufWriter<File>,
    /// Where the agent's directory lies within what is unpacked next; only what lies there counts.
    within: Vec<u8>,
    last: Vec<u8>,
    is_sorted: bool,
}

impl Given {
    /// Begins one in a run directory that nobody else knows yet.
    pub fn create(run: &Path) -> io::Result<Self> {
        let path = run.join(GIVEN);
        let mut out = BufWriter::new(File::create(&path)?);
        field(&mut out, BEGIN)?;
        Ok(Self { path, out, within: Vec::new(), last: Vec::new(), is_sorted: true })
    }

    /// Says where the agent's directory lies within what is unpacked next.
    pub fn set_within(&mut self, directory: &[u8]) {
        self.within = directory.to_vec();
    }

    /// Adds an entry. A later one of the same name replaces it.
    pub(super) fn add(&mut self, name: &[u8], known: &Known) -> io::Result<()> {
        let name = match name.strip_prefix(&self.within[..]) {
            Some(rest) if self.within.is_empty() => rest,
            Some([b'/', rest @ ..]) => rest,
            _ => return Ok(()),
        };
        if name.is_empty() {
            return Ok(());
        }
        self.is_sorted &= self.last.is_empty() || order(&self.last, name).is_lt();
        self.last.clear();
        self.last.extend_from_slice(name);
        put(&mut self.out, name, known)
    }

    /// Ends the list. One that was not made in order is put into it.
    pub fn finish(mut self) -> io::Result<()> {
        field(&mut self.out, END)?;
        self.out.flush()?;
        if self.is_sorted {
            return Ok(());
        }
        let mut entries = Vec::new();
        let mut list = List::open(&self.path)?;
        while let Some(entry) = list.next()? {
            entries.push(entry);
        }
        // The sort is stable, so of several entries of one name the last added is the last.
        entries.sort_by(|(one, _), (other, _)| order(one, other));
        let mut out = BufWriter::new(File::create(&self.path)?);
        field(&mut out, BEGIN)?;
        let mut replaced: Option<&[u8]> = None;
        for (index, (name, known)) in entries.iter().enumerate() {
            let comes_again = entries.get(index + 1).is_some_and(|(next, _)| next == name);
            // What a file replaced went with everything below it.
            if comes_again || replaced.is_some_and(|file| is_below(name, file)) {
                continue;
            }
            replaced = (known.what != What::Directory).then_some(name);
            put(&mut out, name, known)?;
        }
        field(&mut out, END)?;
        out.flush()
    }
}

/// A list that is being read.
pub(super) struct List {
    input: BufReader<File>,
    is_over: bool,
}

impl List {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut list = Self { input: BufReader::new(run_dir::open_regular(path)?), is_over: false };
        match list.field()?.as_slice() {
            BEGIN => Ok(list),
            _ => Err(damaged()),
        }
    }

    /// The next entry; that the list ends before its end is an error.
    pub(super) fn next(&mut self) -> io::Result<Option<(Vec<u8>, Known)>> {
        if self.is_over {
            return Ok(None);
        }
        let about = self.field()?;
        if about == END {
            self.is_over = true;
            return Ok(None);
        }
        let about = String::from_utf8(about).map_err(|_| damaged())?;
        let mut words = about.split(' ');
        let mut word = || words.next().ok_or_else(damaged);
        let (kind, mode) = (word()?, word()?);
        let mode = u32::from_str_radix(mode, 8).map_err(|_| damaged())?;
        let what = match kind {
            "d" => What::Directory,
            "f" => {
                let size = word()?.parse().map_err(|_| damaged())?;
                let mut digest = Digest::default();
                hex::decode_to_slice(word()?, &mut digest).map_err(|_| damaged())?;
                What::File { size, digest }
            }
            "l" => What::Symlink { target: self.field()? },
            _ => return Err(damaged()),
        };
        let name = self.field()?;
        Ok(Some((name, Known { mode, what })))
    }

    fn field(&mut self) -> io::Result<Vec<u8>> {
        let mut field = Vec::new();
        (&mut self.input).take(FIELD_BYTES).read_until(0, &mut field)?;
        match field.pop() {
            Some(0) => Ok(field),
            _ => Err(damaged()),
        }
    }
}

fn put(out: &mut impl Write, name: &[u8], known: &Known) -> io::Result<()> {
    let mode = known.mode;
    match &known.what {
        What::Directory => write!(out, "d {mode:o}\0")?,
        What::File { size, digest } => write!(out, "f {mode:o} {size} {}\0", hex::encode(digest))?,
        What::Symlink { target } => {
            write!(out, "l {mode:o}\0")?;
            field(out, target)?;
        }
    }
    field(out, name)
}

/// Neither paths nor targets hold a zero byte.
fn field(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.write_all(b"\0")
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the list of what the agent was given is damaged")
}
