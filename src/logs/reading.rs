//! One reading of a window: from the batches in the stream, or from the archive.

use streams::broker::Stored;
use streams::id::JobId;
use streams::log::LogLine;
use streams::subject;
use streams::topology::StreamName;

use super::index::{Index, Place};
use super::page::Page;
use super::{Error, Found, Logs, Window, decode, to_usize, visible};

/// What one reading of a job's log needs.
pub(super) struct Reading<'a> {
    pub(super) logs: &'a Logs,
    pub(super) workspace: &'a str,
    pub(super) job: JobId,
}

impl Reading<'_> {
    /// What a window shows; `None` when a batch that the index knows is gone.
    pub(super) async fn window(
        &self,
        index: &Index,
        window: Window,
    ) -> Result<Option<Found>, Error> {
        let total = index.total();
        let Some(above) = self.above(index, window).await? else { return Ok(None) };
        let (first, end) = window.places(total, above);
        if first == end && !self.is_current(index).await? {
            return Ok(None);
        }
        let Some(page) = self.lines(index, first, end, Page::of(window)).await? else {
            return Ok(None);
        };
        let (first, lines) = page.finish(first, end);
        Ok(Some(Found { first, lines, total }))
    }

    /// Whether what is known last is still there. Nothing new after it may mean that there is
    /// nothing, or that all of it went to the archive.
    async fn is_current(&self, index: &Index) -> Result<bool, Error> {
        match index.last_batch() {
            Some(sequence) => Ok(self.stored(sequence).await?.is_some()),
            None => Ok(true),
        }
    }

    /// Where the lines above a number begin, of a window that asks for these; `None` when a batch
    /// is gone.
    async fn above(&self, index: &Index, window: Window) -> Result<Option<u64>, Error> {
        let Window::Above { number, .. } = window else { return Ok(Some(0)) };
        let Some((place, start)) = index.above(number) else { return Ok(Some(index.total())) };
        let seen = match place {
            Place::Archive(frame) => {
                let (workspace, job) = (self.workspace, self.job);
                self.logs.count_archived_until(workspace, job, frame, number).await?
            }
            Place::Batch(sequence) => {
                let Some(lines) = self.batch(sequence).await? else { return Ok(None) };
                visible(&lines).take_while(|line| line.n <= number).count() as u64
            }
        };
        Ok(Some(start + seen))
    }

    /// The lines of these places; `None` when a batch is gone.
    async fn lines(
        &self,
        index: &Index,
        first: u64,
        end: u64,
        mut page: Page,
    ) -> Result<Option<Page>, Error> {
        for (place, start) in index.covering(first, end) {
            let skip = first.saturating_sub(start);
            let take = end - start - skip;
            let has_room;
            match place {
                Place::Archive(frame) => {
                    let (workspace, job) = (self.workspace, self.job);
                    let read = self.logs.read_archived(workspace, job, frame, (skip, take), page);
                    (page, has_room) = read.await?;
                }
                Place::Batch(sequence) => {
                    let Some(lines) = self.batch(sequence).await? else { return Ok(None) };
                    let mut shown = visible(&lines).skip(to_usize(skip)).take(to_usize(take));
                    has_room = shown.all(|line| page.push(line.clone()));
                }
            }
            if !has_room {
                break;
            }
        }
        Ok(Some(page))
    }

    /// The lines of a batch; `None` when it is gone.
    async fn batch(&self, sequence: u64) -> Result<Option<Vec<LogLine>>, Error> {
        let Some(stored) = self.stored(sequence).await? else { return Ok(None) };
        let batch = decode(self.job, &stored.payload)?;
        self.logs.open(self.job, batch).await.map(Some)
    }

    /// A batch as it is stored. In a stream that was made anew its sequence may be another job's.
    async fn stored(&self, sequence: u64) -> Result<Option<Stored>, Error> {
        let subject = subject::logs(self.workspace, self.job);
        let stored = self.logs.broker.at(StreamName::Logs, sequence).await?;
        Ok(stored.filter(|stored| stored.subject == subject))
    }
}
