//! Who may call which route: what a route needs stands in the table of routes, and is asked of the
//! caller before anything of the request is looked at.
//!
//! All tokens that are none, or none any more, get one answer. Records are asked for each request,
//! so a token that is revoked is refused from then on. A workspace in which a token has no role
//! is refused in the same words whether or not there is one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;

use super::error::{Answer, ApiError};
use super::list::ALL_WORKSPACES;
use crate::auth::{Caller, EVERYWHERE, Role, Token};
use crate::records::{Records, TokenRow};

/// How exactly it is known when a token was used last.
const USE_NOTED_EVERY: Duration = Duration::from_secs(60);

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Anybody, without a token.
    Open,
    /// Whoever has a token, whatever that is good for.
    Token,
    /// Who has this role, or a greater one, in the workspace of the path.
    Viewer,
    /// The same.
    Submitter,
    /// The same.
    Admin,
    /// An admin of all workspaces.
    Installation,
}

/// What a route needs, for the guard before it.
#[derive(Clone, Copy)]
pub(super) struct Needs {
    pub access: Access,
    /// Whether the route lists: then it may be about all workspaces at once.
    pub lists: bool,
}

/// The workspaces that a list is narrowed to, for a caller who may not see all of them.
#[derive(Clone)]
pub(super) struct Visible(pub Vec<String>);

/// Knows callers by their tokens. Cheap to clone.
#[derive(Clone)]
pub(super) struct Gate {
    records: Records,
    required: bool,
    /// When the use of a token was noted last.
    noted: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Access {
    /// The role that is needed, and none where there is more, or less, to it.
    pub(super) const fn role(self) -> Option<Role> {
        match self {
            Self::Viewer => Some(Role::Viewer),
            Self::Submitter => Some(Role::Submitter),
            Self::Admin => Some(Role::Admin),
            Self::Open | Self::Token | Self::Installation => None,
        }
    }
}

/// Stands before every route.
pub(super) async fn guard(
    Extension(gate): Extension<Gate>,
    Extension(needs): Extension<Needs>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    match gate.admit(needs, &mut parts).await {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(refused) => refused.into_response(),
    }
}

impl Gate {
    /// Asks for tokens if `required`, or lets everybody do everything.
    pub(super) fn new(records: Records, required: bool) -> Self {
        Self { records, required, noted: Arc::default() }
    }

    /// Whether callers need tokens.
    pub(super) const fn is_shut(&self) -> bool {
        self.required
    }

    /// Whether a caller whose request takes long is still let in.
    pub(super) async fn still_knows(&self, caller: &Caller) -> Answer<bool> {
        let Caller::Token { id, .. } = caller else { return Ok(true) };
        let row = self.records.tokens().by_id(id).await?;
        Ok(row.is_some_and(|row| row.is_valid(Timestamp::now())))
    }

    /// Lets a request pass, with what handlers know of its caller.
    async fn admit(&self, needs: Needs, parts: &mut Parts) -> Answer<()> {
        if needs.access == Access::Open {
            return Ok(());
        }
        let caller = self.caller(&parts.headers).await?;
        match needs.access.role() {
            Some(role) => {
                let workspace = workspace(parts).await?;
                if needs.lists && workspace == ALL_WORKSPACES {
                    if let Some(workspaces) = caller.workspaces(role) {
                        parts.extensions.insert(Visible(workspaces));
                    }
                } else {
                    allow(&caller, role, &workspace)?;
                }
            }
            None if needs.access == Access::Installation => {
                allow(&caller, Role::Admin, EVERYWHERE)?;
            }
            None => {}
        }
        parts.extensions.insert(caller);
        Ok(())
    }

    async fn caller(&self, headers: &HeaderMap) -> Answer<Caller> {
        if !self.required {
            return Ok(Caller::Anyone);
        }
        let token = bearer(headers).and_then(Token::read).ok_or_else(unknown)?;
        let row = self.find(&token).await?.ok_or_else(unknown)?;
        self.note_use(&row);
        Ok(Caller::Token { id: row.id, name: row.name, roles: row.roles })
    }

    /// The row of a token that is good.
    async fn find(&self, token: &Token) -> Answer<Option<TokenRow>> {
        let rows = self.records.tokens().by_public_part(token.public_part()).await?;
        let (now, digest) = (Timestamp::now(), token.digest());
        Ok(rows.into_iter().find(|row| digest.is(&row.digest) && row.is_valid(now)))
    }

    /// Nobody waits for it, and it is no harm if it fails.
    fn note_use(&self, row: &TokenRow) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(&row.id).is_some_and(|at| at.elapsed() < USE_NOTED_EVERY) {
            return;
        }
        noted.insert(row.id.clone(), Instant::now());
        let (records, id, name) = (self.records.clone(), row.id.clone(), row.name.clone());
        tokio::spawn(async move {
            if let Err(error) = records.tokens().used(&id).await {
                tracing::warn!(token.name = name, %error, "use of a token is not noted");
            }
        });
    }
}

/// Refuses a caller who lacks a role.
pub(super) fn allow(caller: &Caller, role: Role, workspace: &str) -> Answer<()> {
    caller.needs(role, workspace).map_err(|lacking| {
        let text = lacking.to_string();
        let (first, rest) = text.split_at(1);
        ApiError::forbidden(format!("{}{rest}", first.to_uppercase()))
    })
}

/// The workspace of a path. Routes of workspaces themselves have it as their name.
async fn workspace(parts: &mut Parts) -> Answer<String> {
    let params = RawPathParams::from_request_parts(parts, &()).await;
    let params = params.map_err(|error| ApiError::bad_request(error.body_text()))?;
    let named = |wanted| params.iter().find(|(key, _)| *key == wanted);
    let found = named("workspace").or_else(|| named("name"));
    let found = found.map(|(_, workspace)| workspace.to_owned());
    found.ok_or_else(|| ApiError::internal(format!("no workspace in {}", parts.uri)))
}

/// The token of a request that has one and no second.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The same for a token that is missing, unknown, revoked or past its time.
pub(super) fn unknown() -> ApiError {
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        "A valid token is needed, sent as 'Authorization: Bearer TOKEN'; `errand tokens create` on \
         the platform's machine makes one",
    )
}
