//! Where the lines of a job are, by their place in the view.

/// Something that holds lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The batch with this sequence in the stream.
    Batch(u64),
    /// The archive, which holds all.
    Archive,
}

/// The places of a job's lines, in order.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Each place with the number of lines up to its end.
    ends: Vec<(Place, u64)>,
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
        matches!(self.ends.last(), Some((Place::Archive, _)))
    }

    /// Adds the place that follows.
    pub(super) fn add(&mut self, place: Place, lines: u64) {
        self.ends.push((place, self.total() + lines));
    }

    /// The places that hold lines of `first..end`, each with the number of its first line.
    pub(super) fn covering(&self, first: u64, end: u64) -> impl Iterator<Item = (Place, u64)> + '_ {
        let from = self.ends.partition_point(|(_, end)| *end <= first);
        let start = move |index: usize| match index.checked_sub(1) {
            Some(before) => self.ends[before].1,
            None => 0,
        };
        (from..self.ends.len())
            .map(move |index| (self.ends[index].0, start(index)))
            .take_while(move |(_, start)| *start < end)
    }
}
