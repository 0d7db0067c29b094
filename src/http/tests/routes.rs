//! The surface as a whole: what holds whatever the route.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::harness::{Harness, Setup};
use super::{AGENTS, FILESETS, JOBS, SECRETS};
use crate::http::routes;

const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// A path with something in each of its places.
fn filled(path: &str) -> String {
    let part = |part: &str| match part.starts_with('{') {
        true => "nothing".to_owned(),
        false => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_has_every_route_and_no_other() {
    let api = Harness::start().await;
    let document = api.get("/openapi.json").await.body;
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("an object");
    let mut documented = BTreeSet::new();
    for (path, operations) in paths {
        for method in METHODS {
            let asked = api.send(method, &filled(path), None).await;
            let is_there = operations.get(method.to_ascii_lowercase()).is_some();
            assert_eq!(asked.status != 405, is_there, "{method} {path}: {}", asked.body);
            assert_ne!(asked.body, json!({"detail": "Not Found"}), "{method} {path}");
            assert!(asked.status < 500, "{method} {path}: {}", asked.body);
            if is_there {
                documented.insert(format!("{method} {path}"));
            }
        }
    }
    let all = routes::all().into_iter();
    let all: BTreeSet<_> =
        all.map(|route| format!("{} {}", route.method, route.path.replace("{*", "{"))).collect();
    assert_eq!(documented, all);
    assert!(all.len() > 60, "{} routes", all.len());

    let ids = paths.values().flat_map(|path| path.as_object().expect("an object").values());
    let ids: Vec<_> = ids.map(|operation| operation["operationId"].to_string()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "ids are unique: {ids:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_are_documented_as_they_are_read() {
    let api = Harness::start().await;
    let document = api.get("/openapi.json").await.body;
    let at = "/apis/agents/v2/workspaces/{workspace}/jobs/execute";
    let body = &document["paths"][at]["post"]["requestBody"]["content"]["application/json"];
    let schema = jsonschema::validator_for(&body["schema"]).expect("it is a schema");
    let valid =
        json!({"spec": {"agent": "calc", "input": "x", "timeout_seconds": 5}, "name": null});
    assert!(schema.is_valid(&valid));
    for wrong in [
        json!({}),
        json!({"spec": {"agent": "calc", "timeout_seconds": 0}}),
        json!({"spec": {"agent": 1}}),
        json!({"spec": {"agent": "calc"}, "surplus": 1}),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
        assert_eq!(api.post(&format!("{AGENTS}/jobs/execute"), wrong).await.status, 422);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_methods_name_one_that_is_right() {
    let api = Harness::start().await;
    for (method, path, allowed) in [
        ("DELETE", JOBS.to_owned(), "POST"),
        ("PUT", format!("{JOBS}/x"), "GET"),
        ("HEAD", format!("{JOBS}/x/results/y"), "GET"),
        ("GET", format!("{JOBS}/x/cancel"), "POST"),
        ("HEAD", format!("{JOBS}/x/cancel"), "POST"),
        ("OPTIONS", JOBS.to_owned(), "POST"),
        ("PATCH", format!("{FILESETS}/src/-/a/b"), "HEAD"),
    ] {
        let refused = api.send(method, &path, None).await;
        assert_eq!(refused.status, 405, "{method} {path}");
        let allow: Vec<_> = refused.headers.get_all("allow").iter().collect();
        assert_eq!(allow, [allowed], "{method} {path}");
        if method != "HEAD" {
            assert_eq!(refused.body, json!({"detail": "Method Not Allowed"}), "{method} {path}");
        }
    }
    for path in ["/nope", "/apis/jobs/v2/nope"] {
        for method in ["GET", "HEAD", "POST"] {
            assert_eq!(api.send(method, path, None).await.status, 404, "{method} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slash_too_many_is_left_out_where_that_helps() {
    let api = Harness::start().await;
    for (path, to) in [
        (format!("{JOBS}/"), Some(JOBS.to_owned())),
        (format!("{JOBS}/run-1/logs/?tail=1"), Some(format!("{JOBS}/run-1/logs?tail=1"))),
        (format!("{JOBS}/a%2Fb/"), Some(format!("{JOBS}/a%2Fb"))),
        ("/nope/".to_owned(), None),
        (format!("{JOBS}//"), None),
    ] {
        let answer = api.get(&path).await;
        let location = answer.headers.get("location");
        let location = location.map(|it| it.to_str().expect("it is text").to_owned());
        assert_eq!(location, to.as_ref().map(|to| format!("{}{to}", api.url)), "{path}");
        assert_eq!(answer.status, if to.is_some() { 307 } else { 404 }, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_may_hold_an_encoded_slash() {
    let api = Harness::start().await;
    for (path, detail) in [
        (format!("{JOBS}/a%2Fb"), "Job 'a/b' not found in workspace 'default'."),
        (format!("{FILESETS}/a%2Fb"), "Fileset 'a/b' not found in workspace 'default'"),
        (format!("{SECRETS}/a%2fb"), "Secret default/a/b not found"),
        (format!("{JOBS}/BAD%20NAME"), "Job 'BAD NAME' not found in workspace 'default'."),
    ] {
        api.get(&path).await.answers(404, json!({"detail": detail}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_any_origin_may_call_where_that_is_configured() {
    let api = Harness::set_up(Setup { any_origin: true, ..Setup::default() }).await;
    let plain = api.get("/health/live").await;
    assert_eq!(plain.headers["vary"], "Origin");
    assert!(plain.headers.get("access-control-allow-origin").is_none());

    let origin = ("origin", "https://studio.example");
    for (path, status) in [("/health/live", 200), ("/nope", 404), ("/health/live/", 307)] {
        let called = api.ask("GET", path, &[origin]).await;
        assert_eq!(called.status, status);
        assert_eq!(called.headers["access-control-allow-origin"], origin.1, "{path}");
        assert_eq!(called.headers["access-control-allow-credentials"], "true", "{path}");
    }
    let asks = [
        origin,
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "x-errand-mode"),
    ];
    let preflight = api.ask("OPTIONS", JOBS, &asks).await;
    assert_eq!((preflight.status, preflight.bytes.as_slice()), (200, &b"OK"[..]));
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("access-control-allow-origin", origin.1),
        ("access-control-allow-methods", "PUT"),
        ("access-control-allow-headers", "x-errand-mode"),
        ("vary", "Origin"),
    ] {
        assert_eq!(preflight.headers[name], value, "{name}");
    }
    assert_eq!(api.ask("OPTIONS", JOBS, &[origin]).await.status, 405, "it is no preflight");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_pages_of_this_machine_may_call_otherwise() {
    let api = Harness::start().await;
    let method = ("access-control-request-method", "POST");
    let allowed = "access-control-allow-origin";
    for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"] {
        let asked = [("origin", origin), method];
        assert_eq!(api.ask("OPTIONS", JOBS, &asked).await.headers[allowed], origin);
        let called = api.ask("POST", JOBS, &[("origin", origin)]).await;
        assert_eq!(
            (called.status, &called.headers[allowed]),
            (422, &asked[0].1.parse().expect("text"))
        );
    }
    for origin in ["https://studio.example", "http://localhost.example", "null", "http://10.0.0.1"]
    {
        let preflight = api.ask("OPTIONS", JOBS, &[("origin", origin), method]).await;
        assert_eq!((preflight.status, preflight.headers.get(allowed)), (405, None), "{origin}");
        let read = api.ask("GET", JOBS, &[("origin", origin)]).await;
        assert_eq!((read.status, read.headers.get(allowed)), (200, None), "no page can see it");
        let refused = api.ask("POST", &format!("{JOBS}/run-1/cancel"), &[("origin", origin)]).await;
        let detail = format!(
            "Pages of {origin} may not call this API; allow_any_origin in its configuration lets them"
        );
        refused.answers(403, json!({"detail": detail}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_without_measure_is_refused() {
    let api = Harness::start().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for body in [
        deep.clone(),
        format!(r#"{{"spec": {deep}}}"#),
        format!(r#"{{"name": "a", "description": {deep}}}"#),
    ] {
        for path in [format!("{AGENTS}/jobs/execute"), JOBS.to_owned(), FILESETS.to_owned()] {
            let refused = api.raw("POST", &path, "application/json", &body).await;
            assert_eq!(refused.status, 422, "{path}: {}", refused.body);
            assert_eq!(refused.body["detail"][0]["type"], "json_invalid", "{path}");
        }
    }
    assert_eq!(api.get("/health/ready").await.status, 200, "it lives on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_platform_says_of_itself() {
    let api = Harness::start().await;
    api.get("/health/live").await.answers(200, json!({"status": "live"}));
    let info = api.get("/cluster-info").await.body;
    assert_eq!(info["platform_version"], env!("CARGO_PKG_VERSION"));
    assert!(info["revision"].is_string(), "{info}");
    let status = api.get("/status").await.body;
    assert_eq!(
        (&status["status"], &status["services"]["not_ready"]),
        (&json!("healthy"), &json!([]))
    );
    let profiles = api.get("/apis/jobs/v2/execution-profiles").await.body;
    let expected = json!([
        {"provider": "subprocess", "profile": "default", "backend": "subprocess", "config": {}},
    ]);
    assert_eq!(profiles, expected);
    api.records.close().await;
    let not_ready = json!({"detail": {"status": "not_ready"}});
    api.get("/health/ready").await.answers(503, not_ready);
    let status = api.get("/status").await.body;
    assert_eq!(status["status"], "unhealthy");
    assert_eq!(status["services"]["not_ready"][0]["name"], "records");
    let refused = api.get(&format!("{JOBS}/x")).await;
    assert_eq!((refused.status, &refused.headers["retry-after"]), (503, &"2".parse().expect("ok")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_values_of_secrets_come_out_where_that_is_configured() {
    let api = Harness::set_up(Setup { secret_access: true, ..Setup::default() }).await;
    api.post(SECRETS, json!({"name": "tavily", "value": "hunter2"})).await.status_is(201);
    let value = json!({"name": "tavily", "workspace": "default", "value": "hunter2"});
    api.get(&format!("{SECRETS}/tavily/access")).await.answers(200, value);
    let missing = json!({"detail": "Secret default/nope not found"});
    api.get(&format!("{SECRETS}/nope/access")).await.answers(404, missing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_goes_when_nothing_is_in_it() {
    for api in Harness::start_both().await {
        const AT: &str = "/apis/entities/v2/workspaces";
        api.post(AT, json!({"name": "team"})).await.status_is(201);
        let secrets = SECRETS.replace("default", "team");
        let filesets = FILESETS.replace("default", "team");
        for name in ["one", "two"] {
            api.post(&secrets, json!({"name": name, "value": "v"})).await.status_is(201);
        }
        api.post(&filesets, json!({"name": "src"})).await.status_is(200);
        let detail =
            "Workspace 'team' is not empty: it holds 1 fileset, 2 secrets. Delete them first.";
        let delete = async || api.send("DELETE", &format!("{AT}/team"), None).await;
        delete().await.answers(409, json!({"detail": detail}));
        api.get(&format!("{AT}/team")).await.status_is(200);
        for at in [format!("{secrets}/one"), format!("{secrets}/two"), format!("{filesets}/src")] {
            let gone = api.send("DELETE", &at, None).await;
            assert!(gone.status < 300, "{}", gone.body);
        }
        let message = json!({"message": "Workspace marked for deletion", "id": "team"});
        delete().await.answers(200, message);
        let missing: Value = json!({"detail": "Workspace 'team' not found"});
        delete().await.answers(404, missing.clone());
        api.get("/apis/entities/v2/workspace-deletions/team").await.answers(404, missing.clone());
        api.get(&format!("{AT}/team/members")).await.answers(404, missing);
        api.get(&format!("{AT}/default/members")).await.answers(200, json!({"data": []}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_is_called_by_its_own_name() {
    let api = Harness::start().await;
    for host in ["localhost:7740", "127.0.0.1", "[::1]:7740", "10.0.0.1:80"] {
        assert_eq!(api.ask("GET", JOBS, &[("host", host)]).await.status, 200, "{host}");
    }
    for host in ["rebound.example:7740", "localhost.example", "127.0.0.1.example"] {
        let detail = format!(
            "'{host}' is no name of this server; call it by its address, or let \
             allow_any_origin in its configuration take any"
        );
        api.ask("GET", JOBS, &[("host", host)]).await.answers(403, json!({"detail": detail}));
    }
    let any = Harness::set_up(Setup { any_origin: true, ..Setup::default() }).await;
    assert_eq!(any.ask("GET", JOBS, &[("host", "errand.example")]).await.status, 200);
}
