//! The lines of a request body, one at a time: no more is held than one line and what came with
//! its end. What a line says is not looked at here.

use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::StreamExt;
use futures_util::stream::Fuse;

/// A line that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its number; blank lines have theirs, too.
    pub(super) number: u32,
    /// Its bytes; none when there are more than the limit.
    pub(super) bytes: Option<Vec<u8>>,
}

/// The lines of a body.
pub(super) struct Lines {
    body: Fuse<BodyDataStream>,
    most: usize,
    /// What came and is not looked at yet.
    rest: Bytes,
    /// The beginning of the line that is being read, unless it is too long.
    begun: Option<Vec<u8>>,
    /// The number of the line that was read last.
    pub(super) number: u32,
    /// The number of the last line that is not blank.
    pub(super) last: u32,
}

impl Lines {
    /// Those of a body, of which the first has this number and none may be longer than `most`.
    pub(super) fn of(body: Body, first: u32, most: usize) -> Self {
        let before = first.saturating_sub(1);
        Self {
            body: body.into_data_stream().fuse(),
            most,
            rest: Bytes::new(),
            begun: Some(Vec::new()),
            number: before,
            last: before,
        }
    }

    /// The next line; none at the end. A body that breaks off has no end, and the line in which
    /// it does so is none.
    pub(super) async fn next(&mut self) -> Result<Option<Line>, axum::Error> {
        loop {
            let end = self.rest.iter().position(|byte| *byte == b'\n');
            let part = self.rest.split_to(end.unwrap_or(self.rest.len()));
            self.take(&part);
            if end.is_some() {
                self.rest = self.rest.slice(1..);
            } else if let Some(more) = self.body.next().await {
                self.rest = more?;
                continue;
            } else if self.begun.as_ref().is_some_and(Vec::is_empty) {
                return Ok(None);
            }
            let bytes = self.begun.replace(Vec::new());
            self.number = self.number.saturating_add(1);
            if !bytes.as_ref().is_some_and(|bytes| bytes.trim_ascii().is_empty()) {
                self.last = self.number;
                return Ok(Some(Line { number: self.number, bytes }));
            }
        }
    }

    fn take(&mut self, part: &[u8]) {
        match &mut self.begun {
            Some(begun) if begun.len() + part.len() <= self.most => begun.extend_from_slice(part),
            begun => *begun = None,
        }
    }
}

#[cfg(test)]
mod tests;
