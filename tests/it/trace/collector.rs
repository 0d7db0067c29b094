//! An OpenTelemetry collector that keeps what it is sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::harness::eventually;

/// How long a span may take to arrive.
const ARRIVES: Duration = Duration::from_secs(60);

pub struct Collector {
    pub url: String,
    spans: Arc<Mutex<Vec<Sent>>>,
    _server: JoinSet<()>,
}

/// A span, in words.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The part of the platform that sent it.
    pub role: String,
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    pub from: u64,
    pub to: u64,
    pub failed: bool,
    pub links: Vec<String>,
    attributes: Vec<(String, String)>,
}

impl Sent {
    pub fn says(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(it, _)| it == key).map(|(_, value)| value.as_str())
    }
}

impl Collector {
    pub async fn start() -> Self {
        let spans: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let kept = Arc::clone(&spans);
        let take = async move |body: Bytes| {
            let request = ExportTraceServiceRequest::decode(body).expect("it is protobuf");
            kept.lock().expect("nobody panicked").extend(sent(request));
        };
        let router = Router::new().route("/v1/traces", post(take));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.expect("it runs") });
        Self { url, spans, _server: server }
    }

    /// What it was sent so far.
    pub fn spans(&self) -> Vec<Sent> {
        self.spans.lock().expect("nobody panicked").clone()
    }

    /// Waits until it was sent something.
    pub async fn wait_for(&self, is_there: impl Fn(&[Sent]) -> bool) {
        let arrived = || async { is_there(&self.spans()).then_some(()) };
        eventually("the spans arrive", ARRIVES, arrived).await;
    }
}

fn sent(request: ExportTraceServiceRequest) -> Vec<Sent> {
    let mut found = Vec::new();
    for part in request.resource_spans {
        let of = words(part.resource.map(|resource| resource.attributes).unwrap_or_default());
        assert!(of.contains(&("service.name".to_owned(), "errand".to_owned())), "{of:?}");
        let role = of.iter().find(|(key, _)| key == "errand.role").expect("it says").1.clone();
        for span in part.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            found.push(Sent {
                role: role.clone(),
                trace: hex::encode(span.trace_id),
                id: hex::encode(span.span_id),
                parent: hex::encode(span.parent_span_id),
                name: span.name,
                from: span.start_time_unix_nano,
                to: span.end_time_unix_nano,
                failed: span.status.is_some_and(|it| it.code() == StatusCode::Error),
                links: span.links.into_iter().map(|link| hex::encode(link.span_id)).collect(),
                attributes: words(span.attributes),
            });
        }
    }
    found
}

fn words(attributes: Vec<KeyValue>) -> Vec<(String, String)> {
    let word = |pair: KeyValue| match pair.value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => (pair.key, text),
        other => (pair.key, format!("{other:?}")),
    };
    attributes.into_iter().map(word).collect()
}
