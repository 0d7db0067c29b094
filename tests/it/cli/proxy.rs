//! A way to the platform that can be cut, as networks are, and leads elsewhere later.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::harness::Platform;

/// What the proxy shares with its listener.
#[derive(Default)]
struct Ways {
    /// Where new connections lead; nowhere means that they are closed at once.
    target: Option<SocketAddr>,
    open: JoinSet<()>,
    /// Ends what is carried by those that are open, and leaves them open.
    stalled: CancellationToken,
}

pub struct Proxy {
    pub url: String,
    ways: Arc<Mutex<Ways>>,
    listening: JoinHandle<()>,
}

impl Proxy {
    /// One that leads to a platform.
    pub async fn to(platform: &Platform) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let ways = Arc::new(Mutex::new(Ways::default()));
        let proxy =
            Self { url, ways: ways.clone(), listening: tokio::spawn(listen(listener, ways)) };
        proxy.lead_to(platform);
        proxy
    }

    pub fn lead_to(&self, platform: &Platform) {
        let http = platform.run["http"].as_str().expect("run.json names the address");
        let address = http.trim_start_matches("http://").parse().expect("an address");
        self.ways.lock().expect("nobody panics").target = Some(address);
    }

    /// Carries nothing more on the connections that are open, and does not close them.
    pub fn stall(&self) {
        std::mem::take(&mut self.ways.lock().expect("nobody panics").stalled).cancel();
    }

    /// Breaks every connection and lets no new one through.
    pub fn cut(&self) {
        let mut ways = self.ways.lock().expect("nobody panics");
        ways.target = None;
        ways.open.abort_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, ways: Arc<Mutex<Ways>>) {
    loop {
        let (mut client, _) = listener.accept().await.expect("connections come");
        let mut ways = ways.lock().expect("nobody panics");
        let Some(target) = ways.target else { continue };
        let stalled = ways.stalled.clone();
        ways.open.spawn(async move {
            if let Ok(mut server) = TcpStream::connect(target).await {
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => {}
                    () = stalled.cancelled() => std::future::pending().await,
                }
            }
        });
    }
}
