//! `nemo jobs`, but for what it prints of logs.

use std::time::Duration;

use serde_json::{Value, json};

use super::nemo::{Nemo, items, names, one_line};
use crate::harness::{Job, Options, Platform, script_agent};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn jobs_are_found_by_every_filter() {
    let platform = Platform::start().await;
    let api = platform.api();
    api.fileset("work", &[("agent.sh", "exit $(cat)")]).await;
    for name in ["calc", "other"] {
        api.agent(name, script_agent()["config"].clone()).await;
    }
    let workdir = json!({"base_workdir": "work"});
    let spec =
        |agent: Value, input: &str| json!({"agent": agent, "input": input, "workdir": workdir});
    let calc = api.submit(spec(json!("calc"), "0")).await;
    let other = api.submit(spec(json!("default/other"), "1")).await;
    let inline = api.submit(spec(script_agent(), "0")).await;
    for job in [&calc, &other, &inline] {
        job.ends(SOON).await;
    }
    let mut nemo = Nemo::start(&platform, "jobs list --help");

    let all = [&*inline.name, &*other.name, &*calc.name];
    assert_eq!(names(&nemo.list("jobs list")), all);
    let source = "--filter.source nemo-agents-plugin-execute";
    for (filter, found) in [
        (source.to_owned(), &all[..]),
        ("--filter.source another".to_owned(), &[]),
        (format!("--filter.name {}", calc.name), &all[2..]),
        ("--filter.status error".to_owned(), &all[1..2]),
        ("--filter.status error --filter.status completed".to_owned(), &all[..]),
        ("--filter.workspace default".to_owned(), &all[..]),
        ("--filter.project another".to_owned(), &[]),
        (
            format!(
                r#"{source} --filter '{{"spec.agent_ref": {{"$in": ["default/calc", "default/other"]}}}}'"#
            ),
            &all[1..],
        ),
        (r#"--filter '{"spec.agent.name": "calc"}'"#.to_owned(), &all[2..]),
        (r#"--filter '{"spec.agent_ref": {"$eq": null}}'"#.to_owned(), &all[..1]),
        (
            r#"--filter '{"$or": [{"status": "error"}, {"spec.agent_ref": "default/calc"}]}'"#
                .to_owned(),
            &all[1..],
        ),
        (r#"--filter '{"created_at": {"$gte": "2026-01-01T00:00:00"}}'"#.to_owned(), &all[..]),
    ] {
        assert_eq!(names(&nemo.json(&format!("jobs list {filter}"))), found, "{filter}");
    }
    let first = nemo.run("jobs list --page-size 2");
    assert!(one_line(&first.stderr).contains("Use --all-pages to fetch all results."), "{first:?}");
    let second = nemo.json("jobs list --page-size 2 --page 2 --sort created_at");
    assert_eq!(names(&second), all[..1]);
    assert_eq!(names(&nemo.json("jobs list --page-size 2 --all-pages")), all);
    assert_eq!(nemo.ok("jobs list --stream -f json").trim_end().lines().count(), 3);
    nemo.fails("jobs list --filter '{bad'", 2, "Invalid filter JSON");
    nemo.fails(r#"jobs list --filter '{"bogus": 1}'"#, 3, "Unknown filter field 'bogus'.");
    nemo.fails(r#"jobs list --filter 'status:"error"'"#, 3, "Bad request: (400)");
    nemo.fails("jobs list --workspace nowhere", 3, "Workspace 'nowhere' not found");
}

#[tokio::test]
async fn a_finished_job_is_shown_from_all_sides() {
    let platform = Platform::start().await;
    let job = platform.api().script("echo made > made.txt; echo 96", json!({})).await;
    job.ends(SOON).await;
    let Job { name, id, .. } = &job;
    let mut nemo = Nemo::start(&platform, "jobs list --help");

    let record = nemo.json(&format!("jobs get {name}"));
    assert_eq!((&record["status"], &record["id"]), (&json!("completed"), &json!(id.http())));
    assert_eq!(nemo.json(&format!("jobs get {}", id.http()))["name"], *name);
    nemo.fails("jobs get nobody", 3, "Not found: (404) Job 'nobody' not found");
    let status = nemo.json(&format!("jobs get-status {name}"));
    let task = &status["steps"][0]["tasks"][0];
    assert_eq!((&status["status"], &task["status"]), (&json!("completed"), &json!("completed")));

    let results = nemo.list(&format!("jobs results list {name}"));
    let mut listed = names(&results);
    listed.sort_unstable();
    assert_eq!(
        listed,
        ["fabric_run_result", "input_workdir", "output_artifacts", "output_workdir"]
    );
    let result = nemo.json(&format!("jobs results get output_workdir --job {name}"));
    assert_eq!(result["job"], id.http());
    nemo.fails(&format!("jobs results get nothing --job {name}"), 3, "Result 'nothing' for job");
    for result in listed {
        let said = nemo.ok(&format!("jobs results download {result} --job {name} -o {result}.out"));
        assert!(said.contains("Downloaded to"), "{said}");
        let downloaded = std::fs::read(nemo.home().join(format!("{result}.out")));
        assert!(downloaded.expect("the file is there") == job.download(result).await, "{result}");
    }
    nemo.fails(&format!("jobs results download nothing --job {name} -o x"), 3, "Not found: (404)");

    let steps = nemo.list(&format!("jobs steps list {name}"));
    assert_eq!(names(&steps), ["execute-agent"]);
    let step = nemo.json(&format!("jobs steps get execute-agent --job {name}"));
    assert_eq!(step["status"], "completed");
    nemo.fails(&format!("jobs steps get nothing --job {name}"), 3, "Step 'nothing' for job");
    let tasks = nemo.json(&format!("jobs tasks list execute-agent --job {name}"));
    let task = names(&tasks)[0];
    assert_eq!(items(&tasks).len(), 1);
    let command = format!("jobs tasks get {task} --job {name} --step execute-agent");
    assert_eq!(nemo.json(&command)["status"], "completed");

    let profiles = nemo.json("jobs list-execution-profiles");
    assert_eq!(profiles[0]["profile"], "default", "{profiles}");
    for verb in ["cancel", "pause", "resume"] {
        let unchanged = nemo.json(&format!("jobs {verb} {name}"));
        assert_eq!(unchanged["status"], "completed", "{verb}");
    }
    let said = nemo.ok(&format!("jobs delete {name}"));
    assert!(said.contains("Deleted successfully"), "{said}");
    nemo.fails(&format!("jobs delete {name}"), 3, &format!("Job '{name}' not found"));
}

/// Jobs of other kinds, steps, tasks and results are the platform's to make; it says so.
#[tokio::test]
async fn what_the_platform_makes_itself_is_refused_from_outside() {
    let platform = Platform::start().await;
    let job = platform.api().script("echo 96", json!({})).await;
    let record = job.ends(SOON).await;
    let name = &job.name;
    let mut nemo = Nemo::start(&platform, "jobs list --help");

    let executor = json!({"provider": "subprocess", "command": ["true"]});
    let steps = json!({"steps": [{"name": "one", "executor": executor}]});
    let tasks = nemo.json(&format!("jobs tasks list execute-agent --job {name}"));
    let task = names(&tasks)[0];
    let result = "--artifact-storage-type fileset --artifact-url default/work";
    for (command, words) in [
        (
            format!("create --source manual --spec '{{}}' --platform-spec '{steps}'"),
            "Jobs of source 'manual' cannot be run: this platform runs agents.",
        ),
        (
            format!("steps update-status execute-agent --job {name} --status error"),
            "follows the job and cannot be moved by itself; to end the job, cancel it",
        ),
        (
            format!("tasks create-or-update {task} --job {name} --step execute-agent"),
            "cannot be written: each start of the agent is a task, made by the platform",
        ),
        (
            format!("results create mine --job {name} {result}"),
            "the platform saves what the agent leaves behind, and lists nothing else",
        ),
    ] {
        nemo.fails(&format!("jobs {command}"), 3, words);
    }
    assert_eq!(job.record().await, record, "nothing has changed");

    nemo.ok(&format!("jobs update-status-details {name} --body '{{\"seen\": true}}'"));
    let details = &nemo.json(&format!("jobs get {name}"))["status_details"];
    assert_eq!(details["seen"], true, "a job's own details may be added to: {details}");
}

#[tokio::test]
async fn jobs_are_cancelled_and_only_then_deleted() {
    let platform = Platform::start().await;
    let job = platform.api().script("sleep 600", json!({})).await;
    job.reaches("active", SOON).await;
    let mut nemo = Nemo::start(&platform, "jobs list --help");

    let delete = format!("jobs delete {}", job.name);
    nemo.fails(&delete, 3, &format!("Cannot delete job '{}' while it is 'active'.", job.name));
    let cancelled = nemo.json(&format!("jobs cancel {}", job.name));
    assert_eq!(cancelled["status"], "cancelling");
    job.reaches("cancelled", SOON).await;
    assert_eq!(nemo.json(&format!("jobs cancel {}", job.name))["status"], "cancelled");
    nemo.ok(&delete);
    nemo.fails("jobs cancel nobody", 3, "Job 'nobody' not found in workspace 'default'.");
}

#[tokio::test]
async fn a_job_that_waits_is_paused_and_resumed() {
    let platform = Platform::with(Options { slots: 1, ..Options::default() }).await;
    let api = platform.api();
    let running = api.script("sleep 600", json!({})).await;
    running.reaches("active", SOON).await;
    let waiting = api.script("echo waited", json!({})).await;
    waiting.reaches("pending", SOON).await;
    let mut nemo = Nemo::start(&platform, "jobs list --help");

    let paused = nemo.json(&format!("jobs pause {}", waiting.name));
    assert!(matches!(paused["status"].as_str(), Some("pausing" | "paused")), "{paused}");
    waiting.reaches("paused", SOON).await;
    let watch = nemo.run(&format!("jobs watch {} --poll-interval 1", waiting.name));
    assert_eq!(watch.code, 1, "a watch ends when its job is paused: {watch:?}");
    // An agent that runs is not held, and that is no error.
    for verb in ["pause", "resume"] {
        let running = nemo.json(&format!("jobs {verb} {}", running.name));
        assert_eq!(running["status"], "active", "{verb}");
    }
    running.cancel().await;
    running.ends(SOON).await;
    assert_eq!(waiting.status().await, "paused", "also with a free slot");
    let resumed = nemo.json(&format!("jobs resume {}", waiting.name));
    assert!(resumed["status"] != "paused", "{resumed}");
    assert_eq!(waiting.ends(SOON).await["status"], "completed");
    nemo.fails("jobs pause nobody", 3, "Job 'nobody' not found in workspace 'default'.");
}
