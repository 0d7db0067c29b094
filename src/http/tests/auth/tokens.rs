//! Tokens as callers send them, good and bad.

use std::time::Duration;

use jiff::SignedDuration;

use super::*;
use crate::http::tests::batch::Sending;

const AT: &str = "/apis/jobs/v2/workspaces/default/jobs";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_token_that_is_none_gets_the_same_answer() {
    for api in both().await {
        let roles = [("default", Role::Viewer)];
        let good = token(&api, "good", &roles).await;
        let hour = SignedDuration::from_hours(1);
        let past = until(&api, "past", &roles, Some(Timestamp::now() - hour)).await;
        let future = until(&api, "future", &roles, Some(Timestamp::now() + hour)).await;
        let revoked = token(&api, "revoked", &roles).await;
        api.records.tokens().revoke("revoked").await.expect("it is revoked");
        for good in [&good, &future] {
            api.as_token(good, "GET", AT, None).await.status_is(200);
            let lower = format!("bearer {good}");
            api.ask("GET", AT, &[("authorization", &lower)]).await.status_is(200);
        }

        // Another token with the same letters in front.
        let (kept, last) = good.split_at(good.len() - 1);
        let altered = format!("{kept}{}", if last == "2" { "3" } else { "2" });
        let (bearer, basic) = (format!("Bearer {good}"), format!("Basic {good}"));
        let (long, unknown) = (format!("Bearer {}", "x".repeat(4000)), Token::generate());
        let [past, revoked, altered, unknown] =
            [&*past, &revoked, &altered, unknown.reveal()].map(|token| format!("Bearer {token}"));
        let mut answers = vec![api.send("GET", AT, None).await];
        for value in [&*past, &revoked, &altered, &unknown, &basic, &long, "Bearer", "Bearer ", ""]
        {
            answers.push(api.ask("GET", AT, &[("authorization", value)]).await);
        }
        let twice = [("authorization", &*bearer), ("authorization", &bearer)];
        answers.push(api.ask("GET", AT, &twice).await);
        for answer in &answers {
            assert_eq!((answer.status, &answer.body), (401, &answers[0].body));
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_is_refused_by_the_next_request() {
    for api in both().await {
        let token = token(&api, "ci", &[("default", Role::Viewer)]).await;
        api.as_token(&token, "GET", AT, None).await.status_is(200);
        let used = async {
            loop {
                let all = api.records.tokens().all().await.expect("they are listed");
                if all[0].used_at.is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), used).await.expect("its use is noted");
        api.records.tokens().revoke("ci").await.expect("it is revoked");
        api.as_token(&token, "GET", AT, None).await.status_is(401);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_revoked_while_lines_come_makes_no_further_job() {
    for api in both().await {
        let ci = token(&api, "ci", &[("default", Role::Admin)]).await;
        let agents = format!("{AGENTS}/default/agents");
        api.as_token(&ci, "POST", &agents, Some(agent("calc"))).await.status_is(201);
        let mut sending = Sending::start(&api, "group=open", Some(&ci)).await;
        let line = json!({"spec": {"agent": "calc", "input": "1"}}).to_string();
        assert_eq!(sending.send(line.clone()).await["status"], 201);
        api.records.tokens().revoke("ci").await.expect("it is revoked");
        let refused = sending.send(line).await;
        assert_eq!((&refused["line"], &refused["status"]), (&json!(2), &json!(401)), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_the_tokens_with_a_role() {
    for api in both().await {
        let root = furnish(&api).await;
        let token = token(&api, "ci", &[("team", Role::Submitter), ("other", Role::Viewer)]).await;
        let members = |workspace| format!("/apis/entities/v2/workspaces/{workspace}/members");
        for (workspace, role) in [("team", "submitter"), ("other", "viewer")] {
            let listed = api.as_token(&token, "GET", &members(workspace), None).await;
            let expected = json!({"data": [
                {"principal": "root", "roles": ["admin"]},
                {"principal": "ci", "roles": [role]},
            ]});
            listed.answers(200, expected);
        }
        let new = json!({"principal": "me", "roles": ["admin"]});
        let refused = api.as_token(&root, "POST", &members("team"), Some(new)).await;
        let text = refused.body["detail"].as_str().expect("a text").to_owned();
        assert_eq!(refused.status, 403, "{text}");
        assert!(text.contains("errand tokens create --workspace team"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_says_that_it_wants_tokens() {
    let setup = || Setup { authenticated: true, ..Setup::default() };
    let api = Harness::set_up(setup()).await;
    let discovery = json!({"auth_enabled": true, "oidc": null});
    api.get("/apis/auth/discovery").await.answers(200, discovery);
    let document = api.get("/openapi.json").await.body;
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    let security = |path: &str, method: &str| document["paths"][path][method]["security"].clone();
    assert_eq!(security("/health/live", "get"), json!([]));
    assert_eq!(security("/status", "get"), json!([{"token": []}]));
    let jobs = "/apis/jobs/v2/workspaces/{workspace}/jobs";
    assert_eq!(security(jobs, "get"), json!([{"token": ["viewer"]}]));
    assert_eq!(security(jobs, "post"), json!([{"token": ["submitter"]}]));

    // Pages and names of others get nowhere without a token, and anywhere with one.
    let token = token(&api, "ci", &[("default", Role::Viewer)]).await;
    let bearer = format!("Bearer {token}");
    let (host, origin) = (("host", "errand.example"), ("origin", "https://errand.example"));
    let asked = [host, origin, ("authorization", &*bearer)];
    let answer = api.ask("GET", AT, &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.headers.get("access-control-allow-origin").is_none());
    api.ask("POST", &format!("{AT}/x/cancel"), &asked).await.status_is(403);
    api.ask("POST", &format!("{AT}/x/cancel"), &[host, origin]).await.status_is(401);
}

/// Who reads the value of a secret is an admin, and only where that is turned on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_value_of_a_secret_is_for_admins() {
    let setup = || Setup { authenticated: true, secret_access: true, ..Setup::default() };
    for api in Harness::both(setup).await {
        furnish(&api).await;
        let value = format!("{SECRETS}/team/secrets/thing-of-team/access");
        for (role, status) in [(Role::Viewer, 403), (Role::Submitter, 403), (Role::Admin, 200)] {
            let token = token(&api, role.as_str(), &[("team", role)]).await;
            api.as_token(&token, "GET", &value, None).await.status_is(status);
        }
    }
}
