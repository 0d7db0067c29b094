//! Reaching a server: who we are there, and what it must be.

use std::fmt;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};

use super::refusal::Refusals;
use super::unavailable;
use crate::broker::Error;

/// The oldest server that has what the chain needs (consumer metadata, several filters).
pub(super) const OLDEST_SERVER: (i64, i64, i64) = (2, 10, 0);

/// How long a request may take.
const REQUEST: Duration = Duration::from_secs(10);

/// How to reach the server.
#[derive(Clone, Debug, Default)]
pub struct Connect {
    /// `nats://host:port`, several separated by commas.
    pub url: String,
    /// The server's token, if it wants one.
    pub token: Option<String>,
    /// Who we are, on a server that has users.
    pub login: Option<Login>,
    /// What the connection is called in the server's lists.
    pub name: String,
}

/// A user of the server.
#[derive(Clone)]
pub struct Login {
    /// Its name.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Where a user's own answers come in: nobody else may listen there.
pub(crate) fn inbox(user: &str) -> String {
    format!("_INBOX_{user}")
}

/// Connects and refuses a server that is too old.
pub(super) async fn connect(to: &Connect, refusals: &Refusals) -> Result<Client, Error> {
    let heard = refusals.clone();
    let mut options = ConnectOptions::new()
        .name(&to.name)
        .request_timeout(Some(REQUEST))
        .event_callback(move |event| {
            hear(&heard, &event);
            std::future::ready(())
        });
    if let Some(token) = &to.token {
        options = options.token(token.clone());
    }
    if let Some(Login { user, password }) = &to.login {
        options = options
            .user_and_password(user.clone(), password.clone())
            .custom_inbox_prefix(inbox(user));
    }
    let addresses: Vec<_> = to.url.split(',').map(str::trim).collect();
    let client = options.connect(addresses).await.map_err(|error| match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            not_let_in(to)
        }
        _ => unavailable(error),
    })?;
    let (major, minor, patch) = OLDEST_SERVER;
    if client.is_server_compatible(major, minor, patch) {
        return Ok(client);
    }
    Err(Error::Refused {
        what: format!("the server at {}", to.url),
        reason: format!(
            "it has version {}, {major}.{minor} or newer is needed",
            client.server_info().version
        ),
    })
}

fn not_let_in(to: &Connect) -> Error {
    let (who, mend) = match (&to.login, &to.token) {
        (Some(login), _) => (format!("user '{}'", login.user), "nats.user and nats.password"),
        (None, Some(_)) => ("the token".to_owned(), "nats.token"),
        (None, None) => (
            "a connection without credentials".to_owned(),
            "nats.token, or nats.user and nats.password",
        ),
    };
    Error::Refused {
        what: format!("{who} at {}", to.url),
        reason: format!("authorization violation; mend {mend}"),
    }
}

fn hear(refusals: &Refusals, event: &Event) {
    if let Event::ServerError(error) = event
        && refusals.heard(&error.to_string())
    {
        return;
    }
    tracing::info!(%event, "nats connection");
}
