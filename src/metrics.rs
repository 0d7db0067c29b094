//! Metrics: all of them, in one table. Every label's values are a closed set that is in the code.
//! Names that people choose, as those of workspaces, agents and jobs, are none, so there is no
//! figure by workspace: `GET /apis/jobs/v2/queue` has those.
//!
//! | `errand_…` | labels | |
//! | --- | --- | --- |
//! | `build_info` | version, revision | 1 |
//! | `facts_total` | phase | facts that advanced a job, as the projector saw them |
//! | `jobs_ended_total` | status, code | jobs that ended, as the projector saw them |
//! | `deliveries_total` | step, delivery | deliveries to a step here: `first`, `again` |
//! | `step_seconds` | step, ended | how long the work on a delivery took here, and how it ended |
//! | `agents_running` | | agents that this process watches |
//! | `slots`, `slots_free` | | agents that may run here at once, and how many more |
//! | `http_requests_total` | method, route, status | requests by the route's pattern and the class of the answer |
//! | `projection_waiting`, `projection_lag_seconds` | | how far the records are behind the queue |
//! | `queue_jobs` | state | jobs that have not ended: `waiting`, `held`, `running` |
//! | `queue_oldest_seconds` | | since when the oldest of those waits |
//!
//! The last five are of the installation, and only where there is an API; the others are of the
//! process that is asked.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use streams::code::Code;
use streams::outcome::Status;
use streams::phase::{Phase, StepName};
use tokio::sync::Semaphore;
use workers::meter::{self, Ended, Meter};

/// The labels of a figure, with their values.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// What a job without a failure code has in the place of one.
const NO_CODE: &str = "none";

/// Seconds: from what is quick to agents that run for hours.
const SECONDS: [f64; 14] =
    [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0, 3600.0, 14_400.0];

static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);

struct Metrics {
    registry: Registry,
    facts: Family<Labels<1>, Counter>,
    ended: Family<Labels<2>, Counter>,
    deliveries: Family<Labels<2>, Counter>,
    steps: Family<Labels<2>, Histogram>,
    agents: Gauge,
    slots: Gauge,
    slots_free: Gauge,
    requests: Family<Labels<3>, Counter>,
    /// What tells how many slots are free.
    free: OnceLock<Arc<Semaphore>>,
}

impl Metrics {
    #[rustfmt::skip]
    fn new() -> Self {
        let mut registry = Registry::with_prefix("errand");
        let build: Family<Labels<2>, Gauge> = Family::default();
        let revision = option_env!("ERRAND_REVISION").unwrap_or("dev");
        build.get_or_create(&[("version", env!("CARGO_PKG_VERSION")), ("revision", revision)]).set(1);
        registry.register("build_info", "The version of this program", build);
        let mut metrics = Self {
            facts: Family::default(),
            ended: Family::default(),
            deliveries: Family::default(),
            steps: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            agents: Gauge::default(),
            slots: Gauge::default(),
            slots_free: Gauge::default(),
            requests: Family::default(),
            free: OnceLock::new(),
            registry,
        };
        let table = &mut metrics.registry;
        table.register("facts", "Facts that advanced a job", metrics.facts.clone());
        table.register("jobs_ended", "Jobs that ended", metrics.ended.clone());
        table.register("deliveries", "Deliveries to a step", metrics.deliveries.clone());
        table.register("step_seconds", "Seconds of work on a delivery", metrics.steps.clone());
        table.register("agents_running", "Agents that this process watches", metrics.agents.clone());
        table.register("slots", "Agents that may run here at once", metrics.slots.clone());
        table.register("slots_free", "Agents that may run here besides those that do", metrics.slots_free.clone());
        table.register("http_requests", "Requests by route and class of answer", metrics.requests.clone());
        metrics
    }
}

/// Lets the steps of this process be counted.
pub fn start() {
    meter::count_with(Box::new(OfSteps));
}

/// A fact advanced a job.
pub fn advanced(phase: Phase) {
    METRICS.facts.get_or_create(&[("phase", phase.token())]).inc();
}

/// A job ended.
pub fn ended(status: Status, code: Option<Code>) {
    let code = code.map_or(NO_CODE, Code::as_str);
    METRICS.ended.get_or_create(&[("status", status.as_str()), ("code", code)]).inc();
}

/// A request was answered. The caller sees to it that these are words of ours.
pub fn answered(method: &'static str, route: &'static str, status: &'static str) {
    let labels = [("method", method), ("route", route), ("status", status)];
    METRICS.requests.get_or_create(&labels).inc();
}

/// The figures of this process, as Prometheus reads them.
pub fn of_this_process() -> String {
    if let Some(free) = METRICS.free.get() {
        METRICS.slots_free.set(i64::try_from(free.available_permits()).unwrap_or(i64::MAX));
    }
    text(&METRICS.registry)
}

/// Figures of the whole installation, as they were a moment ago.
#[derive(Clone, Copy, Debug, Default)]
pub struct Installation {
    /// Messages that the records have yet to take in.
    pub projection_waiting: u64,
    /// How long the oldest of them has waited.
    pub projection_lag: Duration,
    /// Jobs whose agent is still to be started.
    pub waiting: u64,
    /// Those that somebody holds back.
    pub held: u64,
    /// Those whose agent runs.
    pub running: u64,
    /// How long the oldest that waits has waited.
    pub oldest: Duration,
}

impl Installation {
    /// The same as Prometheus reads them.
    #[rustfmt::skip]
    pub fn text(&self) -> String {
        let mut table = Registry::with_prefix("errand");
        let jobs: Family<Labels<1>, Gauge> = Family::default();
        for (state, number) in [("waiting", self.waiting), ("held", self.held), ("running", self.running)] {
            jobs.get_or_create(&[("state", state)]).set(whole(number));
        }
        let waiting: Gauge = Gauge::default();
        waiting.set(whole(self.projection_waiting));
        table.register("projection_waiting", "Messages that the records have yet to take in", waiting);
        table.register("projection_lag_seconds", "Seconds that the oldest of them has waited", seconds(self.projection_lag));
        table.register("queue_jobs", "Jobs that have not ended", jobs);
        table.register("queue_oldest_seconds", "Seconds that the oldest job that waits has waited", seconds(self.oldest));
        text(&table)
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn seconds(duration: Duration) -> Gauge<f64, AtomicU64> {
    let gauge = Gauge::<f64, AtomicU64>::default();
    gauge.set(duration.as_secs_f64());
    gauge
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    // A string takes everything.
    let _ = encode(&mut text, registry);
    text
}

struct OfSteps;

impl Meter for OfSteps {
    fn delivered(&self, step: StepName, again: bool) {
        let delivery = if again { "again" } else { "first" };
        METRICS.deliveries.get_or_create(&[("step", step.token()), ("delivery", delivery)]).inc();
    }

    fn ended(&self, step: StepName, how: Ended, took: Duration) {
        let labels = [("step", step.token()), ("ended", how.token())];
        METRICS.steps.get_or_create(&labels).observe(took.as_secs_f64());
    }

    fn slots(&self, slots: usize, free: &Arc<Semaphore>) {
        METRICS.slots.set(i64::try_from(slots).unwrap_or(i64::MAX));
        // Another worker of the same process would be one of a test's.
        let _ = METRICS.free.set(Arc::clone(free));
    }

    fn agent_runs(&self) {
        METRICS.agents.inc();
    }

    fn agent_ended(&self) {
        METRICS.agents.dec();
    }
}

#[cfg(test)]
mod tests;
