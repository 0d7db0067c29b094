//! An S3 server of our own, in this process, on a free loopback port.
//!
//! For one machine and for development: what makes it safe to use there is in [`locked`].

mod litter;
mod locked;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use workers::store::StoreConfig;

use crate::config::Store;
use crate::listen;
use litter::Litter;
use locked::Locked;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[error("object store in {}: {reason}", dir.display())]
pub(super) struct Error {
    dir: PathBuf,
    reason: String,
}

/// A running server. Dropping it ends it and its connections.
pub(super) struct Server {
    config: StoreConfig,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts one with its buckets in `dir` and the credentials of the configuration, else with
    /// some that are new each time.
    pub(super) async fn start(dir: &Path, wanted: &Store) -> Result<Self, Error> {
        let failed = |reason: String| Error { dir: dir.to_owned(), reason };
        let files = FileSystem::new(dir).map_err(|reason| failed(format!("{reason:?}")))?;
        let fresh = || uuid::Uuid::new_v4().simple().to_string();
        let access_key = wanted.access_key.clone().unwrap_or_else(|| format!("errand-{}", fresh()));
        let secret_key =
            wanted.secret_key.as_ref().map_or_else(fresh, |key| key.expose().to_owned());
        let litter = Litter::new(dir);
        litter.forget_uploads().map_err(|reason| failed(reason.to_string()))?;
        let mut service = S3ServiceBuilder::new(Locked::new(files, litter));
        service.set_auth(SimpleAuth::from_single(access_key.as_str(), secret_key.as_str()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(|reason| failed(reason.to_string()))?;
        let address = listener.local_addr().map_err(|reason| failed(reason.to_string()))?;
        let config = StoreConfig {
            endpoint: format!("http://{address}"),
            bucket: wanted.bucket.clone(),
            access_key,
            secret_key,
            region: wanted.region.clone(),
        };
        let accepting = tokio::spawn(serve(listener, service.build()));
        Ok(Self { config, accepting })
    }

    /// How to reach it.
    pub(super) fn config(&self) -> StoreConfig {
        self.config.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(listener: TcpListener, service: S3Service) {
    let connection = |socket| {
        let service = service.clone();
        async move {
            let builder = Builder::new(TokioExecutor::new());
            // A connection that breaks off is its client's affair.
            let _ = builder.serve_connection(TokioIo::new(socket), service).await;
        }
    };
    listen::accept(listener, CancellationToken::new(), connection).await;
}

#[cfg(test)]
mod tests;
