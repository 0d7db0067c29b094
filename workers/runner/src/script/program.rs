//! Runs the program of a script agent: feeds it, reads it, and sees it end.
//!
//! One thread and one `poll` serve all pipes, so memory is bounded whatever is written. The exit
//! of the main process ends the run; who still holds the pipes then is not waited for. Nothing
//! here keeps a time limit: the supervisor does.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use errand_runner::{RunDir, output};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Map, Value};

use super::spool::Spool;
use crate::tail::whole_lines;
use crate::tree;

/// Bytes of stdout that are the response.
const RESPONSE_LIMIT: usize = 1024 * 1024;

/// After the exit: at most so long for what is still in the pipes, and so long without a byte.
const DRAIN: Duration = Duration::from_millis(500);
const DRAIN_QUIET: Duration = Duration::from_millis(100);

/// Without a handle on the child (kernels before 5.3), how often its end is looked for.
const BLIND_TICK: Duration = Duration::from_millis(10);

/// The end of stderr that is kept for the failure's message, and how much of its last line.
const LAST_WORDS: usize = 4096;

/// Fabric's variables that an agent may know.
const FABRIC_VARIABLES: [&str; 3] = ["FABRIC_HOME", "FABRIC_RUNTIME_ID", "FABRIC_ARTIFACTS"];

/// What to run.
pub(super) struct Program<'a> {
    pub(super) run: &'a RunDir,
    pub(super) argv: &'a [PathBuf],
    pub(super) workspace: &'a Path,
    /// Variables that the agent definition sets itself.
    pub(super) own_variables: &'a Map<String, Value>,
    pub(super) input: &'a [u8],
    pub(super) context: &'a Map<String, Value>,
    pub(super) output_limit: u64,
}

/// How it ended.
pub(super) struct Ending {
    pub(super) code: i32,
    pub(super) signal: Option<i32>,
    /// The first bytes of stdout, and how many there were.
    pub(super) response: Vec<u8>,
    pub(super) response_bytes: u64,
    /// The last line on stderr.
    pub(super) last_words: String,
    pub(super) disk_full: bool,
}

/// Why it could not be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(
        "the command {0:?} was not found: not in the working directory, not beside agent.yaml, \
         not on PATH"
    )]
    NotFound(PathBuf),
    #[error("the command {0:?} is not executable")]
    NotExecutable(PathBuf),
    #[error("the command {command:?} cannot be started: {source}")]
    Start { command: PathBuf, source: io::Error },
    #[error("cannot {doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
}

impl Error {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => "disk_full",
            _ => "agent_failed",
        }
    }
}

impl Program<'_> {
    /// Runs it to its end.
    pub(super) fn run(&self) -> Result<Ending, Error> {
        let mut child = self.start()?;
        let doing = "follow the agent's output";
        let io_error = |source| Error::Io { doing, source };
        let mut pipes = Pipes::new(&mut child, self).map_err(io_error)?;
        let status = pipes.serve(&mut child, self.input).map_err(io_error)?;
        Ok(pipes.into_ending(status))
    }

    fn start(&self) -> Result<Child, Error> {
        let doing = "write the agent's input";
        let input = self.run.tmp().join("input.txt");
        let context = self.run.tmp().join("context.json");
        fs::write(&input, self.input).map_err(|source| Error::Io { doing, source })?;
        fs::write(&context, Value::Object(self.context.clone()).to_string())
            .map_err(|source| Error::Io { doing, source })?;
        let (name, arguments) =
            self.argv.split_first().expect("the settings schema demands a first word");
        let mut command = Command::new(name);
        command
            .args(arguments)
            .current_dir(self.workspace)
            .env_remove("ADAPTER_PYTHON")
            .env("ERRAND_INPUT", input)
            .env("ERRAND_CONTEXT", context)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (variable, _) in std::env::vars_os() {
            let variable = variable.to_string_lossy();
            if variable.starts_with("FABRIC_")
                && !FABRIC_VARIABLES.contains(&&*variable)
                && !self.own_variables.contains_key(&*variable)
            {
                command.env_remove(&*variable);
            }
        }
        let own = self.context.get("nemo_helix").map(|own| &own["deadline"]);
        if let Some(deadline) = own.and_then(Value::as_str) {
            command.env("NEMO_JOB_DEADLINE", deadline);
        }
        command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound(name.clone()),
            io::ErrorKind::PermissionDenied => Error::NotExecutable(name.clone()),
            _ => Error::Start { command: name.clone(), source },
        })
    }
}

/// A pipe of the child's output.
struct Outlet {
    pipe: Option<Box<dyn Readable>>,
    spool: Spool,
}

trait Readable: Read + rustix::fd::AsFd {}
impl<T: Read + rustix::fd::AsFd> Readable for T {}

struct Pipes {
    handle: Option<OwnedFd>,
    stdin: Option<ChildStdin>,
    fed: usize,
    stdout: Outlet,
    stderr: Outlet,
    response: Vec<u8>,
    last_words: Vec<u8>,
    buffer: Vec<u8>,
}

impl Pipes {
    fn new(child: &mut Child, program: &Program<'_>) -> io::Result<Self> {
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        if let Some(pipe) = &stdin {
            ioctl_fionbio(pipe, true)?;
        }
        if let (Some(out), Some(err)) = (&stdout, &stderr) {
            ioctl_fionbio(out, true)?;
            ioctl_fionbio(err, true)?;
        }
        let spool = |path: PathBuf| Spool::create(&path, program.output_limit);
        Ok(Self {
            handle: pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok(),
            stdin,
            fed: 0,
            stdout: Outlet {
                pipe: stdout.map(|pipe| Box::new(pipe) as Box<dyn Readable>),
                spool: spool(output::stdout(program.run))?,
            },
            stderr: Outlet {
                pipe: stderr.map(|pipe| Box::new(pipe) as Box<dyn Readable>),
                spool: spool(output::stderr(program.run))?,
            },
            response: Vec::new(),
            last_words: Vec::new(),
            buffer: vec![0; 64 * 1024],
        })
    }

    fn serve(&mut self, child: &mut Child, input: &[u8]) -> io::Result<ExitStatus> {
        let mut ended: Option<(ExitStatus, Instant)> = None;
        let mut last_byte = Instant::now();
        loop {
            if self.feed(input) | self.drink() {
                last_byte = Instant::now();
            }
            if ended.is_none() {
                ended = child.try_wait()?.map(|status| (status, Instant::now()));
            }
            let patience = match ended {
                None => None,
                Some((status, at)) => {
                    let drained = self.stdout.pipe.is_none() && self.stderr.pipe.is_none();
                    let until = (at + DRAIN).min(last_byte.max(at) + DRAIN_QUIET);
                    let now = Instant::now();
                    if drained || now >= until {
                        return Ok(status);
                    }
                    Some(until - now)
                }
            };
            if !self.wait(ended.is_some(), patience) {
                // Fabric is gone, and with it whoever would keep the limit.
                tree::kill_descendants();
                return child.wait();
            }
        }
    }

    /// Sleeps until something can be done; says whether Fabric is still there.
    fn wait(&self, ended: bool, patience: Option<Duration>) -> bool {
        let stdin = io::stdin();
        let mut watched = vec![PollFd::new(&stdin, PollFlags::empty())];
        if let (Some(handle), false) = (&self.handle, ended) {
            watched.push(PollFd::new(handle, PollFlags::IN));
        }
        if let (Some(pipe), false) = (&self.stdin, ended) {
            watched.push(PollFd::new(pipe, PollFlags::OUT));
        }
        for outlet in [&self.stdout, &self.stderr] {
            if let Some(pipe) = &outlet.pipe {
                watched.push(PollFd::new(pipe, PollFlags::IN));
            }
        }
        let blind = (self.handle.is_none() && !ended).then_some(BLIND_TICK);
        let timeout = patience.or(blind).and_then(|patience| Timespec::try_from(patience).ok());
        // An interrupted wait only makes the next round come sooner.
        let _ = poll(&mut watched, timeout.as_ref());
        !watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// Writes as much input as the pipe takes, and closes it at the end. A program that does not
    /// read its input has every right not to.
    fn feed(&mut self, input: &[u8]) -> bool {
        let before = self.fed;
        while let Some(pipe) = &mut self.stdin {
            if self.fed == input.len() {
                self.stdin = None;
                break;
            }
            match pipe.write(&input[self.fed..]) {
                Ok(count) => self.fed += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.stdin = None,
            }
        }
        self.fed > before
    }

    fn drink(&mut self) -> bool {
        let Self { stdout, stderr, response, last_words, buffer, .. } = self;
        let out = stdout.drink(buffer, |bytes| {
            let room = RESPONSE_LIMIT - response.len();
            response.extend_from_slice(&bytes[..bytes.len().min(room)]);
        });
        let err = stderr.drink(buffer, |bytes| {
            last_words.extend_from_slice(&bytes[bytes.len().saturating_sub(LAST_WORDS)..]);
            last_words.drain(..last_words.len().saturating_sub(LAST_WORDS));
        });
        out | err
    }

    fn into_ending(self, status: ExitStatus) -> Ending {
        let response_bytes = self.stdout.spool.total();
        let out_full = self.stdout.spool.close();
        let err_full = self.stderr.spool.close();
        Ending {
            code: status.code().unwrap_or_default(),
            signal: status.signal(),
            response: self.response,
            response_bytes,
            last_words: last_line(&self.last_words),
            disk_full: out_full || err_full,
        }
    }
}

impl Outlet {
    /// Reads one buffer's worth, so that the other pipes get their turn.
    fn drink(&mut self, buffer: &mut [u8], mut also: impl FnMut(&[u8])) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                self.spool.take(&buffer[..count]);
                also(&buffer[..count]);
                return true;
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                _ => self.pipe = None,
            },
        }
        false
    }
}

/// The last line that is not blank, whole: of a part of a secret nobody would see that it is one.
/// A line that is longer than what is kept is in the log only.
fn last_line(words: &[u8]) -> String {
    let whole = if words.len() < LAST_WORDS { words } else { whole_lines(words) };
    let text = String::from_utf8_lossy(whole);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().to_owned()
}
