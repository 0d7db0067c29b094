//! Dice: the only chance there is here. The same seed throws the same for ever.

use std::time::Duration;

/// A stream of numbers that follows from a seed (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// Whether something happens that does so often of a hundred times.
    pub(crate) const fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// One of several.
    pub(crate) fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        let bound = these.len() as u64;
        these[usize::try_from(self.below(bound)).unwrap_or_default()]
    }

    /// A time between two, in milliseconds.
    pub(crate) const fn between(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }
}

/// A number that follows from several, whatever was thrown before.
pub(crate) fn mixed(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |seed, part| Dice::new(seed ^ part.rotate_left(17)).number())
}
