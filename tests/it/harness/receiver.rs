//! A receiver of webhooks: answers what it is told to, one request after the other, and
//! remembers them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::eventually;

/// A request that came.
#[derive(Clone)]
pub struct Request {
    pub line: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

pub struct Receiver {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    /// Connections that were given no answer.
    _silent: Arc<Mutex<Vec<TcpStream>>>,
}

impl Receiver {
    /// Answers so many requests; an empty answer is none, and the connection stays open.
    pub fn start(answers: &[&'static str]) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").expect("a port"), answers)
    }

    /// The same at a place of the caller's.
    pub fn at(listener: TcpListener, answers: &[&'static str]) -> Self {
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let silent = Arc::new(Mutex::new(Vec::new()));
        let (answers, seen, open) = (answers.to_vec(), requests.clone(), silent.clone());
        std::thread::spawn(move || {
            for answer in answers {
                let (mut socket, request) = next(&listener);
                seen.lock().expect("nobody panicked").push(request);
                socket.write_all(answer.as_bytes()).expect("the sender listens");
                if answer.is_empty() {
                    open.lock().expect("nobody panicked").push(socket);
                }
            }
        });
        Self { url, requests, _silent: silent }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("nobody panicked").clone()
    }
}

impl Receiver {
    /// Waits until so many requests have come.
    pub async fn has(&self, count: usize, within: Duration) -> Vec<Request> {
        let there = || async { (self.requests().len() >= count).then_some(()) };
        eventually(&format!("{count} requests came"), within, there).await;
        self.requests()
    }
}

impl Request {
    /// What its signature must be under a key, as the Standard Webhooks specification has it.
    pub fn signature(&self, key: &str) -> String {
        let signed = [self.header("webhook-id"), self.header("webhook-timestamp")].join(".");
        let signed = [signed.as_bytes(), b".", &self.body].concat();
        let key = STANDARD.decode(&key["whsec_".len()..]).expect("base64");
        format!("v1,{}", STANDARD.encode(hmac_sha256(&key, &signed)))
    }

    pub fn header(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.unwrap_or_else(|| panic!("no header {name}")).1.clone()
    }
}

/// The next request that comes whole. Who was out of time may have sent none, or a part of it.
fn next(listener: &TcpListener) -> (TcpStream, Request) {
    loop {
        let (socket, _) = listener.accept().expect("a connection");
        if let Some(request) = read(&socket) {
            return (socket, request);
        }
    }
}

fn read(socket: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(socket);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let line = lines.remove(0);
    let split = |line: &String| {
        let (name, value) = line.split_once(':').expect("a header");
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    let headers: Vec<_> = lines.iter().map(split).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().expect("a number"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line, headers, body })
}

/// RFC 2104, written out: the test does not check the platform's code with itself.
fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let padded = |byte: u8| block.map(|key| key ^ byte);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().to_vec()
}
