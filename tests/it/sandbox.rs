//! Agents on a platform that is root: users of their own, who find nothing of the platform and
//! nothing of each other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Api, Options, Platform, eventually, script_agent};

const SOON: Duration = Duration::from_secs(60);

const SECRET: &str = "correct-horse-battery";

async fn with_secret(api: &Api) -> Value {
    api.secret("key", SECRET).await;
    json!({"environment": {"environment_spec": {"secrets": {"KEY": "key"}}}})
}

/// Not in its environment, not in that of its parent, and not in that of any process that it sees.
#[tokio::test]
async fn case_g5_an_agent_sees_nothing_of_the_workers_environment() {
    let mut options = Options::default();
    options.env.push(("AWS_SECRET_ACCESS_KEY".to_owned(), "w0rker".to_owned()));
    let platform = Platform::with(options).await;
    let script = "id -u; env; tr '\\0' '\\n' < /proc/$PPID/environ; \
        for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done; true";
    let job = platform.api().script(script, json!({})).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let said = job.json("fabric_run_result").await["response"].clone();
    let said = said.as_str().expect("a text");
    let user: u32 = said.lines().next().unwrap_or_default().parse().expect("a user's number");
    assert!((2_000_000_000..2_000_004_096).contains(&user), "{user}");
    assert!(said.contains("NEMO_JOB_ID="), "it does see its own");
    assert!(!said.contains("w0rker"), "{said}");
}

#[tokio::test]
async fn an_agent_finds_nothing_of_the_platform_nor_of_another_job() {
    let platform = Platform::start().await;
    let api = platform.api();
    let go = platform.scratch().join("go");
    let waits = format!("echo mine > file; until [ -e {} ]; do sleep 0.1; done", go.display());
    let first = api.script(&waits, with_secret(&api).await).await;
    first.reaches("active", SOON).await;
    let dir = platform.data().join("runs").join(format!("{}-1", first.id));
    let file = dir.join("base/workspace/file");
    let there = || async { file.exists().then_some(()) };
    eventually("the first agent runs", SOON, there).await;

    let data = platform.data().display().to_string();
    let script = format!(
        "D={data}; ls $D $D/runs; for file in $D/secret.key $D/errand.db $D/run.json $D/nats \
         $D/objects $D/runs/.ids {} {}; do \
         cat $file && echo \"read $file\"; ls $file && echo \"listed $file\"; \
         echo x > $file/new && echo \"wrote to $file\"; done; \
         for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done | grep {SECRET}; \
         for p in $(ls /proc | grep '^[0-9]'); do \
         grep -qE '^Uid:.0' /proc/$p/status && kill -0 $p && echo \"may kill $p\"; done; echo done",
        dir.display(),
        file.display(),
    );
    let second = api.script(&script, json!({})).await;
    assert_eq!(second.ends(SOON).await["status"], "completed");
    let seen = format!("{data}:\nruns\n\n{data}/runs:\n{}-1\ndone", second.id);
    assert_eq!(
        second.json("fabric_run_result").await["response"],
        seen,
        "only its own way is there"
    );
    fs::write(go, "").expect("room on the disk");
    assert_eq!(first.ends(SOON).await["status"], "completed");
}

/// As root the platform reads everything, so nothing is skipped.
#[tokio::test]
async fn case_f9_what_an_agent_has_closed_is_saved_and_removed() {
    let platform = Platform::start().await;
    let script = "echo a > a; echo s > s; chmod 000 s; mkdir locked; echo z > locked/z; \
        chmod 000 locked; echo b > b";
    let job = platform.api().script(script, json!({})).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let result = job.result("output_workdir").await;
    assert_eq!(result["complete"], true, "{result}");
    let saved = job.directory("output_workdir").await;
    for file in ["a", "s", "locked/z", "b"] {
        assert!(saved.path().join(file).is_file(), "{file}");
    }
    // The user is taken for as long as the directory is there.
    let taken = || fs::read_dir(platform.data().join("runs/.ids")).expect("it is there").count();
    assert_eq!(taken(), 2, "a number and its note");
    let gone = || async { (taken() == 0).then_some(()) };
    eventually("the run directory and its user are gone", Duration::from_secs(120), gone).await;
    assert!(!platform.data().join("runs").join(format!("{}-1", job.id)).exists());
}

/// Where everybody may write, and where the kernel keeps it.
#[tokio::test]
async fn what_an_agent_left_outside_of_its_directory_goes_with_it() {
    let platform = Platform::start().await;
    let mark = format!("errand-left-{}", uuid::Uuid::now_v7().simple());
    let script = format!(
        "echo x > /dev/shm/{mark}; mkdir -m 700 /tmp/{mark}; echo x > /tmp/{mark}/file; \
         chmod 0 /tmp/{mark}; ln -s / /var/tmp/{mark}; ipcmk -M 4096 > /dev/null; id -u"
    );
    let job = platform.api().script(&script, json!({})).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let user = job.json("fabric_run_result").await["response"].clone();
    let user = user.as_str().expect("a number").trim();
    let segments = fs::read_to_string("/proc/sysvipc/shm").expect("the kernel tells");
    let theirs = |line: &&str| line.split_whitespace().any(|field| field == user);
    assert_eq!(segments.lines().find(theirs), None, "{segments}");
    let places = ["/dev/shm", "/tmp", "/var/tmp"].map(|place| Path::new(place).join(&mark));
    assert!(places[0].is_file(), "it was there");
    let gone =
        || async { places.iter().all(|place| place.symlink_metadata().is_err()).then_some(()) };
    eventually("it is gone", Duration::from_secs(120), gone).await;
}

#[tokio::test]
async fn an_agent_without_network_does_not_reach_the_platform() {
    let platform = Platform::with(Options::default().set("worker.network", "none")).await;
    let address = platform.run["http"].as_str().expect("run.json says").to_owned();
    let port = address.rsplit(':').next().expect("a port").to_owned();
    let mut agent = script_agent();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached; echo done");
    agent["config"]["harnesses"]["script"]["settings"]["command"] =
        json!(["/bin/bash", "-c", script]);
    let job = platform.api().submit(json!({"agent": agent, "input": ""})).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    assert_eq!(job.json("fabric_run_result").await["response"], "done");
    let log = platform.log();
    assert!(log.contains("network none by a namespace with a loopback of its own"), "{log}");
}

#[test]
fn doctor_says_what_agents_are_kept_apart_by() {
    let data = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(data.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
    let said = Command::new(env!("CARGO_BIN_EXE_errand"))
        .arg("doctor")
        .env("ERRAND__DATA_DIR", data.path().join("data"))
        .env("ERRAND__WORKER__AGENT_IDS", "5000:16")
        .output()
        .expect("errand runs");
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(said.contains("user ids 5000–5015, private mounts; network host"), "{said}");
    assert!(!data.path().join("data").exists(), "nothing is made");
}
