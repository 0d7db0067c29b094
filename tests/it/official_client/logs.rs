//! `nemo jobs watch | tail | get-logs`.

use std::time::Duration;

use serde_json::json;

use super::nemo::{Nemo, items, one_line};
use crate::harness::Platform;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn watch_follows_a_job_to_its_end() {
    let platform = Platform::start().await;
    let api = platform.api();
    let good = api.script("for n in 1 2 3; do echo line $n; sleep 0.3; done", json!({})).await;
    let bad = api.script("echo trouble >&2; exit 3", json!({})).await;
    let slow = api.script("sleep 600", json!({})).await;
    let mut nemo = Nemo::start(&platform, "jobs watch --help");

    let watched = nemo.ok(&format!("jobs watch {} --poll-interval 1", good.name));
    let watched = one_line(&watched);
    assert!(watched.contains("| Executing agent default/script (timeout 3600s)."), "{watched}");
    for n in 1..=3 {
        assert_eq!(watched.matches(&format!("| line {n} ")).count(), 1, "{watched}");
    }
    assert!(watched.contains("Status: completed"), "{watched}");
    assert!(watched.ends_with(&format!("Job '{}' completed", good.name)), "{watched}");

    let failed = nemo.run(&format!("jobs watch {} --poll-interval 1", bad.name));
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(one_line(&failed.stdout).contains("| [stderr] trouble"), "{failed:?}");
    let said = one_line(&format!("{} {}", failed.stdout, failed.stderr));
    assert!(said.contains(&format!("Job '{}' ended with status 'error': ", bad.name)), "{said}");

    // What was there before is skipped on request.
    let again = one_line(&nemo.ok(&format!("jobs watch {} --no-history", good.name)));
    assert!(!again.contains("line 1"), "{again}");
    assert!(again.contains("Status: completed"), "{again}");

    let watch = format!("jobs watch {} --timeout 1 --poll-interval 1", slow.name);
    nemo.fails(&watch, 1, &format!("Timed out watching job '{}'", slow.name));
    slow.cancel().await;
    slow.ends(SOON).await;
    let cancelled = nemo.run(&format!("jobs watch {}", slow.name));
    assert_eq!(cancelled.code, 1, "{cancelled:?}");
    nemo.fails("jobs watch nobody", 1, "Job 'nobody' not found in workspace 'default'.");
}

#[tokio::test]
async fn logs_are_tailed_and_paged() {
    let platform = Platform::start().await;
    let job = platform.api().script("seq 1 250", json!({})).await;
    job.ends(SOON).await;
    let all = job.log().await;
    let name = &job.name;
    let mut nemo = Nemo::start(&platform, "jobs get-logs --help");

    let tail = nemo.ok(&format!("jobs tail {name} -n 3"));
    assert_eq!(tail.trim_end().lines().count(), 3, "{tail}");
    assert!(one_line(&tail).contains("| 250 "), "{tail}");
    assert_eq!(nemo.ok(&format!("jobs tail {name}")).trim_end().lines().count(), 100);
    let ours = format!("jobs tail {name} -n 3 --step-id execute-agent");
    assert_eq!(nemo.ok(&ours), tail);
    assert_eq!(nemo.ok(&format!("jobs tail {name} --step-id other")).trim(), "");

    let page = nemo.json(&format!("jobs get-logs {name} --limit 100"));
    assert_eq!((items(&page).len(), &page["total"]), (100, &json!(all.len())));
    let cursor = page["next_page"].as_str().expect("there is more");
    let second = nemo.json(&format!("jobs get-logs {name} --limit 100 --page-cursor {cursor}"));
    assert_eq!(items(&second)[0]["message"], all[100]);
    let messages = |list: &serde_json::Value| {
        items(list).iter().map(|line| line["message"].as_str().expect("text").to_owned()).collect()
    };
    let paged: Vec<String> =
        messages(&nemo.json(&format!("jobs get-logs {name} --limit 40 --all-pages")));
    assert_eq!(paged, all);
    let newest: Vec<String> = messages(&nemo.json(&format!("jobs get-logs {name} --tail 5")));
    assert_eq!(newest, all[all.len() - 5..]);
    let csv = nemo.ok(&format!("jobs get-logs {name} --limit 7 -f csv"));
    assert_eq!(csv.trim_end().lines().count(), 8, "{csv}");

    let both = format!("jobs get-logs {name} --tail 3 --limit 3");
    nemo.fails(&both, 3, "Bad request: (400) tail cannot be combined with limit");
    nemo.fails(&format!("jobs get-logs {name} --page-cursor bad"), 3, "Invalid page cursor");
    nemo.fails(&format!("jobs get-logs {name} --limit 0"), 3, "Invalid input: (422)");
    nemo.fails("jobs get-logs nobody", 3, "Job 'nobody' not found in workspace 'default'.");
}
