//! A NATS client of a few lines, as anybody may write one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(super) struct Subscriber(BufReader<TcpStream>);

impl Subscriber {
    /// Returns when the server has noted the subscription.
    pub(super) fn start(url: &str, token: &str, subject: &str) -> Self {
        let address = url.strip_prefix("nats://").expect("a nats url");
        let mut socket = TcpStream::connect(address).expect("nats listens");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let options = serde_json::json!({
            "verbose": false, "pedantic": false, "auth_token": token, "headers": true,
        });
        write!(socket, "CONNECT {options}\r\nSUB {subject} 1\r\nPING\r\n").expect("nats reads");
        let mut subscriber = Self(BufReader::new(socket));
        while subscriber.line() != "PONG" {}
        subscriber
    }

    /// The next message: its headers and its payload.
    pub(super) fn message(&mut self) -> (String, Vec<u8>) {
        loop {
            let line = self.line();
            if line == "PING" {
                self.0.get_mut().write_all(b"PONG\r\n").expect("nats reads");
            } else if let Some(message) = line.strip_prefix("HMSG ") {
                let sizes: Vec<usize> =
                    message.split(' ').rev().take(2).map(|n| n.parse().expect("a size")).collect();
                let mut bytes = vec![0; sizes[0] + 2];
                self.0.read_exact(&mut bytes).expect("the message is whole");
                let headers = String::from_utf8_lossy(&bytes[..sizes[1]]).into_owned();
                return (headers, bytes[sizes[1]..sizes[0]].to_vec());
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("nats says something");
        line.trim().to_owned()
    }
}
