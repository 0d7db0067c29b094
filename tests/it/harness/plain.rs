//! A NATS client that knows nothing of us and tells what the server refuses it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

/// A connection as somebody.
pub struct Plain {
    socket: BufReader<TcpStream>,
    subscriptions: u32,
    /// What came while something else was waited for.
    messages: VecDeque<Message>,
}

/// What came of asking the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// It is allowed; what was answered, if somebody waited for an answer.
    Allowed(Vec<u8>),
    /// It is not, in the server's words.
    Refused(String),
}

/// A message: its headers as they are sent, and its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    pub headers: String,
    pub payload: Vec<u8>,
}

enum Word {
    Pong,
    Refused(String),
    Message(Message),
}

impl Plain {
    /// Connects; the server's words where it does not let us in.
    pub fn connect(url: &str, login: Option<(&str, &str)>) -> Result<Self, String> {
        let address = url.strip_prefix("nats://").expect("a nats url");
        let socket = TcpStream::connect(address).expect("nats listens");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let mut options = json!({
            "verbose": false, "pedantic": false, "headers": true, "no_responders": true,
        });
        if let Some((user, password)) = login {
            options["user"] = user.into();
            options["pass"] = password.into();
        }
        let mut plain =
            Self { socket: BufReader::new(socket), subscriptions: 0, messages: VecDeque::new() };
        plain.send(&format!("CONNECT {options}\r\nPING\r\n"));
        match plain.next_word() {
            Word::Refused(words) => Err(words),
            Word::Pong => Ok(plain),
            Word::Message(message) => panic!("nobody asked for {message:?}"),
        }
    }

    /// Publishes a message.
    pub fn publish(&mut self, subject: &str, payload: &str) -> Came {
        self.publish_with_reply(subject, "", payload)
    }

    /// Publishes a message whose answer is to go to some subject.
    pub fn publish_with_reply(&mut self, subject: &str, reply: &str, payload: &str) -> Came {
        let size = payload.len();
        self.send(&format!("PUB {subject} {reply} {size}\r\n{payload}\r\nPING\r\n"));
        self.until_pong()
    }

    /// Subscribes to a subject.
    pub fn subscribe(&mut self, subject: &str) -> Came {
        self.subscriptions += 1;
        self.send(&format!("SUB {subject} {}\r\nPING\r\n", self.subscriptions));
        self.until_pong()
    }

    /// Asks something and waits for the answer, or for the word that nobody may.
    pub fn ask(&mut self, subject: &str, payload: &str) -> Came {
        let inbox = format!("_INBOX.{}", uuid::Uuid::now_v7().simple());
        self.ask_by(&inbox, subject, payload)
    }

    /// The same with an inbox of one's choice.
    pub fn ask_by(&mut self, inbox: &str, subject: &str, payload: &str) -> Came {
        match self.answer(inbox, subject, "", payload) {
            Ok(message) => Came::Allowed(message.payload),
            Err(words) => Came::Refused(words),
        }
    }

    /// The whole answer to a message with headers, lines that each end in `\r\n`.
    pub fn answer(
        &mut self,
        inbox: &str,
        subject: &str,
        headers: &str,
        payload: &str,
    ) -> Result<Message, String> {
        if let Came::Refused(words) = self.subscribe(inbox) {
            return Err(words);
        }
        let headers = format!("NATS/1.0\r\n{headers}\r\n");
        let (before, all) = (headers.len(), headers.len() + payload.len());
        self.send(&format!("HPUB {subject} {inbox} {before} {all}\r\n{headers}{payload}\r\n"));
        let answered = loop {
            match self.next_word() {
                Word::Message(message) if message.subject == inbox => break Ok(message),
                Word::Refused(words) => break Err(words),
                Word::Message(message) => self.messages.push_back(message),
                Word::Pong => {}
            }
        };
        // An account has only so many subscriptions.
        self.send(&format!("UNSUB {}\r\n", self.subscriptions));
        answered
    }

    /// The next message of a subscription.
    pub fn message(&mut self) -> Message {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return message;
            }
            if let Word::Message(message) = self.next_word() {
                return message;
            }
        }
    }

    fn until_pong(&mut self) -> Came {
        let mut came = Came::Allowed(Vec::new());
        loop {
            match self.next_word() {
                Word::Pong => return came,
                Word::Refused(words) => came = Came::Refused(words),
                Word::Message(message) => self.messages.push_back(message),
            }
        }
    }

    fn next_word(&mut self) -> Word {
        loop {
            let mut line = String::new();
            self.socket.read_line(&mut line).expect("nats says something");
            let line = line.trim_end();
            if line == "PING" {
                self.send("PONG\r\n");
            } else if line == "PONG" {
                return Word::Pong;
            } else if let Some(words) = line.strip_prefix("-ERR ") {
                return Word::Refused(words.to_owned());
            } else if line.starts_with("MSG ") || line.starts_with("HMSG ") {
                return Word::Message(self.rest_of(line));
            }
            assert!(!line.is_empty(), "nats has closed the connection");
        }
    }

    /// `MSG <subject> <sid> [reply] <bytes>`, or `HMSG` with the bytes of the headers before.
    fn rest_of(&mut self, line: &str) -> Message {
        let words: Vec<_> = line.split(' ').collect();
        let size = |from_end: usize| words[words.len() - from_end].parse().expect("a size");
        let mut bytes = vec![0; size(1) + 2];
        self.socket.read_exact(&mut bytes).expect("the message is whole");
        bytes.truncate(size(1));
        let payload = bytes.split_off(if words[0] == "HMSG" { size(2) } else { 0 });
        let headers = String::from_utf8_lossy(&bytes).into_owned();
        Message { subject: words[1].to_owned(), headers, payload }
    }

    fn send(&mut self, words: &str) {
        self.socket.get_mut().write_all(words.as_bytes()).expect("nats reads");
    }
}

impl Message {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(given, _)| *given == name).map(|(_, value)| value)
    }
}
