//! A run directory before its start, and what is left of it after its end.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use errand_runner::{
    End, Failure, Launch, Life, Limits, LogLine, LogStream, Network, Outcome, RunDir, Sandbox,
    run_dir,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_errand-runner");

/// Awaited things are there within this, or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Base64 that takes a last letter whose bits are cut off.
pub(crate) const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));

/// A run directory before its start.
pub(crate) struct Scene {
    pub(crate) root: TempDir,
    pub(crate) run: RunDir,
    pub(crate) launch: Launch,
    pub(crate) secrets: BTreeMap<String, String>,
}

/// A run after its end.
pub(crate) struct Done {
    pub(crate) scene: Scene,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

impl Scene {
    /// An agent that is `/bin/sh agent.sh`.
    pub(crate) fn new(script: &str) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let run = RunDir::new(root.path().join("run"));
        fs::create_dir_all(run.base()).expect("the base is new");
        fs::write(run.base().join("agent.sh"), script).expect("the script is new");
        let launch = Launch {
            version: 1,
            run: format!("{}-1", root.path().display()),
            job_name: "job-1".into(),
            workspace: "default".into(),
            agent: json!({
                "config_format": "nemo-agents-spec-v1",
                "name": "word-count",
                "default_harness": "script",
                "harnesses": {"script": {
                    "kind": "script",
                    "settings": {"command": ["/bin/sh", "agent.sh"]},
                }},
            }),
            input: "the input".into(),
            context: Map::new(),
            timeout_seconds: 60.0,
            idle_timeout_seconds: None,
            grace_seconds: 2.0,
            lease_seconds: None,
            env: BTreeMap::new(),
            adapter_dirs: Vec::new(),
            python: None,
            readable: Vec::new(),
            output_limit_bytes: 16 * 1024 * 1024,
            limits: Limits::default(),
            cgroup: None,
            sandbox: Sandbox::None,
            network: Network::Host,
        };
        Self { root, run, launch, secrets: BTreeMap::new() }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Launch)) -> Self {
        change(&mut self.launch);
        self
    }

    /// The agent is a foreign Fabric adapter that is this shell script.
    pub(crate) fn with_adapter(mut self, script: &str) -> Self {
        self.launch.agent["harnesses"]["script"] = json!({
            "kind": "nvidia.fabric.echo", "model": {"provider": "p", "model": "m"},
        });
        let adapters = self.root.path().join("adapters");
        fs::create_dir(&adapters).expect("the directory is new");
        let descriptor = json!({
            "contract_version": "fabric.adapter/v1alpha2", "adapter_id": "nvidia.fabric.echo",
            "adapter_kind": "process", "runner": {"command": "/bin/sh", "script": "adapter.sh"},
            "config": {"accepts": ["models"]},
        });
        let file = adapters.join("echo.fabric-adapter.json");
        fs::write(file, descriptor.to_string()).expect("room on the disk");
        fs::write(adapters.join("adapter.sh"), script).expect("room on the disk");
        self.launch.adapter_dirs = vec![adapters.display().to_string()];
        self
    }

    pub(crate) fn with_secret(mut self, name: &str, value: &str) -> Self {
        self.secrets.insert(name.into(), value.into());
        self
    }

    /// What a worker leaves for the supervisor.
    pub(crate) fn write(&self) {
        self.run.write_launch(&self.launch).expect("room on the disk");
        if !self.secrets.is_empty() {
            run_dir::write_json(&self.run.secrets(), &self.secrets, 0o600)
                .expect("room on the disk");
        }
    }

    pub(crate) fn start(&self) -> Child {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, variables: &[(&str, &str)]) -> Child {
        self.write();
        Command::new(PROGRAM)
            .arg("supervise")
            .arg(self.run.root())
            .env("AWS_SECRET_ACCESS_KEY", "w0rker")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .spawn()
            .expect("the program was built")
    }

    pub(crate) fn finish(self, mut child: Child) -> Done {
        let began = Instant::now();
        let status = child.wait().expect("the child is ours");
        let took = began.elapsed();
        assert!(status.success(), "the supervisor ended with {status}");
        match self.run.life().expect("the directory can be read") {
            Life::Ended(outcome) => {
                assert_eq!(self.survivors(), Vec::<String>::new());
                Done { scene: self, outcome: *outcome, took }
            }
            other => panic!("the supervisor has ended and yet the run is {other:?}"),
        }
    }

    pub(crate) fn run(self) -> Done {
        let child = self.start();
        self.finish(child)
    }

    /// Every process of this run, by the mark that all of them carry.
    pub(crate) fn survivors(&self) -> Vec<String> {
        let mark = format!("ERRAND_RUN={}", self.launch.run);
        let processes = fs::read_dir("/proc").expect("a Linux machine");
        processes
            .flatten()
            .filter(|process| {
                let environ = fs::read(process.path().join("environ")).unwrap_or_default();
                environ.split(|byte| *byte == 0).any(|it| it == mark.as_bytes())
            })
            .map(|process| {
                let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&words).replace('\0', " ")
            })
            .collect()
    }

    pub(crate) fn workspace(&self, name: &str) -> PathBuf {
        self.run.base().join("workspace").join(name)
    }

    pub(crate) fn artifact(&self, name: &str) -> PathBuf {
        self.run.base().join("artifacts").join(name)
    }

    pub(crate) fn await_file(&self, name: &str) {
        let path = self.workspace(name);
        await_that(&format!("{name} is there"), || path.exists());
    }
}

impl Done {
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        let text = fs::read_to_string(self.scene.run.log()).expect("there is a log");
        let lines: Vec<LogLine> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line is a LogLine"))
            .collect();
        assert_eq!(lines.len() as u64, self.outcome.log_lines);
        assert!((1..).zip(&lines).all(|(n, line)| line.n == n));
        lines
    }

    pub(crate) fn texts(&self, stream: LogStream) -> Vec<String> {
        let lines = self.lines().into_iter();
        lines.filter(|line| line.stream == stream).map(|line| line.text).collect()
    }

    pub(crate) fn result(&self) -> &Value {
        assert_eq!(self.outcome.error, None, "{:#?}", self.outcome);
        self.outcome.run_result.as_ref().expect("Fabric returned")
    }

    pub(crate) fn error(&self) -> &Value {
        assert_eq!(self.outcome.run_result, None, "{:#?}", self.outcome);
        self.outcome.error.as_ref().expect("Fabric did not return")
    }

    pub(crate) fn assert_end(&self, end: End, failure: Option<Failure>) {
        let seen = (self.outcome.end, self.outcome.failure);
        assert_eq!(seen, (end, failure), "{:#?}", self.outcome);
    }

    pub(crate) fn workspace_text(&self, name: &str) -> String {
        fs::read_to_string(self.scene.workspace(name)).expect("the agent wrote the file")
    }

    pub(crate) fn artifact_text(&self, name: &str) -> String {
        fs::read_to_string(self.scene.artifact(name)).expect("the file is an artifact")
    }
}

pub(crate) fn await_that(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        // Looks at all of /proc, one after another, would take time from what they wait for.
        std::thread::sleep(Duration::from_millis(5));
    }
}
