//! The program `errand`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use errand::cli::{self, Cli};
use errand::exit::Exit;
use errand::{telemetry, up};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == up::nats::child::COMMAND) {
        let Err(error) = up::nats::child::become_server(arguments);
        return fail(&error);
    }
    match run(Cli::from_args()) {
        Ok(exit) => exit.into(),
        Err(error) => fail(&error),
    }
}

/// Tells the C library how many arenas it may have. It gives each thread one of its own, up to
/// eight a processor, and takes little back from them: after hundreds of jobs that is tens of
/// megabytes. It listens only at the start of a program.
const ARENAS: (&str, &str) = ("MALLOC_ARENA_MAX", "2");

/// Becomes the same program once more, with few arenas; comes back only when that is not possible.
fn begin_again() -> io::Error {
    match std::env::current_exe() {
        Ok(own) => {
            Command::new(own).args(std::env::args_os().skip(1)).env(ARENAS.0, ARENAS.1).exec()
        }
        Err(error) => error,
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    if cli.is_platform() && std::env::var_os(ARENAS.0).is_none() {
        let error = begin_again();
        eprintln!("errand: more memory than needed will be kept: cannot start anew: {error}");
    }
    telemetry::start(if cli.is_platform() { "info,async_nats=warn,sqlx=warn" } else { "error" });
    // Two workers: the platform waits far more than it computes, and each thread costs memory.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let outcome = runtime.block_on(cli.run());
    // Blocking calls that are stuck must not keep the program from ending.
    runtime.shutdown_background();
    telemetry::traces::finish();
    outcome
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("{}", cli::told(error));
    cli::exit_of(error).into()
}
