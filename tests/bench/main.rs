//! The benchmarks: real processes, one table, and exit 1 when a limit is missed.
//!
//! `./dev bench` builds optimised; `./dev bench-trees` measures large trees alone. The figures of
//! the reference are those of its own measurement (`nemo-helix` 0.8.1, two cores): as it comes,
//! and tuned as far as its configuration allows.

mod create;
mod harness;
mod lists;
mod measure;
mod runs;
mod trees;

use std::process::ExitCode;

use harness::{Options, Platform, Postgres};
use measure::Table;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let mut table = Table::default();
    if std::env::args().any(|word| word == "trees") {
        trees::measure(&mut table).await;
    } else {
        services(&mut table).await;
    }

    println!("{table}");
    match table.missed() {
        0 => ExitCode::SUCCESS,
        missed => {
            eprintln!("{missed} of the limits missed");
            ExitCode::FAILURE
        }
    }
}

/// Everything that is asked of the API and of the chain.
async fn services(table: &mut Table) {
    let platform = Platform::with(Options { slots: 20, ..Options::default() }).await;
    create::measure(&platform, "SQLite", table).await;
    runs::measure(&platform, table).await;
    let database = format!("sqlite://{}", platform.data().join("errand.db").display());
    lists::measure(&platform, &database, "SQLite", table).await;
    drop(platform);

    let server = Postgres::syncing("on");
    let env = vec![("ERRAND__DATABASE__URL".to_owned(), server.url())];
    let platform = Platform::with(Options { slots: 2, env }).await;
    create::measure(&platform, "PostgreSQL", table).await;
    lists::measure(&platform, &server.url(), "PostgreSQL", table).await;
    drop(platform);
}
