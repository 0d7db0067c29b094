//! E: the collection of agents, and what an agent's configuration may be.

use super::*;

fn path() -> String {
    format!("{AGENTS}/agents")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn created_agents_have_an_id_a_time_and_the_workspace_of_the_path() {
    let api = Harness::start().await;
    workspace(&api, "research").await;
    let there = AGENTS.replace("default", "research");
    let mut sent = agent("calc");
    sent["workspace"] = json!("elsewhere");
    let made = api.post(&format!("{there}/agents"), sent).await;
    assert_eq!((made.status, &made.body["workspace"]), (201, &json!("research")));
    assert!(made.body["id"].as_str().is_some_and(|id| id.starts_with("agent-")));
    assert!(made.body["created_at"].as_str().is_some_and(|at| at.ends_with('Z')));
    api.get(&format!("{there}/agents/calc")).await.answers(200, made.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec_configs_are_validated_and_normalised() {
    let api = Harness::start().await;
    let made = api.post(&path(), agent("calc")).await;
    assert_eq!(made.body["config"]["models"], json!({}));
    assert_eq!(made.body["config"]["environment"]["provider"], "local");
    for (pointer, value, text) in [
        ("/harnesses", json!({}), "Configure workflow or default_harness with harnesses"),
        ("/default_harness", json!("zz"), "default_harness must reference one of harnesses: echo"),
        ("/bogus", json!(1), "bogus\n  Extra inputs are not permitted"),
        ("/harnesses/echo/bogus", json!(1), "harnesses.echo.bogus\n  Extra inputs"),
        ("/config_format", json!("v2"), "Input should be 'nemo-agents-spec-v1'"),
        ("/instructions", json!({"system": {"content": " "}}), "instructions.system.content"),
        ("/runtime", json!({"timeout_seconds": 0}), "greater than 0"),
        ("/runtime", json!({"max_turns": 0}), "greater than or equal to 1"),
    ] {
        let mut wrong = agent("wrong");
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        wrong["config"].pointer_mut(parent).expect("the parent exists")[key] = value;
        let refused = api.post(&path(), wrong).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        let detail = refused.body["detail"].as_str().expect("a sentence");
        assert!(detail.starts_with("Invalid agent config: "), "{detail}");
        assert!(detail.contains(text), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sampling_parameters_are_strict() {
    let api = Harness::start().await;
    let create = async |name: &str, key: &str, value: Value| {
        let mut sent = agent(name);
        let mut model = json!({"provider": "openai", "model": "m"});
        model[key] = value;
        sent["config"]["models"] = json!({"default": model});
        api.post(&path(), sent).await
    };
    for value in [json!(0), json!(1), json!(0.5)] {
        create("good", "top_p", value).await.status_is(201);
        api.send("DELETE", &format!("{}/good", path()), None).await.status_is(204);
    }
    let whole = create("whole", "max_tokens", json!(1024.0)).await;
    assert_eq!(whole.body["config"]["models"]["default"]["max_tokens"], 1024);
    for (key, value) in [
        ("top_p", json!(-0.1)),
        ("top_p", json!(1.1)),
        ("top_p", json!("0.5")),
        ("max_tokens", json!(1.5)),
        ("max_tokens", json!(0)),
        ("max_tokens", json!(-1)),
        ("max_tokens", json!("9")),
        ("max_tokens", json!(1e20)),
    ] {
        create("bad", key, value).await.status_is(400);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_sections_are_kept_and_an_empty_tool_list_is_not_null() {
    let api = Harness::start().await;
    let mut sent = agent("calc");
    let server = json!({"transport": "t", "url": "u", "allowed_tools": []});
    sent["config"]["mcp"] = json!({"servers": {"none": server}});
    sent["config"]["skills"] = json!({"paths": ["skills/foo"]});
    let otel = json!({"endpoints": [{"url": "http://o"}]});
    sent["config"]["telemetry"] = json!({"opentelemetry": otel});
    let made = api.post(&path(), sent).await.body;
    assert_eq!(made["config"]["mcp"]["servers"]["none"]["allowed_tools"], json!([]));
    assert_eq!(made["config"]["skills"], json!({"paths": ["skills/foo"]}));
    assert_eq!(made["config"]["telemetry"]["opentelemetry"], otel);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsupported_formats_duplicates_and_missing_configs_are_refused() {
    let api = furnished().await;
    let unsupported = json!({"name": "xx", "config": {}, "config_format": "x-v9"});
    let detail = "Unsupported config_format 'x-v9'.";
    api.post(&path(), unsupported).await.answers(400, json!({"detail": detail}));
    let detail = "Agent 'calc' already exists in workspace 'default'.";
    api.post(&path(), agent("calc")).await.answers(409, json!({"detail": detail}));
    let missing = api.post(&path(), json!({"name": "xx"})).await;
    assert_eq!(missing.status, 422);
    assert_eq!(missing.body["detail"][0]["loc"], json!(["body", "config"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_have_exactly_four_keys_and_forward_page_and_size() {
    let api = furnished().await;
    register(&api, "default", agent("other")).await;
    let listed = api.get(&format!("{}?page=2&page_size=1&sort=name", path())).await.body;
    let keys: Vec<_> = listed.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["data", "pagination", "sort", "filter"]);
    let page = &listed["pagination"];
    assert_eq!((&page["page"], &page["page_size"]), (&json!(2), &json!(1)));
    assert_eq!((&page["total_results"], &listed["data"][0]["name"]), (&json!(2), &json!("other")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_found_and_deleted_or_404() {
    let api = furnished().await;
    let calc = format!("{}/calc", path());
    api.get(&calc).await.status_is(200);
    api.send("DELETE", &calc, None).await.status_is(204);
    let gone = json!({"detail": "Agent 'calc' not found in workspace 'default'."});
    api.get(&calc).await.answers(404, gone.clone());
    api.send("DELETE", &calc, None).await.answers(404, gone);
}

/// The reference answers 500; ours tells clients to come back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_is_not_the_callers_fault() {
    let api = furnished().await;
    api.records.close().await;
    let calc = format!("{}/calc", path());
    for answer in [
        api.post(&path(), agent("other")).await,
        api.get(&calc).await,
        api.send("DELETE", &calc, None).await,
        api.get(&path()).await,
    ] {
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(answer.headers.contains_key("retry-after"));
    }
}
