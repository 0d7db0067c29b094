//! The process tree below the supervisor: who is in it, and how it is ended.
//!
//! The supervisor is a child subreaper, so whatever a descendant does (double fork, new session,
//! new process group) its orphans come back as children of the supervisor. Hence the proof that
//! nothing is left is one system call: waiting for any child says that there is none. Where the
//! run has a control group, that makes it stand still and kills it at once; without one the walk
//! over /proc does all.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use errand_runner::Cgroup;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    pidfd_send_signal, wait,
};

/// Passes over /proc in which a growing tree is frozen before it is killed as far as known.
const FREEZE_PASSES: usize = 200;

/// What names a process for ever: the start time tells it from a later one with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    pid: Pid,
    start_time: u64,
}

/// A living process, and its parent at the moment of the look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    identity: Identity,
    parent: i32,
}

/// Everything below the supervisor.
pub(crate) struct Tree<'a> {
    host: Pid,
    group: Option<&'a Cgroup>,
    host_status: Option<WaitStatus>,
    killed: HashSet<Identity>,
}

impl<'a> Tree<'a> {
    /// The tree that begins with the Fabric host, a child of this process, which joins the group.
    pub(crate) fn new(host: Pid, group: Option<&'a Cgroup>) -> Self {
        Self { host, group, host_status: None, killed: HashSet::new() }
    }

    /// How the host ended, once it did.
    pub(crate) fn host_status(&self) -> Option<WaitStatus> {
        self.host_status
    }

    /// How many processes of the agent had to be killed.
    pub(crate) fn killed(&self) -> u32 {
        u32::try_from(self.killed.len()).unwrap_or(u32::MAX)
    }

    /// Takes every child that has ended; says whether no child, and so no descendant, is left.
    pub(crate) fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid == self.host {
                        self.host_status = Some(status);
                    }
                }
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// The agent's living processes: all but the host and our own adapter, which must live on to
    /// report how the agent ended.
    pub(crate) fn agent(&self) -> Vec<Process> {
        let mut processes = descendants(getpid());
        processes.retain(|process| !self.is_ours(process));
        processes
    }

    /// Asks the agent to end.
    pub(crate) fn terminate(&self) {
        for process in self.agent() {
            signal(process.identity, Signal::TERM);
        }
    }

    /// Kills the agent's processes; the host and our adapter live on.
    pub(crate) fn kill_agent(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            self.reap();
            if self.agent().is_empty() {
                return;
            }
            self.kill_frozen(Self::agent);
        }
    }

    /// Kills everything, until nothing is left or the patience is over; says how many are left.
    pub(crate) fn kill_all(&mut self, patience: Duration) -> usize {
        let until = Instant::now() + patience;
        while !self.reap() {
            if Instant::now() >= until {
                return descendants(getpid()).len();
            }
            self.kill_group();
            self.kill_frozen(|_| descendants(getpid()));
        }
        0
    }

    /// Kills the group at once, itself and not by the walk.
    fn kill_group(&mut self) {
        let Some(group) = self.group else { return };
        for pid in group.members() {
            if let Some((process, false)) = read_stat(pid.as_raw_pid())
                && !self.is_ours(&process)
            {
                self.killed.insert(process.identity);
            }
        }
        group.kill();
    }

    /// Stops processes until a look finds no new one, so that not even a storm of forks outruns
    /// the kill that follows.
    fn kill_frozen(&mut self, look: impl Fn(&Self) -> Vec<Process>) {
        let group = self.group.map(Cgroup::freeze);
        let mut frozen = HashMap::new();
        for _ in 0..FREEZE_PASSES {
            let before = frozen.len();
            for process in look(self) {
                if frozen.insert(process.identity, process).is_none() {
                    signal(process.identity, Signal::STOP);
                }
            }
            if frozen.len() == before {
                break;
            }
        }
        for (identity, process) in frozen {
            if !self.is_ours(&process) {
                self.killed.insert(identity);
            }
            signal(identity, Signal::KILL);
        }
        drop(group);
        // What was killed needs a moment to become a zombie that can be reaped.
        std::thread::sleep(Duration::from_millis(1));
    }

    fn is_ours(&self, process: &Process) -> bool {
        let pid = process.identity.pid;
        pid == self.host || (process.parent == self.host.as_raw_pid() && runs_our_program(pid))
    }
}

/// Kills every descendant of the calling process that can still be found.
pub(crate) fn kill_descendants() {
    for process in descendants(getpid()) {
        signal(process.identity, Signal::KILL);
    }
}

/// A look at /proc: all living descendants. Processes come and go meanwhile, so one look proves
/// nothing; callers look again.
fn descendants(root: Pid) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut others: Vec<(Process, bool)> = entries
        .flatten()
        .filter_map(|entry| read_stat(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut family = BTreeSet::from([root.as_raw_pid()]);
    let mut found = Vec::new();
    loop {
        let before = family.len();
        others.retain(|(process, zombie)| {
            let descends = family.contains(&process.parent);
            if descends {
                family.insert(process.identity.pid.as_raw_pid());
                if !zombie {
                    found.push(*process);
                }
            }
            !descends
        });
        if family.len() == before {
            return found;
        }
    }
}

/// Reads a process, and whether it is a zombie.
fn read_stat(pid: i32) -> Option<(Process, bool)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may itself contain parentheses and spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start_time = fields.nth(17)?.parse().ok()?;
    let identity = Identity { pid: Pid::from_raw(pid)?, start_time };
    Some((Process { identity, parent }, matches!(state, "Z" | "X")))
}

/// When a process was started, in ticks since boot.
pub(crate) fn start_time(pid: Pid) -> Option<u64> {
    read_stat(pid.as_raw_pid()).map(|(process, _)| process.identity.start_time)
}

/// Signals exactly this process and never a later one that was given its number. A process that
/// has gone meanwhile is what was wanted, so no error is one here.
fn signal(identity: Identity, signal: Signal) {
    let handle = pidfd_open(identity.pid, PidfdFlags::empty());
    if start_time(identity.pid) != Some(identity.start_time) {
        return;
    }
    match handle {
        Ok(handle) => {
            let _ = pidfd_send_signal(handle, signal);
        }
        // Kernels before 5.3 know no handles; the look at the start time must do.
        Err(Errno::NOSYS) => {
            let _ = kill_process(identity.pid, signal);
        }
        Err(_) => {}
    }
}

fn runs_our_program(pid: Pid) -> bool {
    let identity = |path: String| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    let ours = identity("/proc/self/exe".into());
    ours.is_some() && ours == identity(format!("/proc/{pid}/exe"))
}
