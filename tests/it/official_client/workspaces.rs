//! `nemo workspaces`.

use super::nemo::{Nemo, names, one_line};
use crate::harness::Platform;

#[tokio::test]
async fn workspaces_are_created_listed_shown_changed_and_deleted() {
    let platform = Platform::start().await;
    let mut nemo = Nemo::start(&platform, "workspaces list --help");

    let made = nemo.json("workspaces create research --description 'Team space'");
    assert_eq!(made["description"], "Team space", "{made}");
    let taken = "Conflict: (409) Workspace 'research' already exists";
    nemo.fails("workspaces create research", 3, taken);
    assert_eq!(nemo.json("workspaces create research --exist-ok")["id"], made["id"]);
    nemo.fails("workspaces create sample-x", 3, "Permission denied: (403) Workspace names");

    assert_eq!(names(&nemo.list("workspaces list --sort name")), ["default", "research", "system"]);
    assert_eq!(nemo.json("workspaces get research")["id"], made["id"]);
    nemo.fails("workspaces get nowhere", 3, "Not found: (404) Workspace 'nowhere' not found");
    let changed = nemo.json("workspaces update research --description Other");
    assert_eq!(changed["description"], "Other");

    nemo.ok("secrets create key --value one --workspace research");
    assert_eq!(names(&nemo.json("secrets list --workspace research")), ["key"]);
    assert!(names(&nemo.json("secrets list")).is_empty());
    nemo.ok("secrets delete key --workspace research");

    let deleted = one_line(&nemo.ok("workspaces delete research"));
    assert!(deleted.contains("Workspace marked for deletion"), "{deleted}");
    nemo.fails("workspaces delete research", 3, "Workspace 'research' not found");
    nemo.fails("workspaces delete default", 3, "Conflict: (409)");
}
