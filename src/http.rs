//! The HTTP API: the whole surface on this page, a file per resource beside it.
//!
//! Routes, bodies and texts are the reference's. Handlers read the request, ask catalog and
//! records, and show the answer; what a job is made of is decided in `catalog`. Only this folder
//! says axum.

mod body;
mod error;
mod filter;
mod job_view;
mod list;
mod range;

mod agents;
mod environments;
mod execute;
mod files;
mod filesets;
mod holds;
mod jobs;
mod logs;
mod platform;
mod results;
mod secrets;
mod workspaces;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use streams::broker::Broker;
use workers::store::Store;

use crate::catalog::CatalogService;
use crate::files::Files;
use crate::logs::Logs;
use crate::records::{EnvironmentKind, Records};
use crate::secrets::SecretStore;
use error::ApiError;

/// Bytes of a JSON body. Files are not JSON and have no limit here.
const MAX_JSON_BYTES: usize = 16 * 1024 * 1024;

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
}

/// What handlers work with. Cheap to clone.
#[derive(Clone)]
struct Api {
    records: Records,
    store: Store,
    catalog: CatalogService,
    secrets: SecretStore,
    broker: Arc<dyn Broker>,
    files: Files,
    logs: Arc<Logs>,
    intake: Arc<execute::Intake>,
}

impl From<App> for Api {
    fn from(app: App) -> Self {
        Self {
            files: Files::new(app.records.clone(), app.store.clone()),
            logs: Arc::new(Logs::new(app.broker.clone(), app.store.clone())),
            intake: Arc::default(),
            records: app.records,
            store: app.store,
            catalog: app.catalog,
            secrets: app.secrets,
            broker: app.broker,
        }
    }
}

/// The whole surface.
#[rustfmt::skip]
pub fn router(app: App) -> Router {
    const ENTITIES: &str = "/apis/entities/v2";
    const AGENTS: &str = "/apis/agents/v2";
    const JOBS: &str = "/apis/jobs/v2";
    const FILES: &str = "/apis/files/v2/workspaces/{workspace}/filesets";
    const SECRETS: &str = "/apis/secrets/v2/workspaces/{workspace}/secrets";

    Router::new()
        .route("/", get(platform::home))
        .route("/health/live", get(platform::live))
        .route("/health/ready", get(platform::ready))
        .route("/status", get(platform::status))
        .route("/cluster-info", get(platform::cluster_info))
        .route("/apis/auth/discovery", get(platform::discovery))

        .route(&format!("{ENTITIES}/workspaces"), get(workspaces::list).post(workspaces::create))
        .route(&format!("{ENTITIES}/workspaces/{{name}}"), get(workspaces::get).put(workspaces::update).delete(workspaces::delete))

        .route(&format!("{AGENTS}/post-run-actions"), get(agents::post_run_actions))
        .route(&format!("{AGENTS}/workspaces/{{workspace}}/agents"), get(agents::list).post(agents::create))
        .route(&format!("{AGENTS}/workspaces/{{workspace}}/agents/{{name}}"), get(agents::get).delete(agents::delete))

        .merge(environments::collection(&format!("{AGENTS}/workspaces/{{workspace}}/environments"), EnvironmentKind::Environment))
        .merge(environments::collection(&format!("{AGENTS}/workspaces/{{workspace}}/environment-specs"), EnvironmentKind::EnvironmentSpec))
        .merge(environments::collection(&format!("{AGENTS}/workspaces/{{workspace}}/compute-specs"), EnvironmentKind::ComputeSpec))

        .route(&format!("{AGENTS}/workspaces/{{workspace}}/jobs/execute"), get(jobs::list).post(execute::create))
        .merge(job(&format!("{AGENTS}/workspaces/{{workspace}}/jobs/execute/{{name}}")))

        .route(&format!("{JOBS}/execution-profiles"), get(jobs::execution_profiles))
        .route(&format!("{JOBS}/workspaces/{{workspace}}/jobs"), get(jobs::list))
        .merge(job(&format!("{JOBS}/workspaces/{{workspace}}/jobs/{{name}}")))
        .merge(generic_job(&format!("{JOBS}/workspaces/{{workspace}}/jobs/{{name}}")))

        .route(FILES, get(filesets::list).post(filesets::create))
        .route(&format!("{FILES}/{{name}}"), get(filesets::get).patch(filesets::update).delete(filesets::delete))
        .route(&format!("{FILES}/{{name}}/refresh"), post(filesets::refresh))
        .route(&format!("{FILES}/{{name}}/files"), get(files::list))
        .route(&format!("{FILES}/{{name}}/-/{{*path}}"), get(files::get).head(files::head).put(files::put).delete(files::delete).layer(DefaultBodyLimit::disable()))

        .route(SECRETS, get(secrets::list).post(secrets::create))
        .route(&format!("{SECRETS}/{{name}}"), get(secrets::get).patch(secrets::update).delete(secrets::delete))
        .route(&format!("{SECRETS}/{{name}}/access"), get(secrets::access))

        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_JSON_BYTES))
        .layer(middleware::from_fn(no_head))
        .layer(middleware::from_fn(readable_path))
        .with_state(Api::from(app))
}

/// What both collections have of a job.
#[rustfmt::skip]
fn job(at: &str) -> Router<Api> {
    Router::new()
        .route(at, get(jobs::get).delete(jobs::delete))
        .route(&format!("{at}/status"), get(jobs::status))
        .route(&format!("{at}/cancel"), post(jobs::cancel))
        .route(&format!("{at}/logs"), get(logs::list))
        .route(&format!("{at}/results"), get(results::list))
        .route(&format!("{at}/results/{{result}}"), get(results::get))
        .route(&format!("{at}/results/{{result}}/download"), get(results::download))
}

/// What only the generic collection has.
#[rustfmt::skip]
fn generic_job(at: &str) -> Router<Api> {
    Router::new()
        .route(&format!("{at}/pause"), post(holds::pause))
        .route(&format!("{at}/resume"), post(holds::resume))
        .route(&format!("{at}/status-details"), patch(jobs::patch_details))
        .route(&format!("{at}/steps"), get(jobs::steps))
        .route(&format!("{at}/steps/{{step}}"), get(jobs::step))
}

/// A route that does not exist. With a slash at its end, the one without is meant.
async fn unknown_route(request: Request) -> Response {
    let uri = request.uri();
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    match (uri.path().strip_suffix('/'), host) {
        (Some(path), Some(host)) if !path.is_empty() => {
            let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            let location = format!("http://{host}{path}{query}");
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response()
        }
        _ => ApiError::not_found("Not Found").into_response(),
    }
}

async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
}

/// As in the reference, `HEAD` is for files only, and for the root.
async fn no_head(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_file = path.starts_with("/apis/files/") && path.contains("/-/");
    if request.method() == Method::HEAD && !is_file && path != "/" {
        let mut response = wrong_method().await.into_response();
        response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET"));
        return response;
    }
    next.run(request).await
}

/// Names are text: a path that is none once its escapes are resolved names nothing.
async fn readable_path(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if percent_decode_str(path).decode_utf8().is_err() {
        let detail = format!("The path '{path}' is not valid UTF-8");
        return ApiError::bad_request(detail).into_response();
    }
    next.run(request).await
}

/// A time as answers have it: UTC to the microsecond.
fn time(at: Timestamp) -> String {
    format!("{at:.6}")
}

#[cfg(test)]
mod tests;
