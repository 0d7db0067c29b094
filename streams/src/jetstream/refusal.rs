//! What the server refuses for want of permission.
//!
//! It does not answer such a message: it says so in a word of its own, and whoever waits for an
//! answer would only see the time run out. Here the word is brought to those who wait.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::broker::Error;

/// Words that one who waits may be behind; who misses one sees the time run out.
const BEHIND: usize = 256;

/// The server's words to one connection.
#[derive(Clone)]
pub(super) struct Refusals {
    user: String,
    is_of_a_user: bool,
    said: broadcast::Sender<Violation>,
}

/// What was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Violation {
    is_publication: bool,
    subject: String,
}

impl Refusals {
    /// Of a connection of this user.
    pub(super) fn of(user: Option<&str>) -> Self {
        let shown =
            user.map_or_else(|| "this connection".to_owned(), |user| format!("user '{user}'"));
        Self { user: shown, is_of_a_user: user.is_some(), said: broadcast::channel(BEHIND).0 }
    }

    /// Whether there are permissions that may be missing: without users everybody has all.
    pub(super) const fn are_of_a_user(&self) -> bool {
        self.is_of_a_user
    }

    /// Takes in what the server says; false when it is about something else.
    pub(super) fn heard(&self, words: &str) -> bool {
        let Some(violation) = Violation::read(words) else { return false };
        let (user, subject) = (&self.user, &violation.subject);
        tracing::error!(user, subject, "{}", violation.reason(user));
        // Nobody may be waiting for it.
        let _ = self.said.send(violation);
        true
    }

    /// Waits for what was asked for, or for the word that it is refused. `asks` are the subjects
    /// that it is asked on, up to further tokens.
    pub(super) async fn or<T>(
        &self,
        asks: &[String],
        asked: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut said = self.said.subscribe();
        tokio::select! {
            biased;
            done = asked => done,
            refused = self.next(&mut said, asks) => Err(refused),
        }
    }

    /// The refusals from now on of what is asked for on these subjects.
    pub(super) fn of_asking(&self, asks: Vec<String>) -> BoxStream<'static, Error> {
        let begin = (self.clone(), self.said.subscribe(), asks);
        stream::unfold(begin, |(refusals, mut said, asks)| async move {
            let refused = refusals.next(&mut said, &asks).await;
            Some((refused, (refusals, said, asks)))
        })
        .boxed()
    }

    async fn next(&self, said: &mut broadcast::Receiver<Violation>, asks: &[String]) -> Error {
        loop {
            match said.recv().await {
                Ok(violation) if violation.concerns(asks) => return violation.error(&self.user),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Violation {
    /// Reads `Permissions Violation for Publish to "a.b"`, and the same for `Subscription to`.
    fn read(words: &str) -> Option<Self> {
        let lower = words.to_ascii_lowercase();
        let (_, what) = lower.split_once("permissions violation for ")?;
        let subject = words.split('"').nth(1)?.to_owned();
        Some(Self { is_publication: what.starts_with("publish"), subject })
    }

    /// A subject is one of these, or has further tokens. Without any, all are.
    fn concerns(&self, asks: &[String]) -> bool {
        let is_of = |ask: &String| {
            let more = self.subject.strip_prefix(ask.as_str());
            more.is_some_and(|more| more.is_empty() || more.starts_with('.'))
        };
        asks.is_empty() || asks.iter().any(is_of)
    }

    fn reason(&self, user: &str) -> String {
        let act = if self.is_publication { "publish to" } else { "subscribe to" };
        let first = match self.subject.strip_prefix("$JS.API.STREAM.CREATE.") {
            Some(_) => "; streams are made by errand serve, which must have run first",
            None => "",
        };
        format!(
            "{user} has no permission to {act} '{}'{first}; permissions are in the server's \
             configuration, see errand nats config",
            self.subject
        )
    }

    fn error(&self, user: &str) -> Error {
        Error::Refused { what: self.subject.clone(), reason: self.reason(user) }
    }
}

#[cfg(test)]
mod tests;
