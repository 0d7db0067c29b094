use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::TcpListener;

use super::{Client, Context, segments};
use crate::exit::Exit;

#[test]
fn paths_are_escaped_by_segment() {
    assert_eq!(segments("a b/c#d/é.txt"), "a%20b/c%23d/%C3%A9.txt");
}

/// A proxy may hold a connection open for ever behind which nobody is any more.
#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let context = Context { base_url, workspace: "default".to_owned(), token: None };
    let client = Client::with_silence(context, Duration::from_secs(1)).expect("a client");

    let asking = client.get("/status");
    let (answer, accepted) = tokio::join!(asking, listener.accept());
    accepted.expect("the client connects");
    let error = answer.expect_err("nothing came");
    assert!(error.is_transient(), "{error}");
    assert_eq!(error.exit(), Exit::Unreachable, "{error}");
}
