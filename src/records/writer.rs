//! Writes: every one is a transaction, whole or not at all, and answered after its commit.
//!
//! SQLite has one writer, so one task takes the writes that wait and commits up to 64 of them
//! together; each stands in a savepoint of its own, so one that fails does not spoil the others.
//! On PostgreSQL each write is a transaction on a pool. A write may be run more than once before
//! it is answered, hence it is a plain function of its input.

use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder, Retryable};
use futures_util::future::BoxFuture;
use sqlx::{AnyConnection, AnyPool, Connection};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Error, Result};

/// What a write does to the database.
pub(super) type Run<A, T> = for<'a> fn(&'a A, &'a mut AnyConnection) -> BoxFuture<'a, Result<T>>;

/// How many writes are committed together.
const GROUP: usize = 64;

/// How many writes may wait for the writer before callers wait to hand theirs in.
const QUEUE: usize = 1024;

pub(super) enum Writer {
    /// One task commits groups.
    Grouped { queue: mpsc::Sender<Box<dyn Write>>, closing: CancellationToken, task: TaskTracker },
    /// Each write takes a connection.
    Pooled(AnyPool),
}

impl Writer {
    /// Starts the task that writes through the pool's only connection.
    pub(super) fn grouped(pool: AnyPool) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let (closing, task) = (CancellationToken::new(), TaskTracker::new());
        task.spawn(commit_groups(pool, waiting, closing.clone()));
        Self::Grouped { queue, closing, task }
    }

    pub(super) async fn write<A, T>(&self, input: A, run: Run<A, T>) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        match self {
            Self::Pooled(pool) => patiently(|| transaction(pool, &input, run)).await,
            Self::Grouped { queue, .. } => {
                let closed = || Error::Unavailable("they are being closed".to_owned());
                let (caller, answer) = oneshot::channel();
                let write = Pending { input, run, result: None, caller };
                queue.send(Box::new(write)).await.map_err(|_| closed())?;
                answer.await.map_err(|_| closed())?
            }
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Pooled(pool) => pool.close().await,
            Self::Grouped { closing, task, .. } => {
                closing.cancel();
                task.close();
                task.wait().await;
            }
        }
    }
}

/// A write that waits for the writer.
#[async_trait]
pub(super) trait Write: Send {
    /// Runs it within the group's transaction and keeps what came of it.
    async fn apply(&mut self, group: &mut AnyConnection) -> Result<()>;

    /// Tells the caller, once the fate of the group is known.
    fn answer(self: Box<Self>, group: Result<()>);
}

struct Pending<A, T> {
    input: A,
    run: Run<A, T>,
    result: Option<Result<T>>,
    caller: oneshot::Sender<Result<T>>,
}

#[async_trait]
impl<A: Send + Sync, T: Send> Write for Pending<A, T> {
    async fn apply(&mut self, group: &mut AnyConnection) -> Result<()> {
        let mut savepoint = group.begin().await?;
        let result = (self.run)(&self.input, &mut savepoint).await;
        match &result {
            Ok(_) => savepoint.commit().await?,
            Err(failed) => savepoint.rollback().await.map_err(|lost| whole_group(failed, lost))?,
        }
        self.result = Some(result);
        Ok(())
    }

    fn answer(self: Box<Self>, group: Result<()>) {
        let unanswered = || Error::Unavailable("the write was not reached".to_owned());
        let result = match group {
            Ok(()) => self.result.unwrap_or_else(|| Err(unanswered())),
            Err(error) => Err(error),
        };
        // A caller that has gone away does not need to know; what it asked for stands.
        let _ = self.caller.send(result);
    }
}

async fn commit_groups(
    pool: AnyPool,
    mut waiting: mpsc::Receiver<Box<dyn Write>>,
    closing: CancellationToken,
) {
    let mut group = Vec::with_capacity(GROUP);
    loop {
        tokio::select! {
            biased;
            taken = waiting.recv_many(&mut group, GROUP) => if taken == 0 { break },
            () = closing.cancelled(), if !waiting.is_closed() => {
                waiting.close();
                continue;
            }
        }
        let committed = commit(&pool, &mut group).await;
        for write in group.drain(..) {
            write.answer(committed.clone());
        }
    }
    pool.close().await;
}

async fn commit(pool: &AnyPool, group: &mut [Box<dyn Write>]) -> Result<()> {
    let mut pauses = pauses().build();
    loop {
        let mut connection = pool.acquire().await?;
        let Err(error) = commit_on(&mut connection, group).await else { return Ok(()) };
        // SQLite ends some failed transactions by itself, on a full disk for one, and the
        // connection's own count of them is wrong from then on. The pool opens another.
        if let Err(error) = connection.close().await {
            tracing::debug!(%error, "a failed connection to the records did not close well");
        }
        match pauses.next().filter(|_| error.is_passing()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(error),
        }
    }
}

async fn commit_on(connection: &mut AnyConnection, group: &mut [Box<dyn Write>]) -> Result<()> {
    // A deferred transaction that turns into a writing one fails at once when another process
    // writes, whatever the time-out says; so the right to write is taken at the beginning.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for write in group {
        write.apply(&mut transaction).await?;
    }
    Ok(transaction.commit().await?)
}

/// Why a group fails with one of its writes: the write's own trouble with the database says more
/// than the savepoint that is no longer there.
fn whole_group(failed: &Error, lost: sqlx::Error) -> Error {
    match failed {
        Error::Unavailable(_) | Error::Busy(_) => failed.clone(),
        _ => lost.into(),
    }
}

async fn transaction<A, T>(pool: &AnyPool, input: &A, run: Run<A, T>) -> Result<T> {
    let mut transaction = pool.begin().await?;
    let done = run(input, &mut transaction).await?;
    transaction.commit().await?;
    Ok(done)
}

/// Tries again while the trouble is one that passes.
async fn patiently<T, F: Future<Output = Result<T>>>(attempt: impl FnMut() -> F) -> Result<T> {
    attempt.retry(pauses()).when(Error::is_passing).await
}

fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(5))
        .with_max_delay(Duration::from_millis(500))
        .with_max_times(8)
        .with_jitter()
}
