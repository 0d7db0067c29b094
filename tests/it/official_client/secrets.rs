//! `nemo secrets`.

use super::nemo::{Nemo, names};
use crate::harness::Platform;

#[tokio::test]
async fn secrets_are_created_listed_shown_changed_and_deleted() {
    let platform = Platform::start().await;
    let mut nemo = Nemo::start(&platform, "secrets list --help");
    nemo.write("key.txt", "from a file");

    let made = nemo.json("secrets create tavily --value hush-hush --description 'search key'");
    assert_eq!(made["description"], "search key", "{made}");
    assert!(!made.to_string().contains("hush-hush"), "{made}");
    nemo.json("secrets create openai --from-file key.txt");
    let taken = "Conflict: (409) Secret 'default/tavily' already exists";
    nemo.fails("secrets create tavily --value again", 3, taken);
    nemo.fails("secrets create 'Bad Name' --value x", 2, "Invalid input:");

    assert_eq!(names(&nemo.list("secrets list")), ["openai", "tavily"]);
    assert_eq!(names(&nemo.json("secrets list --page-size 1 --all-pages")), ["openai", "tavily"]);
    assert_eq!(nemo.json("secrets get tavily")["workspace"], "default");
    nemo.fails("secrets get nothing", 3, "Not found: (404) Secret default/nothing not found");

    let changed = nemo.json("secrets update tavily --description changed --value new-value");
    assert_eq!(changed["description"], "changed", "{changed}");
    // The route that gives values away is off unless it is configured.
    nemo.fails("secrets access tavily", 3, "Permission denied: (403)");

    nemo.ok("secrets delete tavily");
    nemo.fails("secrets delete tavily", 3, "Secret default/tavily not found");
    assert_eq!(names(&nemo.json("secrets list")), ["openai"]);
}
