//! Section C: post-run actions, which the reference called extensions.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use workers::actions::{Registry, Webhooks};

use crate::catalog::Settings;
use crate::http::tests::harness::{Answer, Harness};
use crate::http::tests::{AGENTS, agent};

const TRANSFORM: &str = "Failed to transform nemo-agents-plugin-execute job input to output: ";

fn built_in() -> Registry {
    Registry::built_in(Webhooks::new(false))
}

/// Writes a manifest into a directory of its own.
fn install(directory: &Path, name: &str, manifest: Value) {
    let own = directory.join(name);
    fs::create_dir(&own).expect("a directory");
    fs::write(own.join("action.json"), manifest.to_string()).expect("a manifest");
    fs::write(own.join("run.sh"), "cat").expect("a program");
}

fn insights() -> Value {
    json!({
        "kind": "insights.analysis",
        "title": "Insights",
        "description": "Analyses the run.",
        "command": ["/bin/sh", "run.sh"],
        "config_schema": {
            "type": "object",
            "properties": {"agent": {"type": "string"}, "workspace": {"type": "string"}},
            "additionalProperties": false,
        },
    })
}

/// An API where `insights.analysis` and `any.config`, which has no schema, are installed.
async fn api() -> Harness {
    let directory = TempDir::new().expect("a temporary directory");
    install(directory.path(), "insights", insights());
    let any = json!({"kind": "any.config", "title": "", "description": "", "command": ["true"]});
    install(directory.path(), "any", any);
    let actions = built_in().install(directory.path()).expect("they install");
    Harness::with(Settings { actions: Arc::new(actions), ..Settings::default() }).await
}

async fn execute(api: &Harness, more: Value) -> Answer {
    let sent = agent("calc")["config"].take();
    let inline = json!({"config_format": "nemo-agents-spec-v1", "config": sent});
    let mut spec = json!({"agent": inline, "input": "x"});
    for (key, value) in more.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    api.post(&format!("{AGENTS}/jobs/execute"), json!({"spec": spec})).await
}

async fn accepts(api: &Harness, kind: &str, config: Value) {
    for field in ["post_run_action", "extension"] {
        let made = execute(api, json!({field: {"kind": kind, "config": config}})).await;
        assert_eq!(made.status, 201, "{kind} {config}: {}", made.body);
    }
}

/// Refused with these words behind those of the field.
async fn refuses(api: &Harness, kind: &str, config: Value, words: &str) {
    for (field, named) in
        [("extension", "agents.execute extension"), ("post_run_action", "post-run action")]
    {
        let refused = execute(api, json!({field: {"kind": kind, "config": config}})).await;
        let detail = refused.body["detail"].as_str().unwrap_or_default().to_owned();
        let expected = words.replace("NAMED", named);
        assert!(detail.starts_with(&format!("{TRANSFORM}{expected}")), "{detail}\n{expected}");
        assert_eq!(refused.status, 422);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_noop_kind_needs_no_entry_point() {
    let api = Harness::start().await;
    for kind in ["noop", "agents.noop"] {
        let made = execute(&api, json!({"post_run_action": {"kind": kind}})).await;
        assert_eq!(made.status, 201, "{}", made.body);
    }
    let listed = api.get("/apis/agents/v2/post-run-actions").await;
    let kinds = listed.body["data"].as_array().expect("a list").iter();
    let kinds: Vec<_> = kinds.map(|action| action["kind"].as_str().expect("a kind")).collect();
    let expected = ["agents.export-files", "agents.noop", "agents.publish", "agents.webhook"];
    assert_eq!(kinds, expected);
}

#[test]
fn a_single_registration_resolves() {
    let directory = TempDir::new().expect("a temporary directory");
    install(directory.path(), "one", insights());
    let registry = built_in().install(directory.path()).expect("it installs");
    assert_eq!(registry.get("insights.analysis").expect("it is there").title, "Insights");
}

#[test]
fn the_same_extension_declared_twice_resolves() {
    let directory = TempDir::new().expect("a temporary directory");
    install(directory.path(), "one", insights());
    let link = directory.path().join("two");
    std::os::unix::fs::symlink(directory.path().join("one"), link).expect("a link");
    let registry = built_in().install(directory.path()).expect("it installs");
    assert!(registry.get("insights.analysis").is_ok());
}

#[test]
fn two_different_extensions_claiming_one_kind_is_an_error() {
    let directory = TempDir::new().expect("a temporary directory");
    install(directory.path(), "one", insights());
    install(directory.path(), "two", insights());
    let error = built_in().install(directory.path()).expect_err("they conflict").to_string();
    let expected = "Conflicting agents.execute extensions for kind 'insights.analysis': ";
    assert!(error.starts_with(expected), "{error}");
    for file in ["one/action.json", "two/action.json"] {
        assert!(error.contains(file), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unregistered_kind_is_an_error() {
    let api = api().await;
    refuses(&api, "nope", json!({}), "Unknown NAMED 'nope'.").await;
    let refused = execute(&api, json!({"post_run_action": {"kind": "nope"}})).await;
    assert!(refused.body.to_string().contains("insights.analysis"), "{}", refused.body);

    let mut declaring = agent("calc");
    declaring["post_run_actions"] = json!(["insights.analysis", "nope"]);
    let refused = api.post(&format!("{AGENTS}/agents"), declaring).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body.to_string().contains("Unknown post-run action 'nope'."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_installed_insights_extension_resolves() {
    let api = api().await;
    let listed = api.get("/apis/agents/v2/post-run-actions").await;
    let actions = listed.body["data"].as_array().expect("a list");
    let found = actions.iter().find(|action| action["kind"] == "insights.analysis");
    let insights = insights();
    assert_eq!(
        found.expect("it is listed"),
        &json!({
            "kind": "insights.analysis",
            "title": insights["title"],
            "description": insights["description"],
            "config_schema": insights["config_schema"],
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_valid_extension_config_is_accepted() {
    let config = json!({"agent": "calc", "workspace": "default"});
    accepts(&api().await, "insights.analysis", config).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_extension_config_key_is_rejected() {
    let words =
        "Invalid config for NAMED 'insights.analysis': agnet: Extra inputs are not permitted";
    refuses(&api().await, "insights.analysis", json!({"agnet": "calc"}), words).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrongly_typed_extension_config_value_is_rejected() {
    let api = api().await;
    let wrong = json!({"agent": 1, "workspace": 2});
    refuses(&api, "insights.analysis", wrong.clone(), "Invalid config for NAMED").await;
    let refused =
        execute(&api, json!({"extension": {"kind": "insights.analysis", "config": wrong}}));
    let refused = refused.await.body.to_string();
    // Everything that is wrong is said at once.
    assert!(refused.contains("agent: 1 is not") && refused.contains("workspace: 2 is not"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_noop_extension_accepts_an_empty_config() {
    accepts(&Harness::start().await, "noop", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_noop_extension_rejects_a_non_empty_config() {
    let words = "Invalid config for NAMED 'noop': x: Extra inputs are not permitted";
    refuses(&Harness::start().await, "noop", json!({"x": 1}), words).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_declaring_no_config_model_is_left_unvalidated() {
    accepts(&api().await, "any.config", json!({"x": [1], "y": null})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validating_an_unregistered_kind_is_still_an_error() {
    refuses(&api().await, "nope", json!({"x": 1}), "Unknown NAMED 'nope'.").await;
}

/// The registration that the reference's documentation shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_declares_decides_what_its_jobs_may_name() {
    let api = api().await;
    let register = async |name: &str, actions: Value| {
        let mut sent = agent(name);
        sent["config"]["helix_registration"] = json!({"post_run_actions": actions});
        let made = api.post(&format!("{AGENTS}/agents"), sent).await;
        assert_eq!((made.status, &made.body["post_run_actions"]), (201, &actions), "{}", made.body);
    };
    register("one", json!(["insights.analysis"])).await;
    register("several", json!(["insights.analysis", "noop"])).await;
    let run = async |agent: &str, action: Value| {
        execute(&api, json!({"agent": agent, "post_run_action": action})).await
    };
    let made = run("one", Value::Null).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let id = made.body["id"].as_str().expect("an id").parse().expect("a job id");
    let job = api.records.jobs().by_id(id).await.expect("records answer").expect("it is there");
    let action = job.snapshot.expect("it has a snapshot").spec.post_run_action;
    assert_eq!((action.kind.as_str(), action.config.len()), ("insights.analysis", 0));

    let refused = run("several", Value::Null).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.to_string().contains("post_run_action must name one"));
    assert_eq!(run("several", json!({"kind": "agents.noop"})).await.status, 201);
    let refused = run("one", json!({"kind": "any.config"})).await;
    assert!(refused.body.to_string().contains("not one of those"), "{}", refused.body);
    assert_eq!(refused.status, 422);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configurations_of_the_built_in_actions() {
    let api = Harness::start().await;
    let (webhook, publish, export) = ("agents.webhook", "agents.publish", "agents.export-files");
    accepts(&api, webhook, json!({"url": "https://example.com/hook", "headers": {"x-a": "b"}}))
        .await;
    accepts(&api, publish, json!({"subject": "team.done"})).await;
    let own = json!({"fileset": "out", "paths": ["a/*.md", "b"], "workspace": "default"});
    accepts(&api, export, own).await;

    let wrong = async |kind: &str, config: Value, words: &str| {
        let words = format!("Invalid config for NAMED '{kind}': {words}");
        refuses(&api, kind, config, &words).await;
    };
    wrong(webhook, json!({}), "url: Field required").await;
    wrong(webhook, json!({"url": "no url"}), "url: \"no url\" is not a \"uri\"").await;
    wrong(webhook, json!({"url": "ftp://a/"}), "url: scheme 'ftp' is neither http nor https").await;
    wrong(webhook, json!({"url": "https://a:b@c/"}), "url: it must not hold a user or password")
        .await;
    for private in ["127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "2130706433"] {
        wrong(webhook, json!({"url": format!("http://{private}:1/")}), "url: '").await;
    }
    let named = json!({"url": "https://a/", "headers": {"Webhook-Id": "x"}});
    wrong(webhook, named, "headers.Webhook-Id: the platform sets this header").await;
    for ours in ["jobs.submitted.default.x", "status.a", "logs.b", "$JS.API.INFO", "_INBOX.x"] {
        let words = format!("subject: '{ours}' belongs to the platform");
        wrong(publish, json!({"subject": ours}), &words).await;
    }
    wrong(publish, json!({"subject": "a.*"}), "subject: 'a.*' must not contain wildcards").await;
    wrong(publish, json!({"subject": "a..b"}), "subject: 'a..b' must not have an empty token")
        .await;
    wrong(export, json!({"fileset": "out", "paths": []}), "paths: ").await;
    let outside = json!({"fileset": "out", "paths": ["../x"]});
    wrong(export, outside, "paths: '../x' must be relative").await;
    let foreign = json!({"fileset": "out", "paths": ["x"], "workspace": "other"});
    wrong(export, foreign, "workspace: 'other' is not the job's workspace 'default'").await;

    let config = json!({"url": "https://example.com/hook", "secret": "nope"});
    let action = json!({"post_run_action": {"kind": webhook, "config": config}});
    let refused = execute(&api, action).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
}
