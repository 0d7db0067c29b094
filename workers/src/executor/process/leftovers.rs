//! Processes of a run whose supervisor is gone. They carry the run's name in their environment,
//! which a child inherits and no other program has, or they are of the run's own user; a pid alone
//! is never trusted.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, geteuid, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

use super::stat::Stat;

/// The variable that the runner sets for everything that it starts.
const MARK: &str = "ERRAND_RUN=";

/// Killing takes a moment; something in an uninterruptible wait may take longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it is waited between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Passes over /proc in which a growing crowd is stopped before it is killed as far as known.
const FREEZE_PASSES: usize = 200;

/// Who belongs to a run.
struct Members {
    mark: Vec<u8>,
    user: Option<u32>,
}

/// What a look at all processes saw.
struct Look {
    found: HashSet<Pid>,
    /// Of each process it could be told whether it is one of them.
    is_sure: bool,
}

/// Kills what carries the run's name or is its user's until nothing is.
pub(super) fn end(run: &str, user: Option<u32>) -> io::Result<()> {
    let members = Members { mark: format!("{MARK}{run}").into_bytes(), user };
    let deadline = Instant::now() + PATIENCE;
    loop {
        // A look that finds nobody proves nothing where each forks another and ends.
        let is_killed = user.map_or(Ok(true), |user| kill_user(user, deadline))?;
        let Look { found, is_sure } = members.freeze(deadline)?;
        if is_killed && is_sure && found.is_empty() {
            return Ok(());
        }
        for pid in &found {
            members.signal(*pid, Signal::KILL);
        }
        if Instant::now() > deadline {
            if is_killed && found.is_empty() {
                // Hanging there, it may be anybody's, and must not hold up the end of every run.
                tracing::warn!(run, "a process hangs where it would become another program");
                return Ok(());
            }
            let count = found.len();
            return Err(io::Error::other(format!("{count} processes of the run do not end")));
        }
        std::thread::sleep(LOOK);
    }
}

/// The users of all living processes: real, effective, saved and of the file system.
pub(super) fn users() -> io::Result<HashSet<u32>> {
    Ok(processes()?.into_iter().filter_map(users_of).flatten().collect())
}

impl Members {
    /// Stops them until a look finds no new one: stopped ones cannot fork away from the kill that
    /// follows. The newest come first, so that of a crowd that goes on by forking few are missed.
    fn freeze(&self, deadline: Instant) -> io::Result<Look> {
        let mut found = HashSet::new();
        let mut is_sure = true;
        for _ in 0..FREEZE_PASSES {
            let before = found.len();
            is_sure = true;
            for pid in processes()? {
                match self.include(pid) {
                    Some(true) if found.insert(pid) => self.signal(pid, Signal::STOP),
                    Some(_) => {}
                    None => is_sure = false,
                }
            }
            if found.len() == before || Instant::now() > deadline {
                break;
            }
        }
        Ok(Look { found, is_sure })
    }

    /// None where that cannot be told yet.
    fn include(&self, pid: Pid) -> Option<bool> {
        // One that is dead has no users and no environment here, and waits only for its parent.
        let Some(users) = users_of(pid) else { return Some(false) };
        if self.user.is_some_and(|user| users.contains(&user)) {
            return Some(true);
        }
        match environment_of(pid) {
            Some(environment) => {
                Some(environment.split(|byte| *byte == 0).any(|it| it == self.mark))
            }
            // What is marked and has no user of its own has ours.
            None => (!users.contains(&geteuid().as_raw())).then_some(false),
        }
    }

    /// The number may have become another's since it was read: the handle is taken first, and
    /// what has the number is looked at again. One that is gone is what was wanted, so no error
    /// is one here.
    fn signal(&self, pid: Pid, signal: Signal) {
        let handle = pidfd_open(pid, PidfdFlags::empty());
        if self.include(pid) != Some(true) {
            return;
        }
        match handle {
            Ok(handle) => {
                let _ = pidfd_send_signal(handle, signal);
            }
            // Kernels before 5.3 know no handles; the look itself must do.
            Err(Errno::NOSYS) => {
                let _ = kill_process(pid, signal);
            }
            Err(_) => {}
        }
    }
}

/// Kills all that a user has at once, as that user: the kernel lets no fork escape from it. Says
/// whether that was done; where it cannot be, the walk must do, and nothing better is to come.
fn kill_user(user: u32, deadline: Instant) -> io::Result<bool> {
    // Everybody's processes are root's to kill.
    if user == 0 {
        return Ok(true);
    }
    let killer = Command::new("/bin/sh")
        .args(["-c", "kill -s KILL -- -1"])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .uid(user)
        .gid(user)
        .spawn();
    let Ok(mut killer) = killer else { return Ok(true) };
    // Those whom it kills may kill or stop it first.
    loop {
        if let Some(status) = killer.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > deadline {
            killer.kill()?;
            killer.wait()?;
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
}

/// All of this machine, the newest first.
fn processes() -> io::Result<Vec<Pid>> {
    let entries = fs::read_dir("/proc")?.filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids = pids.collect::<Vec<i32>>();
    pids.sort_unstable_by(|one, other| other.cmp(one));
    Ok(pids.into_iter().filter_map(Pid::from_raw).collect())
}

/// The four users of a process, unless it is dead.
fn users_of(pid: Pid) -> Option<[u32; 4]> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    // The first thread may be dead while others live on.
    let is_dead = field("State:")?.starts_with(['Z', 'X']) && field("Threads:") == Some("1");
    let mut users = field("Uid:")?.split_whitespace().map(str::parse);
    let mut user = || users.next()?.ok();
    (!is_dead).then_some([user()?, user()?, user()?, user()?])
}

/// What a process was started with; nothing where it is gone, the kernel's or not ours to read.
/// None while it becomes another program, which begins with no environment and gets it later: it
/// would look like one that has none, and a `spawn` returns in between.
fn environment_of(pid: Pid) -> Option<Vec<u8>> {
    let read = || fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let environment = read();
    if !environment.is_empty() {
        return Some(environment);
    }
    let Some(program) = program_of(pid) else { return Some(environment) };
    // By now it may be there.
    let environment = read();
    // A kernel that says 0 of ourselves, too, does not tell (gVisor).
    let is_begun = |program: Program| program.code > 0;
    let is_settled = program_of(pid) == Some(program)
        && (is_begun(program) || !program_of(getpid()).is_some_and(is_begun));
    (is_settled || !environment.is_empty()).then_some(environment)
}

/// The program that a process runs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Program {
    /// Where its code begins: 0 until all else of it is there, 1 where this is not ours to read.
    code: u64,
    /// Where its environment ends: at another address in each process.
    environment_end: u64,
}

/// None of a thread of the kernel, and of a process that is gone.
fn program_of(pid: Pid) -> Option<Program> {
    let stat = Stat::of(pid)?;
    let (size, code, environment_end) = (stat.field(23)?, stat.field(26)?, stat.field(51)?);
    (size > 0).then_some(Program { code, environment_end })
}

#[cfg(test)]
mod tests;
