//! Wiring: brings the parts together, whether their queue, store and database are our own or
//! others'. What each part does is its own affair; nothing is decided here.

mod place;
mod worker;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use streams::broker::Broker;
use streams::jetstream::{Connect, JetStream, Login};
use streams::phase::StepName;
use streams::topology::Limits;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workers::actions::{InstallError, Registry, Webhooks};
use workers::executor::cgroup;
use workers::executor::process::confinement::Confinement;
use workers::store::{Store, StoreConfig};

pub use worker::{confinement, runner_program};

use crate::catalog::{CatalogService, Profile, Settings};
use crate::config::{Config, Secret};
use crate::http::{self, App};
use crate::notify::Notifier;
use crate::records::Records;
use crate::secrets::{Keyring, SecretStore};
use crate::sweeper::Sweeper;
use crate::{listen, metrics, projector, service};

/// How long requests and short steps may take to end when the platform stops.
const DRAIN: Duration = Duration::from_secs(20);

/// Where the queue and the object store are.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// The queue.
    pub nats: Connect,
    /// The object store.
    pub store: StoreConfig,
}

/// The parts that this process plays.
#[derive(Clone, Debug)]
pub struct Roles {
    /// Serves the API.
    pub http: bool,
    /// Turns facts into rows, and sweeps. Any number of processes may: they share the work.
    pub keeper: bool,
    /// Runs these steps.
    pub steps: Vec<StepName>,
}

impl Roles {
    /// All of them.
    pub fn everything() -> Self {
        Self { http: true, keeper: true, steps: StepName::ALL.to_vec() }
    }

    /// The API and what belongs to the records.
    pub const fn server() -> Self {
        Self { http: true, keeper: true, steps: Vec::new() }
    }

    /// Some steps.
    pub const fn worker(steps: Vec<StepName>) -> Self {
        Self { http: false, keeper: false, steps }
    }
}

impl Endpoints {
    /// Those of the configuration, which must name them.
    pub fn configured(config: &Config) -> anyhow::Result<Self> {
        let missing = |key: &str| {
            let variable = key.to_uppercase().replace('.', "__");
            format!(
                "{key} is not set: name it in errand.toml or as ERRAND__{variable}, or use errand up"
            )
        };
        Ok(Self {
            nats: configured_nats(config).with_context(|| missing("nats.url"))?,
            store: configured_store(config).with_context(|| missing("store.endpoint"))?,
        })
    }
}

/// The queue that the configuration names.
pub fn configured_nats(config: &Config) -> Option<Connect> {
    let exposed = |secret: &Option<Secret>| secret.as_ref().map(|it| it.expose().to_owned());
    let login = config.nats.user.clone().zip(exposed(&config.nats.password));
    Some(Connect {
        url: config.nats.url.clone()?,
        token: exposed(&config.nats.token),
        login: login.map(|(user, password)| Login { user, password }),
        name: "errand".to_owned(),
    })
}

/// How the queue is set up when it is made.
pub fn limits(config: &Config) -> Limits {
    // A number that does not fit was refused before.
    let replicas = u8::try_from(config.nats.replicas).unwrap_or(1);
    Limits { replicas, ..Limits::default() }
}

/// The object store that the configuration names.
pub fn configured_store(config: &Config) -> Option<StoreConfig> {
    let store = &config.store;
    Some(StoreConfig {
        endpoint: store.endpoint.clone()?,
        bucket: store.bucket.clone(),
        access_key: store.access_key.clone()?,
        secret_key: store.secret_key.as_ref()?.expose().to_owned(),
        region: store.region.clone(),
    })
}

/// Takes the address of the API before anything else is started.
pub fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!("cannot listen on {address}; choose another with --listen, port 0 picks a free one")
    })?;
    listener.set_nonblocking(true).context("cannot set up the listener")?;
    Ok(listener)
}

/// What the parts share.
#[derive(Clone)]
struct Parts {
    records: Records,
    store: Store,
    broker: Arc<dyn Broker>,
    catalog: CatalogService,
    secrets: SecretStore,
    actions: Arc<Registry>,
    groups: cgroup::Detected,
}

/// The parts, running.
pub struct Serving {
    tasks: JoinSet<anyhow::Result<&'static str>>,
    stop: CancellationToken,
    records: Records,
    queue: Arc<JetStream>,
}

/// Starts the parts; when this returns, a job would be accepted.
pub async fn start(
    config: &Config,
    endpoints: &Endpoints,
    roles: &Roles,
    listener: Option<TcpListener>,
) -> anyhow::Result<Serving> {
    metrics::start();
    let actions = Arc::new(installed_actions(config).context("cannot install post-run actions")?);
    let groups = cgroup::detect();
    tracing::info!(found = %groups, "control groups");
    let confinement =
        worker::run_programs(&roles.steps).then(|| worker::confinement(config)).transpose()?;
    if let Some(confinement) = &confinement {
        tracing::info!(sandbox = %confinement, "agents are kept apart");
    }
    let settings = Settings {
        actions: Arc::clone(&actions),
        secrets_refused: confinement.as_ref().and_then(Confinement::secrets_refused),
        max_timeout_seconds: config.agents_jobs.max_timeout_seconds as f64,
        max_input_bytes: config.agents_jobs.max_input_bytes,
        default_image: config.agents_jobs.default_image.clone(),
        profile: Profile { no_limits: groups.missing(), ..Settings::default().profile },
        authenticated: config.auth.required,
    };
    settings.check().map_err(anyhow::Error::msg).context("cannot use the configuration")?;
    let store = Store::new(&endpoints.store);
    let (records, queue, ()) = tokio::try_join!(
        async { Records::connect(&config.database_url()).await.context("cannot open the records") },
        connect(&endpoints.nats, limits(config)),
        async { store.ensure_bucket().await.context("cannot use the object store") },
    )?;
    let queue = Arc::new(queue);
    let keyring = Keyring::open(&config.key_file()).context("cannot use the secrets' key")?;
    let secrets = SecretStore::new(records.clone(), keyring);
    secrets.check_some_keys().await.context("cannot use the secrets' key")?;
    let parts = Parts {
        catalog: CatalogService::new(records.clone(), store.clone(), settings),
        secrets,
        broker: Arc::clone(&queue) as Arc<dyn Broker>,
        records: records.clone(),
        store,
        actions,
        groups,
    };
    let mut serving =
        Serving { tasks: JoinSet::new(), stop: CancellationToken::new(), records, queue };
    if roles.keeper {
        serving.keep(config, &parts);
    }
    if !roles.steps.is_empty() {
        let work =
            worker::start_worker(config, &parts, &roles.steps, confinement, serving.stop.clone())?;
        serving.tasks.spawn(async move {
            work.await;
            Ok("worker")
        });
    }
    if let Some(address) = config.worker.metrics_listen {
        serving.answer("metrics", bind(address)?, http::metrics::router())?;
    }
    if let Some(listener) = listener {
        if config.auth.required {
            tell_of_tokens(&parts.records, &listener).await?;
        }
        serving.serve(config, listener, &parts).await?;
    }
    Ok(serving)
}

/// The platform's own actions, and the programs of the actions' directory. Only the directory
/// that nobody named may be missing.
pub fn installed_actions(config: &Config) -> Result<Registry, InstallError> {
    let webhooks = Webhooks::new(config.actions_webhook.allow_private_addresses);
    let (built_in, directory) = (Registry::built_in(webhooks), config.actions_dir());
    if config.actions.directory.is_none() && !directory.exists() {
        return Ok(built_in);
    }
    built_in.install(&directory)
}

async fn connect(to: &Connect, limits: Limits) -> anyhow::Result<JetStream> {
    let (queue, drift) = JetStream::connect(to, limits)
        .await
        .with_context(|| format!("cannot use the queue at {}", to.url))?;
    for drift in &drift {
        tracing::warn!(%drift, "the queue has other settings than expected");
    }
    let grave: Vec<_> = drift.iter().filter(|it| it.is_grave).map(ToString::to_string).collect();
    if !grave.is_empty() {
        anyhow::bail!(
            "jobs could be lost or run twice on the queue at {}: {}; change the settings back, \
             nothing is started before",
            to.url,
            grave.join("; ")
        );
    }
    Ok(queue)
}

/// What whoever starts a server with authentication should know.
async fn tell_of_tokens(records: &Records, listener: &TcpListener) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let tokens = records.tokens().all().await.context("cannot read the tokens")?;
    let valid = tokens.iter().filter(|token| token.is_valid(now)).count();
    if valid == 0 {
        tracing::warn!(
            "callers need tokens and there is none; make the first with `errand tokens create \
             --workspace '*' --role admin`, with the same --config or --data-dir"
        );
    }
    let address = listener.local_addr().context("the address to listen on")?;
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "tokens come in over plain HTTP; let a proxy speak TLS before it");
    }
    tracing::info!(tokens.valid = valid, "callers need tokens");
    Ok(())
}

impl Serving {
    /// Waits until a part ends that should not, and says which and why.
    pub async fn failed(&mut self) -> anyhow::Error {
        match self.tasks.join_next().await {
            Some(Ok(Ok(part))) => anyhow::anyhow!("the {part} ended unexpectedly"),
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => anyhow::anyhow!("a part of the platform ended: {error}"),
            None => std::future::pending().await,
        }
    }

    /// Stops accepting and pulling, and waits for what is in hand. Agents go on.
    pub async fn drain(mut self) {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN, ended).await.is_err() {
            tracing::warn!("some requests did not end in time and are broken off");
        }
        self.tasks.abort_all();
        if let Err(error) = self.queue.flush().await {
            tracing::warn!(%error, "the queue did not take the last words");
        }
        self.records.close().await;
    }

    /// Facts into rows, the sweeper, and who tells of ends.
    fn keep(&mut self, config: &Config, parts: &Parts) {
        let projection =
            projector::run(Arc::clone(&parts.broker), parts.records.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            projection.await;
            Ok("projector")
        });
        let sweeper = Sweeper {
            records: parts.records.clone(),
            broker: Arc::clone(&parts.broker),
            store: parts.store.clone(),
            retention: config.retention.clone(),
            lost_after: Duration::from_secs(config.claims.lost_after_seconds),
        };
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            sweeper.run(stop).await;
            Ok("sweeper")
        });
        let notifier = Notifier {
            records: parts.records.clone(),
            secrets: parts.secrets.clone(),
            catalog: parts.catalog.clone(),
        };
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            notifier.run(stop).await;
            Ok("notifier")
        });
    }

    /// The API, and the service that takes submissions in the queue.
    async fn serve(
        &mut self,
        config: &Config,
        listener: TcpListener,
        parts: &Parts,
    ) -> anyhow::Result<()> {
        let app = App {
            records: parts.records.clone(),
            store: parts.store.clone(),
            broker: Arc::clone(&parts.broker),
            catalog: parts.catalog.clone(),
            secrets: parts.secrets.clone(),
            running_limits: config.running_limits(),
            secret_access: config.secrets.allow_access,
            any_origin: config.general.allow_any_origin,
            authenticated: config.auth.required,
            stop: self.stop.clone(),
        };
        let (router, submissions) = http::surface(app);
        let offered = self.queue.offer(&service::OFFER).await;
        let offered = offered.context("cannot take submissions in the queue")?;
        let taken = service::run(offered, submissions, self.stop.clone());
        self.tasks.spawn(async move {
            taken.await;
            Ok("service for submissions")
        });
        self.answer("API server", listener, router)
    }

    /// Answers requests.
    fn answer(
        &mut self,
        what: &'static str,
        listener: TcpListener,
        router: http::Router,
    ) -> anyhow::Result<()> {
        let listener =
            tokio::net::TcpListener::from_std(listener).context("cannot use the listener")?;
        let service = TowerToHyperService::new(router);
        let stop = self.stop.clone();
        let ending = stop.clone();
        self.tasks.spawn(async move {
            let connection = |socket| {
                let (service, ending) = (service.clone(), ending.clone());
                async move {
                    let builder = Builder::new(TokioExecutor::new()).http1_only();
                    let connection = builder.serve_connection(TokioIo::new(socket), service);
                    tokio::pin!(connection);
                    // A connection that breaks off is its client's affair.
                    let _ = tokio::select! {
                        ended = connection.as_mut() => ended,
                        () = ending.cancelled() => {
                            connection.as_mut().graceful_shutdown();
                            connection.await
                        }
                    };
                }
            };
            listen::accept(listener, stop, connection).await;
            Ok(what)
        });
        Ok(())
    }
}
