//! What holds for every request, whatever its route: readable paths, other origins, and what
//! clients are told about trying again.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use reqwest::Url;

use super::error::ApiError;
use super::routes;
use crate::telemetry::caller;

/// Names are text: a path that is none once its escapes are resolved names nothing.
pub(super) async fn readable_path(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if percent_decode_str(path).decode_utf8().is_err() {
        let detail = format!("The path '{path}' is not valid UTF-8");
        return ApiError::bad_request(detail).into_response();
    }
    next.run(request).await
}

/// The reference's client repeats a 409 three times unless it is told not to.
pub(super) async fn no_retry_of_conflicts(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if response.status() == StatusCode::CONFLICT {
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

/// A caller that says where it is in a trace is believed, and one that says something else is not:
/// nothing is refused for it.
pub(super) async fn trace_of_the_caller(request: Request, next: Next) -> Response {
    let mut said = request.headers().get_all("traceparent").iter();
    let caller = match (said.next(), said.next()) {
        (Some(said), None) => said.to_str().ok().and_then(|said| said.parse().ok()),
        _ => None,
    };
    match caller {
        Some(caller) => caller::of(caller, next.run(request)).await,
        None => next.run(request).await,
    }
}

/// Which web pages may call. The reference lets those of any origin, and so may we, where that is
/// configured: where nobody has to authenticate, whoever may submit a job may run commands.
pub(super) async fn cors(State(web): State<Web>, request: Request, next: Next) -> Response {
    let asked = request.headers();
    let origin = asked.get(header::ORIGIN).cloned();
    let method = asked.get(header::ACCESS_CONTROL_REQUEST_METHOD).cloned();
    let headers = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let foreign = origin.as_ref().filter(|origin| !web.any_origin && !is_of_this_machine(origin));
    // Without a preflight's method it is a request like any other.
    let preflight = method.filter(|_| request.method() == Method::OPTIONS && origin.is_some());
    let mut response = match (preflight, foreign) {
        (Some(method), None) => preflight_answer(method, headers),
        // A page has no token but what its user gave it; without one it gets nowhere anyhow.
        (None, Some(origin)) if !web.authenticated && !request.method().is_safe() => {
            foreign_page(origin)
        }
        _ => next.run(request).await,
    };
    let foreign = foreign.is_some();
    let said = response.headers_mut();
    said.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin.filter(|_| !foreign) {
        said.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let yes = HeaderValue::from_static("true");
        said.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
    }
    response
}

/// A name that somebody else's server gives out as this machine's address makes their pages pages
/// of this server, which browsers let read everything. No address and no `localhost` is such a
/// name. Where callers need a token, such pages have none, and any name is as good.
pub(super) async fn own_name(State(web): State<Web>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    let is_foreign = |host: &&HeaderValue| {
        let url = host.to_str().ok().and_then(|host| Url::parse(&format!("http://{host}")).ok());
        let name = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        name != "localhost" && address(name).is_none()
    };
    match host.filter(|_| !web.any_origin && !web.authenticated).filter(is_foreign) {
        None => next.run(request).await,
        Some(host) => {
            let host = String::from_utf8_lossy(host.as_bytes());
            let detail = format!(
                "'{host}' is no name of this server; call it by its address, or let \
                 allow_any_origin in its configuration take any"
            );
            ApiError::forbidden(detail).into_response()
        }
    }
}

/// The address that a host of a URL is. The brackets are the notation's.
fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// What the configuration says of web pages and names.
#[derive(Clone, Copy)]
pub(super) struct Web {
    /// Whether pages of any origin, and callers by any name, are let in.
    pub any_origin: bool,
    /// Whether callers need tokens.
    pub authenticated: bool,
}

/// Whether a page was served from a loopback address.
fn is_of_this_machine(origin: &HeaderValue) -> bool {
    let url = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok());
    let Some(host) = url.as_ref().and_then(Url::host_str) else { return false };
    host == "localhost" || address(host).is_some_and(|address| address.is_loopback())
}

/// Browsers send plain forms without asking first.
fn foreign_page(origin: &HeaderValue) -> Response {
    let origin = String::from_utf8_lossy(origin.as_bytes());
    let detail = format!(
        "Pages of {origin} may not call this API; allow_any_origin in its configuration lets them"
    );
    ApiError::forbidden(detail).into_response()
}

fn preflight_answer(method: HeaderValue, headers: Option<HeaderValue>) -> Response {
    let mut said = HeaderMap::new();
    said.insert(header::ACCESS_CONTROL_ALLOW_METHODS, method);
    if let Some(headers) = headers {
        said.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, headers);
    }
    said.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    (StatusCode::OK, said, "OK").into_response()
}

/// A route that does not exist. With a slash at its end, the one without may be meant.
pub(super) async fn unknown_route(request: Request) -> Response {
    let uri = request.uri();
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    match (uri.path().strip_suffix('/'), host) {
        (Some(path), Some(host)) if routes::is_one(path) => {
            let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            let location = format!("http://{host}{path}{query}");
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response()
        }
        _ => ApiError::not_found("Not Found").into_response(),
    }
}
