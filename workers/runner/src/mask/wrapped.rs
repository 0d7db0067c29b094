//! Finds forms that line ends break: `base64` does so at column 76, `xxd -p` at column 60.
//!
//! A [`Seam`] reads a stream as if it had no line ends. The end of a line that may begin a form
//! is masked at once, so no line waits for the next; what goes on in later lines is masked there,
//! even if the form stays unfinished. Less than [`SHORTEST`] bytes of a form are taken for
//! chance: so many may be seen before its first line end. What fits into a line is not looked for.

use std::collections::BTreeSet;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::noncontiguous::NFA;

use super::{Mask, SHORTEST, Span};

/// The forms, as an automaton of which it is known how much of a form each state stands for.
pub(super) struct Wrapped {
    automaton: NFA,
    start: StateID,
    /// By state: the longest end of the text so far that begins a form, in bytes.
    depths: Vec<u32>,
}

impl Wrapped {
    pub(super) fn new(forms: &BTreeSet<Vec<u8>>) -> Self {
        let automaton =
            NFA::new(forms).expect("secrets are far below the automaton's limit of 2^31 states");
        let start = automaton
            .start_state(Anchored::No)
            .expect("this kind of automaton supports searches that begin anywhere");
        let mut depths = Vec::new();
        for form in forms {
            let mut state = start;
            for (depth, byte) in (1..).zip(form) {
                state = automaton.next_state(Anchored::No, state, *byte);
                depths.resize(depths.len().max(state.as_usize() + 1), 0);
                depths[state.as_usize()] = depth;
            }
        }
        Self { automaton, start, depths }
    }

    fn next(&self, state: StateID, byte: u8) -> StateID {
        self.automaton.next_state(Anchored::No, state, byte)
    }

    fn depth(&self, state: StateID) -> usize {
        self.depths.get(state.as_usize()).map_or(0, |depth| *depth as usize)
    }
}

/// How far a stream has been read.
#[derive(Default)]
pub(crate) struct Seam {
    /// Where the automaton stands; none before the first byte.
    state: Option<StateID>,
    /// Bytes of the present line.
    read: usize,
    /// The end of its last byte that is not blank, and how many such bytes it has.
    end: usize,
    solid: usize,
    /// The end of what continues a form from the line before.
    continued: usize,
}

/// What of a line belongs to forms that go over its beginning or its end.
pub(crate) type Edges = [Span; 2];

impl Seam {
    /// Takes the next bytes of the present line. Blanks at its edges count as part of the line
    /// ends; those within it part forms.
    pub(crate) fn read(&mut self, mask: &Mask, bytes: &[u8]) {
        let forms = &mask.wrapped;
        let mut state = self.state.unwrap_or(forms.start);
        for byte in bytes {
            self.read += 1;
            if byte.is_ascii_whitespace() {
                continue;
            }
            if self.end > 0 && self.end + 1 < self.read {
                state = forms.start;
            }
            state = forms.next(state, *byte);
            self.solid += 1;
            self.end = self.read;
            let depth = forms.depth(state);
            // A form that is longer than the line so far began before it.
            if depth >= SHORTEST && depth > self.solid {
                self.continued = self.end;
            }
        }
        self.state = Some(state);
    }

    /// Ends the line and says what of it must not be seen.
    pub(crate) fn end_line(&mut self, mask: &Mask) -> Edges {
        let depth = self.state.map_or(0, |state| mask.wrapped.depth(state));
        let begun = if depth >= SHORTEST { depth.min(self.solid) } else { 0 };
        let edges = [(0, self.continued), (self.end - begun, self.end)];
        *self = Self { state: self.state, ..Self::default() };
        edges
    }
}
