use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::client::{Client, Context};

#[tokio::test]
async fn the_longest_name_can_be_downloaded() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let answering = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        let read = socket.read(&mut [0; 1024]).await.expect("a request");
        assert!(read > 0, "the request came");
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await
    });
    let context = Context { base_url, workspace: "default".to_owned(), token: None };
    let client = Client::new(context).expect("a client");

    let directory = tempfile::tempdir().expect("a temporary directory");
    let target = directory.path().join("n".repeat(255));
    let download = client.download("/file").await.expect("an answer");
    let written = download.write(&target, |_, _| {}).await.expect("it is written");
    answering.await.expect("the server runs").expect("it answers");
    assert_eq!(written.size, 5);
    let found = directory.path().read_dir().expect("it is there");
    let found: Vec<_> = found.map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(found, std::slice::from_ref(&target), "nothing else is left");
    assert_eq!(std::fs::read(target).expect("it is there"), b"hello");
}
