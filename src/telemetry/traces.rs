//! Traces: what `workers::trace` tells is sent to an OpenTelemetry collector, in batches and by a
//! thread of its own. One that is down or hangs costs spans and never a job: what does not fit into
//! the queue is dropped. Where none is named, nothing is started.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use jiff::Timestamp;
use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter as Otlp, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter, SpanLinks, SpanProcessor as _,
};
use workers::trace::{self, Sink, Span};

use crate::config;

/// How often spans are sent, unless `OTEL_BSP_SCHEDULE_DELAY` says otherwise.
const EVERY: Duration = Duration::from_secs(1);

/// How long the end of the process waits for the last spans to be sent.
const FLUSH: Duration = Duration::from_secs(3);

static SENDER: OnceLock<Sender> = OnceLock::new();

/// Sends spans from now on, if a collector is named: by the standard variables `OTEL_…`, or by the
/// configuration.
pub fn start(config: &config::Telemetry, role: &'static str) -> anyhow::Result<()> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_off = variable("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"))
        || variable("OTEL_TRACES_EXPORTER").is_some_and(|it| it == "none");
    let named = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
    let configured = config.otlp_endpoint.as_ref().filter(|_| named.is_none());
    if is_off || (named.is_none() && configured.is_none()) {
        return Ok(());
    }
    let otlp = Otlp::builder().with_http();
    let otlp = match configured {
        Some(base) => otlp.with_endpoint(format!("{}/v1/traces", base.trim_end_matches('/'))),
        None => otlp,
    };
    let otlp = otlp.build().context("cannot send traces to the OTLP endpoint that is named")?;
    let mut batches = BatchConfigBuilder::default();
    if variable("OTEL_BSP_SCHEDULE_DELAY").is_none() {
        batches = batches.with_scheduled_delay(EVERY);
    }
    let mut resource = Resource::builder().with_attributes([
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("errand.role", role),
    ]);
    if variable("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("errand");
    }
    let exporter = Told { otlp, fails: AtomicBool::new(false) };
    let mut batches =
        BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build();
    batches.set_resource(&resource.build());
    let scope = InstrumentationScope::builder("errand").build();
    if SENDER.set(Sender { batches, scope }).is_ok() {
        trace::send_to(Box::new(ToSender));
        tracing::info!(role, "traces are sent");
    }
    Ok(())
}

/// Sends what is left, and waits for that, but not for long.
pub fn finish() {
    if let Some(sender) = SENDER.get()
        && let Err(error) = sender.batches.shutdown_with_timeout(FLUSH)
    {
        tracing::warn!(%error, "the last spans may be lost");
    }
}

struct Sender {
    batches: BatchSpanProcessor,
    scope: InstrumentationScope,
}

struct ToSender;

impl Sink for ToSender {
    fn take(&self, span: Span) {
        if let Some(sender) = SENDER.get() {
            sender.batches.on_end(data(span, sender.scope.clone()));
        }
    }
}

/// A span as OpenTelemetry has it.
fn data(span: Span, scope: InstrumentationScope) -> SpanData {
    let context = |id: [u8; 8]| {
        SpanContext::new(
            TraceId::from_bytes(span.trace),
            SpanId::from_bytes(id),
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        )
    };
    let mut links = SpanLinks::default();
    links.links.extend(span.again.map(|before| Link::with_context(context(before))));
    let attribute = |(key, value): (&'static str, String)| KeyValue::new(key, value);
    SpanData {
        span_context: context(span.id),
        parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from_bytes),
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: span.name.into(),
        start_time: system_time(span.from),
        end_time: system_time(span.to),
        attributes: span.attributes.into_iter().map(attribute).collect(),
        dropped_attributes_count: 0,
        events: Default::default(),
        links,
        status: if span.failed { Status::error("") } else { Status::Unset },
        instrumentation_scope: scope,
    }
}

/// Nothing was before 1970.
fn system_time(at: Timestamp) -> SystemTime {
    let microseconds = u64::try_from(at.as_microsecond()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_micros(microseconds)
}

/// Sends batches and says when that fails, and when it does again: once each, since a collector
/// may be down for hours.
struct Told {
    otlp: Otlp,
    fails: AtomicBool,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").finish_non_exhaustive()
    }
}

impl SpanExporter for Told {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.otlp.export(batch).await;
        match (&sent, self.fails.swap(sent.is_err(), Ordering::Relaxed)) {
            (Err(error), false) => {
                tracing::warn!(%error, spans, "the collector does not take spans, they are lost");
            }
            (Ok(()), true) => tracing::info!(spans, "the collector takes spans again"),
            _ => {}
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
