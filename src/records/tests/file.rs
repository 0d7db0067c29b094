use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{sqlite, url};
use crate::records::*;

#[tokio::test]
async fn nobody_else_may_read_it() {
    let (records, directory) = sqlite().await;
    let files = ["errand.db", "errand.db-wal", "errand.db-shm"];
    let files = files.map(|name| directory.path().join(name));
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(files.each_ref().map(|path| mode(path)), [0o600; 3]);

    for path in &files {
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(path, open).expect("it is ours");
    }
    let again = Records::connect(&url(&directory)).await.expect("it opens again");
    assert_eq!(files.each_ref().map(|path| mode(path)), [0o600; 3], "older files become private");
    again.close().await;
    records.close().await;
}

#[tokio::test]
async fn what_is_no_database_is_named_at_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = "not a database, but long enough to look like one ".repeat(100);
    std::fs::write(directory.path().join("errand.db"), text).expect("a file");
    refused(&directory, &["file is not a database", "restore it from a backup"]).await;
}

#[tokio::test]
async fn a_corrupt_database_is_named_at_once() {
    let (records, directory) = sqlite().await;
    records.close().await;
    let path = directory.path().join("errand.db");
    let mut bytes = std::fs::read(&path).expect("it is there");
    bytes[100..4096].fill(0xa5);
    std::fs::write(&path, bytes).expect("it is ours");
    refused(&directory, &["malformed", "restore it from a backup"]).await;
}

#[tokio::test]
async fn another_programs_database_is_left_alone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    sqlx::any::install_default_drivers();
    let path = format!("{}?mode=rwc", url(&directory));
    let foreign = sqlx::AnyPool::connect(&path).await.expect("a database");
    sqlx::raw_sql("CREATE TABLE recipes (name TEXT)").execute(&foreign).await.expect("a table");
    foreign.close().await;
    refused(&directory, &["another program, such as 'recipes'", "choose another file"]).await;
}

/// Opens what cannot be opened; the error names the file and has these parts.
async fn refused(directory: &tempfile::TempDir, parts: &[&str]) {
    let since = Instant::now();
    let error = Records::connect(&url(directory)).await.expect_err("it is not ours").to_string();
    assert!(since.elapsed() < Duration::from_secs(5), "it took {:?}", since.elapsed());
    for part in [&*directory.path().join("errand.db").display().to_string()].iter().chain(parts) {
        assert!(error.contains(part), "expected {part:?} in {error:?}");
    }
}
