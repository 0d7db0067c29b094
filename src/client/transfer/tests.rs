use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::client::{Client, Context};

/// A server that sends this body, of which it says that it is five bytes, and then nothing more.
async fn server(body: &'static str, silence: Duration) -> (Client, JoinHandle<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let answering = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        let read = socket.read(&mut [0; 1024]).await.expect("a request");
        assert!(read > 0, "the request came");
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{body}");
        socket.write_all(answer.as_bytes()).await.expect("it is sent");
        socket
    });
    let context = Context { base_url, workspace: "default".to_owned(), token: None };
    let client = Client::with_silence(context, silence).expect("a client");
    (client, answering)
}

#[tokio::test]
async fn the_longest_name_can_be_downloaded() {
    let (client, answering) = server("hello", Duration::from_secs(60)).await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let target = directory.path().join("n".repeat(255));
    let download = client.download("/file").await.expect("an answer");
    let written = download.write(&target, |_, _| {}).await.expect("it is written");
    answering.await.expect("the server answers");
    assert_eq!(written.size, 5);
    let found = directory.path().read_dir().expect("it is there");
    let found: Vec<_> = found.map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(found, std::slice::from_ref(&target), "nothing else is left");
    assert_eq!(std::fs::read(target).expect("it is there"), b"hello");
}

#[tokio::test]
async fn a_download_that_stops_in_silence_ends_and_leaves_nothing() {
    let (client, answering) = server("he", Duration::from_secs(2)).await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let download = client.download("/file").await.expect("an answer");
    let target = directory.path().join("file");
    let error = download.write(&target, |_, _| {}).await.expect_err("it is not whole");
    let _open_until_now = answering.await.expect("the server answers");
    assert!(error.to_string().contains("broke off after 2 bytes"), "{error}");
    assert_eq!(directory.path().read_dir().expect("it is there").count(), 0);
}
