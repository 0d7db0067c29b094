//! `errand up`: every part in one process tree, on loopback, data in one directory.
//!
//! It owns the children and the directory. What the parts do with each other is in
//! [`crate::serve`], which `errand serve` and `errand worker` share.

mod lock;
pub mod nats;
mod ready;
mod store;

use std::net::TcpListener;
use std::path::Path;

use anyhow::Context as _;
use streams::jetstream::Connect;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub use lock::DataDir;
pub use ready::Ready;

use crate::config::Config;
use crate::serve::{self, Endpoints, Roles};
use crate::telemetry;

/// Runs the platform until a signal ends it.
pub async fn run(config: Config, announce: impl FnOnce(&str)) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    telemetry::traces::start(&config.telemetry, "up")?;
    let data = DataDir::lock(&config.data_dir())?;
    let listener = serve::bind(config.general.listen)?;
    let mut platform = tokio::select! {
        started = Platform::start(&config, &data, listener) => started?,
        () = signals.next() => return Ok(()),
    };
    announce(&platform.ready.http);
    tracing::info!(http = %platform.ready.http, data = %data.path().display(), "platform is ready");

    let failed = tokio::select! {
        () = signals.next() => None,
        failed = platform.serving.failed() => Some(failed),
    };
    tracing::info!("draining: agents go on, a second signal stops at once");
    tokio::select! {
        () = platform.drain() => {}
        () = signals.next() => tracing::warn!("stopped at once"),
    }
    match failed {
        None => Ok(()),
        Some(reason) => Err(reason),
    }
}

/// The parts, running. Dropping it stops what lives in this process tree.
struct Platform {
    ready: Ready,
    serving: serve::Serving,
    nats: Option<nats::Server>,
    _store: Option<store::Server>,
    _run_file: ready::RunFile,
}

impl Platform {
    async fn start(config: &Config, data: &DataDir, listener: TcpListener) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("the address to listen on")?;
        let (queue, objects) = tokio::try_join!(queue(config, data), objects(config, data))?;
        let (nats, connect) = queue;
        let (store, store_config) = objects;
        let ready = Ready {
            pid: std::process::id(),
            http: format!("http://{address}"),
            nats: ready::Nats { url: connect.url.clone(), token: connect.token.clone() },
            s3: ready::S3 {
                endpoint: store_config.endpoint.clone(),
                bucket: store_config.bucket.clone(),
                access_key: store_config.access_key.clone(),
                secret_key: store_config.secret_key.clone(),
            },
        };
        let endpoints = Endpoints { nats: connect, store: store_config };
        let serving =
            serve::start(config, &endpoints, &Roles::everything(), Some(listener)).await?;
        let run_file = ready::RunFile::write(data, &ready)?;
        Ok(Self { ready, serving, nats, _store: store, _run_file: run_file })
    }

    /// Stops accepting and pulling, lets what is in hand finish, then ends the queue.
    async fn drain(self) {
        self.serving.drain().await;
        if let Some(nats) = self.nats {
            nats.stop().await;
        }
    }
}

/// The configured queue, or one of our own.
async fn queue(config: &Config, data: &DataDir) -> anyhow::Result<(Option<nats::Server>, Connect)> {
    if let Some(connect) = serve::configured_nats(config) {
        return Ok((None, connect));
    }
    let server = nats::Server::start(&data.join("nats")?).await?;
    let connect = server.connect();
    Ok((Some(server), connect))
}

/// The configured object store, or one of our own.
async fn objects(
    config: &Config,
    data: &DataDir,
) -> anyhow::Result<(Option<store::Server>, workers::store::StoreConfig)> {
    if let Some(external) = serve::configured_store(config) {
        return Ok((None, external));
    }
    let server = store::Server::start(&data.join("objects")?, &config.store).await?;
    let store = server.config();
    Ok((Some(server), store))
}

/// SIGTERM and SIGINT, as one.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on the signals no longer end the process by themselves.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot handle SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot handle SIGINT")?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Runs some of the parts against the configured queue, store and database.
pub async fn run_apart(
    config: Config,
    roles: Roles,
    announce: impl FnOnce(&str),
) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    telemetry::traces::start(&config.telemetry, if roles.http { "serve" } else { "worker" })?;
    let endpoints = Endpoints::configured(&config)?;
    std::fs::create_dir_all(config.data_dir()).with_context(|| {
        format!("cannot make the data directory {}", config.data_dir().display())
    })?;
    let listener = roles.http.then(|| serve::bind(config.general.listen)).transpose()?;
    let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
    let mut serving = tokio::select! {
        serving = serve::start(&config, &endpoints, &roles, listener) => serving?,
        () = signals.next() => return Ok(()),
    };
    match address {
        Some(address) => announce(&format!("http://{address}")),
        None => announce("worker"),
    }
    let failed = tokio::select! {
        () = signals.next() => None,
        failed = serving.failed() => Some(failed),
    };
    tokio::select! {
        () = serving.drain() => {}
        () = signals.next() => tracing::warn!("stopped at once"),
    }
    failed.map_or(Ok(()), Err)
}

/// What `run.json` of a running platform says; the error names the directory.
pub fn running(data_dir: &Path) -> anyhow::Result<Ready> {
    Ready::read(data_dir)
}

#[cfg(test)]
mod tests;
