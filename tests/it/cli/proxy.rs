//! A way to the platform that can be cut, as networks are, and leads elsewhere later.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, copy, copy_bidirectional};
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
    /// So many connections from now on carry a request and lose its answer.
    losing: usize,
    lost: usize,
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

    /// The next so many connections carry a request, and break off when it is answered.
    pub fn lose_answers(&self, count: usize) {
        self.ways.lock().expect("nobody panics").losing = count;
    }

    /// How many answers were lost so far.
    pub fn lost(&self) -> usize {
        self.ways.lock().expect("nobody panics").lost
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
        let shared = Arc::clone(&ways);
        let mut ways = ways.lock().expect("nobody panics");
        let Some(target) = ways.target else { continue };
        if ways.losing > 0 {
            ways.losing -= 1;
            ways.open.spawn(async move {
                lose(client, target).await;
                shared.lock().expect("nobody panics").lost += 1;
            });
            continue;
        }
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

/// Carries a request there, and nothing back.
async fn lose(client: TcpStream, target: SocketAddr) {
    let (mut asks, _hears) = client.into_split();
    let server = TcpStream::connect(target).await.expect("the platform listens");
    let (mut answers, mut listens) = server.into_split();
    let answered = async { answers.read(&mut [0; 1]).await };
    tokio::select! {
        carried = copy(&mut asks, &mut listens) => panic!("the client left: {carried:?}"),
        answered = answered => assert_eq!(answered.expect("an answer"), 1),
    }
}
