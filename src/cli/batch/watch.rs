//! `errand batch watch`: follows a batch to its end. A batch has ended when no line is still to
//! come and no job goes on; one whose lines stopped coming is given up by the server.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;

use super::progress::{Bar, Counts};
use super::server::Server;
use super::{batch, worst};
use crate::cli::Session;
use crate::exit::Exit;

/// The pause between looks while something moves, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// Follows a batch and gives the exit code of its end. Ctrl-C ends no more than the watching.
pub(super) async fn watch(session: &Session, group: &str) -> anyhow::Result<Exit> {
    tokio::select! {
        exit = follow(session, group) => return exit,
        interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot wait for Ctrl-C")?,
    }
    session.out.progress("");
    session.out.note(&format!("Interrupted watching batch '{group}'. Its jobs go on."));
    Ok(Exit::Interrupted)
}

async fn follow(session: &Session, group: &str) -> anyhow::Result<Exit> {
    let (server, path) = (Server::of(session), batch(session, group));
    let (mut bar, mut pause, mut seen) = (None, PAUSES.0, Counts::default());
    loop {
        let asked = Instant::now();
        let answer = server.call(async || session.client.get(&path).await).await?;
        // Counting a large batch takes the server a while: watching must not be most of its work.
        let took = asked.elapsed();
        let counts = counts(&answer);
        let bar = bar.get_or_insert_with(|| Bar::new(session.out, counts.done));
        if answer["state"] != "open" && counts.running == 0 {
            bar.end(&counts);
            if answer["state"] == "incomplete" {
                session.out.note(&format!(
                    "Batch '{group}' is incomplete: {} of {} lines came",
                    answer["received"], answer["lines"]
                ));
            }
            session.out.one(&answer);
            return Ok(worst::of_counts(&answer));
        }
        bar.show(&counts);
        pause = if counts == seen { (pause * 5 / 4).min(PAUSES.1) } else { PAUSES.0 };
        seen = counts;
        tokio::time::sleep(pause.max(took * 10)).await;
    }
}

fn counts(answer: &Value) -> Counts {
    let count = |key: &str| answer[key].as_u64().unwrap_or_default();
    let failed = count("failed") + count("cancelled") + count("refused");
    Counts {
        of: answer["lines"].as_u64(),
        done: count("completed") + failed,
        failed,
        running: count("running") + count("waiting"),
    }
}
