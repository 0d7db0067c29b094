//! A NATS client that knows nothing of us: asks a server one thing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// What a server answers to a request in JSON, as for example below `$JS.API`.
pub fn ask(url: &str, subject: &str, request: &Value) -> Value {
    let address = url.strip_prefix("nats://").expect("a nats url");
    let mut socket = TcpStream::connect(address).expect("nats listens");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let options = json!({"verbose": false, "pedantic": false, "headers": true});
    let request = if request.is_null() { String::new() } else { request.to_string() };
    let length = request.len();
    write!(
        socket,
        "CONNECT {options}\r\nSUB answer 1\r\nPUB {subject} answer {length}\r\n{request}\r\n"
    )
    .expect("nats reads");
    let mut socket = BufReader::new(socket);
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).expect("nats answers");
        assert!(!line.is_empty(), "nats has closed the connection");
        let words: Vec<_> = line.split_whitespace().collect();
        let (Some(&kind @ ("MSG" | "HMSG")), Some(size)) = (words.first(), words.last()) else {
            assert!(!line.starts_with("-ERR"), "{line}");
            continue;
        };
        let mut message = vec![0; size.parse::<usize>().expect("a size") + 2];
        socket.read_exact(&mut message).expect("the message is whole");
        let headers = match kind {
            "HMSG" => words[words.len() - 2].parse().expect("a size"),
            _ => 0,
        };
        return serde_json::from_slice(&message[headers..]).unwrap_or_default();
    }
}
