//! A platform of its own for each test, and an API client that knows what tests ask for.

mod api;
mod cluster;
/// The API's tests use it too.
#[path = "../../src/http/tests/events/reader.rs"]
pub mod events;
mod foreign;
mod job;
mod nats;
mod one_way;
mod parts;
mod plain;
mod platform;
/// The records' tests use it too.
#[path = "../../src/records/tests/postgres.rs"]
mod postgres;
mod processes;
mod receiver;
mod scratch;
mod stall;
mod submission;
mod team;

pub use api::Api;
pub use cluster::Cluster;
pub use foreign::ask;
pub use job::Job;
pub use nats::{Nats, free_ports};
pub use one_way::OneWay;
pub use parts::{Database, HERE, Part, Parts};
pub use plain::{Came, Plain};
pub use platform::{Options, Platform};
pub(crate) use postgres::Server as Postgres;
pub use processes::{
    answered, assert_none_runs, best_of_three, eventually, is_running, processes_of_runs,
    resident_mib, running_with_argument, send,
};
pub use receiver::Receiver;
pub use scratch::open_directory;
pub use stall::Stall;
pub use submission::submission;
pub use team::Team;

use serde_json::{Value, json};

/// An inline agent of the script harness that runs `/bin/sh agent.sh` in its working directory.
pub fn script_agent() -> Value {
    json!({
        "config_format": "nemo-agents-spec-v1",
        "config": {
            "config_format": "nemo-agents-spec-v1",
            "name": "script",
            "default_harness": "script",
            "harnesses": {
                "script": {
                    "kind": "script",
                    "settings": {"command": ["/bin/sh", "agent.sh"], "allow_empty": true}
                }
            }
        }
    })
}
