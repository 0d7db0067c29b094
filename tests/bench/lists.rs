//! How long a page of an agent's jobs takes among 100,000, the number of all of them included.

use std::time::Instant;

use sqlx::AnyPool;

use crate::harness::{Api, Platform};
use crate::measure::{Table, Times};

const JOBS: i64 = 100_000;
const TIMES: usize = 40;
const LIMIT_MS: f64 = 50.0;

/// Every second job is of the busy agent, the others are shared by fifty.
const ROWS: &str = "
WITH RECURSIVE numbers(n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
INSERT INTO jobs (id, attempt_id, name, workspace, source, agent_ref, created_at, updated_at,
    phase, outcome, run, phase_times, status, ended_at, cancel_requested, seen, purged)
SELECT '00000000-0000-7000-8000-' || substr('000000000000' || n, length('' || n) + 1),
    attempt_id || n, 'bench-' || n, workspace, source,
    CASE WHEN n % 2 = 0 THEN 'default/busy' ELSE 'default/agent-' || (n % 100) END,
    created_at - (100001 - n) * 1000000, created_at - (100001 - n) * 1000000,
    phase, outcome, run, phase_times, status, ended_at, 0, 1, 1
FROM numbers CROSS JOIN (SELECT * FROM jobs WHERE status = 'completed' LIMIT 1) AS model";

const INPUTS: &str = "
INSERT INTO job_inputs (job, snapshot, request)
SELECT id, model.snapshot, model.request
FROM jobs CROSS JOIN (SELECT snapshot, request FROM job_inputs
    WHERE snapshot IS NOT NULL LIMIT 1) AS model
WHERE name LIKE 'bench-%'";

pub(crate) async fn measure(
    platform: &Platform,
    database: &str,
    database_name: &str,
    table: &mut Table,
) {
    fill(database).await;
    let api = platform.api();
    let two = r#"{"spec.agent_ref":{"$in":["default/agent-1","default/agent-3"]}}"#;
    let busy = r#"{"spec.agent_ref":{"$in":["default/busy","default/agent-1"]}}"#;
    let told = r#"{"spec.agent_ref":{"$in":["default/agent-1","default/agent-3"]},"source":"nemo-agents-plugin-execute"}"#;
    let one = r#"{"spec.agent_ref":"default/agent-1"}"#;
    let often = r#"{"spec.agent_ref":"default/busy"}"#;
    let queries = [
        ("an agent's jobs", "default", one, 1_000),
        ("of two agents", "default", two, 2_000),
        ("of two agents, by source", "default", told, 2_000),
        ("of two, one busy", "default", busy, 51_000),
        ("of the busy agent", "default", often, 50_000),
        ("in all workspaces", "-", one, 1_000),
        ("of two, in all workspaces", "-", two, 2_000),
        ("of two, one busy, in all workspaces", "-", busy, 51_000),
    ];
    for (what, workspace, filter, total) in queries {
        let path = format!("/apis/jobs/v2/workspaces/{workspace}/jobs?filter={}", escaped(filter));
        let times = ask(&api, &path, total).await;
        let what = format!("10 of {JOBS}, {what}, {database_name}");
        table.push(times.row(what, Some(LIMIT_MS)));
    }
}

async fn ask(api: &Api, path: &str, total: u64) -> Times {
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let started = Instant::now();
        let page = api.get(path).await;
        times.push(started.elapsed());
        assert_eq!(page["pagination"]["total_results"], total, "{path}");
        assert_eq!(page["data"].as_array().map(Vec::len), Some(10), "{path}");
    }
    Times::new(times)
}

fn escaped(filter: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    filter.bytes().map(escape).collect()
}

/// Inserts the rows beside the running platform, as ended jobs that it leaves alone.
async fn fill(database: &str) {
    sqlx::any::install_default_drivers();
    let pool = AnyPool::connect(database).await.expect("the database opens");
    sqlx::query(ROWS).bind(JOBS).execute(&pool).await.expect("jobs are inserted");
    sqlx::query(INPUTS).execute(&pool).await.expect("their inputs are inserted");
    if database.starts_with("postgres") {
        // What its own housekeeping does within a minute.
        for text in ["VACUUM ANALYZE jobs", "VACUUM ANALYZE job_inputs"] {
            sqlx::query(text).execute(&pool).await.expect("statistics are taken");
        }
    }
    pool.close().await;
}
