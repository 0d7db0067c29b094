//! An installation where callers need tokens: two workspaces, `team` and `other`, with one of
//! everything in each, and callers of every kind.

mod lists;
mod matrix;
mod references;
mod tokens;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::agent;
use super::harness::{Answer, Harness, Setup};
use crate::auth::{EVERYWHERE, Role, Token};
use crate::records::NewToken;

const AGENTS: &str = "/apis/agents/v2/workspaces";
const FILES: &str = "/apis/files/v2/workspaces";
const SECRETS: &str = "/apis/secrets/v2/workspaces";

/// One over each database.
async fn both() -> [Harness; 2] {
    Harness::both(|| Setup { authenticated: true, ..Setup::default() }).await
}

/// Makes a token.
async fn token(api: &Harness, name: &str, roles: &[(&str, Role)]) -> String {
    until(api, name, roles, None).await
}

/// Makes one that ends.
async fn until(
    api: &Harness,
    name: &str,
    roles: &[(&str, Role)],
    expires_at: Option<Timestamp>,
) -> String {
    let token = Token::generate();
    let new = NewToken {
        name: name.to_owned(),
        public_part: token.public_part().to_owned(),
        digest: token.digest().hex(),
        roles: roles.iter().map(|(workspace, role)| ((*workspace).to_owned(), *role)).collect(),
        expires_at,
    };
    api.records.tokens().insert(new).await.expect("it is kept");
    token.reveal().to_owned()
}

/// Makes the workspaces and what is in them; the token of who made them.
async fn furnish(api: &Harness) -> String {
    let root = token(api, "root", &[(EVERYWHERE, Role::Admin)]).await;
    let post = async |path: String, body: Value| {
        let made = api.as_token(&root, "POST", &path, Some(body)).await;
        assert!(made.status < 300, "POST {path}: {}", made.body);
    };
    for at in ["team", "other"] {
        let name = format!("thing-of-{at}");
        post("/apis/entities/v2/workspaces".to_owned(), json!({"name": at})).await;
        post(format!("{AGENTS}/{at}/agents"), agent(&name)).await;
        post(format!("{AGENTS}/{at}/compute-specs"), json!({"name": name})).await;
        let spec = json!({"name": name, "env": {"MOOD": "good"}});
        post(format!("{AGENTS}/{at}/environment-specs"), spec).await;
        let environment = json!({"name": name, "environment_spec": name, "compute_spec": name});
        post(format!("{AGENTS}/{at}/environments"), environment).await;
        post(format!("{SECRETS}/{at}/secrets"), json!({"name": name, "value": "hunter2"})).await;
        post(format!("{FILES}/{at}/filesets"), json!({"name": name})).await;
        let file = format!("{FILES}/{at}/filesets/{name}/-/src/a.txt");
        api.as_token(&root, "PUT", &file, Some(json!("text"))).await.status_is(200);
        // Its only line is refused, and it is there all the same.
        post(format!("{AGENTS}/{at}/jobs/execute:batch?group={name}"), json!({})).await;
        let body = json!({"name": name, "spec": {"agent": name, "input": ""}});
        post(format!("{AGENTS}/{at}/jobs/execute"), body).await;
    }
    root
}

/// Whether a caller was refused for what it may do, and not for what it asked.
fn is_refused_for_its_role(answer: &Answer) -> bool {
    let detail = answer.body["detail"].as_str().unwrap_or_default();
    answer.status == 401 || answer.status == 403 && detail.starts_with("Role '")
}
