//! The OpenAPI document, made from the table of routes and from the tables that bodies are read
//! by. Nothing is described here that is not done elsewhere; answers are described by their kind.

mod schema;

use std::sync::LazyLock;

use axum::Json;
use serde_json::{Map, Value, json};

use super::auth::Access;
use super::route::{Answers, Route, Takes};
use super::routes;
use crate::auth::Role;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| describe(&routes::all()));

/// The document.
pub(super) async fn document() -> Json<&'static Value> {
    Json(&DOCUMENT)
}

fn describe(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let at = paths.entry(route.path.replace("{*", "{")).or_insert_with(|| json!({}));
        at[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "errand",
            "description": "Runs an AI agent once, to completion, as a durable job.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": {
            "schemas": {"Refusal": refusal(), "Page": page()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Refusal": {
                    "description": "Why the request was refused, or could not be served",
                    "content": json_content(json!({"$ref": "#/components/schemas/Refusal"})),
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut said = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [tag(&route.path)],
        "parameters": parameters(route),
        "responses": responses(route.answers),
        "security": security(route.access),
    });
    let body = match route.takes {
        Takes::Nothing => return said,
        Takes::Fields(table) => json_content(schema::of_table(table)),
        Takes::Lines(table) => lines(schema::of_table(table)),
        Takes::Object => json_content(json!({"type": "object"})),
        Takes::File => json!({
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"file": {"type": "string", "format": "binary"}},
                    "required": ["file"],
                },
            },
        }),
    };
    said["requestBody"] = json!({"required": true, "content": body});
    said
}

/// The token that is needed, and as the scheme's one role what it must be good for. Where
/// authentication is off, none is asked for.
fn security(access: Access) -> Value {
    let role = match access {
        Access::Open => return json!([]),
        Access::Token => None,
        Access::Viewer | Access::Submitter | Access::Admin => access.role().map(Role::as_str),
        Access::Installation => Some("admin of all workspaces"),
    };
    json!([{"token": role.into_iter().collect::<Vec<_>>()}])
}

/// `get_apis_jobs_v2_workspaces_workspace_jobs`.
fn operation_id(route: &Route) -> String {
    let words = route.path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    format!("{}_{}", route.method.as_str().to_ascii_lowercase(), words.join("_"))
        .trim_end_matches('_')
        .to_owned()
}

/// The service: `/apis/<service>/…`.
fn tag(path: &str) -> &str {
    let service = path.strip_prefix("/apis/").and_then(|rest| rest.split('/').next());
    service.unwrap_or("platform")
}

fn parameters(route: &Route) -> Vec<Value> {
    let parts = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut found: Vec<_> = parts
        .map(|name| {
            let name = name.trim_start_matches('*');
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
        })
        .collect();
    if route.answers == Answers::Page {
        let number = json!({"type": "integer", "minimum": 1});
        let text = json!({"type": "string"});
        let pairs = [("page", &number), ("page_size", &number), ("sort", &text), ("filter", &text)];
        found.extend(
            pairs.map(|(name, schema)| json!({"name": name, "in": "query", "schema": schema})),
        );
    }
    found
}

fn responses(answers: Answers) -> Value {
    let object = || json_content(json!({"type": "object"}));
    let page = || json_content(json!({"$ref": "#/components/schemas/Page"}));
    let binary = json!({"type": "string", "format": "binary"});
    let bytes = || json!({"application/octet-stream": {"schema": binary}});
    let success = match answers {
        Answers::Json => {
            json!({"200": {"description": "Done", "content": json_content(json!({}))}})
        }
        Answers::Made => json!({"201": {"description": "Made", "content": object()}}),
        Answers::Page => json!({"200": {"description": "A page", "content": page()}}),
        Answers::Nothing => json!({"204": {"description": "Done"}}),
        Answers::Headers => json!({"200": {"description": "What a GET would say"}}),
        Answers::Bytes => json!({
            "200": {"description": "All bytes", "content": bytes()},
            "206": {"description": "The range that was asked for", "content": bytes()},
        }),
        Answers::Lines => json!({
            "200": {"description": "An outcome a line", "content": lines(json!({"type": "object"}))},
        }),
        Answers::Events => json!({
            "200": {
                "description": "Server-sent events until the job has ended",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            "204": {"description": "There will be no more events"},
        }),
        Answers::Text => json!({
            "200": {"description": "Done", "content": {"text/plain": {"schema": {"type": "string"}}}},
        }),
        Answers::Refusal => json!({}),
    };
    let mut all = success;
    for class in ["4XX", "5XX"] {
        all[class] = json!({"$ref": "#/components/responses/Refusal"});
    }
    all
}

fn json_content(schema: Value) -> Value {
    json!({"application/json": {"schema": schema}})
}

/// A document a line; the schema is that of one.
fn lines(schema: Value) -> Value {
    json!({"application/x-ndjson": {"schema": schema}})
}

/// A sentence, or a list of all that is wrong.
fn refusal() -> Value {
    let entry = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "loc": {"type": "array", "items": {"type": ["string", "integer"]}},
            "msg": {"type": "string"},
            "input": {},
            "ctx": {"type": "object"},
        },
        "required": ["type", "loc", "msg", "input"],
    });
    json!({
        "type": "object",
        "properties": {
            "detail": {"anyOf": [
                {"type": "string"},
                {"type": "array", "items": entry},
                {"type": "object"},
            ]},
        },
        "required": ["detail"],
    })
}

fn page() -> Value {
    let numbers = ["page", "page_size", "current_page_size", "total_pages", "total_results"];
    let properties: Map<_, _> =
        numbers.iter().map(|name| ((*name).to_owned(), json!({"type": "integer"}))).collect();
    json!({
        "type": "object",
        "properties": {
            "data": {"type": "array", "items": {"type": "object"}},
            "pagination": {"type": "object", "properties": properties, "required": numbers},
            "sort": {"type": "string"},
            "filter": {"type": ["object", "null"]},
        },
        "required": ["data", "pagination"],
    })
}
