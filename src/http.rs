//! The HTTP API: a file per resource, and every route of them in `routes`.
//!
//! Routes, bodies and texts are the reference's. Handlers read the request, ask catalog and
//! records, and show the answer; what a job is made of is decided in `catalog`. Only this folder
//! says axum.

mod routes;

mod auth;
mod body;
mod edge;
mod error;
mod filter;
mod job_view;
mod list;
mod openapi;
mod range;
mod route;
mod upload;

mod agents;
mod batch;
mod batches;
mod environments;
mod events;
mod execute;
mod files;
mod filesets;
mod holds;
mod idempotency;
mod intake;
mod job_files;
mod job_list;
mod jobs;
mod logs;
mod members;
pub(crate) mod metrics;
mod new_job;
mod notification;
mod platform;
mod queue;
mod rerun;
mod results;
mod secrets;
mod step_filter;
mod steps;
mod submissions;
mod workspaces;

use std::sync::Arc;

use axum::Extension;
pub use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use jiff::Timestamp;
use streams::broker::Broker;
use tokio_util::sync::CancellationToken;
use workers::seats::Limits;
use workers::store::Store;

use crate::catalog::CatalogService;
use crate::files::Files;
use crate::logs::Logs;
use crate::records::Records;
use crate::secrets::SecretStore;

pub use submissions::{Answered, Submissions};

/// Bytes of a JSON body, beyond what the input and the context of a job may have. Files are not
/// JSON and have no limit here.
const MAX_JSON_BYTES: u64 = 16 * 1024 * 1024;

/// The parts of the platform that the API speaks for.
pub struct App {
    /// What is known.
    pub records: Records,
    /// Where results and files are.
    pub store: Store,
    /// What judges requests.
    pub catalog: CatalogService,
    /// What keeps secrets.
    pub secrets: SecretStore,
    /// What carries facts.
    pub broker: Arc<dyn Broker>,
    /// How many jobs of a workspace run at once.
    pub running_limits: Limits,
    /// Whether callers may read the values of secrets.
    pub secret_access: bool,
    /// Whether web pages of any origin may call; those of this machine may in any case.
    pub any_origin: bool,
    /// Whether callers need tokens.
    pub authenticated: bool,
    /// Ends what would go on for long when the server stops.
    pub stop: CancellationToken,
}

/// What handlers work with. Cheap to clone.
#[derive(Clone)]
struct Api {
    records: Records,
    store: Store,
    catalog: CatalogService,
    secrets: SecretStore,
    broker: Arc<dyn Broker>,
    running_limits: Limits,
    secret_access: bool,
    gate: auth::Gate,
    stop: CancellationToken,
    files: Files,
    logs: Arc<Logs>,
    intake: Arc<intake::Intake>,
}

impl From<App> for Api {
    fn from(app: App) -> Self {
        Self {
            files: Files::new(app.records.clone(), app.store.clone()),
            logs: Arc::new(Logs::new(app.broker.clone(), app.store.clone())),
            intake: Arc::default(),
            gate: auth::Gate::new(app.records.clone(), app.authenticated),
            stop: app.stop,
            records: app.records,
            store: app.store,
            catalog: app.catalog,
            secrets: app.secrets,
            broker: app.broker,
            running_limits: app.running_limits,
            secret_access: app.secret_access,
        }
    }
}

/// The whole surface.
pub fn router(app: App) -> Router {
    surface(app).0
}

/// The same, and what judges submissions that come another way.
pub fn surface(app: App) -> (Router, Submissions) {
    let web = edge::Web { any_origin: app.any_origin, authenticated: app.authenticated };
    let most = MAX_JSON_BYTES + 2 * app.catalog.settings().max_input_bytes;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let api = Api::from(app);
    let submissions = Submissions::of(&api);
    let router = route::router(routes::all())
        .fallback(edge::unknown_route)
        .layer(DefaultBodyLimit::max(most))
        .layer(Extension(body::Limit(most)))
        .layer(Extension(api.gate.clone()))
        .layer(middleware::from_fn(edge::readable_path))
        .layer(middleware::from_fn(edge::no_retry_of_conflicts))
        .layer(middleware::from_fn(edge::trace_of_the_caller))
        .layer(middleware::from_fn_with_state(web, edge::cors))
        .layer(middleware::from_fn_with_state(web, edge::own_name))
        .layer(middleware::from_fn(metrics::count))
        .with_state(api);
    (router, submissions)
}

/// A time as answers have it: UTC to the microsecond.
fn time(at: Timestamp) -> String {
    format!("{at:.6}")
}

#[cfg(test)]
mod tests;
