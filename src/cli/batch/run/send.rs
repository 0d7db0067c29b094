//! Sending: lines of the file, a few at a time and never more than there is room for.

use serde_json::json;

use super::{Batch, number};
use crate::cli::batch::{batches, worst};
use crate::client::segment;
use crate::exit::Exit;

/// What is sent at once, at most.
const CHUNK_LINES: usize = 64;
const CHUNK_BYTES: usize = 1024 * 1024;

/// Lines that are sent together, with the blank ones before each.
#[derive(Default)]
pub(super) struct Chunk {
    first: u32,
    numbers: Vec<u32>,
    text: Vec<u8>,
}

impl Chunk {
    /// Adds a line that comes so many blank ones after the last.
    fn add(&mut self, number: u32, blank: u32, line: &[u8]) {
        if self.numbers.is_empty() {
            self.first = number - blank;
        }
        self.text.extend(std::iter::repeat_n(b'\n', blank as usize));
        self.text.extend(line);
        self.text.push(b'\n');
        self.numbers.push(number);
    }
}

impl Batch<'_> {
    /// Sends some lines; says whether there were any.
    pub(super) async fn send(&mut self) -> anyhow::Result<bool> {
        let chunk = match self.kept_back.take() {
            Some(chunk) => chunk,
            None => self.chunk().await?,
        };
        if chunk.numbers.is_empty() {
            return Ok(false);
        }
        let begun = &self.directory.begun;
        let path = format!(
            "{}?group={}&lines={}&first={}",
            batches(self.session),
            segment(&begun.group),
            self.extent.last,
            chunk.first
        );
        let client = &self.session.client;
        let send = async || client.submit_lines(&path, &begun.key, chunk.text.clone()).await;
        let outcomes = self.server.call(send).await?;
        let full = outcomes.iter().find(|outcome| outcome["status"] == 503);
        self.server.has_room(full.map(|outcome| &outcome["detail"]));
        if outcomes.len() < chunk.numbers.len() || full.is_some() {
            // Those that were taken are the same jobs when they are sent again.
            self.kept_back = Some(chunk);
            return Ok(false);
        }
        for outcome in &outcomes {
            let line = number(outcome)?;
            if outcome["status"] == 201 {
                self.on_their_way.entry(line).or_default();
                continue;
            }
            self.directory.index.put(&json!({
                "line": line,
                "status": "refused",
                "http_status": outcome["status"],
                "detail": outcome["detail"],
            }))?;
        }
        Ok(true)
    }

    /// The next lines of the file that are to be sent.
    async fn chunk(&mut self) -> anyhow::Result<Chunk> {
        let mut chunk = Chunk::default();
        while chunk.numbers.len() < self.room().min(CHUNK_LINES)
            && chunk.text.len() < CHUNK_BYTES
            && !self.all_read
        {
            let Some((number, line)) = self.lines.next()? else {
                self.all_read = true;
                break;
            };
            let blank = number - self.read - 1;
            self.read = number;
            if !self.is_known(number).await? {
                chunk.add(number, blank, &line);
            } else if !chunk.numbers.is_empty() {
                // A blank line in its place would say that it is one.
                break;
            }
        }
        Ok(chunk)
    }

    /// How many more jobs may be on their way. Those that wait for room at the server will be.
    pub(super) fn room(&self) -> usize {
        let taken = self.on_their_way.len() + self.waiting_for_room.len();
        (self.asked.concurrency as usize).saturating_sub(taken)
    }

    /// Whether a line need not be sent: its job is over, or is known to go on.
    async fn is_known(&mut self, line: u32) -> anyhow::Result<bool> {
        let Some(entry) = self.directory.index.entry(line)? else { return Ok(false) };
        match worst::of_line(&entry) {
            // What was refused, or could not be fetched, may have been mended since.
            Some(Exit::Refused | Exit::Unreachable) => return Ok(false),
            Some(_) => self.retry(&entry).await?,
            None => {
                let runs = entry["runs"].as_array().cloned().unwrap_or_default();
                self.on_their_way.insert(line, runs);
            }
        }
        Ok(true)
    }
}
