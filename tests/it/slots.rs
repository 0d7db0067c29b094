//! Slots: many jobs at once, few at work, and waiting is not counted.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::Platform;

#[tokio::test]
async fn twenty_jobs_in_two_slots_all_complete_and_waiting_is_not_counted() {
    let platform = Platform::start().await;
    let api = platform.api();
    let scratch = platform.scratch();
    let together = scratch.join("together");
    let most = scratch.join("most");
    // Each agent counts how many run beside it. One second in two slots makes the last wait for
    // longer than its own limit.
    let script = format!(
        "umask 0; echo x >> {t}.$$; ls {t}.* | wc -l >> {m}; sleep 1; rm {t}.$$; echo done",
        t = together.display(),
        m = most.display()
    );
    let submit = |_| api.script(&script, json!({"timeout_seconds": 7}));
    let jobs = join_all((0..20).map(submit)).await;
    for job in &jobs {
        let record = job.ends(Duration::from_secs(60)).await;
        assert_eq!(record["status"], "completed", "{record}");
    }
    let counts = std::fs::read_to_string(most).expect("the agents counted");
    let counts: Vec<u32> =
        counts.lines().map(|line| line.trim().parse().expect("a count")).collect();
    assert_eq!(counts.len(), 20, "each agent ran once");
    assert_eq!(counts.iter().max(), Some(&2), "both slots were used, and no more");
}
