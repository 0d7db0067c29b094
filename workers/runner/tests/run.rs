//! Whole runs with the real program: each test makes a run directory, starts
//! `errand-runner supervise` in it and looks at what is left.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, STANDARD};
use errand_runner::{
    End, Failure, Launch, Life, LogLine, LogStream, Outcome, RunDir, Usage, run_dir,
};
use proptest::prelude::*;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_errand-runner");

/// Awaited things are there within this, or the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Base64 that takes a last letter whose bits are cut off.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));

/// A run directory before its start.
struct Scene {
    root: TempDir,
    run: RunDir,
    launch: Launch,
    secrets: BTreeMap<String, String>,
}

/// A run after its end.
struct Done {
    scene: Scene,
    outcome: Outcome,
    took: Duration,
}

impl Scene {
    /// An agent that is `/bin/sh agent.sh`.
    fn new(script: &str) -> Self {
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
            grace_seconds: 2.0,
            lease_seconds: None,
            env: BTreeMap::new(),
            adapter_dirs: Vec::new(),
            python: None,
            output_limit_bytes: 16 * 1024 * 1024,
        };
        Self { root, run, launch, secrets: BTreeMap::new() }
    }

    fn with(mut self, change: impl FnOnce(&mut Launch)) -> Self {
        change(&mut self.launch);
        self
    }

    fn with_secret(mut self, name: &str, value: &str) -> Self {
        self.secrets.insert(name.into(), value.into());
        self
    }

    fn start(&self) -> Child {
        self.run.write_launch(&self.launch).expect("room on the disk");
        if !self.secrets.is_empty() {
            run_dir::write_json(&self.run.secrets(), &self.secrets, 0o600)
                .expect("room on the disk");
        }
        Command::new(PROGRAM)
            .arg("supervise")
            .arg(self.run.root())
            .env("AWS_SECRET_ACCESS_KEY", "w0rker")
            .stdin(Stdio::null())
            .spawn()
            .expect("the program was built")
    }

    fn finish(self, mut child: Child) -> Done {
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

    fn run(self) -> Done {
        let child = self.start();
        self.finish(child)
    }

    /// Every process of this run, by the mark that all of them carry.
    fn survivors(&self) -> Vec<String> {
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

    fn workspace(&self, name: &str) -> PathBuf {
        self.run.base().join("workspace").join(name)
    }

    fn artifact(&self, name: &str) -> PathBuf {
        self.run.base().join("artifacts").join(name)
    }

    fn await_file(&self, name: &str) {
        let path = self.workspace(name);
        await_that(&format!("{name} is there"), || path.exists());
    }
}

impl Done {
    fn lines(&self) -> Vec<LogLine> {
        let text = fs::read_to_string(self.scene.run.log()).expect("there is a log");
        let lines: Vec<LogLine> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line is a LogLine"))
            .collect();
        assert_eq!(lines.len() as u64, self.outcome.log_lines);
        assert!((1..).zip(&lines).all(|(n, line)| line.n == n));
        lines
    }

    fn texts(&self, stream: LogStream) -> Vec<String> {
        let lines = self.lines().into_iter();
        lines.filter(|line| line.stream == stream).map(|line| line.text).collect()
    }

    fn result(&self) -> &Value {
        assert_eq!(self.outcome.error, None, "{:#?}", self.outcome);
        self.outcome.run_result.as_ref().expect("Fabric returned")
    }

    fn error(&self) -> &Value {
        assert_eq!(self.outcome.run_result, None, "{:#?}", self.outcome);
        self.outcome.error.as_ref().expect("Fabric did not return")
    }

    fn assert_end(&self, end: End, failure: Option<Failure>) {
        let seen = (self.outcome.end, self.outcome.failure);
        assert_eq!(seen, (end, failure), "{:#?}", self.outcome);
    }

    fn workspace_text(&self, name: &str) -> String {
        fs::read_to_string(self.scene.workspace(name)).expect("the agent wrote the file")
    }

    fn artifact_text(&self, name: &str) -> String {
        fs::read_to_string(self.scene.artifact(name)).expect("the file is an artifact")
    }
}

fn await_that(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_script_that_succeeds_has_a_response_and_a_log() {
    let done = Scene::new("cat; echo; echo to-stderr >&2; pwd > where").run();
    done.assert_end(End::Succeeded, None);
    let result = done.result();
    assert_eq!(result["status"], "succeeded");
    assert_eq!(result["response"], "the input");
    assert_eq!(result["request_id"], "job-1");
    assert_eq!(result["error"], Value::Null);
    assert_eq!(done.outcome.message, "");
    assert!(!done.outcome.interrupted);
    assert_eq!(done.outcome.killed, 0);
    let invoked_at = done.outcome.invoked_at.expect("it was invoked");
    assert!(done.outcome.started_at <= invoked_at && invoked_at <= done.outcome.ended_at);
    assert_eq!(done.texts(LogStream::Stdout), ["the input"]);
    assert_eq!(done.texts(LogStream::Stderr), ["to-stderr"]);
    let platform = done.texts(LogStream::Platform);
    assert_eq!(
        platform[..2],
        ["Executing agent default/word-count (timeout 60s).", "Invoking agent default/word-count."]
    );
    assert!(platform[2].starts_with("Agent default/word-count returned status=succeeded after "));
    let where_it_ran = done.workspace_text("where");
    assert!(where_it_ran.ends_with("/base/workspace\n"));
    let listed = result["artifacts"]["artifacts"].as_array().expect("a list");
    for name in ["agent_stdout", "agent_stderr"] {
        assert!(listed.iter().any(|artifact| artifact["name"] == name));
    }
    assert_eq!(done.artifact_text("stdout.txt"), "the input\n");
    assert_eq!(done.artifact_text("stderr.txt"), "to-stderr\n");
}

#[test]
fn a_script_that_fails_is_failed_with_its_code_and_last_words() {
    let done = Scene::new("echo half; echo trouble >&2; exit 3").run();
    done.assert_end(End::Failed, Some(Failure::AgentFailed));
    assert_eq!(done.outcome.message, "exited with code 3: trouble");
    assert_eq!(done.result()["status"], "failed");
    assert_eq!(done.result()["error"]["code"], "agent_failed");
    assert_eq!(done.result()["response"], "half");
    assert!(!done.outcome.interrupted);
}

#[test]
fn case_a2_a_killed_script_is_marked_as_interrupted() {
    let done = Scene::new("printf '{\"rows\":[1,2' > report.json; kill -9 $$").run();
    done.assert_end(End::Failed, Some(Failure::AgentCrashed));
    assert_eq!(done.outcome.message, "killed by signal 9");
    assert!(done.outcome.interrupted);
    assert_eq!(done.workspace_text("report.json"), "{\"rows\":[1,2");
}

#[test]
fn case_a1_the_time_limit_ends_a_script_and_keeps_what_it_wrote() {
    let scene = Scene::new("echo half > out.txt; echo trouble >&2; sleep 600");
    let done = scene.with(|launch| launch.timeout_seconds = 1.0).run();
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    assert!(done.took < Duration::from_secs(5), "{:?}", done.took);
    assert!(done.outcome.interrupted);
    let error = done.error();
    assert_eq!(error["type"], "FabricRuntimeTimeoutError");
    assert_eq!(error["message"], "Fabric runtime invocation timed out after 1s.");
    assert_eq!(error["fabric_status"], "timeout");
    assert_eq!(error["timed_out"], true);
    assert_eq!(error["code"], "timeout");
    assert_eq!(error["cause_type"], "TimeoutError");
    assert_eq!(error["cause_message"], "");
    assert_eq!(error["stderr_tail"], "trouble");
    assert_eq!(done.workspace_text("out.txt"), "half\n");
    assert_eq!(done.artifact_text("stderr.txt"), "trouble\n");
    assert_eq!(done.texts(LogStream::Stderr), ["trouble"]);
}

#[test]
fn case_a8_a_script_may_save_its_work_within_the_grace_and_has_timed_out_all_the_same() {
    let scene =
        Scene::new("trap 'echo flushed > last.txt; exit 0' TERM; while :; do sleep 1; done");
    let done = scene.with(|launch| launch.timeout_seconds = 0.5).run();
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    assert_eq!(done.workspace_text("last.txt"), "flushed\n");
    assert_eq!(done.outcome.message, "Fabric runtime invocation timed out after 0.5s.");
}

#[test]
fn case_b14_a_script_that_ignores_term_is_killed_after_the_grace() {
    let scene = Scene::new("trap '' INT TERM HUP; sleep 9999").with(|launch| {
        launch.timeout_seconds = 0.5;
        launch.grace_seconds = 1.0;
    });
    let done = scene.run();
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    assert!(done.outcome.killed >= 1);
    assert!(done.took < Duration::from_secs(4), "{:?}", done.took);
}

#[test]
fn case_a6_no_output_is_no_result_unless_it_is_allowed() {
    let done = Scene::new("exit 0").run();
    done.assert_end(End::Failed, Some(Failure::NoResult));
    assert_eq!(done.outcome.message, "agent returned no result");
    let scene = Scene::new("exit 0").with(|launch| {
        launch.agent["harnesses"]["script"]["settings"]["allow_empty"] = true.into();
    });
    scene.run().assert_end(End::Succeeded, None);
}

#[test]
fn case_b1_a_process_that_left_the_session_is_gone_after_success() {
    let done = Scene::new("(setsid sh -c 'sleep 7777' &); echo done; exit 0").run();
    done.assert_end(End::Succeeded, None);
    assert!(done.outcome.killed >= 1);
    assert!(!done.outcome.interrupted);
}

#[test]
fn case_b2_a_storm_of_forks_does_not_outrun_the_end() {
    let storm = "f() { sleep 0.01; [ -e over ] || f & }\n: > begun; f & f & f & wait; sleep 600";
    let scene = Scene::new(storm);
    let child = scene.start();
    scene.await_file("begun");
    scene.run.ask_to_stop("cancel").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
}

#[test]
fn case_b3_a_stop_ends_the_whole_tree() {
    let scene = Scene::new(": > begun; sh -c 'sleep 9999'; true");
    let child = scene.start();
    scene.await_file("begun");
    scene.run.ask_to_stop("cancel").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
    assert!(done.outcome.interrupted);
    let error = done.error();
    assert_eq!(error["fabric_status"], "error");
    assert_eq!(error["timed_out"], false);
    assert_eq!(error["code"], "cancelled");
}

#[test]
fn a_stop_for_another_reason_says_it() {
    let scene = Scene::new(": > begun; sleep 9999");
    let child = scene.start();
    scene.await_file("begun");
    scene.run.ask_to_stop("the job was deleted").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
    assert!(done.outcome.message.ends_with(": the job was deleted"));
}

#[test]
fn a_lease_that_nobody_renews_ends_the_run() {
    let scene = Scene::new("sleep 9999").with(|launch| launch.lease_seconds = Some(0.5));
    scene.run.touch_lease().expect("room on the disk");
    let done = scene.run();
    done.assert_end(End::Stopped, Some(Failure::WorkerLost));
    assert_eq!(done.error()["code"], "worker_lost");
}

#[test]
fn the_gate_lets_one_supervisor_in_for_ever() {
    let scene = Scene::new(": > begun; while [ ! -e go ]; do sleep 0.01; done; echo done");
    let first = scene.start();
    scene.await_file("begun");
    let mut second = scene.start();
    assert_eq!(second.wait().expect("a child").code(), Some(3));
    assert_eq!(scene.run.life().expect("a run"), Life::Running);
    fs::write(scene.workspace("go"), "").expect("room on the disk");
    let done = scene.finish(first);
    done.assert_end(End::Succeeded, None);
    let mut third = done.scene.start();
    assert_eq!(third.wait().expect("a child").code(), Some(3));
}

#[test]
fn case_h4_stdin_is_closed_after_the_input() {
    let done = Scene::new("cat > got.txt; echo done").run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.workspace_text("got.txt"), "the input");
}

#[test]
fn case_h3_a_large_input_is_read_or_left_alone() {
    let input = "a".repeat(3_000_000);
    let scene = Scene::new("wc -c; cmp - $ERRAND_INPUT < $ERRAND_INPUT; wc -c < $ERRAND_INPUT")
        .with(|launch| launch.input.clone_from(&input));
    assert_eq!(scene.run().result()["response"], "3000000\n3000000");
    let scene = Scene::new("exec < /dev/null; echo done").with(|launch| launch.input = input);
    assert_eq!(scene.run().result()["response"], "done");
}

#[test]
fn case_g5_nothing_of_the_callers_environment_reaches_the_agent() {
    let script = "env; for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done 2>/dev/null \
        | grep w0rker > found; true";
    let done = Scene::new(script)
        .with(|launch| {
            launch.env.insert("NEMO_JOB_ID".into(), "job-1".into());
        })
        .run();
    let environment = done.artifact_text("stdout.txt");
    let run = done.scene.root.path().join("run");
    for line in [
        "NEMO_JOB_ID=job-1".to_owned(),
        format!("HOME={}", run.join("home").display()),
        format!("TMPDIR={}", run.join("tmp").display()),
        format!("ERRAND_RUN={}", done.scene.launch.run),
    ] {
        assert!(environment.lines().any(|it| it == line), "{line} is not in {environment}");
    }
    let allowed = [
        "PATH",
        "LANG",
        "LC_ALL",
        "TZ",
        "HOME",
        "TMPDIR",
        "PWD",
        "SHLVL",
        "OLDPWD",
        "_",
        "NEMO_JOB_ID",
        "NEMO_JOB_DEADLINE",
        "ERRAND_RUN",
        "ERRAND_INPUT",
        "ERRAND_CONTEXT",
        "FABRIC_HOME",
        "FABRIC_RUNTIME_ID",
        "FABRIC_ARTIFACTS",
    ];
    for line in environment.lines() {
        let name = line.split('=').next().unwrap_or_default();
        assert!(allowed.contains(&name), "{line} has no business there");
    }
    // Only the test itself knows the worker's key; the processes of the run do not.
    let ours = std::process::id();
    let scan = Scene::new(&format!(
        "for p in /proc/[0-9]*; do case $p in */{ours}) ;; *) \
         tr '\\0' '\\n' < $p/environ | grep -q \"^ERRAND_RUN=$ERRAND_RUN\" \
         && tr '\\0' '\\n' < $p/environ; ;; esac; done 2>/dev/null; \
         tr '\\0' '\\n' < /proc/$(awk '{{print $4}}' /proc/$PPID/stat)/environ; echo end"
    ))
    .run();
    let seen = scan.artifact_text("stdout.txt");
    assert!(seen.contains("ERRAND_RUN=") && seen.ends_with("end\n"));
    assert!(!seen.contains("w0rker"));
}

#[test]
fn case_h1_values_arrive_byte_for_byte() {
    let odd = [
        ("PEM", "-----BEGIN X-----\nMIIB\n-----END X-----\n".to_owned()),
        ("EQUALS", "a=b=c".to_owned()),
        ("SPACES", "  both ends  ".to_owned()),
        ("QUOTES", "\"q\" 'q' $HOME $(id) `id` #hash pa$$w'rd\"${X}".to_owned()),
        ("EMOJI", "🦀".to_owned()),
        ("EMPTY", String::new()),
        ("CRLF", "a\r\nb".to_owned()),
        ("LARGE", "x".repeat(100_000)),
    ];
    let script = "for n in PEM EQUALS SPACES QUOTES EMOJI EMPTY CRLF LARGE; do \
        eval \"printf '%s' \\\"\\$$n\\\"\" > $n; done; echo done";
    let mut scene = Scene::new(script);
    for (name, value) in &odd {
        if name.len() % 2 == 0 {
            scene = scene.with_secret(name, value);
        } else {
            let (name, value) = ((*name).to_owned(), value.clone());
            scene = scene.with(|launch| {
                launch.agent["environment"]["env"][name] = value.into();
            });
        }
    }
    let done = scene.run();
    done.assert_end(End::Succeeded, None);
    for (name, value) in &odd {
        assert_eq!(&done.workspace_text(name), value, "{name}");
    }
}

#[test]
fn secrets_are_used_masked_and_off_the_disk() {
    let secret = "s3cr3t-value-1";
    let script = "ls -a ../.. > listing; printf '%s' \"$TOKEN\" > token; echo \"it is $TOKEN.\"; \
        printf '%s' \"$TOKEN\" | base64 >&2; echo $PIN; echo \"bad $TOKEN\" >&2; exit 1";
    let done = Scene::new(script).with_secret("TOKEN", secret).with_secret("PIN", "1234").run();
    done.assert_end(End::Failed, Some(Failure::AgentFailed));
    assert_eq!(done.workspace_text("token"), secret);
    assert_eq!(done.texts(LogStream::Stdout), ["it is ***.", "1234"]);
    // What is left of base64's padding tells nothing.
    let stderr = done.texts(LogStream::Stderr);
    assert!(stderr[0].starts_with("***") && stderr[0].len() <= 7, "{stderr:?}");
    assert_eq!(stderr[1], "bad ***");
    assert_eq!(done.outcome.message, "exited with code 1: bad ***");
    assert_eq!(
        done.texts(LogStream::Platform)[1],
        "Secret variables with fewer than 8 characters are not masked in logs: PIN."
    );
    assert!(!done.workspace_text("listing").contains("secrets.json"));
    assert!(!done.scene.run.secrets().exists());
    let plain = |path: PathBuf| fs::read_to_string(path).expect("the file is there");
    assert_eq!(done.result()["response"], "it is ***.\n1234");
    for file in ["outcome.json", "agent.log", "launch.json"] {
        assert!(!plain(done.scene.run.root().join(file)).contains(secret), "{file}");
    }
    let fabric = done.scene.artifact(".fabric");
    let holds = Command::new("grep").arg("-rl").arg(secret).arg(fabric).output().expect("grep");
    // Fabric keeps the agent's own answer, which holds what the agent put in.
    for file in String::from_utf8_lossy(&holds.stdout).lines() {
        assert!(file.ends_with("/stdout.txt"), "{file} holds the secret");
    }
}

#[test]
fn no_line_break_of_base64_lets_a_secret_through() {
    let secret = "Zq7-mK2_vX9.bT4~wL6!cR8@hN3$jP5%dF1^";
    let script = "for width in 20 40 64 76; do before=; while [ ${#before} -lt 76 ]; do \
        printf '%s%s and some more text…' \"$before\" \"$TOKEN\" | base64 -w $width; \
        echo \"-- $width\"; before=\"$before#\"; done; done";
    let done = Scene::new(script).with_secret("TOKEN", secret).run();
    done.assert_end(End::Succeeded, None);
    let response = done.result()["response"].as_str().expect("a response");
    for lines in [done.texts(LogStream::Stdout), response.lines().map(Into::into).collect()] {
        let runs = Vec::from_iter(lines.split_inclusive(|line| line.starts_with("-- ")));
        assert_eq!(runs.len(), 4 * 76);
        for (number, run) in runs.iter().enumerate() {
            let (end, lines) = run.split_last().expect("a run ends with its width");
            let joined = lines.concat();
            assert!(joined.contains("***"), "{end}: {joined}");
            let before = number % 76;
            let encoded = STANDARD.encode(format!("{}{secret}", "#".repeat(before)));
            let own = &encoded[(before * 8).div_ceil(6)..(before + secret.len()) * 8 / 6];
            for from in 0..=own.len() - 8 {
                assert!(!joined.contains(&own[from..from + 8]), "{end}, {before}: {joined}");
            }
            for decoded in joined.split("***").flat_map(decoded_from_anywhere) {
                for part in secret.as_bytes().windows(8) {
                    let seen = decoded.windows(8).any(|it| it == part);
                    assert!(!seen, "{end}, {before}: {joined}");
                }
            }
        }
    }
}

/// What a reader may make of a piece of base64 whose beginning is lost.
fn decoded_from_anywhere(piece: &str) -> Vec<Vec<u8>> {
    let letters = piece.trim_end_matches('=');
    let starts = 0..letters.len().min(4);
    let pieces = starts.map(|start| &letters[start..]).filter(|piece| piece.len() % 4 != 1);
    pieces.map(|piece| LENIENT.decode(piece).expect("base64 without its padding")).collect()
}

#[test]
fn case_a9_the_deadline_is_the_same_everywhere_and_the_start_plus_the_limit() {
    let script = "echo \"$NEMO_JOB_DEADLINE\"; cat $ERRAND_CONTEXT > context.json";
    let scene = Scene::new(script).with(|launch| {
        launch.context = Map::from_iter([
            ("since".to_owned(), json!("2026-10-01")),
            ("nemo_helix".to_owned(), json!({"agent": "research/counter"})),
        ]);
    });
    let done = scene.run();
    let context: Value =
        serde_json::from_str(&done.workspace_text("context.json")).expect("the context is JSON");
    let deadline = done.result()["response"].as_str().expect("a response");
    assert_eq!(
        context,
        json!({
            "since": "2026-10-01",
            "nemo_helix": {"agent": "research/counter", "deadline": deadline},
        })
    );
    let deadline: jiff::Timestamp = deadline.parse().expect("RFC 3339");
    let invoked_at = done.outcome.invoked_at.expect("it was invoked");
    assert_eq!(deadline.duration_since(invoked_at), jiff::SignedDuration::from_secs(60));
    assert_eq!(done.texts(LogStream::Platform)[1], "Invoking agent research/counter.");
}

#[test]
fn case_k4_a_child_that_holds_the_pipes_does_not_hold_the_run() {
    let done = Scene::new("(sleep 600 &) ; echo done; exit 0").run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.result()["response"], "done");
    assert!(done.took < Duration::from_secs(3), "{:?}", done.took);
}

#[test]
fn case_e1_five_thousand_lines_on_both_streams_are_complete_and_in_order() {
    let done =
        Scene::new("i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo o$i; echo e$i >&2; done");
    let done = done.run();
    let expected = |letter: char| Vec::from_iter((1..=5000).map(|n| format!("{letter}{n}")));
    assert_eq!(done.texts(LogStream::Stdout), expected('o'));
    assert_eq!(done.texts(LogStream::Stderr), expected('e'));
}

#[test]
fn case_l1_output_is_cut_at_the_limit_and_counted() {
    let scene = Scene::new("head -c 30000000 /dev/zero | tr '\\0' '\\377'; echo; echo END")
        .with(|launch| launch.output_limit_bytes = 100_000);
    let done = scene.run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.result()["output"]["response_cut"], true);
    assert_eq!(done.result()["output"]["response_bytes"], 30_000_005);
    let kept = fs::read(done.scene.artifact("stdout.txt")).expect("it is an artifact");
    assert!(kept.ends_with(b"\n[output cut: 100000 of 30000005 bytes kept]\n"));
    let lines = done.texts(LogStream::Stdout);
    assert!(lines[0].ends_with(" [line cut: it has 100000 bytes]"));
    assert_eq!(lines[1], "[output cut: 100000 of 30000005 bytes kept]");
}

#[test]
fn an_agent_that_empties_its_artifacts_loses_neither_log_nor_output() {
    let script = "rm -rf $FABRIC_ARTIFACTS/*; echo own > $FABRIC_ARTIFACTS/stdout.txt; echo done";
    let done = Scene::new(script).run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.texts(LogStream::Stdout), ["done"]);
    assert_eq!(done.artifact_text("stdout.txt"), "own\n");
    assert_eq!(done.artifact_text("stdout.1.txt"), "done\n");
}

#[test]
fn a_definition_that_cannot_be_run_is_raised_with_its_reason() {
    let cases = [
        (
            json!({"harnesses": {"script": {"kind": "x"}}}),
            Failure::AdapterMissing,
            "Unsupported harness kind 'x'. Supported harness kinds: claude, codex, deepagents, \
             hermes, nooa-bench-agent, pi, remote-agent, script; or a fully-qualified Fabric \
             adapter id starting with 'nvidia.fabric.'.",
        ),
        (
            json!({"environment": {"workspace": "../x"}}),
            Failure::AgentFailed,
            "Local workspace path must remain within the agent base directory.",
        ),
        (
            json!({"harnesses": {"script": {
                "kind": "nvidia.fabric.none", "model": {"provider": "p", "model": "m"},
            }}}),
            Failure::AdapterMissing,
            "Fabric runtime startup failed: unknown adapter `nvidia.fabric.none`; available \
             adapters: [\"errand.script\"]",
        ),
        (
            json!({"tools": {"blocked": ["Bash"]}}),
            Failure::AgentFailed,
            "Fabric runtime startup failed: adapter `errand.script` cannot implement \
             configuration at `tools.blocked`: ",
        ),
    ];
    for (change, failure, text) in cases {
        let scene = Scene::new("echo never").with(|launch| {
            for (key, value) in change.as_object().expect("an object") {
                launch.agent[key] = value.clone();
            }
        });
        let done = scene.run();
        done.assert_end(End::Raised, Some(failure));
        let message = done.error()["message"].as_str().expect("a message");
        assert!(message.starts_with(text), "{message}");
        assert_eq!(done.outcome.invoked_at, None);
        assert_eq!(done.error()["fabric_status"], "error");
    }
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let scene = Scene::new("").with(|launch| {
        let settings = &mut launch.agent["harnesses"]["script"]["settings"];
        settings["command"] = json!(["no-such-program"]);
    });
    let done = scene.run();
    done.assert_end(End::Failed, Some(Failure::AgentFailed));
    assert_eq!(
        done.outcome.message,
        "the command \"no-such-program\" was not found: not in the working directory, not beside \
         agent.yaml, not on PATH"
    );
}

#[test]
fn case_c8_a_script_that_kills_its_adapter_is_a_crash() {
    // What is still in a pipe dies with its reader, so the script waits until it was read.
    let script = "echo words; echo trouble >&2; \
        until [ -s ../../agent.stdout ] && [ -s ../../agent.stderr ]; do sleep 0.01; done; \
        kill -9 $PPID; sleep 600";
    let done = Scene::new(script).run();
    done.assert_end(End::Raised, Some(Failure::AgentCrashed));
    assert!(done.outcome.interrupted);
    assert_eq!(done.error()["type"], "FabricRuntimeExecutionError");
    assert_eq!(done.error()["stderr_tail"], "trouble");
    assert_eq!(done.texts(LogStream::Stdout), ["words"]);
}

#[test]
fn a_foreign_adapter_is_found_and_its_stderr_and_usage_are_kept() {
    let scene = Scene::new("").with(|launch| {
        launch.agent["harnesses"]["script"] = json!({
            "kind": "nvidia.fabric.echo", "model": {"provider": "p", "model": "m"},
        });
    });
    let adapters = scene.root.path().join("adapters");
    fs::create_dir(&adapters).expect("the directory is new");
    let descriptor = json!({
        "contract_version": "fabric.adapter/v1alpha2", "adapter_id": "nvidia.fabric.echo",
        "adapter_kind": "process", "runner": {"command": "/bin/sh", "script": "adapter.sh"},
        "config": {"accepts": ["models"]},
    });
    let file = adapters.join("echo.fabric-adapter.json");
    fs::write(file, descriptor.to_string()).expect("room on the disk");
    let adapter = r#"
        read -r start; echo started >&2
        echo '{"operation":"start","outcome":{"status":"succeeded","output":null}}'
        read -r invoke; echo "deadline $NEMO_JOB_DEADLINE" >&2
        echo '{"operation":"invoke","outcome":{"status":"succeeded","output":{"status":"succeeded",
            "output":{"response":"96","usage":{"input_tokens":812,"output_tokens":96}}}}}' | tr -d '\n'
        echo
        read -r stop; echo '{"operation":"stop","outcome":{"status":"succeeded"}}'"#;
    fs::write(adapters.join("adapter.sh"), adapter).expect("room on the disk");
    let dir = adapters.display().to_string();
    let done = scene.with(|launch| launch.adapter_dirs = vec![dir]).run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.result()["response"], "96");
    let usage = Usage { input_tokens: 812, output_tokens: 96 };
    assert_eq!(done.outcome.usage, Some(usage));
    let stderr = done.texts(LogStream::Stderr);
    assert_eq!(stderr[0], "started");
    assert!(stderr[1].starts_with("deadline 20"), "{stderr:?}");
}

#[test]
fn a_launch_that_cannot_be_read_is_raised() {
    let scene = Scene::new("").with(|launch| launch.version = 2);
    let done = scene.run();
    done.assert_end(End::Raised, Some(Failure::AgentFailed));
    assert_eq!(
        done.outcome.message,
        "launch.json has version 2, this runner reads version 1: use one release"
    );
}

#[test]
fn a_supervisor_that_is_killed_leaves_a_lost_attempt_and_no_running_agent() {
    let scene = Scene::new(": > begun; sleep 9999");
    let mut child = scene.start();
    scene.await_file("begun");
    assert_eq!(scene.run.life().expect("a run"), Life::Running);
    let supervisor = Pid::from_child(&child);
    assert_eq!(scene.run.identity().expect("it has said who it is").pid, supervisor.as_raw_pid());
    kill_process(supervisor, Signal::KILL).expect("it is ours");
    child.wait().expect("it is ours");
    assert_eq!(scene.run.life().expect("a run"), Life::Lost);
    await_that("nothing is left", || scene.survivors().is_empty());
}

#[test]
fn case_k5_a_paused_supervisor_meets_the_limit_when_it_wakes_up() {
    let scene = Scene::new(": > begun; sleep 9999").with(|launch| launch.timeout_seconds = 1.0);
    let child = scene.start();
    scene.await_file("begun");
    let supervisor = Pid::from_child(&child);
    let paused = Instant::now();
    kill_process(supervisor, Signal::STOP).expect("it is ours");
    await_that("the limit is over", || paused.elapsed() > Duration::from_secs(2));
    kill_process(supervisor, Signal::CONT).expect("it is ours");
    let done = scene.finish(child);
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    assert!(done.took < Duration::from_secs(2), "{:?}", done.took);
}

#[test]
fn a_small_run_is_quick() {
    let fastest = (0..5).map(|_| Scene::new("echo done").run().took).min().expect("five runs");
    assert!(fastest < Duration::from_millis(500), "{fastest:?}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(".{0,6}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn launch_and_outcome_survive_the_disk(
        agent in any_json(),
        input in ".{0,40}",
        timeout_seconds in 0.001_f64..1e9,
        lease_seconds in proptest::option::of(0.0_f64..1e6),
        env in proptest::collection::btree_map("[A-Z_]{1,8}", ".{0,20}", 0..4),
        micros in 0_i64..4_000_000_000_000_000,
        failure in proptest::option::of(proptest::sample::select(Failure::ALL.to_vec())),
    ) {
        let mut scene = Scene::new("");
        scene.launch.agent = agent.clone();
        scene.launch.input = input.clone();
        scene.launch.timeout_seconds = timeout_seconds;
        scene.launch.lease_seconds = lease_seconds;
        scene.launch.env = env;
        scene.run.write_launch(&scene.launch).expect("room on the disk");
        prop_assert_eq!(scene.run.launch().expect("just written"), scene.launch.clone());

        let at = jiff::Timestamp::from_microsecond(micros).expect("a time");
        let outcome = Outcome {
            version: 1,
            end: End::Failed,
            failure,
            message: input,
            interrupted: true,
            started_at: at,
            invoked_at: lease_seconds.map(|_| at),
            ended_at: at,
            run_result: Some(agent).filter(|value| !value.is_null()),
            error: None,
            usage: Some(Usage { input_tokens: 1, output_tokens: u64::MAX }),
            log_lines: 7,
            killed: 0,
        };
        scene.run.write_outcome(&outcome).expect("room on the disk");
        fs::write(scene.run.started(), "{}").expect("room on the disk");
        prop_assert_eq!(scene.run.life().expect("a run"), Life::Ended(Box::new(outcome)));
    }
}
