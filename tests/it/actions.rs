//! Post-run actions on a real platform: each built-in kind, and programs.

mod program;
mod subscriber;

use std::fs;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Api, Job, Options, Platform, Receiver};
use subscriber::Subscriber;

const SOON: Duration = Duration::from_secs(60);

/// The queue gives an unsettled delivery back after 30 s.
const LATER: Duration = Duration::from_secs(90);

/// Webhooks may reach this machine.
fn reaching_loopback() -> Options {
    let name = "ERRAND__ACTIONS__WEBHOOK__ALLOW_PRIVATE_ADDRESSES";
    let mut options = Options::default();
    options.env.push((name.to_owned(), "true".to_owned()));
    options
}

async fn followed_by(api: &Api, script: &str, kind: &str, config: Value) -> Job {
    api.script(script, json!({"post_run_action": {"kind": kind, "config": config}})).await
}

/// The job failed, for its action, with this reason; the agent's results are all there.
async fn failed(job: &Job, reason: &str) {
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "error", "{record}");
    assert_eq!(record["error_details"]["code"], "action_failed", "{record}");
    assert!(record["error_details"].to_string().contains(reason), "{record}\n{reason}");
    let names = job.result_names().await;
    for name in ["fabric_run_result", "input_workdir", "output_artifacts", "output_workdir"] {
        assert!(names.iter().any(|there| there == name), "{names:?}");
        assert!(!job.download(name).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn a_webhook_is_signed_and_repeated_until_it_is_taken() {
    let platform = Platform::with(reaching_loopback()).await;
    let api = platform.api();
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let secrets = "/apis/secrets/v2/workspaces/default/secrets";
    let (status, _) =
        api.ask(Method::POST, secrets, Some(json!({"name": "hook-key", "value": key}))).await;
    assert_eq!(status, StatusCode::CREATED);
    let broken = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n";
    let taken = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::start(&[broken, broken, broken, taken]);
    let config = json!({
        "url": format!("{}/hook?token=a", receiver.url),
        "secret": "hook-key",
        "headers": {"x-team": "ours"},
    });
    let job = followed_by(&api, "echo answer; echo kept > kept", "agents.webhook", config).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");

    let requests = receiver.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert!(request.line.starts_with("POST /hook?token=a "), "{}", request.line);
        assert_eq!(request.header("x-team"), "ours");
        assert_eq!(request.header("webhook-id"), format!("{}:acted", job.id));
        assert_eq!(request.body, requests[0].body, "it is the same message each time");
        assert_eq!(request.header("webhook-signature"), request.signature(key));
    }
    let body: Value = serde_json::from_slice(&requests[0].body).expect("it is JSON");
    assert_eq!(body["type"], "errand.job.succeeded");
    let data = &body["data"];
    assert_eq!((&data["job"], &data["job_id"]), (&json!(job.name), &json!(job.id.http())));
    assert_eq!(data["fabric_run_result"], job.json("fabric_run_result").await);
    for told in data["results"].as_array().expect("a list") {
        let result = job.result(told["name"].as_str().expect("a name")).await;
        assert_eq!((&told["size"], &told["sha256"]), (&result["size"], &result["sha256"]));
    }
    assert_eq!(data["results"].as_array().map(Vec::len), Some(4));
    assert!(!platform.log().contains(key), "the key is in no log");
}

#[tokio::test]
async fn case_s1_a_webhook_goes_nowhere_else_and_does_not_wait_for_ever() {
    let platform = Platform::with(reaching_loopback()).await;
    let api = platform.api();
    let hook = async |receiver: &Receiver, timeout: u32| {
        let config = json!({"url": receiver.url, "timeout_seconds": timeout});
        followed_by(&api, "echo answer", "agents.webhook", config).await
    };
    let there =
        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
    let redirecting = Receiver::start(&[there]);
    let refusing = Receiver::start(&["HTTP/1.1 400 Bad Request\r\ncontent-length: 5\r\n\r\nwrong"]);
    let silent = Receiver::start(&[""; 5]);
    let began = Instant::now();
    let jobs = [hook(&redirecting, 5).await, hook(&refusing, 5).await, hook(&silent, 3).await];
    failed(&jobs[0], "it answered 302 Found; redirects are not followed").await;
    failed(&jobs[1], "it answered 400 Bad Request: wrong").await;
    failed(&jobs[2], "it did not answer in time").await;
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
    assert_eq!((redirecting.requests().len(), refusing.requests().len()), (1, 1));
    assert_eq!(silent.requests().len(), 5, "the last reason, after so many tries");
}

#[tokio::test]
async fn case_s1_a_webhook_is_sent_by_whoever_comes_after_a_crash() {
    let mut platform = Platform::with(reaching_loopback().hold_at("act:acting")).await;
    let receiver = Receiver::start(&["HTTP/1.1 204 No Content\r\n\r\n"]);
    let config = json!({"url": receiver.url});
    let job = followed_by(&platform.api(), "echo answer", "agents.webhook", config).await;
    platform.holds().await;
    platform.kill().await;
    assert_eq!(receiver.requests().len(), 0);
    let platform = platform.restart(reaching_loopback()).await;
    let job = job.at(platform.api());
    assert_eq!(job.ends(LATER).await["status"], "completed");
    assert_eq!(receiver.requests()[0].header("webhook-id"), format!("{}:acted", job.id));
}

#[tokio::test]
async fn a_webhook_reaches_no_private_address_by_default() {
    let platform = Platform::start().await;
    let api = platform.api();
    let receiver = Receiver::start(&[]);
    // The literal address is refused with the request; what a name stands for is known later.
    let named = receiver.url.replace("127.0.0.1", "localhost");
    let job = followed_by(&api, "echo x", "agents.webhook", json!({"url": named})).await;
    failed(&job, "'localhost' stands for").await;
    assert_eq!(receiver.requests().len(), 0);
}

#[tokio::test]
async fn what_is_published_reaches_a_plain_client() {
    let platform = Platform::start().await;
    let nats = platform.nats();
    let mut subscriber = Subscriber::start(&nats.url, &nats.token.unwrap_or_default(), "team.done");
    let config = json!({"subject": "team.done"});
    let job = followed_by(&platform.api(), "echo answer", "agents.publish", config).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let (headers, payload) = subscriber.message();
    assert!(headers.contains(&format!("Nats-Msg-Id: {}:acted", job.id)), "{headers}");
    let message: Value = serde_json::from_slice(&payload).expect("it is JSON");
    assert_eq!(message["data"]["job"], json!(job.name));
    assert_eq!(message["data"]["fabric_run_result"]["response"], "answer");
}

#[tokio::test]
async fn exported_files_are_another_job_s_working_directory() {
    let platform = Platform::start().await;
    let api = platform.api();
    let script = "mkdir -p out/deep; echo first > out/a.md; head -c 3000000 /dev/zero > out/deep/b.bin; \
                  ln out/a.md again.md; echo no > out/c.txt; chmod 755 out/a.md; echo done";
    let config = json!({"fileset": "exported", "paths": ["**/*.md", "out/deep"]});
    let job = followed_by(&api, script, "agents.export-files", config.clone()).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let listed = api.get("/apis/files/v2/workspaces/default/filesets/exported/files").await;
    let paths: Vec<_> = listed["data"].as_array().expect("a list").iter().collect();
    let paths: Vec<_> = paths.iter().map(|file| file["path"].as_str().expect("a path")).collect();
    assert_eq!(paths, ["again.md", "out/a.md", "out/deep/b.bin"]);

    // The same again, over what is there.
    let again = followed_by(&api, script, "agents.export-files", config).await;
    assert_eq!(again.ends(SOON).await["status"], "completed");

    let script = "cat out/a.md again.md; wc -c < out/deep/b.bin; test -x out/a.md && echo runs";
    api.fileset("script", &[("agent.sh", script)]).await;
    let mounts = json!([{"ref": "script#agent.sh", "mount_path": "agent.sh"}]);
    let workdir = json!({"base_workdir": "exported", "artifact_mounts": mounts});
    let agent = crate::harness::script_agent();
    let next = api.submit(json!({"agent": agent, "input": "", "workdir": workdir})).await;
    assert_eq!(next.ends(SOON).await["status"], "completed");
    assert_eq!(next.json("fabric_run_result").await["response"], "first\nfirst\n3000000\nruns");
}

/// A few blocks of an agent must not become the disk of the platform.
#[tokio::test]
async fn holes_are_not_exported_as_zeros_without_a_bound() {
    let platform = Platform::start().await;
    let api = platform.api();
    let script =
        "echo x > huge; truncate -s 900G huge; ln huge again; truncate -s 64M some; echo ok";
    let export = |path: &str| json!({"fileset": "holes", "paths": [path]});
    let kept = followed_by(&api, script, "agents.export-files", export("some")).await;
    assert_eq!(kept.ends(SOON).await["status"], "completed");
    let job = followed_by(&api, script, "agents.export-files", export("again")).await;
    failed(&job, "has 966367641600 bytes, of which 4096 are stored").await;
}

#[tokio::test]
async fn case_a4_an_action_that_misses_a_file_fails_and_the_results_stay() {
    let platform = Platform::start().await;
    let api = platform.api();
    let config = json!({"fileset": "reports", "paths": ["notes.md", "report.md"]});
    let job = followed_by(&api, "echo n > notes.md; echo ok", "agents.export-files", config).await;
    failed(&job, "output_workdir has no file at 'report.md'").await;
    let workdir = job.directory("output_workdir").await;
    assert_eq!(fs::read_to_string(workdir.path().join("notes.md")).expect("it is kept"), "n\n");
    let made = "/apis/files/v2/workspaces/default/filesets/reports";
    assert_eq!(api.ask(Method::GET, made, None).await.0, StatusCode::NOT_FOUND);
}
