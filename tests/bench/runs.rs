//! How long a trivial job takes from its submission to its end, and how many end in a second.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::{Api, Platform, script_agent};
use crate::measure::{Better, Row, Table, Times};

const ONE_BY_ONE: usize = 20;
const AT_ONCE: u32 = 20;
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) async fn measure(platform: &Platform, table: &mut Table) {
    let api = platform.api();
    api.fileset("trivial", &[("agent.sh", "echo done")]).await;
    run(&api).await;
    let mut times = Vec::new();
    for _ in 0..ONE_BY_ONE {
        let started = Instant::now();
        run(&api).await;
        times.push(started.elapsed());
    }
    let times = Times::new(times);
    let row = times.row("a trivial job, until it has ended".to_owned(), None);
    table.push(Row { reference: Some((6_800.0, 3_900.0)), ..row });
    let started = Instant::now();
    join_all((0..AT_ONCE).map(|_| run(&api))).await;
    table.push(Row {
        what: format!("{AT_ONCE} trivial jobs at once"),
        unit: "jobs/s",
        better: Better::More,
        ours: f64::from(AT_ONCE) / started.elapsed().as_secs_f64(),
        p95: None,
        limit: None,
        reference: Some((0.43, 0.47)),
    });
}

async fn run(api: &Api) {
    let workdir = json!({"base_workdir": "trivial"});
    let spec = json!({"agent": script_agent(), "input": "", "workdir": workdir});
    api.submit(spec).await.reaches("completed", PATIENCE).await;
}
