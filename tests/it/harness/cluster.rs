//! Three nats-servers that keep three copies of everything. Each may be killed and come back.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use streams::jetstream::{Connect, JetStream};
use streams::topology::Limits;
use tempfile::TempDir;

use super::nats::{free_ports, program};
use super::{eventually, is_running};

const SERVERS: usize = 3;

/// An election takes up to nine seconds, and it may take two.
const AGREED: Duration = Duration::from_secs(90);

/// The servers are killed when it goes out of scope.
pub struct Cluster {
    servers: Vec<Server>,
    folder: TempDir,
}

struct Server {
    process: Child,
    address: String,
    monitor: String,
}

impl Cluster {
    /// Starts one and waits until all of them work together.
    pub async fn start() -> Self {
        let folder = TempDir::new().expect("a temporary directory");
        let ports: [u16; 3 * SERVERS] = free_ports();
        let routes: Vec<_> =
            ports[SERVERS..2 * SERVERS].iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let servers = (0..SERVERS).map(|n| {
            let (address, monitor) = (
                format!("127.0.0.1:{}", ports[n]),
                format!("127.0.0.1:{}", ports[2 * SERVERS + n]),
            );
            let config = format!(
                "server_name: n{n}\nlisten: {address}\nhttp: {monitor}\n\
                 jetstream {{ store_dir: '{}', max_file_store: 1TB }}\n\
                 cluster {{ name: errand, listen: {}, routes: [nats://{}] }}\n",
                folder.path().join(format!("store-{n}")).display(),
                routes[n],
                routes.join(", nats://"),
            );
            fs::write(config_file(folder.path(), n), config).expect("a file");
            Server { process: launch(folder.path(), n), address, monitor }
        });
        let servers = servers.collect();
        let cluster = Self { servers, folder };
        cluster.is_whole().await;
        cluster
    }

    /// All addresses, as `nats.url` takes them.
    pub fn url(&self) -> String {
        (0..SERVERS).map(|n| self.url_of(n)).collect::<Vec<_>>().join(",")
    }

    pub fn url_of(&self, n: usize) -> String {
        format!("nats://{}", self.servers[n].address)
    }

    /// A connection of our own, by way of some of the servers.
    pub async fn broker(&self, url: &str) -> JetStream {
        let to = Connect { url: url.to_owned(), name: "test".to_owned(), ..Connect::default() };
        let limits = Limits { replicas: 3, ..Limits::default() };
        // A new leader may take its time on a busy machine.
        let connected = || async { JetStream::connect(&to, limits).await.ok() };
        let (broker, drift) = eventually("nats is reachable", AGREED, connected).await;
        assert_eq!(drift, [], "the topology is as we would make it");
        broker
    }

    /// Starts whoever does not run, and waits until all work together.
    pub async fn mend(&mut self) {
        for n in 0..SERVERS {
            if !self.runs(n) {
                self.start_again(n).await;
            }
        }
        self.is_whole().await;
    }

    /// Waits until every server has all that it should have.
    pub async fn is_whole(&self) {
        for n in 0..SERVERS {
            let healthy = || async { self.look(n, "healthz").await };
            eventually(&format!("server n{n} is healthy"), AGREED, healthy).await;
        }
    }

    /// Which server leads: a stream, or (none) the cluster itself.
    pub async fn leader(&self, stream: Option<&str>) -> usize {
        let known = || async {
            for n in 0..SERVERS {
                let Some(seen) = self.look(n, "jsz?accounts=true&streams=true").await else {
                    continue;
                };
                let leader = match stream {
                    None => seen["meta_cluster"]["leader"].as_str(),
                    Some(stream) => leader_in(&seen, stream),
                };
                let index = leader.and_then(|name| name.strip_prefix('n')?.parse().ok());
                // One that was just killed is still named for a while.
                if let Some(index) = index.filter(|n: &usize| self.runs(*n)) {
                    return Some(index);
                }
            }
            None
        };
        eventually(&format!("{stream:?} has a leader"), AGREED, known).await
    }

    /// Asks the leader of a stream to let another one lead.
    pub fn step_down(&self, stream: &str) {
        let Some(server) = (0..SERVERS).find(|n| self.runs(*n)) else { return };
        let subject = format!("$JS.API.STREAM.LEADER.STEPDOWN.{stream}");
        // A client of a few lines, as anybody may write one. Whether it was heard shows in time.
        let ask = || -> std::io::Result<()> {
            let mut socket = TcpStream::connect(&self.servers[server].address)?;
            socket.set_read_timeout(Some(Duration::from_secs(10)))?;
            let hello = r#"{"verbose": false, "pedantic": false}"#;
            write!(socket, "CONNECT {hello}\r\nPUB {subject} ignored 0\r\n\r\nPING\r\n")?;
            let mut said = Vec::new();
            while !said.ends_with(b"PONG\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte)?;
                said.push(byte[0]);
            }
            Ok(())
        };
        // One that was killed meanwhile leads nothing any more.
        let _ = ask();
    }

    /// Kills one, as a crash would.
    pub fn kill(&mut self, n: usize) {
        let process = &mut self.servers[n].process;
        process.kill().expect("it can be killed");
        process.wait().expect("it can be waited for");
    }

    /// Starts one again on its data and waits until it has caught up.
    pub async fn start_again(&mut self, n: usize) {
        self.servers[n].process = launch(self.folder.path(), n);
        let what = format!("server n{n} is back");
        eventually(&what, AGREED, || async { self.look(n, "healthz").await }).await;
    }

    fn runs(&self, n: usize) -> bool {
        is_running(self.servers[n].process.id())
    }

    /// What a server says of itself; none when it is not well.
    async fn look(&self, n: usize, path: &str) -> Option<Value> {
        let url = format!("http://{}/{path}", self.servers[n].monitor);
        let answer = reqwest::get(url).await.ok()?.error_for_status().ok()?;
        answer.json().await.ok()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (n, server) in self.servers.iter_mut().enumerate() {
            let _ = server.process.kill();
            let _ = server.process.wait();
            if std::thread::panicking() {
                let log = fs::read_to_string(log_file(self.folder.path(), n)).unwrap_or_default();
                let start = log.len().saturating_sub(4000);
                eprintln!("--- server n{n} said last:\n{}", log.get(start..).unwrap_or_default());
            }
        }
    }
}

fn leader_in<'a>(seen: &'a Value, stream: &str) -> Option<&'a str> {
    let streams = seen["account_details"][0]["stream_detail"].as_array()?;
    let stream = streams.iter().find(|it| it["name"] == stream)?;
    stream["cluster"]["leader"].as_str()
}

fn config_file(folder: &Path, n: usize) -> std::path::PathBuf {
    folder.join(format!("n{n}.conf"))
}

fn log_file(folder: &Path, n: usize) -> std::path::PathBuf {
    folder.join(format!("n{n}.log"))
}

fn launch(folder: &Path, n: usize) -> Child {
    let log = File::options().create(true).append(true).open(log_file(folder, n));
    Command::new(program())
        .arg("--config")
        .arg(config_file(folder, n))
        .stdin(Stdio::null())
        .stderr(log.expect("a log file"))
        .spawn()
        .expect("nats-server starts")
}
