//! FC-G: a secret's value is nowhere but where the agent wrote it; and its key can be changed.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use errand::records::{Records, SecretRow};
use flate2::read::GzDecoder;
use reqwest::Method;
use serde_json::{Value, json};
use streams::broker::Broker as _;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;

use crate::harness::{Api, Options, Platform, Postgres, eventually};

const SOON: Duration = Duration::from_secs(60);

/// A spec's part that binds secrets, by variable.
fn bound(secrets: &[(&str, &str)]) -> Value {
    let secrets: serde_json::Map<_, _> =
        secrets.iter().map(|(name, secret)| ((*name).to_owned(), json!(secret))).collect();
    json!({"environment": {"environment_spec": {"secrets": secrets}}})
}

#[tokio::test]
async fn case_g1_a_value_over_lines_is_masked_in_the_log_and_its_stream() {
    let platform = Platform::start().await;
    let api = platform.api();
    api.secret("marker", "{\n  \"k\": \"s3cr3t-value-1\"\n}").await;
    let script = "printf '%s' \"$S\"; echo; printf '%s' \"$S\" | tr -d '\\n'; echo; \
                  printf '%s' \"$S\" | base64 >&2; echo end";
    let job = api.script(script, bound(&[("S", "marker")])).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let log = job.log().await;
    // The braces alone are too short to be masked.
    for line in ["{", "***", "}", "end"] {
        assert!(log.iter().any(|said| said == line), "no '{line}' in {log:?}");
    }
    let broker = platform.broker().await;
    let lines = subject::logs("default", job.id);
    let (mut from, mut stream) = (0, String::new());
    while let Some(stored) =
        broker.next(StreamName::Logs, &lines, from).await.expect("nats answers")
    {
        stream.push_str(&String::from_utf8_lossy(&stored.payload));
        from = stored.sequence + 1;
    }
    assert!(stream.contains("end"), "{stream}");
    // The value and its base64.
    for hidden in ["s3cr3t", "czNjcjN0"] {
        assert!(!stream.contains(hidden) && !log.join("\n").contains(hidden), "{log:?}");
    }
}

#[tokio::test]
async fn case_g2_short_values_are_no_masks_and_this_is_said() {
    let platform = Platform::start().await;
    let api = platform.api();
    let secrets = "/apis/secrets/v2/workspaces/default/secrets";
    let empty = json!({"name": "empty", "value": ""});
    assert_eq!(api.ask(Method::POST, secrets, Some(empty)).await.0.as_u16(), 422);
    let file = platform.scratch().join("value");
    let file = file.to_str().expect("a path");
    for (name, value) in [("s1", "a"), ("s2", "{"), ("s3", "true"), ("s4", "1")] {
        fs::write(file, value).expect("a file");
        let made = platform.cli().args(["secrets", "create", name, "--from-file", file]).output();
        let made = made.expect("errand runs");
        let said = String::from_utf8_lossy(&made.stderr);
        let warning = format!("secret '{name}' has fewer than 8 bytes and is not masked in logs");
        assert!(made.status.success() && said.contains(&warning), "{made:?}");
    }
    let bound = bound(&[("S1", "s1"), ("S2", "s2"), ("S3", "s3"), ("S4", "s4")]);
    let job = api.script("echo '{ a is true, 1 }'", bound).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let log = job.log().await;
    let warning = "Secret variables with fewer than 8 bytes are not masked in logs: S1, S2, \
                   S3, S4.";
    assert!(log.contains(&"{ a is true, 1 }".to_owned()), "{log:?}");
    assert!(log.contains(&warning.to_owned()), "{log:?}");
}

/// Whether a file, unpacked if it is packed, holds a text.
fn holds(path: &Path, text: &str) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    let mut unpacked = Vec::new();
    // What is no archive, or half of one, has no more than its bytes.
    let _ = match bytes.get(..4) {
        Some([0x1f, 0x8b, ..]) => GzDecoder::new(&*bytes).read_to_end(&mut unpacked),
        Some([0x28, 0xb5, 0x2f, 0xfd]) => {
            zstd::Decoder::new(&*bytes).and_then(|mut decoder| decoder.read_to_end(&mut unpacked))
        }
        _ => Ok(0),
    };
    let found = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    found(&bytes) || found(&unpacked)
}

/// Names of the files below a directory that hold a text.
fn holding(root: &Path, text: &str) -> Vec<String> {
    let (mut dirs, mut found) = (vec![root.to_owned()], Vec::new());
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push(entry.path()),
                Ok(kind) if kind.is_file() && holds(&entry.path(), text) => {
                    found.push(entry.file_name().to_string_lossy().into_owned());
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Arguments of all processes that hold a text. Those of this test do not.
fn in_arguments(text: &str) -> Vec<String> {
    let commands = fs::read_dir("/proc").into_iter().flatten().flatten();
    commands
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|command| String::from_utf8_lossy(&command).into_owned())
        .filter(|command| command.contains(text))
        .collect()
}

#[tokio::test]
async fn case_g4_a_value_is_nowhere_but_in_the_results_that_are_marked() {
    is_nowhere_else(None).await;
}

#[tokio::test]
async fn case_g4_nor_is_it_with_records_in_postgres() {
    is_nowhere_else(Some(&Postgres::start())).await;
}

async fn is_nowhere_else(postgres: Option<&Postgres>) {
    let trace = ("ERRAND_LOG".to_owned(), "trace".to_owned());
    let database = postgres.map(|server| ("ERRAND__DATABASE__URL".to_owned(), server.url()));
    let env = std::iter::once(trace).chain(database).collect();
    let platform = Platform::with(Options { env, ..Options::default() }).await;
    let api = platform.api();
    let secret = format!("s3cr3t-{}", uuid::Uuid::now_v7().simple());
    api.secret("marker", &secret).await;
    let go = platform.scratch().join("go");
    let script = format!(
        "echo \"it is $S\"; printf %s \"$S\" > kept; echo \"$S\" >&2; touch began; \
         while [ ! -e {} ]; do sleep 0.1; done; echo \"$S\"; exit 3",
        go.display()
    );
    let job = api.script(&script, bound(&[("S", "marker")])).await;
    let run = platform.data().join("runs").join(format!("{}-1", job.id));
    let began = run.join("base/workspace/began");
    eventually("the agent runs", SOON, || async { began.exists().then_some(()) }).await;
    assert_eq!(in_arguments(&secret), [""; 0]);
    fs::write(&go, "").expect("a file");
    let record = job.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "agent_failed", "{record}");

    let broker = platform.broker().await;
    let facts = job.facts(&*broker).await;
    let (_, invoked) = facts.into_iter().find(|(phase, _)| *phase == Phase::Invoked).expect("all");
    let invoked = String::from_utf8(invoked.expect("it stands").payload.to_vec()).expect("text");
    assert!(invoked.contains(r#""secret_detected":["kept"]"#), "{invoked}");
    let log = job.log().await.join("\n");
    assert!(log.contains("output_workdir: kept holds the value of a secret"), "{log}");
    assert!(log.contains("it is ***") && !log.contains(&secret), "{log}");
    let result = job.json("fabric_run_result").await.to_string();
    assert!(result.contains("it is ***") && !result.contains(&secret), "{result}");

    eventually("the run directory is gone", Duration::from_secs(120), || async {
        (!run.exists()).then_some(())
    })
    .await;
    // Objects, messages of the queue, records, keys, whatever else there is.
    let expected = ["output_artifacts.tar.gz", "output_workdir.tar.gz"];
    assert_eq!(holding(&platform.data(), &secret), expected);
    if let Some(postgres) = postgres {
        let dump = postgres.dump();
        assert!(dump.contains(&job.name) && !dump.contains(&secret), "it is in the database");
    }
    let said = platform.log();
    assert!(said.contains("\"TRACE\"") && !said.contains(&secret));
    assert!(!said.contains(&hex::encode(&secret)));
}

/// Results are not changed, so the names of files in them stay what they are. Nothing else says them.
#[tokio::test]
async fn case_g4_a_value_in_the_name_of_a_file_is_told_nowhere() {
    let platform = Platform::start().await;
    let api = platform.api();
    let secret = format!("s3cr3t-{}", uuid::Uuid::now_v7().simple());
    api.secret("marker", &secret).await;
    let script = "touch \"cache-$S\"; mkdir \"d-$S\"; touch \"d-$S/f\"; mkfifo \"p-$S\"; echo made";
    let job = api.script(script, bound(&[("S", "marker")])).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let result = job.result("output_workdir").await;
    let totals = json!({"added": 3, "modified": 0, "deleted": 0});
    assert_eq!(result["output_changes"]["totals"], totals, "{result}");
    assert_eq!(result["skipped"][0]["path"], "***", "{result}");
    assert!(result["secret_detected"].to_string().contains("cache-***"), "{result}");
    let run = platform.data().join("runs").join(format!("{}-1", job.id));
    eventually("the run directory is gone", Duration::from_secs(120), || async {
        (!run.exists()).then_some(())
    })
    .await;
    assert_eq!(holding(&platform.data(), &secret), ["output_workdir.tar.gz"]);
}

#[tokio::test]
async fn case_g6_users_see_references_only() {
    let platform = Platform::start().await;
    let api = platform.api();
    let secret = "s3cr3t-value-of-g6";
    api.secret("tavily", secret).await;
    let job = api.script("echo $KEY", bound(&[("KEY", "default/tavily")])).await;
    job.ends(SOON).await;
    let cli = |args: &[&str]| {
        let output = platform.cli().args(args).args(["--output-format", "json"]).output();
        String::from_utf8(output.expect("errand runs").stdout).expect("text")
    };
    let name = job.name.as_str();
    for args in [&["jobs", "get", name][..], &["jobs", "list"], &["jobs", "get-status", name]] {
        let shown = cli(args);
        assert!(shown.contains(name) && !shown.contains(secret), "{args:?}: {shown}");
    }
    assert!(cli(&["jobs", "get", name]).contains("default/tavily"));
    for path in [
        "/openapi.json".to_owned(),
        format!("/apis/agents/v2/workspaces/default/jobs/execute/{name}"),
        "/apis/agents/v2/workspaces/default/jobs/execute".to_owned(),
        format!("/apis/jobs/v2/workspaces/default/jobs/{name}/steps"),
        format!("/apis/jobs/v2/workspaces/default/jobs/{name}/results"),
        "/apis/secrets/v2/workspaces/default/secrets".to_owned(),
        "/apis/secrets/v2/workspaces/default/secrets/tavily".to_owned(),
    ] {
        assert!(!api.get(&path).await.to_string().contains(secret), "{path}");
    }
    let access = "/apis/secrets/v2/workspaces/default/secrets/tavily/access";
    let (status, body) = api.ask(Method::GET, access, None).await;
    assert!(status.as_u16() == 403 && !body.to_string().contains(secret), "{body}");
}

/// All secrets, as they are kept.
async fn sealed(platform: &Platform) -> Vec<SecretRow> {
    let url = format!("sqlite://{}", platform.data().join("errand.db").display());
    let records = Records::connect(&url).await.expect("sqlite opens");
    let rows = records.secrets().sealed_otherwise(&[[0; 9]], "", 100).await.expect("rows");
    records.close().await;
    rows
}

/// The value of each secret, as the platform opens it.
async fn values(api: &Api) -> Vec<String> {
    let mut values = Vec::new();
    for n in 0..5 {
        let path = format!("/apis/secrets/v2/workspaces/default/secrets/s{n}/access");
        let value = api.get(&path).await["value"].clone();
        values.push(value.as_str().expect("a value").to_owned());
    }
    values
}

#[tokio::test]
async fn a_rotation_that_is_killed_in_the_middle_is_gone_on_with() {
    let allowed = || {
        let allowed = ("ERRAND__SECRETS__ALLOW_ACCESS".to_owned(), "true".to_owned());
        Options { env: vec![allowed], ..Options::default() }
    };
    let mut platform = Platform::with(allowed()).await;
    let api = platform.api();
    let mut expected = Vec::new();
    for n in 0..5 {
        expected.push(format!("value-{n}-of-a-secret"));
        api.secret(&format!("s{n}"), &expected[n]).await;
    }
    let old = sealed(&platform).await[0].sealed[..9].to_vec();
    let of_old =
        |rows: &[SecretRow]| rows.iter().filter(|row| row.sealed.starts_with(&old)).count();
    let key_file = platform.data().join("secret.key");
    let keys = |file: &PathBuf| fs::read_to_string(file).expect("a key file").lines().count();

    let mut rotation = platform
        .beside(&["secrets", "rotate-key"])
        .env("ERRAND_HOLD_AT", "secrets:resealed")
        .stdout(Stdio::null())
        .spawn()
        .expect("errand runs");
    eventually("one is sealed anew", SOON, || async {
        (of_old(&sealed(&platform).await) == 4).then_some(())
    })
    .await;
    rotation.kill().expect("it is ours");
    rotation.wait().expect("it is ours");
    assert_eq!(keys(&key_file), 2, "the old key is still needed");
    assert_eq!(values(&api).await, expected, "the platform opens both");
    // What is kept in between has the new key.
    api.secret("s5", "value-5-of-a-secret").await;
    assert_eq!(of_old(&sealed(&platform).await), 4);

    let rotate = |command: &mut Command| {
        let output = command.args(["--output-format", "json"]).output().expect("errand runs");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).expect("a document")
    };
    let rotated = rotate(&mut platform.beside(&["secrets", "rotate-key"]));
    assert_eq!((&rotated["secrets"], &rotated["old_keys"]), (&json!(4), &json!(0)), "{rotated}");
    assert_eq!((keys(&key_file), of_old(&sealed(&platform).await)), (1, 0));
    assert_eq!(values(&api).await, expected);
    let job = api.script("printf %s $S | wc -c", bound(&[("S", "s3")])).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");

    // With a key that fits nothing, it does not start, and says so.
    platform.kill().await;
    let right = fs::read(&key_file).expect("a key file");
    fs::write(&key_file, "00".repeat(32)).expect("it is ours");
    let refused =
        platform.beside(&["up", "--listen", "127.0.0.1:0"]).output().expect("errand runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("sealed value needs the key"), "{said}");
    let doctor = platform.beside(&["doctor"]).output().expect("errand runs");
    let found = String::from_utf8_lossy(&doctor.stdout);
    assert!(found.contains("restore the key file"), "{found}");
    fs::write(&key_file, right).expect("it is ours");
    let platform = platform.restart(allowed()).await;
    assert_eq!(values(&platform.api()).await, expected);
}
