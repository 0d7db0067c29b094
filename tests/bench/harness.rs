//! The platform of the integration tests, from their own files.

#![expect(dead_code, unreachable_pub, reason = "the tests use more of it than benchmarks do")]

#[path = "../it/harness/api.rs"]
mod api;
#[path = "../it/harness/job.rs"]
mod job;
#[path = "../it/harness/platform.rs"]
mod platform;
#[path = "../../src/records/tests/postgres.rs"]
mod postgres;
#[path = "../it/harness/processes.rs"]
mod processes;
#[path = "../it/harness/scratch.rs"]
mod scratch;

pub(crate) use api::Api;
pub(crate) use job::Job;
pub(crate) use platform::{Options, Platform};
pub(crate) use postgres::Server as Postgres;
pub(crate) use processes::{eventually, running_with_argument};
pub(crate) use scratch::open_directory;

use serde_json::{Value, json};

/// An inline agent of the script harness that runs `/bin/sh agent.sh` in its working directory.
pub(crate) fn script_agent() -> Value {
    let settings = json!({"command": ["/bin/sh", "agent.sh"], "allow_empty": true});
    json!({
        "config_format": "nemo-agents-spec-v1",
        "config": {
            "config_format": "nemo-agents-spec-v1",
            "name": "script",
            "default_harness": "script",
            "harnesses": {"script": {"kind": "script", "settings": settings}},
        },
    })
}
