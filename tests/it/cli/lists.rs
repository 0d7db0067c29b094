//! Lists: pages, filters, forms.

use serde_json::{Value, json};

use super::{each, json as ask, run, text};
use crate::harness::Platform;

#[tokio::test]
async fn lists_go_on_beyond_a_page() {
    let platform = Platform::start().await;
    let names = ["a1", "a2", "a3", "a4", "a5"];
    for name in names {
        ask(&platform, &["filesets", "create", name]);
    }
    let list = ["filesets", "list", "--sort", "name", "--page-size", "2"];
    let first = run(&platform, &list);
    let said = text(first.stderr);
    let more = "More pages of results are available! Use --all-pages to fetch all results.";
    assert_eq!(said, format!("2 of 5 shown. {more}\n"));
    let first: Value = serde_json::from_slice(&first.stdout).expect("exactly one JSON document");
    assert_eq!(each(&first, "name"), names[..2]);

    let last = run(&platform, &[&list[..], &["--page", "3"]].concat());
    assert!(last.stderr.is_empty(), "{last:?}");
    let last: Value = serde_json::from_slice(&last.stdout).expect("exactly one JSON document");
    assert_eq!(each(&last, "name"), names[4..]);

    let all = run(&platform, &[&list[..], &["--all-pages"]].concat());
    assert!(all.stderr.is_empty(), "{all:?}");
    let all: Value = serde_json::from_slice(&all.stdout).expect("exactly one JSON document");
    assert_eq!(each(&all, "name"), names);
    assert_eq!(all["pagination"]["total_results"], 5, "{all}");
}

#[tokio::test]
async fn jobs_are_filtered_by_flags_and_json_together() {
    let platform = Platform::start().await;
    let completed = platform.api().script("exit 0", json!({})).await;
    let failed = platform.api().script("exit 1", json!({})).await;
    let running = platform.api().script("sleep 600", json!({})).await;
    for job in [&completed, &failed] {
        run(&platform, &["jobs", "watch", &job.name]);
    }
    let names = |args: &[&str]| {
        let mut names = each(&ask(&platform, &[&["jobs", "list"], args].concat()), "name");
        names.sort();
        names
    };
    let sorted = |jobs: &[&crate::harness::Job]| {
        let mut names: Vec<_> = jobs.iter().map(|job| job.name.clone()).collect();
        names.sort();
        names
    };
    let source = ["--filter.source", "nemo-agents-plugin-execute"];
    assert_eq!(names(&source), sorted(&[&completed, &failed, &running]));
    let ended = ["--filter.status", "completed", "--filter.status", "error"];
    assert_eq!(names(&ended), sorted(&[&completed, &failed]));
    let json = format!(r#"{{"name": {{"$in": ["{}", "{}"]}}}}"#, failed.name, running.name);
    assert_eq!(names(&[&ended[..], &["--filter", &json]].concat()), sorted(&[&failed]));
    assert_eq!(names(&["--filter.name", "nobody"]), [""; 0]);
}

#[tokio::test]
async fn a_log_is_read_page_by_page_or_whole() {
    let platform = Platform::start().await;
    let job = platform.api().script("for i in 1 2 3 4 5 6 7; do echo $i; done", json!({})).await;
    run(&platform, &["jobs", "watch", &job.name]);
    let log = job.log().await;
    let get = ["jobs", "get-logs", job.name.as_str()];
    let first = run(&platform, &[&get[..], &["--limit", "3"]].concat());
    assert!(text(first.stderr).contains("Use --all-pages"));
    let first: Value = serde_json::from_slice(&first.stdout).expect("exactly one JSON document");
    assert_eq!(each(&first, "message"), log[..3]);
    let next = first["next_page"].as_str().expect("there is more");
    let second = ask(&platform, &[&get[..], &["--limit", "3", "--page-cursor", next]].concat());
    assert_eq!(each(&second, "message"), log[3..6]);
    let all = ask(&platform, &[&get[..], &["--limit", "3", "--all-pages"]].concat());
    assert_eq!(each(&all, "message"), log);
    let tail = ask(&platform, &[&get[..], &["--tail", "2"]].concat());
    assert_eq!(each(&tail, "message"), log[log.len() - 2..]);
}

#[tokio::test]
async fn a_list_has_three_forms() {
    let platform = Platform::start().await;
    let long = format!("long {}", "x".repeat(200));
    ask(&platform, &["filesets", "create", "data", "--description", &long]);
    let show = |format: &[&str]| {
        let output = run(&platform, &[&["filesets", "list"], format].concat());
        assert!(output.status.success(), "{output:?}");
        (text(output.stdout), text(output.stderr))
    };
    let (table, said) = show(&["--output-format", "table"]);
    let lines: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "WORKSPACE", "PURPOSE", "DESCRIPTION", "CREATED"], "{table}");
    assert_eq!(lines[1][..3], ["data", "default", "generic"], "{table}");
    assert!(!table.contains(&long), "{table}");
    assert_eq!(said, "Use --no-truncate to see full values.\n");
    let (table, said) = show(&["--output-format", "table", "--no-truncate"]);
    assert!(table.contains(&long) && said.is_empty(), "{table} {said}");

    let (yaml, _) = show(&["--output-format", "yaml"]);
    let yaml: Value = serde_saphyr::from_str(&yaml).expect("one YAML document");
    let (json, _) = show(&[]);
    let json: Value = serde_json::from_str(&json).expect("one JSON document");
    assert_eq!(yaml, json);
}
