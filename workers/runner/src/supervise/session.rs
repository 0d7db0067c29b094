//! The time between the start of the Fabric host and the moment when nothing is left of it.

use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use errand_runner::{Launch, LogStream, Outcome, RunDir, output};
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::left_stderr;
use super::limits::Limits;
use super::prepare::{self, Prepared};
use super::verdict::{Ended, Verdict};
use super::watch::{End, Watch};
use crate::limit;
use crate::log::{Follower, Log};
use crate::mask::{Mask, SHORTEST};
use crate::report::{self, Report};
use crate::scan;
use crate::tree::Tree;

/// Between two looks while something happens, and while nothing does.
const TICK: Duration = Duration::from_millis(20);
const QUIET_TICK: Duration = Duration::from_millis(50);

/// The log may always have this size, however small the output limit is.
const LEAST_LOG_BUDGET: u64 = 8 * 1024 * 1024;

/// How long the log of what was left unread may keep the end of a run waiting.
const DRAIN_PATIENCE: Duration = Duration::from_secs(60);

/// A killed process that does not go away hangs in the kernel. Then the run ends without it, and
/// the worker sees to it.
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(60);

/// What the host needs to report once the agent is gone.
const REPORT_PATIENCE: Duration = Duration::from_secs(1);

/// Runs the attempt to its end.
pub(super) fn conduct(run: &RunDir, started_at: Timestamp) -> Outcome {
    let verdict = match prepare::prepare(run) {
        Ok(prepared) => conduct_prepared(run, &prepared),
        Err(error) => Verdict::raised(error.raised()),
    };
    verdict.into_outcome(started_at)
}

fn conduct_prepared(run: &RunDir, prepared: &Prepared) -> Verdict {
    let launch = &prepared.launch;
    let mask = Mask::new(prepared.secrets.values());
    let budget = log_budget(launch);
    let log = match Log::create(&run.log(), mask, budget) {
        Ok(log) => log,
        Err(source) => {
            let doing = "create agent.log";
            return Verdict::raised(prepare::Error::Io { doing, source }.raised());
        }
    };
    let agent = agent_reference(launch);
    let mut session =
        Session { run, log, followers: followers(run), buffer: Vec::new(), moved: Instant::now() };
    session
        .log
        .platform(&format!("Executing agent {agent} (timeout {}s).", launch.timeout_seconds));
    session.warn_of_short_secrets(prepared);
    session.log.platform(&format!("Invoking agent {agent}."));
    session.log.flush();
    match prepare::start_host(run, prepared) {
        Ok(host) => session.supervise(Pid::from_child(&host), prepared, &agent),
        Err(error) => session.close(Verdict::raised(error.raised()), &agent),
    }
}

/// The most of the grace of a run whose lease is over.
const LEASE_GRACE_SECONDS: f64 = 60.0;

/// Between TERM and KILL. When nobody has renewed the lease, the agent has to be gone before
/// somebody else may start it: a claim is taken over two minutes after that, or as late again as the
/// lease is long.
fn grace(launch: &Launch, end: &End) -> f64 {
    match (end, launch.lease_seconds) {
        (End::Lease, Some(lease)) => launch.grace_seconds.min(LEASE_GRACE_SECONDS).min(lease / 2.0),
        _ => launch.grace_seconds,
    }
}

/// Bytes of the agent that the log may hold. An agent could make its output as long as it likes,
/// so after its end no more than this is read of it either.
fn log_budget(launch: &Launch) -> u64 {
    LEAST_LOG_BUDGET.max(launch.output_limit_bytes.saturating_mul(2))
}

/// `workspace/name`, as the request context spells it.
fn agent_reference(launch: &Launch) -> String {
    let known = launch.context.get("nemo_helix").map(|own| &own["agent"]);
    match known.and_then(|agent| agent.as_str()) {
        Some(agent) => agent.to_owned(),
        None => {
            format!("{}/{}", launch.workspace, launch.agent["name"].as_str().unwrap_or("agent"))
        }
    }
}

fn followers(run: &RunDir) -> [Follower; 3] {
    [
        Follower::new(output::stdout(run), LogStream::Stdout),
        Follower::new(output::stderr(run), LogStream::Stderr),
        Follower::new(output::adapter_stderr(run), LogStream::Stderr),
    ]
}

struct Session<'a> {
    run: &'a RunDir,
    log: Log,
    followers: [Follower; 3],
    buffer: Vec<u8>,
    moved: Instant,
}

impl Session<'_> {
    fn warn_of_short_secrets(&mut self, prepared: &Prepared) {
        let short = prepared.secrets.variables.iter().filter(|(_, value)| value.len() < SHORTEST);
        let names = Vec::from_iter(short.map(|(name, _)| name.as_str()));
        if !names.is_empty() {
            self.log.platform(&format!(
                "Secret variables with fewer than {SHORTEST} bytes are not masked in logs: {}.",
                names.join(", ")
            ));
        }
    }

    fn supervise(mut self, host: Pid, prepared: &Prepared, agent: &str) -> Verdict {
        let group = prepared.launch.cgroup.as_ref();
        let mut tree = Tree::new(host, group);
        let mut watch = Watch::new(self.run, &prepared.launch);
        let handle = pidfd_open(host, PidfdFlags::empty()).ok();
        let end = loop {
            tree.reap();
            if tree.host_status().is_some() {
                // An invocation may have begun and ended since the last look.
                watch.look();
                break End::Host;
            }
            if let Some(end) = watch.look() {
                break end;
            }
            if !self.follow() {
                self.rest(handle.as_ref());
            }
        };
        if end != End::Host {
            self.wind_down(&mut tree, grace(&prepared.launch, &end));
        }
        let left = tree.kill_all(KILL_PATIENCE);
        if left > 0 {
            self.log.platform(&format!(
                "{left} processes of the agent could not be killed; the system has to be looked at."
            ));
        }
        let limits = Limits::of(&prepared.launch);
        let ended = Ended {
            end,
            host_status: tree.host_status(),
            killed: tree.killed(),
            invoked_at: watch.invoked_at(),
            limit_seconds: limit::seconds(&prepared.launch),
            lease_seconds: prepared.launch.lease_seconds,
            host_words: prepare::host_words(self.run),
        };
        // The agent has had its hands on all that is read now: should that break this program, the
        // run has an outcome all the same.
        let judged =
            panic::catch_unwind(AssertUnwindSafe(|| self.judge(prepared, &ended, &limits)));
        let mut verdict = judged.unwrap_or_else(|_| Verdict::broken_off(&ended));
        verdict.set_left(left);
        self.close(verdict, agent)
    }

    /// Looks at what the agent and the host left, and keeps what is to be kept.
    fn judge(&mut self, prepared: &Prepared, ended: &Ended, limits: &Limits) -> Verdict {
        let reported = report::read(self.run);
        self.log_lost_diagnostics(reported.as_ref());
        let mut verdict = Verdict::of(ended, reported);
        verdict.weigh_limits(limits);
        self.drain(log_budget(&prepared.launch));
        let known = verdict.stderr_files();
        if !verdict.is_success() {
            left_stderr::log(&mut self.log, &self.run.base(), &prepared.dirs.artifacts, &known);
        }
        let kept = output::keep(self.run, &prepared.dirs.artifacts, !known.is_empty());
        verdict.add_artifacts(kept.artifacts);
        for problem in kept.problems.iter().chain(&limits.struck).chain([&ended.host_words]) {
            if !problem.is_empty() {
                self.log.platform(problem);
            }
        }
        let hurry = ended.end != End::Host;
        let found = scan::run(&mut self.log, self.run, &prepared.launch, &prepared.dirs, hurry);
        verdict.add_secrets_found(found);
        verdict
    }

    /// TERM, then grace, then KILL for the agent; the host and our adapter get a moment to say
    /// how it ended.
    fn wind_down(&mut self, tree: &mut Tree<'_>, grace_seconds: f64) {
        let grace = limit::bounded(grace_seconds);
        tree.terminate();
        self.follow_until(grace, tree, |tree| tree.agent().is_empty());
        tree.kill_agent(KILL_PATIENCE);
        self.follow_until(REPORT_PATIENCE, tree, |tree| tree.host_status().is_some());
    }

    fn follow_until(
        &mut self,
        patience: Duration,
        tree: &mut Tree<'_>,
        done: fn(&Tree<'_>) -> bool,
    ) {
        let until = Instant::now() + patience;
        loop {
            tree.reap();
            self.follow();
            if done(tree) || Instant::now() >= until {
                return;
            }
            std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// Logs what has been written; says whether there is more at once.
    fn follow(&mut self) -> bool {
        let mut more = false;
        for follower in &mut self.followers {
            let count = follower.follow(&mut self.log, &mut self.buffer);
            if count > 0 {
                self.moved = Instant::now();
            }
            more |= count == Follower::CHUNK;
        }
        self.log.flush();
        more
    }

    /// Waits for the host's end, but no longer than a tick.
    fn rest(&self, host: Option<&OwnedFd>) {
        let tick = if self.moved.elapsed() < Duration::from_secs(2) { TICK } else { QUIET_TICK };
        let Some(host) = host else {
            std::thread::sleep(tick);
            return;
        };
        let timeout = Timespec::try_from(tick).expect("a tick is a fraction of a second");
        // An interrupted wait only makes the next look come sooner.
        let _ = poll(&mut [PollFd::new(host, PollFlags::IN)], Some(&timeout));
    }

    /// Nobody writes any more: logs the rest, up to so many bytes of each stream, and as long as
    /// there is time and nobody asks for the end.
    fn drain(&mut self, most: u64) {
        let until = Instant::now() + DRAIN_PATIENCE;
        let is_asked = || self.run.stop().symlink_metadata().is_ok();
        let asked_before = is_asked();
        let may_go_on =
            |read| read < most && Instant::now() < until && (asked_before || !is_asked());
        for follower in &mut self.followers {
            let left = follower.finish(&mut self.log, &mut self.buffer, may_go_on);
            if left > 0 {
                let name = match follower.stream() {
                    LogStream::Stdout => "stdout",
                    LogStream::Stderr | LogStream::Platform => "stderr",
                };
                self.log.platform(&format!(
                    "The agent's {name} is too long for the log: its last {left} bytes are in \
                     output_artifacts only."
                ));
            }
        }
        self.log.flush();
    }

    /// An adapter that failed faster than its stderr could be followed left a copy with Fabric.
    fn log_lost_diagnostics(&mut self, reported: Option<&Report>) {
        let Some(Report::Raised(raised)) = reported else {
            return;
        };
        self.followers[2].follow(&mut self.log, &mut self.buffer);
        if !self.followers[2].found() {
            for line in raised.diagnostics.lines() {
                self.log.agent(LogStream::Stderr, line.as_bytes(), line.len() as u64);
            }
        }
    }

    fn close(mut self, mut verdict: Verdict, agent: &str) -> Verdict {
        self.log.platform(&verdict.sentence_about(agent));
        if let Some(reason) = verdict.reason_of(agent) {
            self.log.platform(&reason);
        }
        self.log.close();
        verdict.finish(&self.log);
        verdict
    }
}
