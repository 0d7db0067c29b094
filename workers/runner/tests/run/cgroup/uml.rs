//! The same tests on version 2: a user-mode kernel runs this very test program on the machine's
//! files, which it sees read-only. What it prints is all that comes back.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

const KERNEL: &str = "/usr/bin/linux.uml";
const INSTALL: &str = "apt-get install --no-install-recommends user-mode-linux";

/// The last thing that the guest says.
const OVER: &str = "errand: the guest is done";
const PASSED: &str = "errand: passed as";

/// All of them as root at the root of the hierarchy, then some as a service that a group was
/// delegated to.
fn init(program: &Path) -> String {
    let program = program.display();
    let all = "cgroup:: --skip uml --skip machine_has_not --test-threads 3";
    let some = "the_group_lies killed_for_it half_a_processor --test-threads 3";
    format!(
        r#"#!/bin/sh
mount -t proc proc /proc
mount -t tmpfs tmpfs /tmp
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
export PATH=/usr/bin:/bin:/usr/sbin:/sbin
{program} {all} && echo "{PASSED} root"
mkdir /sys/fs/cgroup/service
echo "+cpu +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
export ERRAND_TEST_BASE=/sys/fs/cgroup/service
sh -c 'echo $$ > /sys/fs/cgroup/service/cgroup.procs; exec {program} {some}' &&
    echo "{PASSED} service"
echo "{OVER}"
sleep 600
"#
    )
}

#[test]
fn on_version_2_too() {
    assert!(Path::new(KERNEL).exists(), "no {KERNEL}: {INSTALL}");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let script = folder.path().join("init.sh");
    let program = std::env::current_exe().expect("this program has a path");
    fs::write(&script, init(&program)).expect("room on the disk");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut guest = Command::new(KERNEL)
        .args(["mem=512M", "root=/dev/root", "rootfstype=hostfs", "ro", "quiet"])
        .args(["con=null", "con0=fd:0,fd:1"])
        .arg(format!("init={}", script.display()))
        // Its memory is a file here.
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Its processes are processes here, and have to go with it.
        .process_group(0)
        .spawn()
        .expect("the kernel starts");
    let output = BufReader::new(guest.stdout.take().expect("it is piped"));
    let (lines, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    let mut said = Vec::new();
    while let Ok(line) = told.recv_timeout(Duration::from_secs(300)) {
        let over = line.contains(OVER);
        said.push(line);
        if over {
            break;
        }
    }
    kill_process_group(Pid::from_child(&guest), Signal::KILL).expect("it is ours");
    guest.wait().expect("it is ours");
    for how in ["root", "service"] {
        let passed = format!("{PASSED} {how}");
        assert!(said.iter().any(|line| line.contains(&passed)), "{how}:\n{}", said.join("\n"));
    }
}
