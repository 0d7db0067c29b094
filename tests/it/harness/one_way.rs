//! A way to a server whose one direction can be cut: what clients say is then kept back as by a
//! firewall, what the server says goes on. A test that uses it needs a runtime of several threads.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub struct OneWay {
    pub url: String,
    cut: watch::Sender<bool>,
    listening: JoinHandle<()>,
}

impl OneWay {
    /// One that leads to a nats-server and lets everything through.
    pub async fn to(url: &str) -> Self {
        let server = url.trim_start_matches("nats://").parse().expect("an address");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("nats://{}", listener.local_addr().expect("an address"));
        let (sender, cut) = watch::channel(false);
        let listening = tokio::spawn(listen(listener, server, cut));
        Self { url, cut: sender, listening }
    }

    /// From now on the server hears nothing.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// It hears again, at first what was said meanwhile.
    pub fn mend(&self) {
        self.cut.send_replace(false);
    }
}

impl Drop for OneWay {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, server: SocketAddr, cut: watch::Receiver<bool>) {
    loop {
        let (client, _) = listener.accept().await.expect("connections come");
        // One that breaks off is its client's affair.
        tokio::spawn(pass(client, server, cut.clone()));
    }
}

async fn pass(
    client: TcpStream,
    server: SocketAddr,
    mut cut: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let (mut says, mut hears) = client.into_split();
    let (mut answers, mut listens) = TcpStream::connect(server).await?.into_split();
    tokio::spawn(async move { copy(&mut answers, &mut hears).await });
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let count = says.read(&mut chunk).await?;
        // A sender that is gone lets nothing through any more.
        if count == 0 || cut.wait_for(|cut| !cut).await.is_err() {
            return Ok(());
        }
        listens.write_all(&chunk[..count]).await?;
    }
}
