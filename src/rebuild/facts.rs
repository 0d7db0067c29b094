//! The facts of one job, wherever they are: in the streams, or in what `Archive` and the sweeper
//! kept of them. Both become the messages that they once were, and are read as those.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use streams::broker::{self, Broker, Stored};
use streams::envelope::{Envelope, Undecodable};
use streams::fact::{Fact, Invoked, Recorded, Resolved, Submitted};
use streams::id::JobId;
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::snapshot::Snapshot;
use streams::subject::{self, FactSubject};
use streams::topology::StreamName;
use workers::store::{self, Store};

use crate::catalog::{arrived, names};
use crate::projector;
use crate::records::{Change, NewJob, News, Proof};

/// What is left of a job.
pub(super) struct Facts {
    pub(super) job: JobId,
    workspace: String,
    /// Whether its messages are gone.
    pub(super) purged: bool,
    /// Messages of facts and status.
    messages: Vec<Stored>,
}

/// Why a job cannot be rebuilt.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// Its first fact is missing.
    #[error("its first fact is missing")]
    Headless,
    /// Nobody has resolved it yet.
    #[error("it is not resolved, and its snapshot was in the lost record only")]
    Unresolved,
    /// What is there is no fact.
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    /// The store does not have what its facts name, or did not answer.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Facts {
    /// Those that stand in the streams.
    pub(super) async fn standing(
        broker: &dyn Broker,
        FactSubject { workspace, job, .. }: FactSubject,
        first: Stored,
    ) -> Result<Self, broker::Error> {
        let mut messages = vec![first];
        for phase in Phase::CHAIN.into_iter().skip(1) {
            let subject = subject::fact(phase, &workspace, job);
            messages.extend(broker.last(StreamName::of(phase), &subject).await?);
        }
        let (status, mut from) = (subject::status(&workspace, job), 1);
        while let Some(message) = broker.next(StreamName::Status, &status, from).await? {
            from = message.sequence + 1;
            messages.push(message);
        }
        Ok(Self { job, workspace, purged: false, messages })
    }

    /// Those that a manifest holds, and the last one, where the sweeper kept it.
    pub(super) fn archived(
        workspace: &str,
        job: JobId,
        manifest: &[u8],
        last: Option<Bytes>,
    ) -> Self {
        let manifest = serde_json::from_slice(manifest).ok();
        // One of a version that nobody here knows says nothing.
        let manifest: Value = manifest.filter(|it: &Value| it["v"] == 1).unwrap_or_default();
        let mut messages = Vec::new();
        for phase in Phase::CHAIN {
            let subject = subject::fact(phase, workspace, job);
            let at = time(&manifest, job, phase);
            let payload = match (phase, &last) {
                (Phase::Archived, Some(last)) => last.clone(),
                _ => {
                    let Some(fact) = manifest["facts"][phase.token()].as_object() else { continue };
                    let mut message = Map::from_iter([("at".to_owned(), json!(at))]);
                    message.extend(fact.clone());
                    Value::Object(message).to_string().into()
                }
            };
            messages.push(Stored { subject, sequence: 0, payload, at, traceparent: None });
        }
        Self { job, workspace: workspace.to_owned(), purged: true, messages }
    }

    /// The record as it was admitted; `None` for a submission that is yet to be.
    pub(super) async fn admitted(&self, store: &Store) -> Result<Option<NewJob>, Unreadable> {
        let Some(submitted) = self.fact::<Submitted>()? else {
            return Err(Unreadable::Headless);
        };
        let (created_at, submitted) = (submitted.at, submitted.fact);
        let Some(resolved) = self.fact::<Resolved>()?.map(|resolved| resolved.fact) else {
            return submitted.spec.map(|_| None).ok_or(Unreadable::Unresolved);
        };
        let snapshot = match &resolved.snapshot {
            Some(part) => Ok(store.open::<Snapshot>(part).await?),
            None => Err(resolved.outcome.as_ref().map_or("", Outcome::message).to_owned()),
        };
        let name = match &snapshot {
            Ok(snapshot) => snapshot.name.clone(),
            Err(_) => names::generated(self.job),
        };
        let new = arrived(self.job, &self.workspace, name, snapshot, &submitted);
        // Others may write into their submissions whatever they like.
        let record = submitted.record.filter(|_| submitted.spec.is_none() && new.snapshot.is_ok());
        let recorded = match &record {
            Some(part) => store.open::<Recorded>(part).await?,
            None => Recorded::default(),
        };
        Ok(Some(NewJob {
            description: recorded.description,
            ownership: recorded.ownership,
            custom_fields: recorded.custom_fields,
            submission: recorded.submission,
            rerun_of: recorded.rerun_of,
            batch: recorded.batch,
            created_at,
            ..new
        }))
    }

    /// What happened to it since.
    pub(super) fn changes(&self) -> Vec<Change> {
        let mut changes: Vec<_> = self.messages.iter().filter_map(projector::change).collect();
        let of_fact = |change: &Change, wanted| match &change.news {
            News::Fact(proof) if proof.phase == wanted => Some(proof.clone()),
            _ => None,
        };
        let is_archived = |change: &Change| of_fact(change, Phase::Archived).is_some();
        if self.purged && !changes.iter().any(is_archived) {
            // A manifest is the word of a step that had nothing else to do.
            let acted = changes.iter().find_map(|it| Some((it, of_fact(it, Phase::Acted)?)));
            let last = acted.map(|(acted, proof)| {
                let (phase, results) = (Phase::Archived, Vec::new());
                Change { news: News::Fact(Proof { phase, results, ..proof }), ..acted.clone() }
            });
            changes.extend(last);
        }
        changes
    }

    fn fact<F: Fact>(&self) -> Result<Option<Envelope<F>>, Undecodable> {
        let subject = subject::fact(F::PHASE, &self.workspace, self.job);
        let found = self.messages.iter().find(|message| message.subject == subject);
        found.map(|it| Envelope::decode(&subject, &it.payload, it.at)).transpose()
    }
}

/// When a fact of a manifest came to be. Older manifests do not say so: then it is told as well
/// as can be, by the job's id and by the end of its agent.
fn time(manifest: &Value, job: JobId, phase: Phase) -> Timestamp {
    let at = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let ended = || at(&manifest["facts"][Invoked::PHASE.token()]["run"]["ended_at"]);
    let made = || {
        let made = job.uuid().get_timestamp()?;
        let (seconds, nanoseconds) = made.to_unix();
        Timestamp::new(seconds.try_into().ok()?, nanoseconds.try_into().ok()?).ok()
    };
    at(&manifest["at"][phase.token()])
        .or_else(|| ended().filter(|_| phase >= Invoked::PHASE))
        .or_else(made)
        .unwrap_or_default()
}
