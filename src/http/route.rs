//! A route: who may call it, method, path, handler, and what may be said of it. Router and OpenAPI
//! document are both made from the one list of them, so neither has a route that the other lacks,
//! and no route is without an answer to who may call it.

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, Router};

use super::Api;
use super::auth::{self, Access, Needs};
use super::error::ApiError;
use crate::catalog::shape::Table;

/// A method of a path.
pub(super) struct Route {
    pub access: Access,
    pub method: Method,
    /// As axum spells it: `{name}` for a segment, `{*path}` for the rest.
    pub path: String,
    pub summary: &'static str,
    pub takes: Takes,
    pub answers: Answers,
    handler: MethodRouter<Api>,
}

/// What a request carries.
#[derive(Clone, Copy)]
pub(super) enum Takes {
    Nothing,
    /// A JSON object of these fields.
    Fields(&'static Table),
    /// Any JSON object.
    Object,
    /// The bytes of a file, as they are or in a form.
    File,
    /// A JSON object of these fields a line, of any number of lines.
    Lines(&'static Table),
}

/// What a request that succeeds is answered with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// 200 and JSON.
    Json,
    /// 201 and the JSON of what was made.
    Made,
    /// 200 and a page of a list.
    Page,
    /// 204.
    Nothing,
    /// 200 and no body.
    Headers,
    /// 200, or 206, and bytes.
    Bytes,
    /// 200 and a JSON object a line.
    Lines,
    /// 200 and server-sent events, or 204 when there will be none.
    Events,
    /// 200 and a word.
    Text,
    /// Nothing succeeds: the route is there to say why not.
    Refusal,
}

/// A route of `GET`: a request without a body, answered with JSON unless something else is said.
pub(super) fn get<H, T>(
    access: Access,
    path: impl Into<String>,
    handler: H,
    summary: &'static str,
) -> Route
where
    H: Handler<T, Api>,
    T: 'static,
{
    Route::new(access, (Method::GET, MethodFilter::GET), path, handler, summary)
}

/// The same of `HEAD`.
pub(super) fn head<H, T>(
    access: Access,
    path: impl Into<String>,
    handler: H,
    summary: &'static str,
) -> Route
where
    H: Handler<T, Api>,
    T: 'static,
{
    Route::new(access, (Method::HEAD, MethodFilter::HEAD), path, handler, summary)
        .answers(Answers::Headers)
}

/// The same of `POST`.
pub(super) fn post<H, T>(
    access: Access,
    path: impl Into<String>,
    handler: H,
    summary: &'static str,
) -> Route
where
    H: Handler<T, Api>,
    T: 'static,
{
    Route::new(access, (Method::POST, MethodFilter::POST), path, handler, summary)
}

/// The same of `PUT`.
pub(super) fn put<H, T>(
    access: Access,
    path: impl Into<String>,
    handler: H,
    summary: &'static str,
) -> Route
where
    H: Handler<T, Api>,
    T: 'static,
{
    Route::new(access, (Method::PUT, MethodFilter::PUT), path, handler, summary)
}

/// The same of `PATCH`.
pub(super) fn patch<H, T>(
    access: Access,
    path: impl Into<String>,
    handler: H,
    summary: &'static str,
) -> Route
where
    H: Handler<T, Api>,
    T: 'static,
{
    Route::new(access, (Method::PATCH, MethodFilter::PATCH), path, handler, summary)
}

/// The same of `DELETE`.
pub(super) fn delete<H, T>(
    access: Access,
    path: impl Into<String>,
    handler: H,
    summary: &'static str,
) -> Route
where
    H: Handler<T, Api>,
    T: 'static,
{
    Route::new(access, (Method::DELETE, MethodFilter::DELETE), path, handler, summary)
}

impl Route {
    fn new<H, T>(
        access: Access,
        (method, filter): (Method, MethodFilter),
        path: impl Into<String>,
        handler: H,
        summary: &'static str,
    ) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        let (takes, answers) = (Takes::Nothing, Answers::Json);
        let (path, handler) = (path.into(), on(filter, handler));
        Self { access, method, path, summary, takes, answers, handler }
    }

    /// Says what a request carries.
    pub(super) fn takes(mut self, takes: Takes) -> Self {
        self.takes = takes;
        self
    }

    /// The same for an object of these fields.
    pub(super) fn reads(self, table: &'static Table) -> Self {
        self.takes(Takes::Fields(table))
    }

    /// Hands the handler something that its path alone says.
    pub(super) fn knows<T: Clone + Send + Sync + 'static>(mut self, known: T) -> Self {
        self.handler = self.handler.layer(Extension(known));
        self
    }

    /// Says what a request is answered with.
    pub(super) fn answers(mut self, answers: Answers) -> Self {
        self.answers = answers;
        self
    }
}

/// The router of these routes.
pub(super) fn router(routes: Vec<Route>) -> Router<Api> {
    let mut paths: Vec<Path> = Vec::new();
    for route in routes {
        let handler = match route.takes {
            Takes::File | Takes::Lines(_) => route.handler.layer(DefaultBodyLimit::disable()),
            _ => route.handler,
        };
        let needs = Needs { access: route.access, lists: route.answers == Answers::Page };
        let guarded: MethodRouter<Api> = handler.layer(middleware::from_fn(auth::guard));
        let handler: MethodRouter<Api> = guarded.layer(Extension(needs));
        let has_head = route.method == Method::HEAD;
        match paths.iter_mut().find(|path| path.path == route.path) {
            Some(path) => {
                path.methods = std::mem::take(&mut path.methods).merge(handler);
                path.has_head |= has_head;
            }
            None => {
                let Route { path, method: first, .. } = route;
                paths.push(Path { path, first, has_head, methods: handler });
            }
        }
    }
    paths.into_iter().fold(Router::new(), |router, path| {
        let refuse = move || std::future::ready(wrong_method(&path.first));
        let mut methods = path.methods.fallback(refuse.clone());
        if !path.has_head {
            // As in the reference: axum would answer with the headers of a GET.
            methods = methods.on(MethodFilter::HEAD, refuse);
        }
        router.route(&path.path, methods)
    })
}

/// The methods of one path.
struct Path {
    path: String,
    first: Method,
    has_head: bool,
    methods: MethodRouter<Api>,
}

/// As the reference does, `Allow` names one method.
fn wrong_method(allowed: &Method) -> Response {
    let refused = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    let mut response = refused.into_response();
    if let Ok(allowed) = HeaderValue::from_str(allowed.as_str()) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}
