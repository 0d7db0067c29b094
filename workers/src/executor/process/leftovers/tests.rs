use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

use tempfile::TempDir;

use super::*;

/// Nobody else's, on no machine, and not that of these tests where they run twice at a time.
fn user() -> u32 {
    1_988_000_000 + std::process::id()
}

/// Each shell starts the next one and ends: what a look finds is gone before it is signalled.
const CHAIN: &str = "/bin/sh \"$0\" & /bin/sh -c : ; exit 0";

fn members(mark: &str, user: Option<u32>) -> Members {
    Members { mark: format!("{MARK}{mark}").into_bytes(), user }
}

fn alive(members: &Members) -> usize {
    let processes = processes().expect("a Linux machine");
    processes.into_iter().filter(|pid| members.include(*pid) == Some(true)).count()
}

#[test]
fn a_chain_of_forks_does_not_outrun_the_end_of_its_user() {
    let directory = TempDir::new().expect("a temporary directory");
    let script = directory.path().join("chain.sh");
    fs::write(&script, CHAIN).expect("room on the disk");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.path(), open).expect("it is ours");
    for _ in 0..3 {
        let first = Command::new("/bin/sh").arg(&script).env_clear().uid(user()).spawn();
        first.expect("root starts it as anybody").wait().expect("it is ours");
    }
    let members = members("none", Some(user()));
    let until = Instant::now() + Duration::from_secs(20);
    while alive(&members) == 0 {
        assert!(Instant::now() < until, "the chain goes on without its first link");
    }
    end("none", Some(user())).expect("it ends");
    assert_eq!(alive(&members), 0);
    assert!(!users().expect("a Linux machine").contains(&user()));
}

#[test]
fn what_carries_the_name_ends_and_nothing_else_is_touched() {
    let sleep = |run: &str| {
        let sleep = Command::new("sleep").arg("600").env("ERRAND_RUN", run).spawn();
        sleep.expect("there is a sleep")
    };
    let name = format!("leftovers-{}", std::process::id());
    let (mut ours, mut other) = (sleep(&name), sleep(&format!("{name}0")));
    // The number of the other one stands for one of ours that is gone.
    let pid = Pid::from_child(&other);
    members(&name, None).signal(pid, Signal::KILL);
    // Nobody waits for the killed one, which is a zombie until then, and that is an end.
    end(&name, None).expect("it ends");
    assert_eq!(ours.wait().expect("it is ours").signal(), Some(Signal::KILL.as_raw()));
    kill_process(pid, Signal::TERM).expect("it is ours");
    assert_eq!(other.wait().expect("it is ours").signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn a_process_that_is_just_becoming_another_program_is_not_missed() {
    let name = format!("becoming-{}", std::process::id());
    let mut missed = 0;
    for _ in 0..100 {
        let sleep = Command::new("sleep").arg("600").env("ERRAND_RUN", &name).spawn();
        let mut ours = sleep.expect("there is a sleep");
        if members(&name, None).include(Pid::from_child(&ours)) == Some(false) {
            missed += 1;
        }
        ours.kill().expect("it is ours");
        ours.wait().expect("it is ours");
    }
    assert_eq!(missed, 0);
}

#[test]
fn a_process_without_an_environment_and_one_of_the_kernel_are_known_as_others() {
    let mut bare = Command::new("sleep").arg("600").env_clear().spawn().expect("there is a sleep");
    let pid = Pid::from_child(&bare);
    let until = Instant::now() + Duration::from_secs(20);
    while environment_of(pid).is_none() {
        assert!(Instant::now() < until, "it becomes a program");
    }
    assert_eq!(members("none", None).include(pid), Some(false));
    bare.kill().expect("it is ours");
    bare.wait().expect("it is ours");
    // In a container there is none, and what has the number is somebody else's.
    assert_eq!(members("none", None).include(Pid::from_raw(2).expect("not 0")), Some(false));
}
