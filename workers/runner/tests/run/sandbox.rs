//! Agents that are users of their own: what they still can do, and what they cannot.
//!
//! These tests give agents other users, which takes root, as production does.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use errand_runner::{Abilities, End, Launch, Network, Sandbox};
use serde_json::json;
use tempfile::TempDir;

use crate::scene::{Done, PROGRAM, Scene};

/// Users that no run of the platform has by default.
const FIRST: u32 = 2_000_100_000;

/// Runs a script as an agent with a user of its own, below a directory that is closed to it.
fn run(script: &str, id: u32, change: impl FnOnce(&mut Launch)) -> Done {
    let scene = scene(script, id).with(change);
    let done = scene.run();
    let mode = fs::metadata(done.scene.root.path()).expect("it is there").mode();
    assert_eq!(mode & 0o777, 0o700, "nothing was opened to anybody else");
    done
}

fn scene(script: &str, id: u32) -> Scene {
    assert!(rustix::process::geteuid().is_root(), "run the tests of sandboxes as root");
    let scene = Scene::new(script).with(|launch| launch.sandbox = Sandbox::User { id });
    close(&scene.root);
    scene
}

/// Nobody but root comes in.
fn close(directory: &TempDir) {
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).expect("it is ours");
}

#[test]
fn an_agent_is_another_user_and_nothing_else() {
    let script = "id -u; id -g; id -G; grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status; \
        pwd; echo kept > file; echo kept > ../artifacts/file; echo kept > $HOME/file; \
        mktemp > $TMPDIR/file; ls .. ../..; cat file";
    let done = run(script, FIRST, |_| {});
    done.assert_end(End::Succeeded, None);
    let said = done.artifact_text("stdout.txt");
    let base = done.scene.run.base();
    let expected = format!(
        "{FIRST}\n{FIRST}\n{FIRST}\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
         NoNewPrivs:\t1\n{}\n..:\nagent.sh\nartifacts\nworkspace\nkept\n",
        base.join("workspace").display()
    );
    assert_eq!(said, expected, "and what lies beside the base cannot be listed");
    assert_eq!(done.workspace_text("file"), "kept\n");
    assert_eq!(done.artifact_text("file"), "kept\n");
}

#[test]
fn an_agent_reads_and_writes_nothing_of_its_supervisor() {
    let script = "cd ../..; \
        for file in launch.json secrets.json agent.log host.stderr started lease; do \
            cat $file && echo read $file; done; \
        for file in outcome.json stop started lease launch.json agent.log new; do \
            echo x > $file && echo wrote $file; rm -f $file; mv $file io/ && echo moved $file; \
        done; \
        parent() { sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$1/stat; }; \
        host=$(parent $PPID); supervisor=$(parent $host); \
        grep -q supervise /proc/$supervisor/cmdline && echo found; \
        kill -9 $supervisor && echo killed; \
        cat /proc/$supervisor/environ && echo read environment; \
        ls /proc/$supervisor/cwd/ /proc/$supervisor/root/root && echo looked; \
        head -c 1 /proc/$supervisor/mem && echo traced; \
        chmod 777 . && echo opened; echo done";
    let done = run(script, FIRST + 1, |launch| launch.lease_seconds = Some(3600.0));
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.result()["response"], "found\ndone");
}

/// As where there is no sandbox, although a directory of PATH is closed to the agent.
#[test]
fn a_program_that_is_not_there_is_not_found() {
    let scene = scene("no-such-program", FIRST + 11);
    let closed = TempDir::new().expect("a temporary directory");
    close(&closed);
    let path = std::env::var("PATH").expect("there is a PATH");
    let path = format!("{}/bin:{path}", closed.path().display());
    let child = scene.start_with(&[("PATH", &path)]);
    let done = scene.finish(child);
    let text = "exited with code 127: ";
    assert!(done.outcome.message.starts_with(text), "{}", done.outcome.message);
}

#[test]
fn two_agents_see_nothing_of_each_other() {
    let waits = "echo mine > file; chmod 644 file; echo $$ > pid; \
        until [ -e $TMPDIR/go ]; do sleep 0.05; done; echo went on";
    let first = scene(waits, FIRST + 2).with_secret("KEY", "value-of-the-first");
    let child = first.start();
    first.await_file("pid");
    let pid = fs::read_to_string(first.workspace("pid")).expect("it was written");
    let (pid, dir) = (pid.trim(), first.workspace("file"));
    let script = format!(
        "cat {} && echo read file; cat /proc/{pid}/environ && echo read environment; \
         kill -9 {pid} && echo killed; ls /proc/{pid}/root/ /proc/{pid}/cwd/ && echo looked; \
         for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done | grep value-of; echo done",
        dir.display()
    );
    let second = run(&script, FIRST + 3, |_| {});
    assert_eq!(second.result()["response"], "done");
    fs::write(first.run.tmp().join("go"), "").expect("the directory is there");
    assert_eq!(first.finish(child).result()["response"], "went on");
}

#[test]
fn a_program_that_sets_its_user_gains_an_agent_nothing() {
    let dir = TempDir::new().expect("a temporary directory");
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let program = dir.path().join("id");
    fs::copy("/usr/bin/id", &program).expect("there is one");
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("it is ours");
    let done = run(&format!("{} -u", program.display()), FIRST + 4, |_| {});
    assert_eq!(done.result()["response"], (FIRST + 4).to_string());
}

#[test]
fn modes_keep_neither_the_agent_nor_the_cleaning_up_from_anything() {
    let script = "echo more >> closed/file; cat secret && echo read; chmod 000 closed; echo done";
    let scene = scene(script, FIRST + 5);
    let outside = scene.root.path().join("outside");
    fs::write(&outside, "").expect("room on the disk");
    let workspace = scene.run.base().join("workspace");
    fs::create_dir_all(workspace.join("closed")).expect("room on the disk");
    let deep = workspace.join(["deep"; 300].join("/"));
    fs::create_dir_all(&deep).expect("room on the disk");
    for (file, mode) in [("closed/file", 0o600), ("read-only", 0o444), ("secret", 0o000)] {
        fs::write(workspace.join(file), "x\n").expect("room on the disk");
        let mode = Permissions::from_mode(mode);
        fs::set_permissions(workspace.join(file), mode).expect("it is ours");
    }
    std::os::unix::fs::symlink(&outside, workspace.join("link")).expect("room on the disk");
    let done = scene.run();
    assert_eq!(done.result()["response"], "done");
    let owner = |path: &Path| fs::symlink_metadata(path).expect("it is there").uid();
    assert_eq!(owner(&outside), 0, "links are not followed");
    let workspace = done.scene.run.base().join("workspace");
    assert_eq!(owner(&workspace.join("link")), FIRST + 5);
    assert_eq!(owner(&deep), FIRST + 5);
    fs::remove_dir_all(done.scene.run.root()).expect("the platform removes it all");
}

#[test]
fn a_link_in_the_agents_files_makes_nothing_outside() {
    let scene = scene("echo never", FIRST + 6)
        .with(|launch| launch.agent["environment"]["artifacts"] = json!("link/made"));
    let outside = scene.root.path().join("outside");
    fs::create_dir(&outside).expect("room on the disk");
    std::os::unix::fs::symlink(&outside, scene.run.base().join("link")).expect("room on the disk");
    let done = scene.run();
    let text = "Local artifacts path must remain within the agent base directory.";
    assert_eq!(done.error()["message"], text);
    assert_eq!(fs::read_dir(outside).expect("it is there").count(), 0);
}

#[test]
fn case_f17_git_accepts_the_tree_of_another_user() {
    let scene = scene("git status --porcelain && git log -1 --format=%s", FIRST + 7);
    let workspace = scene.run.base().join("workspace");
    fs::create_dir_all(&workspace).expect("room on the disk");
    let script = "git init -q . && git config user.email a@b && git config user.name a && \
        echo a > a && git add a && git commit -q -m first";
    let made = Command::new("/bin/sh").args(["-c", script]).current_dir(workspace).status();
    assert!(made.expect("there is a shell").success());
    assert_eq!(scene.run().result()["response"], "first");
}

/// A Fabric adapter in Python, as wheels bring them.
const ADAPTER: &str = r#"
import json, os, sys
for line in sys.stdin:
    operation = json.loads(line)["operation"]
    output = None
    if operation == "invoke":
        said = f"{os.getuid()} {sys.prefix != sys.base_prefix}"
        output = {"status": "succeeded", "output": {"response": said}}
    outcome = {"status": "succeeded", "output": output}
    print(json.dumps({"operation": operation, "outcome": outcome}), flush=True)
    if operation == "stop":
        break
"#;

/// Below a directory that is closed to the agent: a virtual environment, its module, and the
/// adapter's descriptor.
#[test]
fn an_adapter_in_python_runs_from_below_a_closed_directory() {
    let dir = TempDir::new().expect("a temporary directory");
    close(&dir);
    let (venv, adapters) = (dir.path().join("v"), dir.path().join("adapters"));
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv).status();
    assert!(made.expect("there is a python3").success());
    let version = fs::read_dir(venv.join("lib")).expect("it is there").next();
    let version = version.expect("there is one").expect("it can be read").path();
    fs::write(version.join("site-packages/tiny_adapter.py"), ADAPTER).expect("room on the disk");
    fs::create_dir(&adapters).expect("room on the disk");
    let descriptor = json!({
        "contract_version": "fabric.adapter/v1alpha2", "adapter_id": "nvidia.fabric.tiny",
        "adapter_kind": "python", "runner": {"module": "tiny_adapter"},
        "config": {"accepts": ["models"]},
    });
    let file = adapters.join("tiny.fabric-adapter.json");
    fs::write(file, descriptor.to_string()).expect("room on the disk");
    let scene = |id| {
        scene("", id).with(|launch| {
            launch.agent["harnesses"]["script"] =
                json!({"kind": "nvidia.fabric.tiny", "model": {"provider": "p", "model": "m"}});
            launch.adapter_dirs = vec![adapters.display().to_string()];
        })
    };
    let named = scene(FIRST + 8)
        .with(|launch| launch.python = Some(venv.join("bin/python").display().to_string()));
    assert_eq!(named.run().result()["response"], format!("{} True", FIRST + 8));

    let found = scene(FIRST + 12);
    let path = std::env::var("PATH").expect("there is a PATH");
    let path = format!("{}:{path}", venv.join("bin").display());
    let child = found.start_with(&[("PATH", &path)]);
    let response = format!("{} True", FIRST + 12);
    assert_eq!(found.finish(child).result()["response"], response);
}

/// What an interpreter needs is opened to the agent, so a job must not say which one it is.
#[test]
fn no_variable_of_a_job_opens_a_directory() {
    let dir = TempDir::new().expect("a temporary directory");
    close(&dir);
    let python = dir.path().join("private/bin/python");
    fs::create_dir_all(python.with_file_name("")).expect("room on the disk");
    for file in [&python, &dir.path().join("private/file")] {
        fs::write(file, "").expect("room on the disk");
    }
    let script = format!("ls {}/private && echo listed; echo done", dir.path().display());
    let python = python.display().to_string();
    let scene = scene(&script, FIRST + 13)
        .with_secret("ADAPTER_PYTHON", &python)
        .with(|launch| drop(launch.env.insert("ADAPTER_PYTHON".into(), python.clone())));
    assert_eq!(scene.run().result()["response"], "done");
}

/// Tries a listener of the test, a loopback of its own, and a socket that is a file.
const NETWORK: &str = r#"
import os, socket, sys
def tries(what, call):
    try:
        call()
        print(what, "works")
    except OSError as error:
        print(what, "fails")
def own():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    socket.create_connection(listener.getsockname(), timeout=5)
def file():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ["TMPDIR"] + "/s")
    listener.listen()
    socket.socket(socket.AF_UNIX).connect(os.environ["TMPDIR"] + "/s")
tries("outside", lambda: socket.create_connection(("127.0.0.1", PORT), timeout=5))
tries("datagram", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", PORT)))
tries("own", own)
tries("file", file)
"#;

fn network_script(listener: &TcpListener) -> String {
    let port = listener.local_addr().expect("it listens").port();
    let program = NETWORK.replace("PORT", &port.to_string());
    format!("exec /usr/bin/python3 - <<'END'\n{program}END\n")
}

#[test]
fn an_agent_without_network_has_a_loopback_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let script = network_script(&listener);
    let done = run(&script, FIRST + 9, |_| {});
    assert_eq!(done.result()["response"], "outside works\ndatagram works\nown works\nfile works");
    listener.accept().expect("the agent was there");
    let done = run(&script, FIRST + 10, |launch| launch.network = Network::None);
    let said = done.result()["response"].as_str().expect("a text");
    // A datagram to nobody is not refused, but does not arrive either.
    assert_eq!(said, "outside fails\ndatagram works\nown works\nfile works");
    listener.set_nonblocking(true).expect("it is ours");
    assert!(listener.accept().is_err(), "nobody came");
}

/// A user who is not root.
const NOBODY: u32 = 65_534;

/// Runs as a platform would that is not root, with a program that it can reach.
fn run_as_nobody(scene: Scene) -> Done {
    let program = scene.root.path().join("errand-runner");
    fs::copy(PROGRAM, &program).expect("room on the disk");
    let opened = Permissions::from_mode(0o755);
    fs::set_permissions(scene.root.path(), opened).expect("it is ours");
    scene.write();
    let given =
        Command::new("chown").args(["-R", &NOBODY.to_string()]).arg(scene.run.root()).status();
    assert!(given.expect("there is a chown").success());
    let child = Command::new("setpriv")
        .args(["--clear-groups", "--reuid", &NOBODY.to_string(), "--regid", &NOBODY.to_string()])
        .arg(program)
        .arg("supervise")
        .arg(scene.run.root())
        .spawn();
    scene.finish(child.expect("there is a setpriv"))
}

#[test]
fn without_root_landlock_keeps_an_agent_to_its_own_directories() {
    let script = "echo kept > file; echo kept > ../artifacts/file; ls /usr > /dev/null && id -u; \
        for file in ../../launch.json ../../agent.log ../../../other; do \
            cat $file && echo read $file; done; \
        for file in ../../stop ../../outcome.json ../../../new /var/tmp/errand-new; do \
            echo x > $file && echo wrote $file; done; \
        parent() { sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$1/stat; }; \
        supervisor=$(parent $(parent $PPID)); \
        cat /proc/$supervisor/environ && echo read environment; \
        kill -9 $supervisor && echo killed; echo done";
    let scene = Scene::new(script).with(|launch| launch.sandbox = Sandbox::Landlock);
    fs::write(scene.root.path().join("other"), "another run's").expect("room on the disk");
    let done = run_as_nobody(scene);
    assert_eq!(done.result()["response"], format!("{NOBODY}\ndone"));
    assert_eq!(done.workspace_text("file"), "kept\n");
}

#[test]
fn without_root_a_python_beside_the_platforms_data_opens_none_of_it() {
    let script = "cat ../../../other && echo read; cat ../../launch.json && echo read; echo done";
    let scene = Scene::new(script).with(|launch| launch.sandbox = Sandbox::Landlock);
    let home = scene.root.path().to_owned();
    fs::write(home.join("other"), "another run's").expect("room on the disk");
    fs::create_dir(home.join("bin")).expect("it is new");
    std::os::unix::fs::symlink("/usr/bin/python3", home.join("bin/python3")).expect("it is new");
    let scene = scene.with(|launch| {
        launch.python = Some(home.join("bin/python3").display().to_string());
        launch.readable = vec![home];
    });
    assert_eq!(run_as_nobody(scene).result()["response"], "done");
}

#[test]
fn without_root_a_filter_leaves_an_agent_the_sockets_that_are_files() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let scene = Scene::new(&network_script(&listener)).with(|launch| {
        launch.sandbox = Sandbox::Landlock;
        launch.network = Network::None;
    });
    let done = run_as_nobody(scene);
    let said = done.result()["response"].as_str().expect("a text");
    assert_eq!(said, "outside fails\ndatagram fails\nown fails\nfile works");
}

#[test]
fn a_probe_tells_what_can_be_had() {
    let dir = TempDir::new().expect("a temporary directory");
    close(&dir);
    let runs = dir.path().join("runs");
    fs::create_dir(&runs).expect("room on the disk");
    let said = Command::new(PROGRAM).arg("probe").arg(FIRST.to_string()).arg(&runs).output();
    let said = said.expect("the program was built").stdout;
    let found: Abilities = serde_json::from_slice(&said).expect("it is JSON");
    let expected = json!({
        "user": {"Ok": "private_mounts"},
        "landlock": {"Ok": null},
        "no_network": {"Ok": "namespace"},
    });
    assert_eq!(json!(found), expected);
    assert_eq!(fs::read_dir(runs).expect("it is there").count(), 0);
}
