//! Tells receivers of jobs' ends. What is to be told is committed with the job, in its row; here it
//! is sent, as often as it takes, until the receiver takes it or there is no hope left. A receiver
//! gets it at least once, and each time under the same id. The job's own course has no part in it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use streams::phase::Phase;
use streams::snapshot::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workers::actions::{Message, SIGNING_KEY, Unsent};
use workers::ports::{Secrets as _, SecretsError};

use crate::catalog::{CatalogService, notify};
use crate::records::{self, Due, Duty, Job, Notification, NotificationEnd, Records};
use crate::secrets::SecretStore;

/// How often it looks, and how often while some wait for others to be told.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_WHILE_SOME_WAIT: Duration = Duration::from_millis(100);

/// Jobs of a page.
const PAGE: u32 = 100;

/// Receivers that are waited for at once, and those of one workspace: its receivers may hang, and
/// others must not wait for them.
const AT_ONCE: usize = 64;
const OF_ONE: usize = 8;

/// A process that took a try and has not said what came of it after so long is gone. A receiver
/// may take a minute to answer.
const GONE: SignedDuration = SignedDuration::from_secs(120);

/// The wait after the first try, which doubles up to the longest; tries in all. That is about half
/// a day.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
const TRIES: u32 = 24;

/// What it works with.
pub struct Notifier {
    /// The records, which hold what is to be told.
    pub records: Records,
    /// What opens signing keys.
    pub secrets: SecretStore,
    /// What has the sender, and its rules.
    pub catalog: CatalogService,
}

impl Notifier {
    /// Looks again and again until told to stop. A try that is broken off is made once more.
    pub async fn run(self, stop: CancellationToken) {
        let (notifier, mut tries) = (Arc::new(self), Tries::default());
        let looking = async {
            loop {
                tries.reap();
                if let Err(error) = notifier.look(&mut tries).await {
                    tracing::warn!(%error, "ends of jobs are told later");
                }
                let some_wait = tries.are_full() || !tries.busy().is_empty();
                tokio::time::sleep(if some_wait { LOOK_WHILE_SOME_WAIT } else { LOOK }).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = looking => {}
        }
    }

    async fn look(self: &Arc<Self>, tries: &mut Tries) -> Result<(), records::Error> {
        let (now, mut last) = (Timestamp::now(), None);
        while !tries.are_full() {
            let (jobs, busy) = (self.records.jobs(), tries.busy());
            let page = jobs.due_elsewhere(&busy, Duty::Tell, now, last.as_ref(), PAGE).await?;
            for due in &page {
                if tries.has_room(&due.workspace) {
                    tries.begin(Arc::clone(self), due.clone());
                }
            }
            last = page.into_iter().last();
            if last.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn tell(&self, due: &Due) -> Result<(), records::Error> {
        let (jobs, until) = (self.records.jobs(), Timestamp::now() + GONE);
        if !jobs.take_try(due.id, due.at, until).await? {
            return Ok(());
        }
        let Some(job) = jobs.by_id(due.id).await? else { return Ok(()) };
        let mut notification = jobs.notification(due.id).await?;
        let asked = job.snapshot.as_ref().and_then(|snapshot| snapshot.notify.as_ref());
        (notification.end, notification.next) = match asked {
            Some(notify) if notify.wants(job.status) => {
                let sent = self.send(&job, notify).await?;
                next(&mut notification, sent)
            }
            _ => (Some(NotificationEnd::NotWanted), None),
        };
        jobs.note_try(due.id, until, notification).await
    }

    async fn send(&self, job: &Job, notify: &Notify) -> Result<Result<(), Unsent>, records::Error> {
        let actions = &self.catalog.settings().actions;
        let references = notify::secrets(actions, &notify.webhook);
        let secrets = match self.secrets.open(&job.workspace, &references).await {
            Ok(secrets) => secrets,
            Err(error) => {
                let again = matches!(error, SecretsError::Unavailable(_));
                return Ok(Err(Unsent { reason: error.to_string(), again }));
            }
        };
        let message = self.message(job).await?;
        let secret = secrets.get(SIGNING_KEY).map(String::as_str);
        Ok(actions.webhooks().send_once(&notify.webhook, secret, &message).await)
    }

    /// The same bytes for every try.
    async fn message(&self, job: &Job) -> Result<Message, records::Error> {
        let results = self.records.jobs().results(job.id).await?;
        let results = results.iter().map(|result| {
            json!({
                "name": result.name,
                "kind": result.saved.kind,
                "size": result.saved.object.size,
                "sha256": result.saved.object.sha256,
                "complete": result.saved.complete,
            })
        });
        let outcome = job.outcome.as_ref();
        let body = json!({
            "type": "errand.job.ended",
            "timestamp": job.ended_at,
            "data": {
                "job": job.name,
                "job_id": job.id.http(),
                "workspace": job.workspace,
                "agent_ref": job.agent_ref,
                "status": job.status,
                "code": outcome.and_then(|outcome| outcome.code()),
                "message": outcome.map_or("", |outcome| outcome.message()),
                "results": results.collect::<Vec<_>>(),
            },
        });
        Ok(Message { id: job.id.message_id(Phase::Archived), body: body.to_string().into() })
    }
}

/// The tries that are being made. One that is begun twice is made once: it is taken first.
#[derive(Default)]
struct Tries {
    running: JoinSet<String>,
    /// How many there are by workspace.
    by_workspace: HashMap<String, usize>,
}

impl Tries {
    fn has_room(&self, workspace: &str) -> bool {
        !self.are_full() && self.by_workspace.get(workspace).is_none_or(|tries| *tries < OF_ONE)
    }

    /// The workspaces that have no room for another.
    fn busy(&self) -> Vec<&str> {
        let busy = self.by_workspace.iter().filter(|(_, tries)| **tries >= OF_ONE);
        busy.map(|(workspace, _)| workspace.as_str()).collect()
    }

    fn are_full(&self) -> bool {
        self.running.len() >= AT_ONCE
    }

    fn begin(&mut self, notifier: Arc<Notifier>, due: Due) {
        *self.by_workspace.entry(due.workspace.clone()).or_default() += 1;
        self.running.spawn(async move {
            if let Err(error) = notifier.tell(&due).await {
                tracing::warn!(job.id = %due.id, %error, "its end is told later");
            }
            due.workspace
        });
    }

    /// Forgets those that are over.
    fn reap(&mut self) {
        while let Some(ended) = self.running.try_join_next() {
            let Ok(workspace) = ended else { continue };
            if let Entry::Occupied(mut tries) = self.by_workspace.entry(workspace) {
                *tries.get_mut() -= 1;
                if *tries.get() == 0 {
                    tries.remove();
                }
            }
        }
    }
}

/// What follows a try.
fn next(
    notification: &mut Notification,
    sent: Result<(), Unsent>,
) -> (Option<NotificationEnd>, Option<Timestamp>) {
    let now = Timestamp::now();
    match sent {
        Ok(()) => {
            notification.tried(now, None);
            (Some(NotificationEnd::Sent), None)
        }
        Err(Unsent { reason, again }) => {
            notification.tried(now, Some(reason));
            if again && notification.count < TRIES {
                (None, Some(now + wait(notification.count)))
            } else {
                (Some(NotificationEnd::GivenUp), None)
            }
        }
    }
}

/// How long after so many tries the next one is made.
fn wait(tries: u32) -> Duration {
    FIRST_WAIT.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1))).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests;
