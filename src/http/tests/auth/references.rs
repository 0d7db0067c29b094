//! What a job refers to in another workspace needs a role there: viewer, and submitter for
//! secrets.

use streams::fact::Submitted;
use streams::id::JobId;
use workers::ports::{Admission, Catalog};

use super::*;

/// The thing of `other`, as references name it.
const FOREIGN: &str = "other/thing-of-other";

/// What may stand in a spec, what a refusal calls it, and the role that it needs.
fn foreign() -> Vec<(Value, String, Role)> {
    let own = "thing-of-team";
    let fileset = format!("{FOREIGN}#src");
    let result = "other/job-fileset-thing-of-other#results/x/output_workdir".to_owned();
    let mount = |reference: &str| {
        let mounts = json!([{"ref": reference, "mount_path": "in"}]);
        json!({"agent": own, "workdir": {"artifact_mounts": mounts}})
    };
    let secret = json!({"environment_spec": {"secrets": {"KEY": FOREIGN}}});
    let webhook = json!({"url": "https://hooks.example/x", "secret": FOREIGN});
    let viewer = |spec, called: &str, reference: &str| {
        (spec, format!("{called} '{reference}'"), Role::Viewer)
    };
    let submitter = |spec| (spec, format!("Secret '{FOREIGN}'"), Role::Submitter);
    vec![
        viewer(json!({"agent": FOREIGN}), "Agent", FOREIGN),
        viewer(json!({"agent": own, "environment": FOREIGN}), "AgentEnvironment", FOREIGN),
        viewer(
            json!({"agent": own, "environment": {"environment_spec": FOREIGN}}),
            "AgentEnvironmentSpec",
            FOREIGN,
        ),
        viewer(
            json!({"agent": own, "environment": {"compute_spec": FOREIGN}}),
            "AgentComputeSpec",
            FOREIGN,
        ),
        viewer(
            json!({"agent": own, "workdir": {"base_workdir": fileset}}),
            "workdir.base_workdir",
            &fileset,
        ),
        viewer(mount(&fileset), "workdir.artifact_mounts.ref", &fileset),
        viewer(mount(&result), "workdir.artifact_mounts.ref", &result),
        submitter(json!({"agent": own, "environment": secret})),
        submitter(json!({
            "agent": own,
            "post_run_action": {"kind": "agents.webhook", "config": webhook},
        })),
    ]
}

async fn submit(api: &Harness, token: &str, spec: &Value) -> Answer {
    let mut spec = spec.clone();
    spec["input"] = json!("");
    let at = format!("{AGENTS}/team/jobs/execute");
    api.as_token(token, "POST", &at, Some(json!({"spec": spec}))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_reference_needs_a_role_there() {
    for api in both().await {
        furnish(&api).await;
        let own = ("team", Role::Submitter);
        let alone = token(&api, "alone", &[own]).await;
        let viewer = token(&api, "reader", &[own, ("other", Role::Viewer)]).await;
        let submitter = token(&api, "user", &[own, ("other", Role::Submitter)]).await;
        for (spec, called, needed) in foreign() {
            for (token, name, has) in [
                (&alone, "alone", None),
                (&viewer, "reader", Some(Role::Viewer)),
                (&submitter, "user", Some(Role::Submitter)),
            ] {
                let answer = submit(&api, token, &spec).await;
                if has >= Some(needed) {
                    // What is refused now is refused for another reason.
                    assert!([201, 422].contains(&answer.status), "{spec}: {}", answer.body);
                    continue;
                }
                let has = has.map_or("no role".to_owned(), |role| format!("role '{role}'"));
                let detail = format!(
                    "{called} cannot be used: role '{needed}' in workspace 'other' is needed, \
                     token '{name}' has {has} there"
                );
                answer.answers(403, json!({"detail": detail}));
            }
        }
    }
}

/// A stored environment of one's own workspace may hide a foreign part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_within_something_stored_is_no_way_round() {
    for api in both().await {
        let root = furnish(&api).await;
        let alone = token(&api, "alone", &[("team", Role::Submitter)]).await;
        for (name, environment) in [
            ("spec", json!({"environment_spec": FOREIGN})),
            ("secret", json!({"environment_spec": {"secrets": {"KEY": FOREIGN}}})),
        ] {
            let mut stored = environment.clone();
            stored["name"] = json!(name);
            let at = format!("{AGENTS}/team/environments");
            api.as_token(&root, "POST", &at, Some(stored)).await.status_is(201);
            let spec = json!({"agent": "thing-of-team", "environment": name});
            submit(&api, &alone, &spec).await.status_is(403);
            submit(&api, &root, &spec).await.status_is(201);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_is_not_there_is_refused_in_the_same_words() {
    for api in both().await {
        furnish(&api).await;
        let alone = token(&api, "alone", &[("team", Role::Submitter)]).await;
        let refused = async |workspace: &str| {
            let spec = json!({"agent": format!("{workspace}/calc")});
            let answer = submit(&api, &alone, &spec).await;
            let asked = format!("{AGENTS}/{workspace}/agents");
            let asked = api.as_token(&alone, "GET", &asked, None).await;
            let said = (answer.status, answer.body.to_string(), asked.body.to_string());
            (said.0, said.1.replace(workspace, "W"), said.2.replace(workspace, "W"))
        };
        let there = refused("other").await;
        assert_eq!(there.0, 403, "{there:?}");
        assert_eq!(there, refused("nowhere").await);
    }
}

/// Whoever may publish submissions of a workspace has no token, and no role elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submission_over_the_queue_counts_for_its_workspace() {
    for api in both().await {
        furnish(&api).await;
        let admit = async |mut spec: Value| {
            spec["input"] = json!("");
            let submitted = Submitted { spec: Some(spec), name: None, record: None };
            let admitted = api.catalog.admit(JobId::new(), "team", &submitted).await;
            admitted.expect("the catalog answers")
        };
        let own = admit(json!({"agent": "thing-of-team"})).await;
        assert!(matches!(own, Admission::Admitted(_)), "{own:?}");
        for (spec, called, needed) in foreign() {
            let text = format!(
                "{called} cannot be used: role '{needed}' in workspace 'other' is needed, a \
                 submission to the queue of 'team' has no role there"
            );
            match admit(spec).await {
                Admission::Refused(reason) => assert_eq!(reason, text),
                other => panic!("{called}: {other:?}"),
            }
        }
    }
}

/// A rerun looks nothing up, but its agent gets the secrets once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rerun_needs_the_roles_of_its_secrets() {
    for api in both().await {
        let root = furnish(&api).await;
        let alone = token(&api, "alone", &[("team", Role::Submitter)]).await;
        let secrets = json!({"environment_spec": {"secrets": {"KEY": FOREIGN}}});
        let spec = json!({"agent": "thing-of-team", "environment": secrets});
        let made = submit(&api, &root, &spec).await;
        assert_eq!(made.body["ownership"], json!({"principal_id": "root"}), "{}", made.body);
        let name = made.body["name"].as_str().expect("a name");
        let rerun = format!("/apis/jobs/v2/workspaces/team/jobs/{name}/rerun");
        api.as_token(&alone, "POST", &rerun, None).await.status_is(403);
        api.as_token(&root, "POST", &rerun, None).await.status_is(201);

        let plain = "/apis/jobs/v2/workspaces/team/jobs/thing-of-team/rerun";
        let again = api.as_token(&alone, "POST", plain, None).await;
        assert_eq!(again.body["ownership"]["principal_id"], "alone", "{}", again.body);
    }
}

/// The files of an agent are a part of it, and agents are for admins to change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_an_agent_are_for_admins() {
    for api in both().await {
        let root = furnish(&api).await;
        let own = token(&api, "own", &[("team", Role::Submitter)]).await;
        let filesets = format!("{FILES}/team/filesets");
        // Also of an agent that is yet to be: it would be given what was written before.
        for name in ["thing-of-team-ethos", "free-ethos"] {
            let new = Some(json!({"name": name}));
            api.as_token(&own, "POST", &filesets, new.clone()).await.status_is(403);
            api.as_token(&root, "POST", &filesets, new).await.status_is(200);
        }
        let ethos = format!("{filesets}/thing-of-team-ethos");
        let file = format!("{ethos}/-/prompt.md");
        let detail = "Fileset 'thing-of-team-ethos', which is a part of agent 'thing-of-team', \
                      cannot be used: role 'admin' in workspace 'team' is needed, token 'own' has \
                      role 'submitter' there";
        for (method, path) in [("PUT", &file), ("DELETE", &file), ("PATCH", &ethos)] {
            let refused = api.as_token(&own, method, path, Some(json!({}))).await;
            refused.answers(403, json!({"detail": detail}));
        }
        api.as_token(&root, "PUT", &file, Some(json!({}))).await.status_is(200);
        let free = format!("{filesets}/free-ethos/-/prompt.md");
        api.as_token(&own, "PUT", &free, Some(json!({}))).await.status_is(403);

        let config = json!({"fileset": "thing-of-team-ethos", "paths": ["prompt.md"]});
        let action = json!({"kind": "agents.export-files", "config": config});
        let spec = json!({"agent": "thing-of-team", "post_run_action": action});
        submit(&api, &own, &spec).await.answers(403, json!({"detail": detail}));
        let made = submit(&api, &root, &spec).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let name = made.body["name"].as_str().expect("a name");
        let rerun = format!("/apis/jobs/v2/workspaces/team/jobs/{name}/rerun");
        api.as_token(&own, "POST", &rerun, None).await.answers(403, json!({"detail": detail}));
    }
}

/// What a job says of its maker is not its maker's to say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_names_the_token_that_made_it() {
    for api in both().await {
        furnish(&api).await;
        let own = token(&api, "own", &[("team", Role::Submitter)]).await;
        let body = json!({
            "spec": {"agent": "thing-of-team", "input": ""},
            "ownership": {"team": "blue", "principal_id": "root"},
        });
        let at = format!("{AGENTS}/team/jobs/execute");
        let made = api.as_token(&own, "POST", &at, Some(body)).await;
        assert_eq!(made.body["ownership"], json!({"team": "blue", "principal_id": "own"}));
        let name = made.body["name"].as_str().expect("a name");
        let steps = format!("/apis/jobs/v2/workspaces/team/jobs/{name}/steps");
        let steps = api.as_token(&own, "GET", &steps, None).await.body;
        assert_eq!(steps["data"][0]["auth_context"]["principal_id"], "own", "{steps}");
    }
}

/// What a job was made of by somebody who may is not lent to those who may not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rerun_needs_the_roles_of_its_job() {
    for api in both().await {
        let root = furnish(&api).await;
        let alone = token(&api, "alone", &[("team", Role::Submitter)]).await;
        let files = json!({"base_workdir": format!("{FOREIGN}#src")});
        let own = "thing-of-team";
        for spec in [
            json!({"agent": FOREIGN}),
            json!({"agent": own, "workdir": files}),
            json!({"agent": own, "environment": FOREIGN}),
            json!({"agent": own, "environment": {"environment_spec": FOREIGN}}),
            json!({"agent": own, "environment": {"compute_spec": FOREIGN}}),
        ] {
            let made = submit(&api, &root, &spec).await;
            assert_eq!(made.status, 201, "{}", made.body);
            let name = made.body["name"].as_str().expect("a name");
            let rerun = format!("/apis/jobs/v2/workspaces/team/jobs/{name}/rerun");
            api.as_token(&alone, "POST", &rerun, None).await.status_is(403);
            api.as_token(&root, "POST", &rerun, None).await.status_is(201);
        }
    }
}
