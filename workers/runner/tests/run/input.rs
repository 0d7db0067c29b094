//! What an agent is given: input, environment, secrets, its deadline.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use errand_runner::{End, Failure, LogStream};
use serde_json::{Map, Value, json};

use crate::scene::{LENIENT, Scene};

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

/// Part of a secret would not be known as one: nothing is cut before it is masked.
#[test]
fn a_long_secret_in_the_last_words_is_masked_as_a_whole() {
    let secret = "k".repeat(400);
    for (script, message) in [
        ("echo \"auth failed for $TOKEN\" >&2; exit 1", "exited with code 1: auth failed for ***"),
        // Its end is all that was kept of it.
        ("printf '%05000d%s\\n' 0 \"$TOKEN\" >&2; exit 1", "exited with code 1"),
        ("printf '%s%04000d\\nend\\n' \"$TOKEN\" 0 >&2; exit 1", "exited with code 1: end"),
    ] {
        let done = Scene::new(script).with_secret("TOKEN", &secret).run();
        done.assert_end(End::Failed, Some(Failure::AgentFailed));
        assert_eq!(done.outcome.message, message, "{script}");
    }
}

/// The loader would act on it in the host, before the agent is confined.
#[test]
fn variables_of_the_loader_are_not_passed_on() {
    for name in ["LD_AUDIT", "LD_PRELOAD", "LD_DEBUG_OUTPUT"] {
        let done = Scene::new("true").with_secret(name, "workspace/evil.so").run();
        done.assert_end(End::Raised, Some(Failure::AgentFailed));
        let words = format!("\"{name}\" cannot be passed on: it is the dynamic loader's");
        assert!(done.outcome.message.contains(&words), "{}", done.outcome.message);
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
        "Secret variables with fewer than 8 bytes are not masked in logs: PIN."
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
fn results_that_hold_a_secret_are_named_and_the_log_says_so() {
    let script = "printf %s \"$TOKEN\" > kept; printf %s \"$TOKEN\" | base64 > encoded; \
                  mkdir sub; echo \"$TOKEN\" > sub/$TOKEN; ln -s $TOKEN link; echo fine";
    let done = Scene::new(script).with_secret("TOKEN", "s3cr3t-value-1").run();
    done.assert_end(End::Succeeded, None);
    let found = &done.outcome.secrets_found;
    assert_eq!(found.workdir, ["encoded", "kept", "link", "sub/***"]);
    assert_eq!((&found.artifacts, &found.results), (&vec![], &vec![]));
    let said = done.texts(LogStream::Platform).join("\n");
    let sentence =
        "output_workdir: encoded and 3 more hold the value of a secret: the result is marked.";
    assert!(said.contains(sentence), "{said}");

    // Its output is an artifact, unmasked.
    let done = Scene::new("echo $TOKEN; echo x > x").with_secret("TOKEN", "s3cr3t-value-1").run();
    let artifacts = &done.outcome.secrets_found.artifacts;
    assert!(artifacts.iter().any(|path| path == "stdout.txt"), "{artifacts:?}");
    assert_eq!(done.outcome.secrets_found.workdir, [""; 0]);
    assert_eq!(done.result()["response"], "***");
    let outcome = serde_json::to_string(&done.outcome).expect("it is JSON");
    assert!(!outcome.contains("s3cr3t"), "{outcome}");
}
