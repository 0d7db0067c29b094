//! Rebuilding: rows that are made of what streams and manifests tell, beside admission the only
//! way in which a row comes to be. A row that is there is brought up to date and otherwise left.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use jiff::Timestamp;
use sqlx::AnyConnection;
use streams::status::StatusMessage;

use super::jobs::{NewJob, ask, insert};
use super::projection::{Change, apply, in_order};
use super::statement::sql;
use super::{Records, Result, batches, fresh_id};

/// All that is told of a job.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its record, as it was admitted.
    pub new: NewJob,
    /// What happened to it since.
    pub changes: Vec<Change>,
    /// Whether its messages have left the streams.
    pub purged: bool,
    /// Whether somebody asked for its end.
    pub cancelled: bool,
    /// Whether somebody keeps it from being started.
    pub held: bool,
}

/// What became of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Rebuilt {
    /// It was missing and is made; with what to tell the world.
    Made(Vec<StatusMessage>),
    /// It was there and behind.
    Advanced(Vec<StatusMessage>),
    /// It was there, and right as far as can be told.
    Kept,
    /// Its job was deleted.
    Tombstoned,
    /// Another job has its name, or its submission's key, by now.
    NameTaken,
}

impl Records {
    /// Makes the row of a job, unless it is there or was deleted.
    pub async fn rebuild(&self, mut told: Told) -> Result<Rebuilt> {
        in_order(&mut told.changes);
        self.write(told, |told, db| rebuild(told, db).boxed()).await
    }
}

async fn rebuild(told: &Told, db: &mut AnyConnection) -> Result<Rebuilt> {
    let (job, id) = (told.new.id, told.new.id.to_string());
    let buried = sql("SELECT job FROM tombstones WHERE job = $1").text(&id);
    if buried.one(&mut *db).await?.is_some() {
        return Ok(Rebuilt::Tombstoned);
    }
    // Nobody would see a job of a workspace that is not there.
    sql("INSERT INTO workspaces (id, name, description, created_at, updated_at)
         VALUES ($1, $2, NULL, $3, $3) ON CONFLICT DO NOTHING")
    .text(&fresh_id("workspace"))
    .text(&told.new.workspace)
    .time(Timestamp::now())
    .run(&mut *db)
    .await?;
    batches::found(&told.new, db).await?;
    let made = insert(&told.new, db).await?;
    if !made && sql("SELECT id FROM jobs WHERE id = $1").text(&id).one(&mut *db).await?.is_none() {
        return Ok(Rebuilt::NameTaken);
    }
    let messages = apply(&BTreeMap::from([(job, told.changes.clone())]), db).await?.messages;
    if !made {
        let advanced = !messages.is_empty();
        return Ok(if advanced { Rebuilt::Advanced(messages) } else { Rebuilt::Kept });
    }
    // In the same transaction: a sweeper must not come upon a row that is half told.
    if told.purged {
        // Who was to be told of its end was told then, or given up.
        let long_ago = sql("UPDATE jobs SET purged = 1, notify_at = NULL WHERE id = $1");
        long_ago.text(&id).run(&mut *db).await?;
    }
    for (asked, wish) in [(told.cancelled, "cancel_requested = 1"), (told.held, "hold = 'held'")] {
        if asked {
            ask(job, wish, db).await?;
        }
    }
    Ok(Rebuilt::Made(messages))
}
