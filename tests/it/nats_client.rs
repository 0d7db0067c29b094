//! The platform for somebody with only a NATS client: the clients of `deploy/clients`, as they
//! stand there, run as the user of one workspace with only its permissions.

mod asking;
mod refusals;

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use streams::broker::Broker;
use streams::id::JobId;
use streams::subject;
use streams::topology::StreamName;
use tempfile::TempDir;
use workers::bundle::{self, Limits, Pick};

use crate::harness::{Database, Part, Team, eventually, script_agent};

const SOON: Duration = Duration::from_secs(60);

/// The virtual environment that `./dev test` makes.
const VENV: &str = ".cache/errand/nats-py-2.16.0";

/// A client of a few lines, at work in a directory of its own.
struct Client {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    folder: TempDir,
}

impl Client {
    fn run(team: &Team, server: &Part, mut command: Command, user: &str, url: &str) -> Self {
        let folder = TempDir::new().expect("a temporary directory");
        let mut process = command
            .current_dir(folder.path())
            .env("NATS_URL", url)
            .env("NATS_USER", user)
            .env("NATS_PASSWORD", team.password(user))
            .env("ERRAND_BASE_URL", server.url())
            .env_remove("ERRAND_TOKEN")
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.path().join("stderr")).expect("a file"))
            .spawn()
            .expect("the client starts");
        let stdout = process.stdout.take().expect("stdout is piped");
        Self { process, lines: BufReader::new(stdout).lines(), folder }
    }

    /// The next message that it shows.
    fn shows(&mut self) -> Value {
        let line = self.lines.next().unwrap_or_else(|| panic!("it has ended: {}", self.stderr()));
        serde_json::from_str(&line.expect("it is text")).unwrap_or_default()
    }

    /// Reads on until it shows a status; what it showed.
    fn shows_status(&mut self, wanted: &str) -> Vec<Value> {
        let mut shown = Vec::new();
        while shown.last().is_none_or(|told: &Value| told["status"] != wanted) {
            shown.push(self.shows());
        }
        shown
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    /// Waits for its end, which must be a good one; a file of the result that it has downloaded.
    fn downloads(mut self, file: &str) -> String {
        let ended = self.process.wait().expect("it can be waited for");
        assert!(ended.success(), "{}", self.stderr());
        let bundle = self.folder.path().join("output_workdir.tar.gz");
        let bundle = fs::File::open(bundle).expect("it was downloaded");
        let tree = TempDir::new().expect("a temporary directory");
        bundle::unpack(bundle, &Pick::default(), tree.path(), "single", Limits::default())
            .expect("the bundle unpacks");
        fs::read_to_string(tree.path().join(file)).expect("the file is in it")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/clients")
}

fn python(workspace: &str, spec: &Path, job: &str) -> Command {
    let venv = Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(VENV);
    let python = venv.join("bin/python");
    assert!(
        python.exists(),
        "no nats-py: python3 -m venv {0} && {0}/bin/pip install nats-py==2.16.0",
        venv.display()
    );
    let mut command = Command::new(python);
    command.arg(clients().join("submit.py")).arg(spec).arg(job);
    command.env("ERRAND_WORKSPACE", workspace).stdin(Stdio::null());
    command
}

/// The example that cargo makes of the file, beside the program.
fn rust(workspace: &str, spec: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_errand")).with_file_name("examples/submit");
    assert!(program.exists(), "no {}: cargo build --workspace --examples", program.display());
    let mut command = Command::new(program);
    command.env("ERRAND_WORKSPACE", workspace);
    command.stdin(fs::File::open(spec).expect("the spec is there"));
    command
}

/// A job that says that it runs and ends when there is a file.
async fn waiting_spec(team: &Team, server: &Part) -> (Value, PathBuf) {
    let go = team.parts.lender.scratch().join(uuid::Uuid::now_v7().to_string());
    let script = format!("until [ -e {} ]; do sleep 0.1; done; echo whole > answer", go.display());
    let fileset = format!("fs-{}", uuid::Uuid::now_v7().simple());
    server.api().fileset(&fileset, &[("agent.sh", &script)]).await;
    let spec = json!({
        "agent": script_agent(), "input": "", "workdir": {"base_workdir": fileset},
    });
    (spec, go)
}

fn written(team: &Team, spec: &Value) -> PathBuf {
    let path = team.folder.path().join(format!("{}.json", uuid::Uuid::now_v7()));
    fs::write(&path, spec.to_string()).expect("it is written");
    path
}

/// Whether a message is what its schema says.
fn is_as_documented(schema: &str, message: &Value) -> bool {
    let path = format!("streams/schemas/{schema}.json");
    let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("it is there");
    let schema = serde_json::from_slice(&text).expect("a schema is JSON");
    jsonschema::is_valid(&schema, message)
}

#[test]
fn the_clients_are_short() {
    for name in ["submit.py", "submit.rs"] {
        let text = fs::read_to_string(clients().join(name)).expect("it is there");
        let lines = text.lines().count();
        assert!(lines < 30, "{name} has {lines} lines");
    }
}

#[tokio::test]
async fn a_python_client_submits_and_follows_to_the_end_while_the_queue_goes_away() {
    let mut team = Team::of(&["default", "team.a"], Database::Postgres).await;
    let (server, _worker) = (team.parts.server(), team.worker());
    let (spec, go) = waiting_spec(&team, &server).await;
    let (spec, url) = (written(&team, &spec), team.nats.url().await);
    let job = JobId::new();
    let user = "workspace-default";
    let run = |team: &Team, workspace: &str, job: JobId| {
        Client::run(team, &server, python(workspace, &spec, &job.to_string()), user, &url)
    };
    let mut client = run(&team, "default", job);
    let mut shown = client.shows_status("active");
    // What is said while nobody is connected is asked for afterwards.
    team.nats.kill().await;
    fs::write(&go, "").expect("it is written");
    team.nats.start_again().await;
    shown.extend(client.shows_status("completed"));
    assert_eq!(client.downloads("answer"), "whole\n");
    let told: Vec<_> = shown.iter().filter(|it| !it["status"].is_null()).collect();
    let phases: Vec<_> = told.iter().map(|it| it["phase"].as_str().unwrap_or_default()).collect();
    assert_eq!(phases.first(), Some(&"submitted"), "{shown:?}");
    assert_eq!(told.last().map(|it| &it["job"]), Some(&json!(job)));
    assert!(shown.iter().any(|it| it["stream"] == "INTAKE"), "no receipt: {shown:?}");

    // Somebody comes late, and with a submission that was made already.
    let mut late = run(&team, "default", job);
    let shown = late.shows_status("completed");
    assert_eq!(shown.last().map(|it| &it["job"]), Some(&json!(job)));
    assert_eq!(late.downloads("answer"), "whole\n");

    // Another workspace is refused, and that is said.
    let mut foreign = run(&team, "team.a", JobId::new());
    assert!(!foreign.process.wait().expect("it ends").success());
    let said = foreign.stderr().to_lowercase();
    assert!(said.contains("permissions violation for") && said.contains("team%2ea"), "{said}");
}

#[tokio::test]
async fn a_rust_client_does_the_same() {
    let team = Team::of(&["default", "team.a"], Database::Sqlite).await;
    let (server, _worker) = (team.parts.server(), team.worker());
    let (spec, go) = waiting_spec(&team, &server).await;
    fs::write(&go, "").expect("it is written");
    let (spec, url) = (written(&team, &spec), team.nats.url().await);
    let command = rust("default", &spec);
    let mut client = Client::run(&team, &server, command, "workspace-default", &url);
    assert_eq!(client.shows()["stream"], "INTAKE");
    client.shows_status("completed");
    assert_eq!(client.downloads("answer"), "whole\n");
}

/// Messages of `changes` are those of the stream, in their order and with their numbers, each with
/// the number of the one before: whoever has that one has missed nothing.
#[tokio::test]
async fn changes_are_told_once_in_order_and_gaps_can_be_seen() {
    let team = Team::of(&["default"], Database::Sqlite).await;
    let (server, _worker) = (team.parts.server(), team.worker());
    let mut client = team.client("workspace-default").await;
    client.subscribe("changes.default.*");
    let (spec, go) = waiting_spec(&team, &server).await;
    fs::write(&go, "").expect("it is written");
    let job = JobId::new();
    let submission = json!({"spec": spec});
    assert!(is_as_documented("submitted", &submission));
    client.publish(&format!("jobs.submitted.default.{job}"), &submission.to_string());
    let (mut last, mut told) = (0, Vec::new());
    while told.last().is_none_or(|told: &Value| told["status"] != "completed") {
        let message = client.message();
        let number = |name| message.header(name).and_then(|it| it.parse::<u64>().ok());
        assert_eq!(number("Nats-Last-Sequence"), Some(last), "{message:?}");
        last = number("Nats-Sequence").expect("it has a number");
        let message = serde_json::from_slice(&message.payload).expect("it is JSON");
        assert!(is_as_documented("status", &message), "{message}");
        told.push(message);
    }
    let (broker, status) = (team.broker("errand").await, subject::status("default", job));
    let (mut kept, mut from) = (Vec::<Value>::new(), 0);
    while let Some(stored) =
        broker.next(StreamName::Status, &status, from).await.expect("the stream answers")
    {
        from = stored.sequence + 1;
        kept.push(serde_json::from_slice(&stored.payload).expect("it is JSON"));
    }
    assert_eq!(told, kept);
    let status: Vec<_> = told.iter().map(|it| it["status"].as_str().unwrap_or_default()).collect();
    assert_eq!((status.first(), status.last()), (Some(&"created"), Some(&"completed")));
    let ask = format!("$JS.API.DIRECT.GET.STATUS.{}", subject::status("default", job));
    let answer = client.answer("_INBOX.last", &ask, "", "").expect("it may ask");
    assert_eq!(answer.header("Nats-Sequence"), Some(last.to_string().as_str()));
    let nothing = format!("$JS.API.DIRECT.GET.STATUS.{}", subject::status("default", JobId::new()));
    let nothing = client.answer("_INBOX.nothing", &nothing, "", "").expect("it may ask");
    assert!(nothing.headers.starts_with("NATS/1.0 404"), "{nothing:?}");
    eventually("the job is listed", SOON, || async {
        let list = server.api().get("/apis/jobs/v2/workspaces/default/jobs").await;
        (list["pagination"]["total_results"] == 1).then_some(())
    })
    .await;
}
