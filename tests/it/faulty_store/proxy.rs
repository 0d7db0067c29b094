//! A proxy in front of an object store that does what bad networks and bad stores do, by a plan
//! that a seed makes. One request a connection, passed on byte by byte but for the fault.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One in so many requests goes wrong.
const ONE_IN: u64 = 5;

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A byte arrives as another, on the way there.
    CorruptUpload,
    /// A byte arrives as another, on the way back.
    CorruptDownload,
    /// The connection breaks in the middle of the body, on the way there.
    CutUpload,
    /// The same on the way back.
    CutDownload,
    /// The answer is late.
    Delay,
    /// 500 InternalError.
    InternalError,
    /// 503 SlowDown.
    SlowDown,
    /// 404 with a code that does not mean that there is no such key.
    NotNow,
    /// 200 to bytes that are not kept: an object, or one part.
    PretendStored,
    /// 200, and in its body the error.
    ErrorInside,
    /// It is done, and nobody hears of it.
    DropAnswer,
}

use Fault::{
    CorruptDownload, CorruptUpload, CutDownload, CutUpload, Delay, DropAnswer, ErrorInside,
    InternalError, NotNow, PretendStored, SlowDown,
};

/// The kinds of requests, and what may happen to each.
const KINDS: [(&str, &[Fault]); 5] = [
    ("GET", &[CorruptDownload, CutDownload, SlowDown, Delay, InternalError, NotNow]),
    ("PUT", &[CorruptUpload, PretendStored, CutUpload, DropAnswer, SlowDown, Delay]),
    ("POST", &[ErrorInside, DropAnswer, InternalError]),
    ("HEAD", &[SlowDown, DropAnswer, Delay]),
    ("DELETE", &[DropAnswer, InternalError]),
];

/// The running proxy; it ends with its value.
pub struct FaultyStore {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    behind: String,
    calm: AtomicBool,
    refused: Mutex<Option<String>>,
    plan: Mutex<Plan>,
}

/// What happens next: whether is drawn, which one goes round, so that each has its turn.
struct Plan {
    state: u64,
    turns: BTreeMap<&'static str, usize>,
    happened: BTreeMap<Fault, usize>,
}

impl Plan {
    fn next(&mut self, method: &str) -> Option<Fault> {
        // splitmix64
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.state;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^= drawn >> 31;
        let (kind, faults) = KINDS.into_iter().find(|(kind, _)| *kind == method)?;
        let turn = self.turns.entry(kind).or_default();
        // The first of each kind in any case.
        let is_due = *turn == 0 || drawn.is_multiple_of(ONE_IN);
        let fault = is_due.then(|| faults[*turn % faults.len()])?;
        *turn += 1;
        *self.happened.entry(fault).or_default() += 1;
        Some(fault)
    }
}

impl FaultyStore {
    /// A proxy in front of `http://host:port`.
    pub async fn start(behind: &str, seed: u64) -> Self {
        let plan = Plan { state: seed, turns: BTreeMap::new(), happened: BTreeMap::new() };
        let behind = behind.strip_prefix("http://").expect("the store speaks HTTP").to_owned();
        let (calm, plan) = (AtomicBool::new(false), Mutex::new(plan));
        let shared = Arc::new(Shared { behind, calm, refused: Mutex::default(), plan });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let serving = Arc::clone(&serving);
                // What breaks off is meant to.
                tokio::spawn(async move { drop(serve(client, &serving).await) });
            }
        });
        Self { address, shared, accepting }
    }

    /// Where a client of the store finds it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Nothing goes wrong from now on.
    pub fn calm_down(&self) {
        self.shared.calm.store(true, Ordering::Relaxed);
    }

    /// From now on only writes go wrong whose path has this in it, and those always.
    pub fn refuse_for_good(&self, part: &str) {
        self.calm_down();
        *self.shared.refused.lock().expect("nobody panics here") = Some(part.to_owned());
    }

    /// What went wrong so far, and how often.
    pub fn happened(&self) -> BTreeMap<Fault, usize> {
        self.shared.plan.lock().expect("nobody panics here").happened.clone()
    }
}

impl Drop for FaultyStore {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    let Message { head, mut body } = read_request(&mut client).await?;
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // Only objects: what is asked of the bucket has two slashes or a query right behind it.
    let is_object = path.matches('/').count() > 1;
    let fault = if is_object && !shared.calm.load(Ordering::Relaxed) {
        shared.plan.lock().expect("nobody panics here").next(method)
    } else {
        None
    };
    let refused = shared.refused.lock().expect("nobody panics here").clone();
    if method != "GET" && refused.is_some_and(|part| path.contains(&part)) {
        return refuse(&mut client, "500 Oops", "InternalError").await;
    }
    let middle = body.len() / 2;
    match fault {
        Some(Delay) => tokio::time::sleep(Duration::from_millis(700)).await,
        Some(CorruptUpload) if !body.is_empty() => body[middle] ^= 0x20,
        Some(CutUpload) => body.truncate(middle),
        Some(InternalError) => return refuse(&mut client, "500 Oops", "InternalError").await,
        Some(SlowDown) => return refuse(&mut client, "503 Busy", "SlowDown").await,
        Some(NotNow) => return refuse(&mut client, "404 Not Now", "SlowDown").await,
        Some(ErrorInside) => return refuse(&mut client, "200 OK", "InternalError").await,
        Some(PretendStored) => {
            let answer = "HTTP/1.1 200 OK\r\netag: \"0123456789abcdef0123456789abcdef\"\r\n\
                          content-length: 0\r\nconnection: close\r\n\r\n";
            return client.write_all(answer.as_bytes()).await;
        }
        _ => {}
    }
    let mut store = TcpStream::connect(&shared.behind).await?;
    // The store closes when it has answered, so that the end of its answer can be seen.
    let head = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    store.write_all(head.as_bytes()).await?;
    store.write_all(&body).await?;
    if fault == Some(CutUpload) {
        return Ok(());
    }
    let mut answer = Vec::new();
    store.read_to_end(&mut answer).await?;
    let begin = end_of_head(&answer).unwrap_or(answer.len());
    let middle = begin + (answer.len() - begin) / 2;
    match fault {
        Some(DropAnswer) => return Ok(()),
        Some(CorruptDownload) if middle < answer.len() => answer[middle] ^= 0x20,
        Some(CutDownload) => answer.truncate(middle),
        _ => {}
    }
    client.write_all(&answer).await
}

struct Message {
    head: String,
    body: Vec<u8>,
}

async fn read_request(client: &mut TcpStream) -> io::Result<Message> {
    let mut bytes = Vec::new();
    let end = loop {
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = end_of_head(&bytes) {
            break end;
        }
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8(bytes).map_err(io::Error::other)?;
    let lower = head.to_ascii_lowercase();
    let header = |name: &str| {
        let line = lower.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned())
    };
    let length = header("content-length").map_or(Ok(0), |value| value.parse());
    let length: usize = length.map_err(io::Error::other)?;
    if header("expect").is_some() {
        client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let begun = body.len();
    body.resize(length, 0);
    client.read_exact(&mut body[begun..]).await?;
    Ok(Message { head, body })
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

async fn refuse(client: &mut TcpStream, status: &str, code: &str) -> io::Result<()> {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code>\
         <Message>by plan</Message></Error>"
    );
    let length = body.len();
    let head = format!("content-type: application/xml\r\ncontent-length: {length}");
    let answer = format!("HTTP/1.1 {status}\r\n{head}\r\nconnection: close\r\n\r\n{body}");
    client.write_all(answer.as_bytes()).await
}
