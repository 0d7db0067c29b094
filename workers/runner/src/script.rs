//! `errand-runner script-adapter DIR LIMIT`: the adapter of the `script` harness.
//!
//! It speaks Fabric's wire protocol: one JSON request a line on stdin, one reply a line on
//! stdout. An `invoke` runs the program of the agent to its end; see [`program`].

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use errand_runner::{RunDir, adapters};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::report;

mod argv;
mod program;
mod spool;

use program::{Ending, Program};

#[derive(Deserialize)]
#[serde(tag = "operation", content = "payload", rename_all = "snake_case")]
enum Request {
    Start(Start),
    Invoke(Box<Invoke>),
    Stop {},
}

#[derive(Deserialize)]
struct Start {
    base_dir: PathBuf,
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    harness: Harness,
}

#[derive(Deserialize)]
struct Harness {
    settings: Settings,
}

#[derive(Deserialize)]
struct Settings {
    argv: Vec<String>,
    #[serde(default)]
    allow_empty: bool,
}

#[derive(Deserialize)]
struct Invoke {
    runtime_context: RuntimeContext,
    request: Input,
}

#[derive(Deserialize)]
struct RuntimeContext {
    environment: Environment,
}

#[derive(Deserialize)]
struct Environment {
    workspace: PathBuf,
    #[serde(default)]
    env: Map<String, Value>,
}

#[derive(Deserialize)]
struct Input {
    input: Value,
    #[serde(default)]
    context: Map<String, Value>,
}

/// Describes this adapter to Fabric. Everything that is mere information is accepted and left to
/// the program to read; a limit that it could not honour (tools, turns) is not.
pub(crate) fn write_descriptor(dir: &Path, run: &Path, output_limit: u64) -> io::Result<()> {
    let descriptor = json!({
        "contract_version": nemo_fabric_core::ADAPTER_CONTRACT_VERSION,
        "adapter_id": adapters::SCRIPT,
        "adapter_kind": "process",
        "runner": {
            "command": std::env::current_exe()?,
            "args": ["script-adapter", run, output_limit.to_string()],
        },
        "settings_schema": {
            "type": "object",
            "properties": {
                "argv": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "allow_empty": {"type": "boolean"},
            },
            "required": ["argv"],
            "additionalProperties": false,
        },
        "config": {
            "accepts": [
                "models", "models.base_url", "models.temperature", "models.top_p",
                "models.max_tokens", "instructions.system", "skills",
            ],
        },
    });
    fs::create_dir_all(dir)?;
    report::write(&dir.join("errand-script.fabric-adapter.json"), &descriptor)
}

/// Serves one runtime, until Fabric stops it or is gone.
pub(crate) fn serve(run: &Path, output_limit: u64) -> ExitCode {
    let run = &RunDir::new(run);
    let mut started = None;
    let mut line = String::new();
    loop {
        line.clear();
        match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => return ExitCode::SUCCESS,
            Ok(_) => {}
        }
        let (reply, stop) = match serde_json::from_str(&line) {
            Ok(Request::Start(start)) => {
                started = Some(start);
                (succeeded("start", Value::Null), false)
            }
            Ok(Request::Invoke(invoke)) => {
                let Some(start) = &started else {
                    eprintln!("invoke came before start");
                    return ExitCode::FAILURE;
                };
                (succeeded("invoke", run_program(run, output_limit, start, &invoke)), false)
            }
            Ok(Request::Stop {}) => (succeeded("stop", Value::Null), true),
            Err(error) => {
                eprintln!("cannot read the request: {error}");
                return ExitCode::FAILURE;
            }
        };
        let mut stdout = io::stdout().lock();
        if writeln!(stdout, "{reply}").and_then(|()| stdout.flush()).is_err() || stop {
            return ExitCode::SUCCESS;
        }
    }
}

fn succeeded(operation: &str, output: Value) -> Value {
    json!({"operation": operation, "outcome": {"status": "succeeded", "output": output}})
}

fn run_program(run: &RunDir, output_limit: u64, start: &Start, invoke: &Invoke) -> Value {
    let settings = &start.config.harness.settings;
    let input = match &invoke.request.input {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let environment = &invoke.runtime_context.environment;
    let ending = Program {
        run,
        argv: &argv::resolve(&settings.argv, &environment.workspace, &start.base_dir),
        workspace: &environment.workspace,
        own_variables: &environment.env,
        input: input.as_bytes(),
        context: &invoke.request.context,
        output_limit,
    }
    .run();
    // The program is over: what was set aside for its end is for Fabric and the outcome now.
    let _ = fs::remove_file(run.reserve());
    match ending {
        Ok(ending) => result(&ending, settings.allow_empty),
        Err(error) => failed(error.code(), &error.to_string(), Value::Null),
    }
}

fn result(ending: &Ending, allow_empty: bool) -> Value {
    let text = String::from_utf8_lossy(&ending.response);
    let response = text.trim_end_matches(['\n', '\r']);
    let mut output = json!({"response": response});
    if ending.response_bytes > ending.response.len() as u64 {
        output["response_cut"] = true.into();
        output["response_bytes"] = ending.response_bytes.into();
    }
    if let Some(signal) = ending.signal {
        return failed("agent_crashed", &format!("killed by signal {signal}"), output);
    }
    if ending.disk_full {
        return failed("disk_full", "no space was left to keep the agent's output", output);
    }
    match ending.code {
        0 if response.is_empty() && !allow_empty => {
            failed("no_result", "agent returned no result", output)
        }
        0 => json!({"status": "succeeded", "output": output}),
        code => {
            let mut message = format!("exited with code {code}");
            if !ending.last_words.is_empty() {
                message.push_str(": ");
                message.push_str(&ending.last_words);
            }
            failed("agent_failed", &message, output)
        }
    }
}

fn failed(code: &str, message: &str, output: Value) -> Value {
    json!({
        "status": "failed",
        "output": output,
        "error": {"code": code, "message": message, "retryable": false},
    })
}
