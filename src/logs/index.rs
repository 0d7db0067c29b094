//! Where the lines of a job are, by their place in the view.

use super::archive::Frame;

/// Something that holds lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The batch with this sequence in the stream.
    Batch(u64),
    /// A frame of the archive. What is archived is whole.
    Archive(Frame),
}

/// The places of a job's lines, in order.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Each place with the number of lines up to its end.
    ends: Vec<(Place, u64)>,
    /// The number that the last line of each carries, blank ones counted.
    last: Vec<u64>,
}

impl Index {
    /// How many lines there are.
    pub(super) fn total(&self) -> u64 {
        self.ends.last().map_or(0, |(_, end)| *end)
    }

    /// The last batch that was counted.
    pub(super) fn last_batch(&self) -> Option<u64> {
        match self.ends.last() {
            Some((Place::Batch(sequence), _)) => Some(*sequence),
            _ => None,
        }
    }

    /// Whether no line can follow.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.ends.last(), Some((Place::Archive(_), _)))
    }

    /// Adds the place that follows: how many lines it has, and the number of its last one.
    pub(super) fn add(&mut self, place: Place, lines: u64, last: u64) {
        self.ends.push((place, self.total() + lines));
        self.last.push(last);
    }

    /// The place that holds the first line with a number above this one, and how many lines come
    /// before that place.
    pub(super) fn above(&self, number: u64) -> Option<(Place, u64)> {
        let index = self.last.partition_point(|last| *last <= number);
        Some((self.ends.get(index)?.0, self.start(index)))
    }

    fn start(&self, index: usize) -> u64 {
        match index.checked_sub(1) {
            Some(before) => self.ends[before].1,
            None => 0,
        }
    }

    /// The places that hold lines of `first..end`, each with the number of its first line.
    pub(super) fn covering(&self, first: u64, end: u64) -> impl Iterator<Item = (Place, u64)> + '_ {
        let from = self.ends.partition_point(|(_, end)| *end <= first);
        (from..self.ends.len())
            .map(move |index| (self.ends[index].0, self.start(index)))
            .take_while(move |(_, start)| *start < end)
    }
}
