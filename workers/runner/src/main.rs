//! `errand-runner`: the program beside the agent.
//!
//! One binary, three parts: the supervisor that a worker starts, the Fabric host that the
//! supervisor starts, and the adapter of the `script` harness that Fabric starts. They talk
//! through the run directory and through Fabric's wire protocol; nothing here opens a socket.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use rustix::process::Pid;

mod agent_dirs;
mod confine;
mod fabric;
mod host;
mod limit;
mod log;
mod mask;
mod report;
mod scan;
mod script;
mod supervise;
mod tail;
mod translate;
mod tree;

const USAGE: &str = "usage: errand-runner supervise DIR\n\
    (`host` and `script-adapter` are started by the supervisor, `probe` by the worker)";

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(OsString::into_string);
    let Ok(arguments) = arguments.collect::<Result<Vec<String>, OsString>>() else {
        return usage();
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["supervise", dir] => supervise::run(Path::new(dir)),
        ["host", dir, supervisor, python, secrets @ ..] => {
            match supervisor.parse().ok().and_then(Pid::from_raw) {
                Some(supervisor) => host::run(Path::new(dir), supervisor, python, secrets),
                None => usage(),
            }
        }
        ["script-adapter", dir, output_limit] => match output_limit.parse() {
            Ok(output_limit) => script::serve(Path::new(dir), output_limit),
            Err(_) => usage(),
        },
        ["probe", first_id, dir] => match first_id.parse() {
            Ok(first_id) => confine::probe(first_id, Path::new(dir)),
            Err(_) => usage(),
        },
        ["--version"] => {
            println!("errand-runner {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
