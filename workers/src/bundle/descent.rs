//! Directories below a root, each opened from its parent and never through a link. It remembers
//! where it stands, so that a tree in the order of its paths costs one step a directory.
//!
//! No absolute path is ever put together: a tree may be deeper than a path can be long, and
//! deeper than a process has descriptors.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// How a directory is opened.
pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// So many directories on the way are kept open; one further up is reached from the root again.
const OPEN: usize = 64;

/// A place below a root.
pub(super) struct Descent {
    root: OwnedFd,
    /// The path to it.
    at: Vec<u8>,
    /// Where each component of the path ends, and its directory while it is kept open.
    steps: Vec<(usize, Option<OwnedFd>)>,
}

impl Descent {
    /// Begins at an existing directory.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self::at(rustix::fs::open(root, DIRECTORY, Mode::empty())?))
    }

    /// Begins at a directory that is open.
    pub(super) fn at(root: OwnedFd) -> Self {
        Self { root, at: Vec::new(), steps: Vec::new() }
    }

    /// Goes to a directory (empty: the root); `enter` opens a child of one.
    pub(super) fn go(
        &mut self,
        directory: &[u8],
        enter: impl Fn(&OwnedFd, &[u8]) -> io::Result<OwnedFd>,
    ) -> io::Result<&OwnedFd> {
        self.back_to(self.shared(directory));
        let rest = directory[self.at.len()..].split(|byte| *byte == b'/');
        for component in rest.filter(|component| !component.is_empty()) {
            let child = enter(self.here(), component)?;
            if !self.at.is_empty() {
                self.at.push(b'/');
            }
            self.at.extend_from_slice(component);
            self.steps.push((self.at.len(), Some(child)));
            if let Some(far) = self.steps.len().checked_sub(OPEN + 1) {
                self.steps[far].1 = None;
            }
        }
        Ok(self.here())
    }

    /// Goes back to the root: a directory on the way may have been replaced.
    pub(super) fn forget(&mut self) {
        self.back_to(0);
    }

    /// How many components of where it stands lead to `directory`, too.
    fn shared(&self, directory: &[u8]) -> usize {
        let same = self.at.iter().zip(directory).take_while(|(one, other)| one == other).count();
        self.steps.partition_point(|(end, _)| {
            *end <= same && directory.get(*end).is_none_or(|byte| *byte == b'/')
        })
    }

    fn back_to(&mut self, depth: usize) {
        self.steps.truncate(depth);
        if self.steps.last().is_some_and(|(_, open)| open.is_none()) {
            self.steps.clear();
        }
        self.at.truncate(self.steps.last().map_or(0, |(end, _)| *end));
    }

    fn here(&self) -> &OwnedFd {
        self.steps.last().and_then(|(_, open)| open.as_ref()).unwrap_or(&self.root)
    }
}

/// Opens a directory that must be there.
pub(super) fn existing(at: &OwnedFd, component: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(at, component, DIRECTORY, Mode::empty())?)
}

/// The directory and the last component of a path.
pub(super) fn split(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&name[..slash], &name[slash + 1..]),
        None => (b"", name),
    }
}
