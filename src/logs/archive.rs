//! Archived logs: one object of compressed JSON lines, in frames that are unpacked one by one. What
//! each of them holds is counted once; a page reads those that have its lines, and no other.

use std::io::{self, BufRead, BufReader};
use std::mem;

use streams::id::JobId;
use streams::log::LogLine;
use workers::store::key;

use super::page::Page;
use super::{Error, Logs, to_usize};

/// A part of an archive that is unpacked by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Its first byte in the object.
    start: u64,
    /// The byte after its last one.
    end: u64,
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) frame: Frame,
    /// Lines that the view has.
    pub(super) lines: u64,
    /// The number of its last line, blank ones counted.
    pub(super) last: u64,
}

/// The lines that the view has, unread.
type Lines<'a> = &'a mut dyn Iterator<Item = io::Result<String>>;

impl Logs {
    /// The frames of the archive; `None` without one. This reads all of it.
    pub(super) async fn frames(
        &self,
        workspace: &str,
        job: JobId,
    ) -> Result<Option<Vec<Counted>>, Error> {
        let Some(bytes) = self.store.read_unknown(&key::logs(workspace, job)).await? else {
            return Ok(None);
        };
        unpacking(job, move || frames(&bytes)).await.map(Some)
    }

    /// How many of the lines that the view has of a frame have a number up to this one.
    pub(super) async fn count_archived_until(
        &self,
        workspace: &str,
        job: JobId,
        frame: Frame,
        number: u64,
    ) -> Result<u64, Error> {
        let count = move |lines: Lines<'_>| {
            let mut seen = 0;
            for line in lines {
                if parse(&line?)?.n > number {
                    break;
                }
                seen += 1;
            }
            Ok(seen)
        };
        self.scan(workspace, job, frame, count).await
    }

    /// Reads lines of a frame into a page; says, too, whether a further one may have room.
    pub(super) async fn read_archived(
        &self,
        workspace: &str,
        job: JobId,
        frame: Frame,
        (skip, take): (u64, u64),
        mut page: Page,
    ) -> Result<(Page, bool), Error> {
        let pick = move |lines: Lines<'_>| {
            for line in lines.skip(to_usize(skip)).take(to_usize(take)) {
                if !page.push(parse(&line?)?) {
                    return Ok((page, false));
                }
            }
            Ok((page, true))
        };
        self.scan(workspace, job, frame, pick).await
    }

    async fn scan<T: Send + 'static>(
        &self,
        workspace: &str,
        job: JobId,
        Frame { start, end }: Frame,
        fold: impl FnOnce(Lines<'_>) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let bytes = self.store.read_part(&key::logs(workspace, job), start, end).await?;
        let bytes = bytes.unwrap_or_default();
        unpacking(job, move || {
            let shown = |line: &io::Result<String>| line.as_ref().map_or(true, |it| is_shown(it));
            let zstd = zstd::Decoder::with_buffer(&*bytes)?;
            fold(&mut BufReader::new(zstd).lines().filter(shown))
        })
        .await
    }
}

/// Runs on a thread that may block.
async fn unpacking<T: Send + 'static>(
    job: JobId,
    unpack: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let unpacked = tokio::task::spawn_blocking(unpack).await;
    let unpacked = unpacked.unwrap_or_else(|panic| Err(io::Error::other(panic)));
    unpacked.map_err(|error| Error::Corrupt { job, reason: error.to_string() })
}

/// Counts an archive, a line at a time. An older one is a single frame.
fn frames(archive: &[u8]) -> io::Result<Vec<Counted>> {
    let mut frames = Vec::new();
    let mut rest = archive;
    while !rest.is_empty() {
        let start = (archive.len() - rest.len()) as u64;
        let mut reader = BufReader::new(zstd::Decoder::with_buffer(rest)?.single_frame());
        let (mut lines, mut line, mut last) = (0, String::new(), String::new());
        while reader.read_line(&mut line)? > 0 {
            lines += u64::from(is_shown(&line));
            mem::swap(&mut line, &mut last);
            line.clear();
        }
        rest = reader.into_inner().finish();
        let frame = Frame { start, end: (archive.len() - rest.len()) as u64 };
        let last = if last.is_empty() { 0 } else { parse(&last)?.n };
        frames.push(Counted { frame, lines, last });
    }
    Ok(frames)
}

/// Whether the view has a line. Most are told by the first letter of their text, which comes last
/// in what the platform writes; a log of a million lines is then not parsed for its end.
fn is_shown(line: &str) -> bool {
    let text = line.split_once(r#","text":""#).and_then(|(_, text)| text.bytes().next());
    match text {
        Some(first) if first.is_ascii_graphic() && first != b'\\' && first != b'"' => true,
        // One that cannot be read is met by whoever reads it.
        _ => parse(line).map_or(true, |line| !line.is_blank()),
    }
}

fn parse(line: &str) -> io::Result<LogLine> {
    serde_json::from_str(line).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use jiff::Timestamp;
    use streams::log::LogStream;

    use super::*;

    fn packed(numbers: std::ops::Range<u64>, text: &str) -> Vec<u8> {
        let mut zstd = zstd::Encoder::new(Vec::new(), 0).expect("it begins");
        for n in numbers {
            let (at, stream) = (Timestamp::UNIX_EPOCH, LogStream::Stdout);
            let line = LogLine { n, at, stream, text: text.to_owned() };
            serde_json::to_writer(&mut zstd, &line).expect("it is JSON");
            zstd.write_all(b"\n").expect("it is memory");
        }
        zstd.finish().expect("it is memory")
    }

    #[test]
    fn frames_are_found_and_counted() {
        let parts = [packed(1..4, "words"), packed(4..6, " "), packed(6..7, "\u{e9}")];
        let mut end = 0;
        let expected = parts.iter().zip([(3, 3), (0, 5), (1, 6)]).map(|(part, (lines, last))| {
            let start = end;
            end += part.len() as u64;
            Counted { frame: Frame { start, end }, lines, last }
        });
        let expected = expected.collect::<Vec<_>>();
        let archive = parts.concat();
        assert_eq!(frames(&archive).expect("it is whole"), expected);
        assert_eq!(frames(&[]).expect("it is whole"), []);
        frames(&archive[..archive.len() - 1]).expect_err("its end is missing");
    }
}
