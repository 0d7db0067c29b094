//! `GET /metrics`, and how requests are counted for it. Which figures there are is in
//! [`crate::metrics`].

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, Method};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::get;
use jiff::Timestamp;

use super::error::Answer;
use super::{Api, platform, routes};
use crate::metrics::{self, Installation};

/// The format that Prometheus reads.
const TEXT: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];

/// What a request has as its route that is for none of ours.
const NO_ROUTE: &str = "none";

/// What a worker answers, which has no API.
pub(crate) fn router() -> Router {
    Router::new().route("/metrics", get(|| async { (TEXT, metrics::of_this_process()) }))
}

/// The figures of this process and of the installation.
pub(super) async fn show(
    State(api): State<Api>,
) -> Answer<([(HeaderName, &'static str); 1], String)> {
    let (waiting, lag) = platform::behind(&api).await?;
    let mut figures = Installation {
        projection_waiting: waiting,
        projection_lag: lag,
        ..Installation::default()
    };
    let mut oldest = None;
    for standing in api.records.jobs().queue().await?.into_values() {
        figures.waiting += standing.waiting;
        figures.held += standing.held;
        figures.running += standing.running;
        oldest = [oldest, standing.oldest_waiting].into_iter().flatten().min();
    }
    figures.oldest = oldest.map_or(Duration::ZERO, since);
    Ok((TEXT, metrics::of_this_process() + &figures.text()))
}

/// How long ago something was.
pub(super) fn since(at: Timestamp) -> Duration {
    Timestamp::now().duration_since(at).try_into().unwrap_or_default()
}

/// Counts a request by what is ours in it: one of a few methods, the pattern of a route, the class
/// of the answer.
pub(super) async fn count(request: Request, next: Next) -> Response {
    let method = method(request.method());
    let route = routes::pattern(request.uri().path()).unwrap_or(NO_ROUTE);
    let response = next.run(request).await;
    let status = match response.status().as_u16() {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    };
    metrics::answered(method, route, status);
    response
}

/// Callers may name any method.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
