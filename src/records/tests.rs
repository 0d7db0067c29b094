//! One suite for both databases: what holds for SQLite holds for PostgreSQL.

mod admission;
mod ending;
mod file;
mod filesets;
mod filters;
mod full_disk;
pub(crate) mod job;
mod listing;
mod names;
pub(crate) mod postgres;
mod projection;
mod quarantine;
mod text;
mod tokens;
mod upgrade;

use super::*;

/// Everything that is promised of records, on fresh ones.
async fn exercise(records: Records) {
    names::exercise(&records).await;
    text::exercise(&records).await;
    tokens::exercise(&records).await;
    filesets::exercise(&records).await;
    admission::exercise(&records).await;
    projection::exercise(&records).await;
    ending::exercise(&records).await;
    listing::exercise(&records).await;
    filters::exercise(&records).await;
    records.close().await;
    let late = records.workspaces().insert("late", None).await;
    assert!(matches!(late, Err(Error::Unavailable(_))), "{late:?}");
}

/// Records in SQLite, and the directory that they live in.
pub(crate) async fn sqlite() -> (Records, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let records = Records::connect(&url(&directory)).await.expect("sqlite opens");
    (records, directory)
}

fn url(directory: &tempfile::TempDir) -> String {
    format!("sqlite://{}", directory.path().join("errand.db").display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_what_is_promised() {
    let (records, _directory) = sqlite().await;
    exercise(records).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_what_is_promised() {
    let server = postgres::Server::start();
    exercise(Records::connect(&server.url()).await.expect("postgres opens")).await;
}

#[tokio::test]
async fn records_survive_being_closed() {
    let (records, directory) = sqlite().await;
    records.workspaces().insert("research", Some("team")).await.expect("it is kept");
    records.close().await;
    let again = Records::connect(&url(&directory)).await.expect("sqlite opens again");
    let found = again.workspaces().get("research").await.expect("it is there");
    assert_eq!(found.description.as_deref(), Some("team"));
    let seeded = again.workspaces().get("default").await.expect("it is seeded once");
    assert_eq!(seeded.created_at, seeded.updated_at);
    again.close().await;
}

#[tokio::test]
async fn an_unknown_database_is_named() {
    let refused = Records::connect("mysql://localhost/errand").await.err();
    let text = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("sqlite://") && text.contains("postgres://"), "{text}");
}
