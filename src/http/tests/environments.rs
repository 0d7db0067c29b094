//! Environments, environment specs and compute specs, kept over either database.

use serde_json::{Value, json};

use super::harness::Harness;
use super::{AGENTS, SECRETS, agent};
use crate::catalog::Settings;

const KINDS: [(&str, &str, &str); 3] = [
    ("environments", "Agent environment", "agent-environment-"),
    ("environment-specs", "Agent environment spec", "agent-environment-spec-"),
    ("compute-specs", "Agent compute spec", "agent-compute-spec-"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_collections_with_the_same_verbs() {
    for api in Harness::start_both().await {
        for (collection, noun, id) in KINDS {
            verbs(&api, &format!("{AGENTS}/{collection}"), noun, id).await;
        }
    }
}

async fn verbs(api: &Harness, at: &str, noun: &str, id: &str) {
    let empty = api.get(at).await;
    assert_eq!(
        empty.body,
        json!({"data": [], "sort": "-created_at", "filter": {}, "pagination": {
            "page": 1, "page_size": 20, "current_page_size": 0, "total_pages": 0,
            "total_results": 0,
        }})
    );
    let made = api.post(at, json!({"name": "one"})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    for (key, expected) in [
        ("name", json!("one")),
        ("workspace", json!("default")),
        ("description", json!("")),
        ("project", Value::Null),
        ("parent", Value::Null),
        ("entity_id", made.body["id"].clone()),
        ("updated_at", made.body["created_at"].clone()),
        ("created_by", json!("service:platform")),
        ("updated_by", json!("service:platform")),
        ("db_version", json!(1)),
    ] {
        assert_eq!(made.body[key], expected, "{key} of {}", made.body);
    }
    assert!(made.body["id"].as_str().is_some_and(|made| made.starts_with(id)), "{}", made.body);
    let taken = format!("{noun} 'one' already exists in workspace 'default'.");
    api.post(at, json!({"name": "one"})).await.answers(409, json!({"detail": taken}));
    let nowhere = at.replace("default", "nowhere");
    let refused = api.post(&nowhere, json!({"name": "one"})).await;
    let detail = "Workspace 'nowhere' does not exist. Please create the workspace first.";
    refused.answers(422, json!({"detail": detail}));
    api.get(&nowhere).await.status_is(404);

    api.post(at, json!({"name": "two"})).await.status_is(201);
    let names = async |query: &str| -> Vec<String> {
        let listed = api.get(&format!("{at}{query}")).await;
        assert_eq!(listed.status, 200, "{}", listed.body);
        let items = listed.body["data"].as_array().expect("a list").iter();
        items.map(|it| it["name"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(names("").await, ["two", "one"]);
    assert_eq!(names("?sort=name").await, ["one", "two"]);
    assert_eq!(names("?sort=bogus&page_size=1&page=2").await, ["one"]);
    api.get(&format!("{at}?page_size=101")).await.status_is(422);
    assert_eq!(names("?filter[name]=one").await, ["one"]);
    api.get(&format!("{at}?filter[bogus]=one")).await.status_is(400);

    let one = format!("{at}/one");
    api.get(&one).await.answers(200, made.body);
    for method in ["PUT", "PATCH"] {
        let refused = api.send(method, &one, Some(json!({}))).await;
        refused.answers(405, json!({"detail": "Method Not Allowed"}));
    }
    api.send("DELETE", &one, None).await.status_is(204);
    let gone = json!({"detail": format!("{noun} 'one' not found in workspace 'default'.")});
    api.get(&one).await.answers(404, gone.clone());
    api.send("DELETE", &one, None).await.answers(404, gone);

    for (body, place) in [
        (json!({}), json!(["body", "name"])),
        (json!({"name": "Bad Name"}), json!(["body", "name"])),
        (json!([]), json!(["body"])),
        (json!({"name": "three", "description": 5}), json!(["body", "description"])),
    ] {
        let refused = api.post(at, body).await;
        assert_eq!((refused.status, &refused.body["detail"][0]["loc"]), (422, &place));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_show_their_defaults_and_keep_only_what_is_known() {
    let api = Harness::start().await;
    let check = async |collection: &str, mut sent: Value, expected: Value| {
        sent["name"] = json!("xx");
        let made = api.post(&format!("{AGENTS}/{collection}"), sent).await;
        assert_eq!(made.status, 201, "{}", made.body);
        for (key, expected) in expected.as_object().expect("an object") {
            assert_eq!(made.body[key], *expected, "{key}");
        }
        assert!(made.body.get("bogus").is_none(), "{}", made.body);
        api.send("DELETE", &format!("{AGENTS}/{collection}/xx"), None).await.status_is(204);
    };
    let spec = json!({
        "description": "", "env": {}, "secrets": {}, "model_provider_override": null,
        "provider": "local", "workspace_path": null, "artifacts_path": null,
        "control_location": null, "ownership": null, "connection": {}, "metadata": {},
        "settings": {}, "mcp": {},
    });
    check("environment-specs", json!({"bogus": 1}), spec.clone()).await;
    let sent = json!({
        "provider": "docker", "secrets": {"T": "a b"},
        "model_provider_override": {"base_url": "http://m", "bogus": 1},
        "mcp": {"s": {"url": "http://s", "bogus": 1}},
    });
    let expected = json!({
        "provider": "docker", "secrets": {"T": "a b"},
        "model_provider_override": {"base_url": "http://m", "api_key": null, "provider": null},
        "mcp": {"s": {"url": "http://s", "env": {}, "secrets": {}}},
    });
    check("environment-specs", sent, expected).await;
    let none = json!({"limits": {}, "requests": {}});
    check("compute-specs", json!({}), json!({"resources": none})).await;
    let odd = json!({"resources": {"limits": {"ephemeral-storage": "1Gi"}}});
    let shown = json!({"resources": {"limits": {"ephemeral-storage": "1Gi"}, "requests": {}}});
    check("compute-specs", odd, shown.clone()).await;
    let nothing = json!({"environment_spec": null, "compute_spec": null});
    check("environments", json!({"bogus": 1}), nothing).await;
    let dangling = json!({"environment_spec": "a b/c/d", "compute_spec": "default/nope"});
    check("environments", dangling.clone(), dangling).await;
    let inline = json!({
        "environment_spec": {"name": "q", "bogus": 1},
        "compute_spec": {"name": "q", "resources": shown["resources"]},
    });
    let compute = json!({"description": "", "resources": shown["resources"]});
    let expected = json!({"environment_spec": spec, "compute_spec": compute});
    check("environments", inline, expected).await;

    for (collection, sent, place) in [
        ("compute-specs", json!({"resources": {"limits": {"cpu": 2}}}), "resources.limits.cpu"),
        ("environment-specs", json!({"env": {"A": 1}}), "env.A"),
        (
            "environment-specs",
            json!({"model_provider_override": {}}),
            "model_provider_override.base_url",
        ),
        ("environment-specs", json!({"mcp": {"s": {}}}), "mcp.s.url"),
        ("environment-specs", json!({"workspace_path": "/etc"}), "workspace_path"),
        ("environments", json!({"compute_spec": 5}), "compute_spec"),
        ("environments", json!({"environment_spec": {"env": 5}}), "environment_spec.env"),
    ] {
        let mut sent = sent;
        sent["name"] = json!("xx");
        let refused = api.post(&format!("{AGENTS}/{collection}"), sent).await;
        assert_eq!(refused.status, 422, "{place}: {}", refused.body);
        let loc = refused.body["detail"][0]["loc"].as_array().expect("a list").iter().skip(1);
        let found: Vec<_> = loc.map(|step| step.as_str().expect("text")).collect();
        assert_eq!(found.join("."), place);
    }
}

/// As where a worker is no root and its kernel has no Landlock, and nobody permitted it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_with_secrets_is_refused_where_agents_cannot_be_kept_apart() {
    let refused = "secrets are refused, because agents cannot be kept apart here";
    let settings = Settings { secrets_refused: Some(refused.to_owned()), ..Settings::default() };
    let api = Harness::with(settings).await;
    api.post(SECRETS, json!({"name": "key", "value": "value"})).await.status_is(201);
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let job = |secrets: Value| {
        let environment = json!({"environment_spec": {"secrets": secrets}});
        json!({"spec": {"agent": "calc", "input": "x", "environment": environment}})
    };
    let path = format!("{AGENTS}/jobs/execute");
    let answer = api.post(&path, job(json!({"KEY": "key"}))).await;
    let detail = format!("Failed to compile nemo-agents-plugin-execute job spec: {refused}");
    answer.answers(422, json!({"detail": detail}));
    api.post(&path, job(json!({}))).await.status_is(201);
}
