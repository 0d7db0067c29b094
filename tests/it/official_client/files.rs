//! `nemo files` and `nemo files filesets`.

use std::fs;

use super::nemo::{Nemo, items, names, one_line};
use crate::harness::Platform;

#[tokio::test]
async fn filesets_are_created_listed_shown_changed_and_deleted() {
    let platform = Platform::start().await;
    let mut nemo = Nemo::start(&platform, "files filesets list --help");

    let made = nemo.json(
        r#"files filesets create source --description 'Project source' --purpose dataset
           --custom-fields '{"team": "blue"}'"#
            .replace('\n', " ")
            .as_str(),
    );
    assert_eq!(
        (&made["purpose"], &made["custom_fields"]["team"]),
        (&"dataset".into(), &"blue".into())
    );
    nemo.fails("files filesets create source", 3, "Fileset 'default/source' already exists");
    assert_eq!(nemo.json("files filesets create source --exist-ok")["id"], made["id"]);
    nemo.json("files filesets create other");

    assert_eq!(names(&nemo.list("files filesets list --sort name")), ["other", "source"]);
    for filter in [
        "--filter.name source",
        "--filter.purpose dataset",
        "--filter.description 'Project source'",
    ] {
        let listed = nemo.json(&format!("files filesets list {filter}"));
        assert_eq!(names(&listed), ["source"], "{filter}");
    }
    let all =
        nemo.json("files filesets list --filter.storage-type local --all-pages --page-size 1");
    assert_eq!(names(&all).len(), 2);
    nemo.fails("files filesets list --filter '{\"bogus\": 1}'", 3, "Unknown filter field 'bogus'");

    assert_eq!(nemo.json("files filesets get source")["id"], made["id"]);
    let absent = "Fileset 'nothing' not found in workspace 'default'";
    nemo.fails("files filesets get nothing", 3, absent);
    let changed = nemo.json("files filesets update source --description 'Other words'");
    assert_eq!(changed["description"], "Other words");
    assert_eq!(changed["purpose"], "dataset", "what is not given stays");
    nemo.fails("files filesets refresh source", 3, "does not track a revision");

    nemo.ok("files filesets delete source");
    nemo.fails("files filesets delete source", 3, "Fileset 'source' not found");
}

#[tokio::test]
async fn files_go_up_and_come_down_as_they_were() {
    let platform = Platform::start().await;
    let mut nemo = Nemo::start(&platform, "files list --help");
    let large: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    nemo.write("tree/top.txt", "top\n");
    nemo.write("tree/empty", "");
    nemo.write("tree/deep/er/with blank.bin", &large);
    nemo.ok("files filesets create source");

    let said = one_line(&nemo.ok("files upload tree/ source"));
    assert!(said.contains("Completed upload to source"), "{said}");
    nemo.ok("files upload tree/top.txt source --remote-path copies/top.txt");
    let listed = nemo.json("files list source");
    let mut paths: Vec<_> =
        items(&listed).iter().map(|file| file["path"].as_str().expect("a path")).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["copies/top.txt", "deep/er/with blank.bin", "empty", "top.txt"]);
    assert_eq!(items(&nemo.json("files list source --remote-path deep/")).len(), 1);
    assert_eq!(items(&nemo.json("files list source --remote-path '*.txt'")).len(), 1);
    assert_eq!(nemo.ok("files list source -f csv").trim_end().lines().count(), 5);

    nemo.ok("files download source -o down");
    for file in ["top.txt", "empty", "deep/er/with blank.bin"] {
        let up = fs::read(nemo.home().join("tree").join(file)).expect("it went up");
        let down = fs::read(nemo.home().join("down").join(file)).expect("it came down");
        assert!(up == down, "{file} is not what it was");
    }
    nemo.ok("files download source --remote-path copies/top.txt -o one.txt");
    assert_eq!(fs::read_to_string(nemo.home().join("one.txt")).expect("it came down"), "top\n");

    let said = one_line(&nemo.ok("files delete source --remote-path top.txt"));
    assert!(said.contains("Deleted source#top.txt"), "{said}");
    let absent = "File 'top.txt' not found in fileset 'default/source'";
    nemo.fails("files delete source --remote-path top.txt", 3, absent);
    nemo.fails("files upload tree nothing", 3, "Not found: (404)");
    let made = one_line(&nemo.ok("files upload tree/top.txt"));
    assert!(made.contains("Completed upload to fileset-"), "{made}");
}
