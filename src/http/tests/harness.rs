//! The API with everything behind it, and a client.

use std::net::Ipv4Addr;
use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use reqwest::header::HeaderMap;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use serde_json::Value;
use streams::broker::{Broker, Expect, Publication, Published};
use streams::log::LogBatch;
use streams::memory::Memory;
use streams::subject;
use streams::topology::Limits;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workers::store::{Store, StoreConfig};

use crate::catalog::{CatalogService, Settings};
use crate::http::{App, router};
use crate::records::Records;
use crate::records::tests::postgres;
use crate::secrets::{Keyring, SecretStore};

/// A running API. Its servers end with it.
pub(super) struct Harness {
    pub url: String,
    pub records: Records,
    pub store: Store,
    pub broker: Arc<dyn Broker>,
    pub catalog: CatalogService,
    /// Ends what goes on for long, as a server that stops does.
    pub stop: CancellationToken,
    client: reqwest::Client,
    _servers: JoinSet<()>,
    _directory: tempfile::TempDir,
    _postgres: Option<postgres::Server>,
}

/// How an installation differs from the usual one.
#[derive(Default)]
pub(super) struct Setup {
    pub settings: Settings,
    pub limits: Limits,
    pub running_limits: workers::seats::Limits,
    pub secret_access: bool,
    pub any_origin: bool,
    pub authenticated: bool,
}

/// An answer.
pub(super) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
    /// The bytes as JSON; null when they are none.
    pub body: Value,
}

impl Harness {
    /// One over SQLite.
    pub(super) async fn start() -> Self {
        Self::set_up(Setup::default()).await
    }

    /// One over SQLite, in an installation that allows its jobs something else.
    pub(super) async fn with(settings: Settings) -> Self {
        Self::set_up(Setup { settings, ..Setup::default() }).await
    }

    /// One over SQLite, otherwise set up.
    pub(super) async fn set_up(setup: Setup) -> Self {
        Self::over(None, setup).await
    }

    /// One over each database: what holds for one must hold for the other.
    pub(super) async fn start_both() -> [Self; 2] {
        Self::both_with(Settings::default()).await
    }

    /// The same, in an installation that allows its jobs something else.
    pub(super) async fn both_with(settings: Settings) -> [Self; 2] {
        Self::both(|| Setup { settings: settings.clone(), ..Setup::default() }).await
    }

    /// The same, otherwise set up.
    pub(super) async fn both(setup: impl Fn() -> Setup) -> [Self; 2] {
        let postgres = Self::over(Some(postgres::Server::start()), setup()).await;
        [Self::set_up(setup()).await, postgres]
    }

    async fn over(postgres: Option<postgres::Server>, setup: Setup) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let sqlite = format!("sqlite://{}", directory.path().join("errand.db").display());
        let database = postgres.as_ref().map_or(sqlite, postgres::Server::url);
        let records = Records::connect(&database).await.expect("records open");
        let mut servers = JoinSet::new();
        let store = Store::new(&start_store(directory.path(), &mut servers).await);
        store.ensure_bucket().await.expect("a bucket");
        let broker: Arc<dyn Broker> = Arc::new(Memory::new(setup.limits));
        let keyring = Keyring::open(&directory.path().join("key")).expect("a key");
        let settings = Settings { authenticated: setup.authenticated, ..setup.settings };
        let catalog = CatalogService::new(records.clone(), store.clone(), settings);
        let stop = CancellationToken::new();
        let app = App {
            records: records.clone(),
            store: store.clone(),
            catalog: catalog.clone(),
            secrets: SecretStore::new(records.clone(), keyring),
            broker: broker.clone(),
            running_limits: setup.running_limits,
            secret_access: setup.secret_access,
            any_origin: setup.any_origin,
            authenticated: setup.authenticated,
            stop: stop.clone(),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        servers.spawn(async move {
            axum::serve(listener, router(app)).await.expect("the server runs");
        });
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = client.build().expect("a client");
        let (_servers, _directory, _postgres) = (servers, directory, postgres);
        Self { url, records, store, broker, catalog, stop, client, _servers, _directory, _postgres }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body)).await
    }

    pub(super) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let request = self.request(method, path);
        match body {
            Some(body) => answer(request.json(&body)).await,
            None => answer(request).await,
        }
    }

    /// Sends a request as whoever has a token.
    pub(super) async fn as_token(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let request = self.request(method, path).bearer_auth(token);
        answer(body.iter().fold(request, |request, body| request.json(body))).await
    }

    pub(super) async fn raw(&self, method: &str, path: &str, kind: &str, body: &str) -> Answer {
        let request = self.request(method, path).header("content-type", kind);
        answer(request.body(body.to_owned())).await
    }

    /// Posts under an idempotency key.
    pub(super) async fn keyed(&self, path: &str, key: &str, body: Value) -> Answer {
        answer(self.request("POST", path).header("idempotency-key", key).json(&body)).await
    }

    /// Posts lines, under an idempotency key or none.
    pub(super) async fn lines(&self, path: &str, key: Option<&str>, lines: String) -> Answer {
        let request = self.request("POST", path).header("content-type", "application/x-ndjson");
        let request = key.into_iter().fold(request, |it, key| it.header("idempotency-key", key));
        answer(request.body(lines)).await
    }

    /// Sends a request without a body, with headers.
    pub(super) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let request = self.request(method, path);
        answer(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)))
            .await
    }

    pub(super) async fn put(&self, path: &str, mode: &str, bytes: Vec<u8>) -> Answer {
        answer(self.request("PUT", path).header("x-errand-mode", mode).body(bytes)).await
    }

    pub(super) async fn bytes(&self, path: &str, range: Option<&str>) -> Answer {
        let request = self.request("GET", path);
        answer(match range {
            Some(range) => request.header("range", range),
            None => request,
        })
        .await
    }

    /// Publishes log lines; answers the sequence of the batch.
    pub(super) async fn publish(&self, batch: &LogBatch) -> u64 {
        let publication = Publication {
            subject: subject::logs(&batch.workspace, batch.job),
            payload: serde_json::to_vec(batch).expect("it is JSON").into(),
            message_id: None,
            expect: Expect::Any,
            traceparent: None,
        };
        match self.broker.publish(publication).await {
            Ok(Published::Stored(sequence)) => sequence,
            other => panic!("the batch was not stored: {other:?}"),
        }
    }

    fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().expect("a method");
        self.client.request(method, format!("{}{path}", self.url))
    }
}

impl Answer {
    #[track_caller]
    pub(super) fn answers(self, status: u16, body: Value) {
        assert_eq!((self.status, self.body), (status, body));
    }

    #[track_caller]
    pub(super) fn status_is(self, status: u16) {
        assert_eq!(self.status, status, "{}", self.body);
    }
}

async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.expect("its bytes").to_vec();
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    Answer { status, headers, bytes, body }
}

/// An S3 server over a directory.
async fn start_store(directory: &std::path::Path, servers: &mut JoinSet<()>) -> StoreConfig {
    let objects = directory.join("objects");
    std::fs::create_dir(&objects).expect("a directory");
    let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(objects).expect("a store"));
    service.set_auth(SimpleAuth::from_single("key", "secret"));
    let service = service.build();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    servers.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service.clone();
            tokio::spawn(async move {
                let builder = Builder::new(TokioExecutor::new());
                // A connection that breaks off is its client's affair.
                let _ = builder.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    StoreConfig {
        endpoint,
        bucket: "test".to_owned(),
        access_key: "key".to_owned(),
        secret_key: "secret".to_owned(),
        region: "us-east-1".to_owned(),
    }
}
