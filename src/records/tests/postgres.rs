//! A PostgreSQL server of the test's own, on a socket in a temporary directory.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

/// A running server; it stops when this is dropped.
pub(crate) struct Server {
    directory: TempDir,
    fsync: &'static str,
    programs: PathBuf,
    user: Option<(u32, u32)>,
}

impl Server {
    /// One that forgets what it was told when the machine stops, and is quicker for it.
    pub(crate) fn start() -> Self {
        Self::syncing("off")
    }

    /// One that syncs its writes, or not: `on` or `off`.
    pub(crate) fn syncing(fsync: &'static str) -> Self {
        let directory = tempfile::Builder::new().prefix("pg").tempdir().expect("a directory");
        let server = Self { directory, fsync, programs: programs(), user: unprivileged() };
        if let Some((uid, gid)) = server.user {
            chown(server.path(), Some(uid), Some(gid)).expect("root may give a directory away");
        }
        server.run("initdb", &["-D", "data", "-U", "errand", "-A", "trust", "-E", "UTF8", "-N"]);
        assert!(server.launch(), "{}", server.log());
        server
    }

    /// Whether it could be started; it waits until the server takes connections.
    fn launch(&self) -> bool {
        let (socket, fsync) = (self.path().display(), self.fsync);
        let options = format!("-k {socket} -c listen_addresses= -c fsync={fsync}");
        self.succeeds("pg_ctl", &["-D", "data", "-w", "-l", "log", "-o", &options, "start"])
    }

    /// Kills its first process. The others notice that and end.
    #[allow(dead_code, reason = "of the two that have this file only the integration tests kill")]
    pub(crate) fn kill(&self) {
        let pid = fs::read_to_string(self.path().join("data/postmaster.pid")).expect("it runs");
        let pid = pid.lines().next().and_then(|pid| Pid::from_raw(pid.trim().parse().ok()?));
        let pid = pid.expect("a process id");
        kill_process(pid, Signal::KILL).expect("it can be killed");
        let deadline = Instant::now() + Duration::from_secs(20);
        while test_kill_process(pid).is_ok() {
            assert!(Instant::now() < deadline, "the server is killed and does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts it again on what it had, after [`Server::kill`]. While one of its old processes
    /// lives it refuses to start.
    #[allow(dead_code, reason = "of the two that have this file only the integration tests kill")]
    pub(crate) fn start_again(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.launch() {
            assert!(Instant::now() < deadline, "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn url(&self) -> String {
        let socket = self.path().to_string_lossy().replace('/', "%2F");
        format!("postgres://errand@localhost/postgres?host={socket}")
    }

    /// Everything in it, as SQL.
    #[allow(dead_code, reason = "of the two that have this file only the integration tests dump")]
    pub(crate) fn dump(&self) -> String {
        let mut command = Command::new(self.programs.join("pg_dump"));
        command.args(["-U", "errand", "-h"]).arg(self.path()).arg("postgres");
        let dump = command.output().expect("pg_dump is beside the server's programs");
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        String::from_utf8_lossy(&dump.stdout).into_owned()
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        assert!(self.succeeds(program, arguments), "{program} {arguments:?}: {}", self.log());
    }

    fn succeeds(&self, program: &str, arguments: &[&str]) -> bool {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(self.path()).env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command.status().unwrap_or_else(|error| panic!("{program}: {error}")).success()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    /// `pg_ctl` finds the server by the pid that it wrote into its data directory, and returns
    /// when it is gone.
    fn drop(&mut self) {
        if self.path().join("data/postmaster.pid").exists() {
            self.run("pg_ctl", &["-D", "data", "-w", "-m", "immediate", "stop"]);
        }
    }
}

/// The directory with the server's own programs; the one in the path may be a link to it.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let directories = std::env::split_paths(&path).chain(installed.map(|it| it.path().join("bin")));
    directories
        .filter_map(|directory| directory.join("postgres").canonicalize().ok())
        .filter_map(|postgres| postgres.parent().map(Path::to_owned))
        .find(|programs| programs.join("initdb").exists())
        .expect("this test needs a PostgreSQL server: apt-get install -y postgresql-15")
}

/// Who the server runs as, when we are root: it refuses to.
fn unprivileged() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").expect("proc is mounted").uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("users can be read");
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map_while(|id| id.parse().ok());
        Some((ids.next()?, ids.next()?))
    };
    Some(find("postgres").or_else(|| find("nobody")).expect("there is a user nobody"))
}
