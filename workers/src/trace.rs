//! Traces: one a job, over all processes that work on it.
//!
//! Nobody holds a span open while a job waits, and no process knows of the whole job. So spans are
//! told once they are over, and their ids are made of the job's id: a span can be named as a parent
//! before it was told, by another process and after a restart. The trace is the submitter's, else
//! its id is the job's own.
//!
//! ```text
//! job ─┬ submit ─ resolve ─ stage ─ queue ─ invoke ─ act ─ archive
//!      └ agent, one an attempt, and save, below invoke
//! ```
//!
//! Where spans go is not known here. Until somebody wants them, nothing is done for them.

use std::any::Any;
use std::sync::OnceLock;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use streams::broker::{Broker, Stored};
use streams::envelope::Envelope;
use streams::fact::{Fact, Invoked, Submitted};
use streams::id::{Attempt, JobId};
use streams::outcome::Outcome;
use streams::phase::{Phase, StepName};
use streams::subject;
use streams::topology::StreamName;
use streams::trace::{Hex, TraceParent};

/// Something that took its time, and is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its trace.
    pub trace: [u8; 16],
    /// Its own id.
    pub id: [u8; 8],
    /// The span that it is a part of.
    pub parent: Option<[u8; 8]>,
    /// What it is.
    pub name: &'static str,
    /// When it began.
    pub from: Timestamp,
    /// When it was over.
    pub to: Timestamp,
    /// Whether it went wrong.
    pub failed: bool,
    /// The one before it of which it is the repetition.
    pub again: Option<[u8; 8]>,
    /// What is said about it. Never what a caller wrote, but for names.
    pub attributes: Vec<(&'static str, String)>,
}

/// Where spans go.
pub trait Sink: Send + Sync {
    /// Takes one; does not wait for anything.
    fn take(&self, span: Span);
}

static SINK: OnceLock<Box<dyn Sink>> = OnceLock::new();

/// Wants spans, from now on and until the process ends; false when somebody does already.
pub fn send_to(sink: Box<dyn Sink>) -> bool {
    SINK.set(sink).is_ok()
}

/// The trace of a job.
#[derive(Clone, Copy, Debug)]
pub struct JobTrace {
    job: JobId,
    trace: [u8; 16],
    submitter: Option<[u8; 8]>,
    sampled: bool,
}

impl JobTrace {
    /// That of a job whose facts carry this trace context of its submitter.
    pub fn of(job: JobId, traceparent: Option<&str>) -> Self {
        match traceparent.and_then(|text| text.parse::<TraceParent>().ok()) {
            Some(TraceParent { trace, span, sampled }) => {
                Self { job, trace, submitter: Some(span), sampled }
            }
            None => Self { job, trace: job.uuid().into_bytes(), submitter: None, sampled: true },
        }
    }

    /// The trace's id, as logs have it.
    pub fn id(&self) -> String {
        Hex(&self.trace).to_string()
    }

    /// What an agent is told, so that its own spans are parts of this attempt's.
    pub fn of_agent(&self, attempt: Attempt) -> TraceParent {
        let span = self.span("agent", attempt.0.into());
        TraceParent { trace: self.trace, span, sampled: self.sampled }
    }

    /// The id of the n-th span of a name.
    fn span(&self, name: &str, n: u64) -> [u8; 8] {
        let digest = Sha256::digest(format!("{}/{name}/{n}", self.job));
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        id
    }

    fn root(&self) -> [u8; 8] {
        self.span("job", 0)
    }

    /// A span right below the job.
    fn part(&self, name: &'static str, n: u64, from: Timestamp, to: Timestamp) -> Span {
        Span {
            trace: self.trace,
            id: self.span(name, n),
            parent: Some(self.root()),
            name,
            from,
            // Clocks differ, and are set.
            to: to.max(from),
            failed: false,
            again: n.checked_sub(1).filter(|before| *before > 0).map(|it| self.span(name, it)),
            attributes: vec![("job.id", self.job.to_string())],
        }
    }

    fn tell(&self, spans: impl IntoIterator<Item = Span>) {
        if let Some(sink) = SINK.get().filter(|_| self.sampled) {
            spans.into_iter().for_each(|span| sink.take(span));
        }
    }
}

impl Span {
    fn says(mut self, key: &'static str, value: impl ToString) -> Self {
        self.attributes.push((key, value.to_string()));
        self
    }

    fn below(self, parent: [u8; 8]) -> Self {
        Self { parent: Some(parent), ..self }
    }

    fn ends_as(self, outcome: &Outcome) -> Self {
        let code = outcome.code().map(|code| ("code", code.as_str().to_owned()));
        let mut span = self.says("outcome", outcome.kind());
        span.attributes.extend(code);
        span.failed = !outcome.succeeded();
        span
    }
}

/// Tells of a submission whose fact is stored now.
pub fn submitted(submitted: &Envelope<Submitted>, via: &'static str) {
    if SINK.get().is_some() {
        let trace = JobTrace::of(submitted.job, submitted.traceparent.as_deref());
        let span = trace.part("submit", 0, submitted.at, Timestamp::now());
        trace.tell([span.says("phase", Phase::Submitted).says("via", via)]);
    }
}

/// The same of one that somebody else published, and that no process of ours has seen before.
pub(crate) fn submitted_by_others<F: Fact>(envelope: &Envelope<F>, stored: &Stored) {
    let fact = (&envelope.fact as &dyn Any).downcast_ref::<Submitted>();
    if fact.is_some_and(|fact| fact.record.is_none()) && SINK.get().is_some() {
        let trace = JobTrace::of(envelope.job, envelope.traceparent.as_deref());
        let span = trace.part("submit", 0, stored.at, stored.at);
        trace.tell([span.says("phase", Phase::Submitted).says("via", "nats")]);
    }
}

/// When a delivery's work began, and the fact before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// When the fact at hand came to be.
    pub(crate) since: Timestamp,
    /// When it was delivered.
    pub(crate) from: Timestamp,
    /// The how many-th time that was.
    pub(crate) times: u64,
}

impl Work {
    /// What the control plane does in the place of a worker.
    pub(crate) fn now() -> Self {
        let now = Timestamp::now();
        Self { since: now, from: now, times: 0 }
    }
}

/// Tells of work that is to be done again.
pub(crate) fn broken_off(trace: JobTrace, step: StepName, work: Work) {
    let span = trace.part(step.token(), work.times, work.from, Timestamp::now());
    trace.tell([Span { failed: true, ..span.says("delivery", work.times) }]);
}

/// Tells of the work that led to a fact, which is stored now.
pub(crate) async fn produced<F: Fact>(broker: &dyn Broker, next: &Envelope<F>, work: Work) {
    let step = StepName::ALL.into_iter().find(|it| it.consumes().next() == Some(F::PHASE));
    let (Some(step), Some(_)) = (step, SINK.get()) else { return };
    let (trace, now) = (JobTrace::of(next.job, next.traceparent.as_deref()), Timestamp::now());
    let span = trace.part(step.token(), work.times, work.from, now);
    let span = span.says("phase", F::PHASE).says("delivery", work.times);
    let span = next.fact.outcome().into_iter().fold(span, Span::ends_as);
    if let Some(invoked) = (&next.fact as &dyn Any).downcast_ref::<Invoked>() {
        trace.tell(of_run(trace, invoked, work, span.id, now));
    }
    trace.tell([span.says("workspace", &next.workspace)]);
    if let (Phase::Archived, Some(outcome)) = (F::PHASE, next.fact.outcome()) {
        let from = submission(broker, &next.workspace, next.job).await.unwrap_or(work.since);
        let root = trace.part("job", 0, from, now).says("workspace", &next.workspace);
        trace.tell([Span { parent: trace.submitter, ..root.ends_as(outcome) }]);
    }
}

/// How long a job waited for its agent's start, each attempt, and the saving of its results.
fn of_run(
    trace: JobTrace,
    invoked: &Invoked,
    work: Work,
    invoke: [u8; 8],
    now: Timestamp,
) -> Vec<Span> {
    let started = invoked.attempts.first().map_or(work.from, |end| end.started_at);
    let mut spans = vec![trace.part("queue", 0, work.since, started)];
    for end in &invoked.attempts {
        let span = trace.part("agent", end.attempt.0.into(), end.started_at, end.ended_at);
        let span = span.below(invoke).says("attempt", end.attempt).says("place", &end.place);
        spans.push(span.ends_as(&end.outcome));
    }
    if let Some(run) = &invoked.run {
        let span = trace.part("save", 0, run.ended_at, now).below(invoke);
        spans.push(span.says("results", invoked.results.len()));
    }
    spans
}

/// When a job was submitted. What others say themselves about that is not believed.
async fn submission(broker: &dyn Broker, workspace: &str, job: JobId) -> Option<Timestamp> {
    let subject = subject::fact(Phase::Submitted, workspace, job);
    let stored = broker.last(StreamName::of(Phase::Submitted), &subject).await.ok()??;
    let read = Envelope::<Submitted>::decode(&subject, &stored.payload, stored.at).ok()?;
    Some(if read.fact.record.is_some() { read.at } else { stored.at })
}

#[cfg(test)]
mod tests;
