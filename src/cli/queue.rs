//! `errand jobs queue`.

use super::Session;
use super::render::Column;

const COLUMNS: &[Column] = &[
    ("WORKSPACE", "/workspace"),
    ("WAITING", "/waiting"),
    ("OLDEST", "/oldest_waiting_seconds"),
    ("HELD", "/held"),
    ("RUNNING", "/running"),
    ("LIMIT", "/max_running"),
];

/// Shows how jobs stand in each workspace that has any that have not ended.
pub(super) async fn show(session: &Session) -> anyhow::Result<()> {
    let queue = session.client.get("/apis/jobs/v2/queue").await?;
    session.out.list(&queue, COLUMNS);
    Ok(())
}
