//! What an agent did to its working directory: what is saved now against the list of what it was
//! given, both in the order of a walk. Kind, mode, link target and contents count; times do not.
//! What is left out of the bundle is named there and is no change here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::path::Path;

use errand_runner::names::{Names, whole_name};

use super::given::{GIVEN, Known, List, What, is_below, order};

/// So many paths of each kind ride in the fact.
const NAMED: usize = 50;

/// The kinds, in the order of their lists.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
}

const KINDS: [(&str, u8); 3] = [("added", b'A'), ("modified", b'M'), ("deleted", b'D')];

/// A comparison in progress.
pub(super) struct Changes {
    list: List,
    next: Option<(Vec<u8>, Known)>,
    found: Found,
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    lists: [Names; 3],
    /// All of it, a line each: the letter of its kind, and the path as JSON.
    all: BufWriter<File>,
}

impl Changes {
    /// Begins with the list of a run directory; `None` where an older version left none. The
    /// paths that do not fit into a fact wait in a file there, which has no name any more.
    pub(super) fn open(run: &Path) -> io::Result<Option<Self>> {
        let mut list = match List::open(&run.join(GIVEN)) {
            Ok(list) => list,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let next = list.next()?;
        let path = run.join("changes.partial");
        let _ = std::fs::remove_file(&path);
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        let lists = [const { Names::new(NAMED) }; 3];
        Ok(Some(Self { list, next, found: Found { lists, all: BufWriter::new(file) } }))
    }

    /// What was given under a name. Names come in order: what comes before it is gone.
    pub(super) fn given(&mut self, name: &[u8]) -> io::Result<Option<Known>> {
        while let Some((next, _)) = &self.next {
            if order(next, name).is_ge() {
                break;
            }
            let (gone, _) = self.advance()?;
            self.found.push(Change::Deleted, &gone)?;
        }
        match &self.next {
            Some((next, _)) if next == name => Ok(Some(self.advance()?.1)),
            _ => Ok(None),
        }
    }

    /// Compares an entry that is no file with what was given under its name.
    pub(super) fn compare(&mut self, name: &[u8], now: &Known) -> io::Result<()> {
        match self.given(name)? {
            Some(given) if given == *now => Ok(()),
            Some(_) => self.found.push(Change::Modified, name),
            None if now.what == What::Directory && self.is_implied(name) => Ok(()),
            None => self.found.push(Change::Added, name),
        }
    }

    pub(super) fn push(&mut self, change: Change, name: &[u8]) -> io::Result<()> {
        self.found.push(change, name)
    }

    /// Passes over an entry that is left out, with everything below it.
    pub(super) fn leave_out(&mut self, name: &[u8]) -> io::Result<()> {
        self.given(name)?;
        while self.next.as_ref().is_some_and(|(next, _)| is_below(next, name)) {
            self.advance()?;
        }
        Ok(())
    }

    /// The end: what is still on the list is gone.
    pub(super) fn finish(mut self) -> io::Result<Found> {
        while self.next.is_some() {
            let (gone, _) = self.advance()?;
            self.found.push(Change::Deleted, &gone)?;
        }
        self.found.all.flush()?;
        Ok(self.found)
    }

    /// Whether a directory was made for something in it, and has no entry of its own.
    fn is_implied(&self, name: &[u8]) -> bool {
        self.next.as_ref().is_some_and(|(next, _)| is_below(next, name))
    }

    fn advance(&mut self) -> io::Result<(Vec<u8>, Known)> {
        let next = self.list.next()?;
        std::mem::replace(&mut self.next, next).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl Found {
    /// The paths that fit into a fact: added, modified, deleted.
    pub fn named(&self) -> [Vec<String>; 3] {
        self.lists.each_ref().map(|list| list.named.clone())
    }

    /// How many there are of each.
    pub fn totals(&self) -> [u64; 3] {
        self.lists.each_ref().map(|list| list.total)
    }

    /// Whether some are not named whole.
    pub fn is_cut(&self) -> bool {
        self.lists.iter().any(|list| list.is_cut)
    }

    /// Writes all of it as one JSON document.
    pub fn write_all(mut self, mut out: impl Write) -> io::Result<()> {
        let totals = self.totals();
        let file = self.all.get_mut();
        for (index, (word, letter)) in KINDS.into_iter().enumerate() {
            write!(out, "{}\"{word}\": [", if index == 0 { "{" } else { "], " })?;
            file.rewind()?;
            let mut between = "";
            for line in BufReader::new(&mut *file).split(b'\n') {
                let line = line?;
                if line.first() == Some(&letter) {
                    write!(out, "{between}")?;
                    out.write_all(&line[1..])?;
                    between = ", ";
                }
            }
        }
        let [added, modified, deleted] = totals;
        writeln!(
            out,
            "], \"totals\": {{\"added\": {added}, \"modified\": {modified}, \
             \"deleted\": {deleted}}}}}"
        )?;
        out.flush()
    }

    fn push(&mut self, change: Change, name: &[u8]) -> io::Result<()> {
        let index = change as usize;
        self.lists[index].push(name);
        self.all.write_all(&[KINDS[index].1])?;
        serde_json::to_writer(&mut self.all, &whole_name(name))?;
        self.all.write_all(b"\n")
    }
}
