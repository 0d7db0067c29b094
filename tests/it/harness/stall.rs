//! A way to an object store on which requests stand still when they have a word in them, and which
//! stays where it is when the store comes back at another address. A test that uses it needs a runtime of several threads: a platform that starts is waited for on one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Platform;

/// The word; none lets everything through.
type Word = watch::Receiver<Option<&'static str>>;

pub struct Stall {
    pub endpoint: String,
    word: watch::Sender<Option<&'static str>>,
    store: watch::Sender<SocketAddr>,
    seen: Arc<Mutex<usize>>,
    listening: JoinHandle<()>,
}

impl Stall {
    /// One that leads to a platform's store and lets everything through.
    pub async fn to(lender: &Platform) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let (store, leads) = watch::channel(address(lender));
        let (sender, word) = watch::channel(None);
        let seen = Arc::new(Mutex::new(0));
        let listening = tokio::spawn(listen(listener, leads, word, Arc::clone(&seen)));
        Self { endpoint, word: sender, store, seen, listening }
    }

    /// From now on requests with this word wait, until there is another word or none.
    pub fn stall(&self, word: Option<&'static str>) {
        self.word.send_replace(word);
    }

    /// From now on it leads to where the platform's store is now.
    pub fn lead_to(&self, lender: &Platform) {
        self.store.send_replace(address(lender));
    }

    /// How many requests were kept waiting so far.
    pub fn stalled(&self) -> usize {
        *self.seen.lock().expect("nobody panics")
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn address(lender: &Platform) -> SocketAddr {
    lender.store().trim_start_matches("http://").parse().expect("an address")
}

async fn listen(
    listener: TcpListener,
    store: watch::Receiver<SocketAddr>,
    word: Word,
    seen: Arc<Mutex<usize>>,
) {
    loop {
        let (client, _) = listener.accept().await.expect("connections come");
        let (store, word, seen) = (*store.borrow(), word.clone(), Arc::clone(&seen));
        // One that breaks off is its client's affair.
        tokio::spawn(async move { pass(client, store, word, &seen).await });
    }
}

async fn pass(
    client: TcpStream,
    store: SocketAddr,
    mut word: Word,
    seen: &Mutex<usize>,
) -> std::io::Result<()> {
    let (mut asks, mut hears) = client.into_split();
    let (mut answers, mut listens) = TcpStream::connect(store).await?.into_split();
    tokio::spawn(async move { copy(&mut answers, &mut hears).await });
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let count = asks.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        let has = |word: &str| chunk[..count].windows(word.len()).any(|it| it == word.as_bytes());
        if word.borrow().is_some_and(has) {
            *seen.lock().expect("nobody panics") += 1;
            // A sender that is gone lets nothing through any more, nor is anybody there to wait.
            let free = word.wait_for(|word| !word.is_some_and(has)).await.is_ok();
            if !free {
                return Ok(());
            }
        }
        listens.write_all(&chunk[..count]).await?;
    }
}
