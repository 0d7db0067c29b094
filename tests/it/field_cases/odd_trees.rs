//! FC-F, the rest of it: trees that are odd by names, modes, kinds and sizes, through a whole
//! platform: out of one job, into the next by way of the first one's fileset, and out again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Api, Job, Options, Platform, Postgres, script_agent};

const SOON: Duration = Duration::from_secs(60);
const LATER: Duration = Duration::from_secs(150);

/// A job that runs a line of shell in the output of another.
async fn after(api: &Api, job: &Job, command: &str) -> Job {
    let reference = job.result("output_workdir").await["artifact_url"].clone();
    upon(api, reference.as_str().expect("a reference"), command).await
}

/// A job in a directory that is there already.
async fn upon(api: &Api, reference: &str, command: &str) -> Job {
    let mut agent = script_agent();
    agent["config"]["harnesses"]["script"]["settings"]["command"] =
        json!(["/bin/sh", "-c", command]);
    let workdir = json!({"base_workdir": reference});
    api.submit(json!({"agent": agent, "input": "", "workdir": workdir})).await
}

async fn completes(job: &Job, within: Duration) {
    let record = job.ends(within).await;
    assert_eq!(record["status"], "completed", "{record}");
}

/// What GNU tar makes of a directory result.
async fn untarred(job: &Job, result: &str) -> TempDir {
    let dir = TempDir::new().expect("a temporary directory");
    let archive = dir.path().join("archive.tar.gz");
    fs::write(&archive, job.download(result).await).expect("write");
    let tar = Command::new("tar").arg("-xpzf").arg(&archive).arg("-C").arg(dir.path()).output();
    let output = tar.expect("tar runs");
    assert!(output.status.success(), "{output:?}");
    dir
}

/// Kind, mode, path, target and whole seconds of everything, and what the files hold.
fn survey(root: &Path) -> Vec<u8> {
    let survey = "find . -mindepth 1 -printf '%y %m %p %l %n ' -printf '%T@' -printf '\\0' \
                  | sed -z -E 's/\\.[0-9]+$//; s/^(d .*) [0-9]+ (-?[0-9]+)$/\\1 \\2/' | sort -z
                  find . -type f ! -name big ! -name end -print0 | sort -z | xargs -0 sha256sum -z --
                  find . -name end -execdir sha256sum {} +";
    let output = Command::new("sh").args(["-c", survey]).current_dir(root).output();
    let output = output.expect("find runs");
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Everything odd at once.
const ODD: &str = r#"
    set -e
    ln -s nowhere broken; ln -s loop loop; ln -s /absolute//path/../x/ literal; ln -s . here
    mkdir -p empty/deeper .git/refs sub/other; echo ref > .git/HEAD; : > none
    echo x > 'a:b'; echo x > 'q"q'; echo x > 'back\slash'; echo x > "$(printf 'new\nline')"
    echo x > ./-rf; echo x > "$(printf '\303\274n\303\257')"; echo x > "$(printf 'u\314\210ni\314\210')"
    echo x > "$(printf 'n%.0s' $(seq 255))"; echo x > "$(printf '\377')"; echo x > 'trailing '
    for mode in 0755 0644 0600 0444; do echo $mode > f$mode; chmod $mode f$mode; done
    mkdir d0700 d1777 d0500; echo in > d0500/in
    chmod 0700 d0700; chmod 1777 d1777; chmod 0500 d0500
    echo linked > sub/one; ln sub/one sub/other/two; ln sub/one three
    truncate -s 9G big; printf middle | dd of=big bs=1 seek=5000000000 conv=notrunc status=none
    touch -d '1901-12-14 00:00:00' sub/one; touch -d '2400-02-29 12:00:00' none
    touch -h -d '2001-02-03 04:05:06' broken; touch -d '1969-12-31 23:59:59' empty/deeper empty
    python3 -c 'import os
for i in range(30): os.mkdir("p" * 200); os.chdir("p" * 200)
open("end", "w").write("deep")'
    rm agent.sh
"#;

#[tokio::test]
async fn an_odd_tree_goes_out_and_in_and_out_twice_to_the_byte() {
    let platform = Platform::start().await;
    let api = platform.api();
    let first = api.script(ODD, json!({})).await;
    completes(&first, SOON).await;
    let second = after(&api, &first, "true").await;
    completes(&second, SOON).await;
    let third = after(&api, &second, "true").await;
    completes(&third, SOON).await;

    let result = first.result("output_workdir").await;
    assert_eq!((&result["complete"], &result["skipped"]), (&json!(true), &json!([])));
    assert!(result["size"].as_u64().is_some_and(|size| size < 200_000), "{result}");
    // GNU tar takes no path that is longer than a system call does, so these are unpacked by us.
    let wanted = survey(first.directory("output_workdir").await.path());
    assert!(wanted.split(|byte| *byte == 0).count() > 80);
    for (job, result) in [
        (&second, "input_workdir"),
        (&second, "output_workdir"),
        (&third, "input_workdir"),
        (&third, "output_workdir"),
    ] {
        let tree = job.directory(result).await;
        assert!(survey(tree.path()) == wanted, "another tree came out: {result} of {}", job.name);
    }
    for job in [&second, &third] {
        let result = job.result("output_workdir").await;
        let none = json!({"added": 0, "modified": 0, "deleted": 0});
        assert_eq!(result["output_changes"]["totals"], none, "{result}");
    }
    assert_eq!(
        second.download("output_workdir").await,
        third.download("output_workdir").await,
        "equal trees give equal bundles"
    );
}

#[tokio::test]
async fn case_f4_fifos_and_sockets_are_named_and_never_opened() {
    let platform = Platform::start().await;
    let script = "mkfifo p; echo ok > f; python3 -c \"import socket; \
                  socket.socket(socket.AF_UNIX).bind('s')\"";
    let job = platform.api().script(script, json!({})).await;
    completes(&job, SOON).await;
    let result = job.result("output_workdir").await;
    let skipped = json!([
        {"path": "p", "reason": "a FIFO cannot be stored"},
        {"path": "s", "reason": "a socket cannot be stored"},
    ]);
    assert_eq!((&result["skipped"], &result["complete"]), (&skipped, &json!(false)));
    let tree = untarred(&job, "output_workdir").await;
    let kept = fs::read_to_string(tree.path().join("output_workdir/f")).expect("kept");
    assert_eq!(kept, "ok\n");
}

/// A mistyped path is no empty directory.
#[tokio::test]
async fn a_path_that_a_result_does_not_have_fails_the_next_job() {
    let platform = Platform::start().await;
    let api = platform.api();
    let first = api.script("mkdir report; echo ok > report/f; : > file", json!({})).await;
    completes(&first, SOON).await;
    let url = first.result("output_workdir").await["artifact_url"].clone();
    let url = url.as_str().expect("a reference");
    for (path, status) in [("report", "completed"), ("reports", "error"), ("file", "error")] {
        let record = upon(&api, &format!("{url}/{path}"), "true").await.ends(SOON).await;
        assert_eq!(record["status"], status, "{path}: {record}");
        if status == "error" {
            let said = record["error_details"]["error"].as_str().unwrap_or_default();
            assert!(said.contains(&format!("nothing at '{path}'")), "{record}");
        }
    }
}

#[tokio::test]
async fn case_f6_hard_links_are_stored_once() {
    let platform = Platform::start().await;
    let script = "head -c 50000000 /dev/urandom > a; mkdir d; \
                  for i in $(seq 1 40); do ln a a$i; done; ln a d/again";
    let job = platform.api().script(script, json!({})).await;
    completes(&job, SOON).await;
    let size = job.result("output_workdir").await["size"].as_u64().expect("a size");
    assert!((50_000_000..55_000_000).contains(&size), "{size} bytes");
    let count = "test \"$(find . -samefile a | wc -l)\" = 42 && echo all one";
    let next = after(&platform.api(), &job, count).await;
    completes(&next, SOON).await;
    assert_eq!(next.json("fabric_run_result").await["response"], "all one");
}

#[tokio::test]
async fn case_f8_nobody_writes_any_more_when_results_are_saved() {
    let platform = Platform::start().await;
    let script = "(i=0; while :; do echo $i >> grow.log; echo x > shrink; : > shrink; \
                  i=$((i+1)); done &) ; sleep 1; exit 0";
    let job = platform.api().script(script, json!({})).await;
    completes(&job, SOON).await;
    let result = job.result("output_workdir").await;
    assert_eq!(result["changed_while_saved"], json!([]), "{result}");
    assert_eq!(result["complete"], true);
    let tree = untarred(&job, "output_workdir").await;
    let log = fs::read_to_string(tree.path().join("output_workdir/grow.log")).expect("kept");
    assert!(log.starts_with("0\n1\n2\n"));
}

/// The policy: a file is stored by what is in it, whatever its size says.
#[tokio::test]
async fn case_f12_a_file_of_20_gib_that_holds_nothing_costs_nothing() {
    let platform = Platform::start().await;
    let job = platform.api().script("truncate -s 20G big; echo end >> big", json!({})).await;
    completes(&job, SOON).await;
    let result = job.result("output_workdir").await;
    assert!(result["size"].as_u64().is_some_and(|size| size < 10_000), "{result}");
    let look = "stat -c %s big; test $(stat -c %b big) -lt 100 && tail -c 4 big";
    let next = after(&platform.api(), &job, look).await;
    completes(&next, SOON).await;
    assert_eq!(next.json("fabric_run_result").await["response"], "21474836484\nend");
}

/// Names that are no text are told reversibly, and every list with them is JSON.
#[tokio::test]
async fn case_f13_odd_names_are_listed_so_that_they_can_be_read_back() {
    let platform = Platform::start().await;
    let job = platform.api().script(ODD, json!({})).await;
    completes(&job, SOON).await;
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{}/results", job.name);
    let changes = platform.api().get(&format!("{path}/output_workdir/changes")).await;
    let added: Vec<_> = changes["added"].as_array().expect("a list").iter().collect();
    let long = "n".repeat(255);
    for name in [
        "a:b",
        "q\"q",
        "back\\x5cslash",
        "new\nline",
        "-rf",
        "ünï",
        "u\u{308}ni\u{308}",
        &long,
        "\\xff",
        "trailing ",
    ] {
        assert!(added.contains(&&json!(name)), "{name} is not in {changes}");
    }
    assert_eq!(changes["deleted"], json!(["agent.sh"]));
}

#[tokio::test]
async fn case_f14_modes_stay_but_for_the_set_id_bits_of_what_is_given() {
    let platform = Platform::start().await;
    let script = "for mode in 0755 0644 0600 0444 4755; do : > f$mode; chmod $mode f$mode; done; \
                  mkdir d0700 d1777; chmod 0700 d0700; chmod 1777 d1777";
    let job = platform.api().script(script, json!({})).await;
    completes(&job, SOON).await;
    // And all of it is the agent's own.
    let modes = "stat -c '%a %n' d* f*; find . ! -uid $(id -u)";
    let next = after(&platform.api(), &job, modes).await;
    completes(&next, SOON).await;
    let wanted = "700 d0700\n1777 d1777\n444 f0444\n600 f0600\n644 f0644\n755 f0755\n755 f4755";
    assert_eq!(next.json("fabric_run_result").await["response"], wanted);
    let kept = untarred(&job, "output_workdir").await;
    let stat = fs::metadata(kept.path().join("output_workdir/f4755")).expect("kept");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&stat.permissions()) & 0o7777, 0o4755);
}

async fn many_files_are_one_object(options: Options) {
    let platform = Platform::with(options).await;
    let script = "mkdir m; cd m; seq 1 100000 | xargs touch";
    let job = platform.api().script(script, json!({})).await;
    completes(&job, LATER).await;
    let results = job.results().await;
    assert_eq!(results.len(), 4, "{results:?}");
    let result = job.result("output_workdir").await;
    let changes = &result["output_changes"];
    let totals = json!({"added": 100_001, "modified": 0, "deleted": 0});
    assert_eq!((&result["complete"], &changes["totals"]), (&json!(true), &totals));
    assert_eq!(changes["added"].as_array().map(Vec::len), Some(50));
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{}/results", job.name);
    let all = platform.api().get(&format!("{path}/output_workdir/changes")).await;
    assert_eq!(all["added"].as_array().map(Vec::len), Some(100_001));
    assert_eq!(all["totals"], totals);
    // The fileset shows one file for the directory, not one for each of its files.
    let fileset = format!("/apis/files/v2/workspaces/default/filesets/job-fileset-{}", job.name);
    let files = platform.api().get(&format!("{fileset}/files")).await;
    assert_eq!(files["data"].as_array().map(Vec::len), Some(4), "{files}");
}

#[tokio::test]
async fn case_f16_a_hundred_thousand_files_are_one_object() {
    many_files_are_one_object(Options::default()).await;
}

#[tokio::test]
async fn case_f16_a_hundred_thousand_files_are_one_object_on_postgresql() {
    let server = Postgres::start();
    let env = vec![("ERRAND__DATABASE__URL".to_owned(), server.url())];
    many_files_are_one_object(Options { env, ..Options::default() }).await;
}

/// Nothing guesses by what a file begins with.
#[tokio::test]
async fn case_f18_files_that_look_like_archives_are_files() {
    let platform = Platform::start().await;
    let api = platform.api();
    let make = "rm agent.sh; mkdir t; echo in > t/f; tar -czf a.tgz t; echo b | gzip > b.gz; \
                cat a.tgz b.gz > c.tgz; printf '\\037\\213 no gzip at all' > magic; \
                printf '\\037\\213' > short; sha256sum *.tgz b.gz magic short";
    let first = api.script(make, json!({})).await;
    completes(&first, SOON).await;
    let wanted = first.json("fabric_run_result").await["response"].clone();

    // By way of a fileset of uploaded files.
    let tree = untarred(&first, "output_workdir").await;
    let names = ["a.tgz", "b.gz", "c.tgz", "magic", "short"];
    let mut files = BTreeMap::new();
    for name in names {
        let bytes = fs::read(tree.path().join("output_workdir").join(name)).expect("kept");
        files.insert(name, bytes);
    }
    api.fileset("archives", &[]).await;
    for (name, bytes) in &files {
        api.upload("archives", name, bytes.clone()).await;
    }
    let mut agent = script_agent();
    let look = "sha256sum *.tgz b.gz magic short";
    agent["config"]["harnesses"]["script"]["settings"]["command"] = json!(["/bin/sh", "-c", look]);
    let workdir = json!({"base_workdir": "archives"});
    let second = api.submit(json!({"agent": agent, "input": "", "workdir": workdir})).await;
    completes(&second, SOON).await;
    assert_eq!(second.json("fabric_run_result").await["response"], wanted);
    let third = after(&api, &second, look).await;
    completes(&third, SOON).await;
    assert_eq!(third.json("fabric_run_result").await["response"], wanted);
}

/// What an agent did is told against what it was given, by bytes and not by times.
#[tokio::test]
async fn what_an_agent_changed_is_told() {
    let platform = Platform::start().await;
    let api = platform.api();
    let first = api.script("rm agent.sh; for f in a b c d; do echo $f > $f; done", json!({})).await;
    completes(&first, SOON).await;
    let second = after(&api, &first, "touch a; echo B > b; rm c; chmod 600 d; echo e > e").await;
    completes(&second, SOON).await;
    let wanted = json!({
        "added": ["e"],
        "modified": ["b", "d"],
        "deleted": ["c"],
        "totals": {"added": 1, "modified": 2, "deleted": 1},
    });
    assert_eq!(second.result("output_workdir").await["output_changes"], wanted);
    assert_eq!(second.result("output_artifacts").await["output_changes"], Value::Null);
    let changes = |format: &str| {
        let mut cli = platform.cli();
        cli.args(["jobs", "results", "changes", &second.name, "--output-format", format]);
        let output = cli.output().expect("errand runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let json: Value = serde_json::from_str(&changes("json")).expect("JSON");
    assert_eq!(json, wanted);
    let table = changes("table");
    let rows: Vec<Vec<_>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[1..], [["A", "e"], ["M", "b"], ["M", "d"], ["D", "c"]]);
}

/// A mount takes the place of all that was there, whatever its name.
#[tokio::test]
async fn a_mount_covers_names_that_are_no_text() {
    let platform = Platform::start().await;
    let api = platform.api();
    let script = r#"rm agent.sh; mkdir data; cd data; echo old > old; ln old "$(printf '\377')""#;
    let first = api.script(script, json!({})).await;
    completes(&first, SOON).await;
    api.fileset("over-all", &[("new", "x")]).await;
    let base = first.result("output_workdir").await["artifact_url"].clone();
    let mut agent = script_agent();
    let look = json!(["/bin/sh", "-c", "find data -type f"]);
    agent["config"]["harnesses"]["script"]["settings"]["command"] = look;
    let mounts = json!([{"ref": "over-all", "mount_path": "data"}]);
    let workdir = json!({"base_workdir": base, "artifact_mounts": mounts});
    let second = api.submit(json!({"agent": agent, "input": "", "workdir": workdir})).await;
    completes(&second, SOON).await;
    assert_eq!(second.json("fabric_run_result").await["response"], "data/new");
}

/// What is laid over a directory leaves those above it as they were.
#[tokio::test]
async fn a_mount_leaves_the_directories_above_it_alone() {
    let platform = Platform::start().await;
    let api = platform.api();
    let script = "rm agent.sh; mkdir -p a/b c; chmod 700 a; chmod 1777 c; touch -d @86400 a c";
    let first = api.script(script, json!({})).await;
    completes(&first, SOON).await;
    api.fileset("over", &[("f", "x"), ("d/g", "y")]).await;
    let base = first.result("output_workdir").await["artifact_url"].clone();
    let mut agent = script_agent();
    let look = "find . -mindepth 1 -printf '%y %m %p\n' | sort -k 3; stat -c %Y a c";
    agent["config"]["harnesses"]["script"]["settings"]["command"] = json!(["/bin/sh", "-c", look]);
    let mounts = [("over", "a/b/files"), ("over", "new/deep")];
    let mounts = mounts.map(|(reference, path)| json!({"ref": reference, "mount_path": path}));
    let workdir = json!({"base_workdir": base, "artifact_mounts": mounts});
    let second = api.submit(json!({"agent": agent, "input": "", "workdir": workdir})).await;
    completes(&second, SOON).await;
    let wanted = "d 700 ./a\nd 755 ./a/b\nd 755 ./a/b/files\nd 755 ./a/b/files/d\n\
                  f 644 ./a/b/files/d/g\nf 644 ./a/b/files/f\nd 1777 ./c\nd 755 ./new\n\
                  d 755 ./new/deep\nd 755 ./new/deep/d\nf 644 ./new/deep/d/g\n\
                  f 644 ./new/deep/f\n86400\n86400";
    assert_eq!(second.json("fabric_run_result").await["response"], wanted);
    let none = json!({"added": 0, "modified": 0, "deleted": 0});
    let changes = &second.result("output_workdir").await["output_changes"];
    assert_eq!(changes["totals"], none, "{changes}");
}

/// The list outlives the worker that made it.
#[tokio::test]
async fn what_an_agent_changed_is_told_after_a_crash() {
    let mut platform = Platform::with(Options::default().hold_at("invoke:started")).await;
    let job = platform.api().script("echo x > new; rm agent.sh", json!({})).await;
    platform.holds().await;
    platform.kill().await;
    let platform = platform.restart(Options::default()).await;
    let job = job.at(platform.api());
    completes(&job, LATER).await;
    let changes = job.result("output_workdir").await["output_changes"].clone();
    assert_eq!((&changes["added"], &changes["deleted"]), (&json!(["new"]), &json!(["agent.sh"])));
}
