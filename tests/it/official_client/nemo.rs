//! The program `nemo`, and what its output means.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::Platform;

const VENV: &str = "nemo-helix-0.8.1";

/// A client set up for one platform, with an empty home directory, which is also where it works.
pub struct Nemo {
    process: Child,
    commands: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
    home: TempDir,
}

/// What a command did.
#[derive(Debug, Deserialize)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Nemo {
    /// Starts it. `first` is a command that needs no server; it brings in what the later ones
    /// import.
    pub fn start(platform: &Platform, first: &str) -> Self {
        let home = TempDir::new().expect("a temporary directory");
        Self::of(python(platform, home.path()), home, first)
    }

    /// Starts one that has a token.
    pub fn with_token(platform: &Platform, first: &str, token: &str) -> Self {
        let home = TempDir::new().expect("a temporary directory");
        let mut python = python(platform, home.path());
        python.env("NHX_ACCESS_TOKEN", token);
        Self::of(python, home, first)
    }

    /// Starts one that knows of no server but by what it is told of contexts.
    pub fn unconfigured(platform: &Platform, first: &str) -> Self {
        let home = TempDir::new().expect("a temporary directory");
        Self::of(unconfigured(platform, home.path()), home, first)
    }

    fn of(mut python: Command, home: TempDir, first: &str) -> Self {
        let mut process = python
            .args([&fixture("nemo.py"), Path::new(first)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let commands = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("stdout is piped")).lines();
        Self { process, commands, answers, home }
    }

    /// Runs a command, written as in a shell, however it ends.
    pub fn run(&mut self, command: &str) -> Said {
        assert!(!command.contains('\n'), "a command is a line");
        let mut commands = self.commands.as_ref().expect("it is open until the end");
        writeln!(commands, "{command}").expect("python reads");
        let answer = self.answers.next().expect("python answers").expect("it is text");
        serde_json::from_str(&answer).expect("it is JSON")
    }

    /// Runs a command that must succeed; its standard output.
    pub fn ok(&mut self, command: &str) -> String {
        let said = self.run(command);
        assert_eq!(said.code, 0, "nemo {command}: {said:?}");
        said.stdout
    }

    /// Runs a command that must succeed and print one JSON document.
    pub fn json(&mut self, command: &str) -> Value {
        let stdout = self.ok(command);
        serde_json::from_str(&stdout)
            .unwrap_or_else(|error| panic!("nemo {command}: {error} in {stdout}"))
    }

    /// Runs a command that lists, once in each format, and returns its JSON. The others must
    /// have as many rows.
    pub fn list(&mut self, command: &str) -> Value {
        let json = self.json(command);
        let rows = items(&json).len();
        let yaml = self.ok(&format!("{command} -f yaml"));
        let yaml: Value = serde_saphyr::from_str(&yaml).expect("it is YAML");
        assert_eq!(items(&yaml).len(), rows, "{command}: {yaml}");
        let csv = self.ok(&format!("{command} -f csv --no-truncate -c name"));
        assert_eq!(csv.trim_end().lines().count(), rows + 1, "{command}: {csv}");
        let table = self.ok(&format!("{command} -f table --no-truncate -c name"));
        let lines = table.lines().filter(|line| line.starts_with('│')).count();
        assert_eq!(lines, rows, "{command}: {table}");
        json
    }

    /// Runs a command that must end with this code and say this on standard error.
    pub fn fails(&mut self, command: &str, code: i32, text: &str) {
        let said = self.run(command);
        assert_eq!(said.code, code, "nemo {command}: {said:?}");
        assert!(one_line(&said.stderr).contains(text), "nemo {command}: no '{text}' in {said:?}");
    }

    /// Where it works.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file there.
    pub fn write(&self, file: &str, contents: impl AsRef<[u8]>) {
        let path = self.home().join(file);
        std::fs::create_dir_all(path.parent().expect("it is in home")).expect("a directory");
        std::fs::write(path, contents).expect("a file");
    }
}

impl Drop for Nemo {
    fn drop(&mut self) {
        // At the end of its input it ends, and is waited for.
        drop(self.commands.take());
        let _ = self.process.wait();
    }
}

/// The rows of a list, which is an envelope or bare.
pub fn items(list: &Value) -> &Vec<Value> {
    list.get("data").unwrap_or(list).as_array().expect("a list")
}

/// The names in a list, in its order.
pub fn names(list: &Value) -> Vec<&str> {
    items(list).iter().map(|item| item["name"].as_str().expect("a name")).collect()
}

/// The client breaks long lines where it likes.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The client's Python, set up for a platform and with nothing else in its environment.
pub fn python(platform: &Platform, home: &Path) -> Command {
    let python = venv().join("bin/python");
    assert!(python.exists(), "{} is missing; ./dev test installs it", python.display());
    let mut command = Command::new(python);
    command
        .current_dir(home)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .env("COLUMNS", "200")
        .env("HOME", home)
        .env("NHX_BASE_URL", platform.run["http"].as_str().expect("run.json says"))
        .env("NHX_WORKSPACE", "default")
        .env("NEMO_TELEMETRY_ENABLED", "false");
    command
}

/// The same without the variables that name the server and the workspace.
pub fn unconfigured(platform: &Platform, home: &Path) -> Command {
    let mut command = python(platform, home);
    command.env_remove("NHX_BASE_URL").env_remove("NHX_WORKSPACE");
    command
}

/// The program as its users start it.
pub fn program() -> PathBuf {
    venv().join("bin/nemo")
}

/// A file of ours for the client.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/official").join(name)
}

fn venv() -> PathBuf {
    let cache = std::env::var_os("ERRAND_CACHE_DIR").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    cache.unwrap_or_else(|| home().join(".cache/errand")).join(VENV)
}
