//! How long a page of an agent's jobs takes among 100,000, the number of all of them included.

use std::time::Instant;

use sqlx::AnyPool;

use crate::harness::{Api, Platform};
use crate::measure::{Table, Times};

const JOBS: i64 = 100_000;
const TIMES: usize = 40;
const TIMES_SLOW: usize = 5;
const LIMIT_MS: f64 = 50.0;

/// The oldest thousand jobs are of two agents that were not used since. Of the others, every
/// second one is of a busy agent, and fifty share the rest.
const ROWS: &str = "
WITH RECURSIVE numbers(n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
INSERT INTO jobs (id, attempt_id, name, workspace, source, agent_ref, created_at, updated_at,
    phase, outcome, run, phase_times, status, ended_at, cancel_requested, seen, purged)
SELECT '00000000-0000-7000-8000-' || substr('000000000000' || n, length('' || n) + 1),
    attempt_id || n, 'bench-' || n, workspace, source,
    CASE WHEN n <= 1000 THEN 'default/old-' || (n % 2)
        WHEN n % 2 = 0 THEN 'default/busy' ELSE 'default/agent-' || (n % 100) END,
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
    let agents = |refs: &str| format!(r#"{{"spec.agent_ref":{{"$in":[{refs}]}}}}"#);
    let one = r#"{"spec.agent_ref":"default/agent-1"}"#.to_owned();
    let two = agents(r#""default/agent-1","default/agent-3""#);
    let old = agents(r#""default/old-0","default/old-1""#);
    let busy = agents(r#""default/agent-1","default/busy""#);
    let source = two.replace("}}", r#"},"source":"nemo-agents-plugin-execute"}"#);
    let limited = [
        ("an agent's", "default", &one, 990),
        ("of two agents", "default", &two, 1_980),
        ("of two agents, by source", "default", &source, 1_980),
        ("of two old agents", "default", &old, 1_000),
        ("of two, one busy", "default", &busy, 50_490),
        ("an agent's, everywhere", "-", &one, 990),
        ("of two agents, everywhere", "-", &two, 1_980),
        ("of two old agents, everywhere", "-", &old, 1_000),
        ("of two, one busy, everywhere", "-", &busy, 50_490),
    ];
    for (what, workspace, filter, total) in limited {
        let times = ask(&api, TIMES, workspace, filter, |found| found == total).await;
        let what = format!("10 of {JOBS} jobs, {what}, {database_name}");
        table.push(times.row(what, Some(LIMIT_MS)));
    }
    // What has no limit: all jobs match the first, and are read one by one for the second.
    let others = [
        ("by status", r#"{"status":"completed"}"#),
        ("by a place in the spec", r#"{"spec.agent.name":"script"}"#),
    ];
    for (what, filter) in others {
        let times = ask(&api, TIMES_SLOW, "default", filter, |found| found >= 100_000).await;
        table.push(times.row(format!("10 of {JOBS} jobs, {what}, {database_name}"), None));
    }
}

async fn ask(
    api: &Api,
    times: usize,
    workspace: &str,
    filter: &str,
    is_total: impl Fn(u64) -> bool,
) -> Times {
    let path = format!("/apis/jobs/v2/workspaces/{workspace}/jobs?filter={}", escaped(filter));
    let mut took = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        let page = api.get(&path).await;
        took.push(started.elapsed());
        let total = page["pagination"]["total_results"].as_u64().expect("a number");
        assert!(is_total(total), "{filter}: {total}");
        assert_eq!(page["data"].as_array().map(Vec::len), Some(10), "{filter}");
    }
    Times::new(took)
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
