//! The benchmarks: real processes, one table, and exit 1 when a limit is missed.
//!
//! `./dev bench` builds optimised. The figures of the reference are those of its own measurement
//! (`nemo-helix` 0.8.1, two cores): as it comes, and tuned as far as its configuration allows.

mod create;
mod harness;
mod lists;
mod measure;
mod runs;

use std::process::ExitCode;

use harness::{Options, Platform, Postgres};
use measure::Table;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let mut table = Table::default();
    let platform = Platform::with(Options { slots: 20, ..Options::default() }).await;
    create::measure(&platform, "SQLite", &mut table).await;
    runs::measure(&platform, &mut table).await;
    let database = format!("sqlite://{}", platform.data().join("errand.db").display());
    lists::measure(&platform, &database, "SQLite", &mut table).await;
    drop(platform);

    let server = Postgres::syncing("on");
    let env = vec![("ERRAND__DATABASE__URL".to_owned(), server.url())];
    let platform = Platform::with(Options { slots: 2, env }).await;
    create::measure(&platform, "PostgreSQL", &mut table).await;
    lists::measure(&platform, &server.url(), "PostgreSQL", &mut table).await;
    drop(platform);

    println!("{table}");
    match table.missed() {
        0 => ExitCode::SUCCESS,
        missed => {
            eprintln!("{missed} of the limits missed");
            ExitCode::FAILURE
        }
    }
}
