//! The program `errand`.

use std::process::ExitCode;

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

fn run(cli: Cli) -> anyhow::Result<Exit> {
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
    outcome
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("{}", cli::told(error));
    cli::exit_of(error).into()
}
