//! Opening a database: pools, settings, tables.

mod database_file;

use std::time::Duration;

use futures_util::FutureExt;
use jiff::Timestamp;
use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AnyPool, SqlSafeStr};

use database_file::DatabaseFile;

use super::statement::sql;
use super::writer::Writer;
use super::{Error, Result, fresh_id};

/// The steps by which tables came to be what they are, oldest first. A step that was released is
/// never edited: the next one mends it.
pub(super) const MIGRATIONS: &[(&str, &str)] = &[
    ("records", include_str!("migrations/0001_records.sql")),
    ("environments", include_str!("migrations/0002_environments.sql")),
    ("filters", include_str!("migrations/0003_filters.sql")),
    ("holds", include_str!("migrations/0004_holds.sql")),
    ("start_by", include_str!("migrations/0005_start_by.sql")),
    ("submissions", include_str!("migrations/0006_submissions.sql")),
    ("tokens", include_str!("migrations/0007_tokens.sql")),
    ("batches", include_str!("migrations/0008_batches.sql")),
    ("queue", include_str!("migrations/0009_queue.sql")),
    ("notifications", include_str!("migrations/0010_notifications.sql")),
    ("batch_lines", include_str!("migrations/0011_batch_lines.sql")),
];

/// The workspaces that are always there.
const SEEDED: [&str; 2] = ["default", "system"];

/// A commit is on the disk when it is answered (`FULL`); readers do not wait for the writer
/// (`WAL`); other processes get ten seconds to finish what they write.
const SQLITE_WRITER: &str =
    "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL";
const SQLITE_READER: &str = "PRAGMA busy_timeout = 10000; PRAGMA query_only = 1";

const SQLITE_READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 8;

pub(super) async fn open(url: &str) -> Result<(AnyPool, Writer)> {
    sqlx::any::install_default_drivers();
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => sqlite(url).await,
        Some("postgres" | "postgresql") => postgres(url).await,
        _ => Err(Error::Unavailable(
            "the database url must start with sqlite:// or postgres://".to_owned(),
        )),
    }
}

async fn sqlite(url: &str) -> Result<(AnyPool, Writer)> {
    let url = if url.contains('?') { url.to_owned() } else { format!("{url}?mode=rwc") };
    let file = DatabaseFile::of(&url)?;
    file.keep_private()?;
    file.try_out().await?;
    let writes = pool(1, SQLITE_WRITER).connect(&url).await?;
    migrate(&writes).await.map_err(|error| file.explain(error))?;
    let reads = pool(SQLITE_READERS, SQLITE_READER).connect(&url).await?;
    Ok((reads, Writer::grouped(writes)))
}

async fn postgres(url: &str) -> Result<(AnyPool, Writer)> {
    let writes = pool(POSTGRES_CONNECTIONS, "").connect(url).await?;
    migrate(&writes).await?;
    // Readers have connections of their own, so that a burst of writes does not shut them out.
    let reads = pool(POSTGRES_CONNECTIONS, "").connect(url).await?;
    Ok((reads, Writer::Pooled(writes)))
}

fn pool(connections: u32, settings: &'static str) -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(15))
        .after_connect(move |connection, _| {
            async move {
                if !settings.is_empty() {
                    sqlx::raw_sql(settings).execute(connection).await?;
                }
                Ok(())
            }
            .boxed()
        })
}

/// For whoever opens a database without us.
#[cfg(test)]
pub(super) fn open_drivers() {
    sqlx::any::install_default_drivers();
}

/// Takes the first so many steps that are not taken yet.
pub(super) async fn migrate_to(writes: &AnyPool, steps: usize) -> Result<()> {
    let steps = MIGRATIONS.iter().zip(1..).take(steps).map(|((name, text), version)| {
        Migration::new(version, (*name).into(), MigrationType::Simple, text.into_sql_str(), false)
    });
    Ok(Migrator::with_migrations(steps.collect()).run(writes).await?)
}

async fn migrate(writes: &AnyPool) -> Result<()> {
    migrate_to(writes, MIGRATIONS.len()).await?;
    for name in SEEDED {
        sql("INSERT INTO workspaces (id, name, description, created_at, updated_at)
             VALUES ($1, $2, NULL, $3, $3) ON CONFLICT DO NOTHING")
        .text(&fresh_id("workspace"))
        .text(name)
        .time(Timestamp::now())
        .run(writes)
        .await?;
    }
    Ok(())
}
