use futures_util::FutureExt;

use super::sqlite;
use crate::records::statement::sql;
use crate::records::{Records, Result};

/// A database that may not grow is what a full disk looks like. The limit belongs to the
/// connection: a fresh one has room again.
#[tokio::test]
async fn writes_go_on_once_there_is_room() {
    let (records, _directory) = sqlite().await;
    let limit = records
        .write((), |(), db| async move { sql("PRAGMA max_page_count = 1").run(db).await }.boxed());
    limit.await.expect("the limit is the present size");

    let text = note(&records).await.expect_err("there is no room for it").to_string();
    assert!(text.contains("database or disk is full"), "{text}");
    note(&records).await.expect("there is room");
    let kept = records.workspaces().get("large").await.expect("it is there");
    assert_eq!(kept.description.map(|text| text.len()), Some(1_000_000));
    records.close().await;
}

/// A statement of one row, for which SQLite keeps no way back of its own: when it fails for want
/// of room, the whole transaction is rolled back under the hands of the writer.
async fn note(records: &Records) -> Result<u64> {
    let run = records.write("x".repeat(1_000_000), |text, db| {
        async move {
            sql("INSERT INTO workspaces (id, name, description, created_at, updated_at)
                 VALUES ('workspace-1', 'large', $1, 0, 0)")
            .text(text)
            .run(db)
            .await
        }
        .boxed()
    });
    run.await
}
