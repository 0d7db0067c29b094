mod groups;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};

use errand_runner::Secrets;
use errand_runner::abilities::Reach;
use streams::id::JobId;
use tempfile::TempDir;
use tokio::time::timeout;

use super::confinement::IdRange;
use super::*;
use crate::store::StoreConfig;

/// Nothing here asks the store.
fn no_store() -> Store {
    Store::new(&StoreConfig {
        endpoint: "http://127.0.0.1:9".to_owned(),
        bucket: "none".to_owned(),
        access_key: "key".to_owned(),
        secret_key: "secret".to_owned(),
        region: "us-east-1".to_owned(),
    })
}

fn plan() -> RunPlan {
    let launch = serde_json::json!({
        "version": 1, "run": "", "job_name": "", "workspace": "", "agent": {}, "input": "",
        "context": {}, "timeout_seconds": 1, "grace_seconds": 1, "env": {}, "adapter_dirs": [],
        "output_limit_bytes": 1,
    });
    RunPlan {
        launch: serde_json::from_value(launch).expect("it is a launch"),
        workdir: ObjectRef { key: String::new(), size: 0, sha256: String::new() },
        ethos: None,
        secrets: Secrets {
            variables: BTreeMap::from([("KEY".to_owned(), "value".to_owned())]),
            masked: Vec::new(),
        },
    }
}

/// Starts a runner that is this script, and stops waiting for it soon. Answers whether the
/// secrets are still on the disk.
async fn left_by(script: &str) -> bool {
    let directory = TempDir::new().expect("a temporary directory");
    let runner = directory.path().join("runner");
    fs::write(&runner, format!("#!/bin/sh\n{script}\n")).expect("it is written");
    fs::set_permissions(&runner, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let process = Process::new(directory.path().join("runs"), runner, no_store());
    let process = process.expect("a directory can be made");
    let run = RunName { job: JobId::new(), attempt: Attempt::FIRST };
    let dir = process.dir(run);
    fs::create_dir(dir.root()).expect("a directory can be made");
    dir.write_launch(&plan().launch).expect("it is written");
    let started =
        timeout(Duration::from_millis(500), process.start(run, &plan(), Instant::now())).await;
    assert!(!matches!(started, Ok(Ok(()))), "no start gate was passed");
    dir.secrets().exists()
}

#[tokio::test]
async fn secrets_are_left_only_to_a_runner_that_still_takes_them() {
    // It ends when its directory is gone, and in any case.
    let goes_on = "for i in $(seq 60); do [ ! -e \"$2\" ] || sleep 1; done";
    assert!(left_by(goes_on).await, "the worker was stopped, and the runner goes on");
    let ends = "exit 1";
    let within = Duration::from_secs(20);
    let gone = async { while left_by(ends).await {} };
    timeout(within, gone).await.expect("a runner that ended leaves none");
}

#[tokio::test]
async fn a_directory_that_was_not_filled_to_the_end_is_found_and_removed() {
    let directory = TempDir::new().expect("a temporary directory");
    let runs = directory.path().join("runs");
    let process = Process::new(runs.clone(), PathBuf::from("none"), no_store());
    let process = process.expect("a directory can be made");
    let run = RunName { job: JobId::new(), attempt: Attempt::FIRST };
    fs::create_dir(process.partial(run).root()).expect("a directory can be made");
    assert_eq!(process.runs().await.expect("it can be read"), [run]);
    assert_eq!(process.look(run).await.expect("it can be read"), Life::Fresh);
    process.remove(run).await.expect("it can be removed");
    assert_eq!(process.runs().await.expect("it can be read"), []);
    assert!(!process.partial(run).root().exists());
}

#[tokio::test]
async fn a_user_is_the_runs_until_its_directory_is_gone() {
    let directory = TempDir::new().expect("a temporary directory");
    let process = Process::new(directory.path().join("runs"), PathBuf::from("none"), no_store());
    // Not that of the same test elsewhere, which would end what runs here.
    let range = IdRange { first: 1_950_000_000 + std::process::id(), count: 1 };
    let mut process = process.expect("a directory can be made");
    // Each of these numbers would leave a link in the machine's own place.
    process.ids = Ids::new(&process.runs, &directory.path().join("machine"));
    process.confinement.kind = Kind::Users(range, Reach::Open);
    let run = RunName { job: JobId::new(), attempt: Attempt::FIRST };
    let (dir, name) = (process.dir(run), run.to_string());
    let user = || process.ids.of(&name).expect("it can be read");

    // What is left when a step behind the renaming fails.
    fs::create_dir(dir.root()).expect("a directory can be made");
    assert_eq!(process.sandbox(run).expect("there is one"), Sandbox::User { id: range.first });
    process.undo(run);
    assert_eq!(user(), Some(range.first));

    // Its description says another user; what is noted as taken counts.
    let mut launch = plan().launch;
    launch.sandbox = Sandbox::None;
    dir.write_launch(&launch).expect("it is written");
    let sleep = || {
        let sleep = std::process::Command::new("sleep").arg("600").uid(range.first).spawn();
        sleep.expect("root starts it as anybody")
    };
    let mut swept = sleep();
    process.sweep(run).await.expect("it is ended");
    assert_eq!(swept.wait().expect("it is ours").signal(), Some(9));

    // While a supervisor is there, it is asked to stop, and nothing is taken away.
    let identity =
        errand_runner::run_dir::Identity { pid: 1, boot_id: String::new(), start_time: 1 };
    let running = dir.start(&identity).expect("nobody has started it");
    let refused = process.remove(run).await.expect_err("it runs");
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    assert!(dir.stop().exists() && dir.root().exists());
    assert_eq!(user(), Some(range.first));
    drop(running);

    let mut removed = sleep();
    process.remove(run).await.expect("nobody runs");
    assert_eq!(removed.wait().expect("it is ours").signal(), Some(9));
    assert!(!dir.root().exists());
    assert_eq!(user(), None);
}

/// Set for this program when it runs itself as another user, to the directory that it looks at.
const AS_NOBODY: &str = "ERRAND_TEST_AS_NOBODY";

/// A worker that is no root reads no more than its agent, the same user, has left open.
#[test]
fn case_f9_a_worker_that_is_no_root_names_what_it_cannot_read_and_removes_it() {
    if let Some(root) = std::env::var_os(AS_NOBODY) {
        return save_and_remove(Path::new(&root));
    }
    let directory = TempDir::new().expect("a temporary directory");
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    open(directory.path(), 0o777).expect("it is ours");
    let program = directory.path().join("test");
    fs::copy(std::env::current_exe().expect("it has a path"), &program).expect("room on the disk");
    let this = "executor::process::tests::\
        case_f9_a_worker_that_is_no_root_names_what_it_cannot_read_and_removes_it";
    let output = std::process::Command::new("setpriv")
        .args(["--clear-groups", "--reuid", "65534", "--regid", "65534"])
        .arg(program)
        .args(["--exact", this])
        .env(AS_NOBODY, directory.path().join("run"))
        .output()
        .expect("there is a setpriv");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(!directory.path().join("run").exists());
}

fn save_and_remove(root: &Path) {
    let close = |path: &Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("it is ours");
    };
    fs::create_dir_all(root.join("locked")).expect("room on the disk");
    for file in ["a", "s", "locked/z", "b"] {
        fs::write(root.join(file), file).expect("room on the disk");
    }
    close(&root.join("s"));
    close(&root.join("locked"));
    let (bundle, report) =
        bundle::write_directory(root, "top", Vec::new(), None).expect("what can be read is saved");
    let skipped: Vec<_> =
        report.skipped.named.iter().map(|it| (it.path.as_str(), it.reason.as_str())).collect();
    assert_eq!(skipped, [("locked", "permission denied"), ("s", "permission denied")]);
    let mut saved = Vec::new();
    bundle::files(&bundle[..], bundle::Limits::default(), |name, _| {
        saved.push(String::from_utf8_lossy(name).into_owned());
        Ok(())
    })
    .expect("it is a bundle");
    assert_eq!(saved, ["a", "b"]);
    remove_tree(root).expect("its own user removes it");
}
