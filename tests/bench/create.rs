//! How long it takes until a job is accepted: one client, one job after the other.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Platform, script_agent};
use crate::measure::{Row, Table, Times};

const JOBS: usize = 200;

/// Those before are not counted: the first ones open connections and prepare statements.
const WARM_UP: usize = 20;

const LIMIT_MS: f64 = 10.0;

/// Each job is waited for before the next one is made: agents that run at the same time would be
/// measured with it.
pub(crate) async fn measure(platform: &Platform, database: &str, table: &mut Table) {
    let api = platform.api();
    let spec = json!({"agent": agent(), "input": "a"});
    let mut times = Vec::new();
    for n in 0..WARM_UP + JOBS {
        let started = Instant::now();
        let job = api.submit(spec.clone()).await;
        let took = started.elapsed();
        if n >= WARM_UP {
            times.push(took);
        }
        job.reaches("completed", Duration::from_secs(60)).await;
    }
    let row = Times::new(times).row(format!("create a job, {database}"), Some(LIMIT_MS));
    table.push(Row { reference: Some((120.0, 120.0)), ..row });
}

/// An agent that ends at once: what it does is not what is measured.
fn agent() -> Value {
    let mut agent = script_agent();
    agent["config"]["harnesses"]["script"]["settings"]["command"] = json!(["/bin/true"]);
    agent
}
