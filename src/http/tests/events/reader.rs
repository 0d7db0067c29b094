//! Reads server-sent events as a client does. The integration tests use it too.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;

/// How long an event may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// An event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// A stream of them.
pub(crate) struct Reader {
    bytes: BoxStream<'static, Option<Vec<u8>>>,
    unread: String,
}

impl Reader {
    /// Opens a stream behind the last event that was seen; the status where there is none.
    pub(crate) async fn open(
        url: &str,
        token: Option<&str>,
        last: Option<&str>,
    ) -> Result<Self, u16> {
        let mut request = reqwest::Client::new().get(url);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let answer = request.send().await.expect("the server answers");
        if answer.status() != 200 {
            return Err(answer.status().as_u16());
        }
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let bytes = answer.bytes_stream().map(|bytes| Some(bytes.ok()?.to_vec())).boxed();
        Ok(Self { bytes, unread: String::new() })
    }

    /// The next event; none at the end of the stream, also where the connection broke.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        tokio::time::timeout(PATIENCE, self.read()).await.expect("something comes in time")
    }

    /// All events up to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    async fn read(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.unread = rest;
                match event(&block) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let bytes = self.bytes.next().await.flatten()?;
            self.unread.push_str(std::str::from_utf8(&bytes).expect("events are ASCII here"));
        }
    }
}

/// What a block of lines says, if it is not there to keep a connection alive.
fn event(block: &str) -> Option<Event> {
    let mut event = Event::default();
    for line in block.lines() {
        match line.split_once(": ").unwrap_or((line, "")) {
            ("id", id) => event.id = id.to_owned(),
            ("event", kind) => event.kind = kind.to_owned(),
            ("data", data) => event.data = serde_json::from_str(data).expect("it is JSON"),
            _ => assert!(line.starts_with(':'), "an unknown line: {line}"),
        }
    }
    (event != Event::default()).then_some(event)
}
