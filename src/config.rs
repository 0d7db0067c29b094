//! The platform's configuration: `errand.toml`, then `ERRAND__SECTION__KEY`, then flags.
//!
//! Every key stands once, in the sections below, with its meaning and its default; the example
//! file, `errand config show --platform` and the list of known keys are made from them. What a
//! client needs (contexts) is not here but in `client::context`.

mod layers;
mod section;
mod value;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

pub use layers::{Error, Overrides};
pub use value::Secret;

use workers::executor::process::confinement::{IdRange, Network, Wanted};
use workers::seats::Limits;

use section::sections;

sections! {
    /// Keys that stand above all sections.
    General "" {
        /// Address and port of the HTTP API; port 0 picks a free one. Any address but loopback is
        /// refused unless callers need tokens (`auth.required`).
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7740)),
        /// Whether web pages of any origin may call the API, and anybody by any host name, as by
        /// way of a proxy. Pages served from this machine may in any case; others could run
        /// commands here where nobody needs a token.
        allow_any_origin: bool = false,
        /// Where the platform keeps its data; `~/.local/share/errand` when absent.
        data_dir: Option<PathBuf> = None,
    }

    /// Who may call the API.
    Auth "auth" {
        /// Whether callers need a token, which `errand tokens create` makes, and may do what its
        /// roles say. Without it whoever reaches the API may do everything. The same for servers
        /// and workers. The API speaks plain HTTP: put a proxy that speaks TLS before an address
        /// that others reach.
        required: bool = false,
    }

    /// The queue. Without a url, `errand up` runs a nats-server of its own.
    Nats "nats" {
        /// `nats://host:port`, several separated by commas.
        url: Option<String> = None,
        /// The server's token.
        token: Option<Secret> = None,
        /// Who to be on a server that has users; `errand nats config` writes a configuration for
        /// one: `errand` for the platform, `errand-worker` for workers.
        user: Option<String> = None,
        /// The user's password.
        password: Option<Secret> = None,
        /// Copies that the queue keeps of each message, on as many servers: 1, 3 or 5. More than
        /// one takes a cluster. Streams that exist already keep what they have.
        replicas: u64 = 1,
    }

    /// The object store. Without an endpoint, `errand up` runs one of its own.
    Store "store" {
        /// `http(s)://host:port` of an S3 endpoint.
        endpoint: Option<String> = None,
        /// The bucket; made when it does not exist.
        bucket: String = "errand".to_owned(),
        /// Access key id. Without an endpoint, the platform's own store takes it and the next one,
        /// and else makes new ones at each start.
        access_key: Option<String> = None,
        /// Secret access key.
        secret_key: Option<Secret> = None,
        /// Region, for stores that care.
        region: String = "us-east-1".to_owned(),
    }

    /// The records.
    Database "database" {
        /// `postgres://user:password@host/database`; SQLite in the data directory when absent.
        url: Option<Secret> = None,
    }

    /// The worker of this process.
    Worker "worker" {
        /// Agents that run at the same time.
        slots: u64 = 4,
        /// A name in front of this place's own id, for people who read claims.
        place: Option<String> = None,
        /// Seconds between the first signal to an agent and the last: one whose end has come, by
        /// a cancel or a limit, is sent TERM, may save its work for so long, and is killed then,
        /// with everything that it started. Only when nothing of it is left has the job ended.
        grace_seconds: u64 = 10,
        /// Processes and threads that an agent may have at a time, where control groups can bound
        /// them; 0 for no bound.
        max_processes: u64 = 4096,
        /// Seconds that putting a job's working directory together may take.
        staging_seconds: u64 = 3600,
        /// Seconds that saving a job's results may take; the agent's own limit has no part in it.
        saving_seconds: u64 = 3600,
        /// What keeps agents from the platform's files and from each other: `user` (each run is
        /// another user of the machine; takes root), `landlock`, `none`, or `auto`: the first of
        /// these that can be had, but no secrets where that is none.
        sandbox: Wanted = Wanted::Auto,
        /// Which network agents see: `host`, the machine's, or `none`, a loopback of their own.
        network: Network = Network::Host,
        /// Where a worker process answers `GET /metrics`, and nothing else; any address but loopback
        /// is refused. Nowhere when absent: the API of a process that has one has it in any case.
        metrics_listen: Option<SocketAddr> = None,
        /// The users that runs are given, as the first one's number and how many there are.
        /// Platforms on one machine may have the same.
        agent_ids: IdRange = IdRange::default(),
    }

    /// Who may run a job's agent.
    Claims "claims" {
        /// Seconds without a sign of life after which another place takes a job over; 10 or more.
        /// A worker that is cut off from the queue for most of that loses its agents.
        lost_after_seconds: u64 = 900,
    }

    /// How workspaces share the slots: in turn, and of each no more jobs at once than this in the
    /// whole installation. The same for all processes.
    Fairness "fairness" {
        /// Jobs of one workspace that run at the same time; 0 for no limit.
        max_running: u64 = 0,
        /// The same for single workspaces, as `{team-a = 2, team-b = 0}`; as a variable
        /// `team-a=2,team-b=0`.
        workspaces: BTreeMap<String, u64> = BTreeMap::new(),
    }

    /// What the platform tells of itself.
    Telemetry "telemetry" {
        /// `http://host:port` of an OpenTelemetry collector that takes traces by OTLP over HTTP;
        /// the standard variables, as `OTEL_EXPORTER_OTLP_ENDPOINT`, win. None when absent.
        otlp_endpoint: Option<String> = None,
    }

    /// How long messages of finished jobs stay in the streams, and what was begun in the object
    /// store. Records and results stay until the job is deleted.
    Retention "retention" {
        /// Seconds after a job's end.
        finished_seconds: u64 = 3600,
        /// Finished jobs at most; beyond, the oldest go first.
        finished_jobs: u64 = 50_000,
        /// Seconds after which the object store is rid of an upload that nobody finished; longer
        /// than the longest upload takes.
        unfinished_seconds: u64 = 86_400,
        /// Seconds after which the object store is rid of bytes of files that neither a fileset
        /// nor a job that has yet to end names any more.
        unnamed_seconds: u64 = 86_400,
    }

    /// Sealing of secrets at rest.
    Secrets "secrets" {
        /// File with the key, 32 bytes in hexadecimal; `secret.key` in the data directory when
        /// absent, made at the first start.
        key_file: Option<PathBuf> = None,
        /// Whether the API answers the value of a secret to whoever asks; each time is logged.
        allow_access: bool = false,
    }

    /// What agents run with.
    AgentsJobs "agents.jobs" {
        /// Image of jobs that name none. Refused at the start when the profile runs no images.
        default_image: Option<String> = None,
        /// Directories with Fabric adapter descriptors, besides the usual ones.
        adapter_dirs: Vec<PathBuf> = Vec::new(),
        /// The Python that runs adapters written in Python; found on PATH when absent.
        adapter_python: Option<PathBuf> = None,
        /// The largest timeout_seconds that a job may ask for.
        max_timeout_seconds: u64 = 604_800,
        /// Bytes of a job's input, and of its context as JSON, at most; up to 16 MiB.
        max_input_bytes: u64 = 8_388_608,
    }

    /// What may follow an agent's success.
    Actions "actions" {
        /// Directory with a directory for each action that is a program; `actions` in the data
        /// directory when absent.
        directory: Option<PathBuf> = None,
    }

    /// The action agents.webhook.
    ActionsWebhook "actions.webhook" {
        /// Whether it may reach addresses that are not public: loopback and private networks.
        allow_private_addresses: bool = false,
    }
}

/// The jobs that run are named in one message.
const MOST_RUNNING: u64 = 1000;

/// Fewer processes and threads leave nothing for an agent, more the kernel does not number.
const PROCESSES: RangeInclusive<u64> = 32..=4_194_304;

/// The effective configuration.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "each section says what it is for")]
pub struct Config {
    pub general: General,
    pub auth: Auth,
    pub nats: Nats,
    pub store: Store,
    pub database: Database,
    pub worker: Worker,
    pub claims: Claims,
    pub fairness: Fairness,
    pub telemetry: Telemetry,
    pub retention: Retention,
    pub secrets: Secrets,
    pub agents_jobs: AgentsJobs,
    pub actions: Actions,
    pub actions_webhook: ActionsWebhook,
}

impl Config {
    /// Reads the layers and checks the outcome.
    pub fn load(overrides: &Overrides) -> Result<Self, Error> {
        let config = layers::load(overrides, &|name| std::env::var(name).ok(), std::env::vars())?;
        config.check()?;
        Ok(config)
    }

    /// The directory of the platform's data.
    pub fn data_dir(&self) -> PathBuf {
        self.general.data_dir.clone().unwrap_or_else(|| home().join(".local/share/errand"))
    }

    /// The file with the key that seals secrets.
    pub fn key_file(&self) -> PathBuf {
        self.secrets.key_file.clone().unwrap_or_else(|| self.data_dir().join("secret.key"))
    }

    /// How many jobs of a workspace run at once.
    pub fn running_limits(&self) -> Limits {
        Limits { each: self.fairness.max_running, own: self.fairness.workspaces.clone() }
    }

    /// The directory of the actions that are programs.
    pub fn actions_dir(&self) -> PathBuf {
        self.actions.directory.clone().unwrap_or_else(|| self.data_dir().join("actions"))
    }

    /// The database: the configured one, else SQLite in the data directory.
    pub fn database_url(&self) -> String {
        match &self.database.url {
            Some(url) => url.expose().to_owned(),
            None => format!("sqlite://{}", self.data_dir().join("errand.db").display()),
        }
    }

    /// The commented file with every key at its default.
    pub fn example() -> String {
        let mut text = String::from(
            "# The platform's configuration: every key with its default. A key that is commented\n\
             # out has no default. Environment variables win over this file and flags over both:\n\
             # ERRAND__STORE__BUCKET=other errand up --listen 127.0.0.1:0\n",
        );
        for section in Self::default().sections() {
            section.write_example(&mut text);
        }
        text
    }

    /// The effective values as TOML, secrets removed.
    pub fn show(&self) -> String {
        let mut text = String::new();
        for section in self.sections() {
            section.write_values(&mut text);
        }
        text
    }

    fn check(&self) -> Result<(), Error> {
        let bad = |key, reason: &str| Err(Error::Invalid { key, reason: reason.to_owned() });
        if let Some(listen) = self.worker.metrics_listen
            && !listen.ip().is_loopback()
        {
            let reason = format!("{listen} can be reached from outside; use 127.0.0.1");
            return bad("worker.metrics_listen", &reason);
        }
        let listen = self.general.listen;
        if !listen.ip().is_loopback() && !self.auth.required {
            let reason = format!(
                "{listen} can be reached from outside, and only loopback addresses are served \
                 without authentication; use 127.0.0.1, or set auth.required and make tokens with \
                 `errand tokens create`"
            );
            return bad("listen", &reason);
        }
        match &self.nats {
            Nats { user: Some(_), password: None, .. } => {
                return bad("nats.user", "needs nats.password beside it");
            }
            Nats { user: None, password: Some(_), .. } => {
                return bad("nats.password", "needs nats.user beside it");
            }
            Nats { user: Some(_), token: Some(_), .. } => {
                return bad("nats.token", "a server has a token or users; give one of the two");
            }
            Nats { user: Some(_), url: None, .. } => {
                let reason = "the platform's own nats-server has no users; name one by nats.url";
                return bad("nats.user", reason);
            }
            _ => {}
        }
        let replicas = self.nats.replicas;
        if ![1, 3, 5].contains(&replicas) {
            return bad("nats.replicas", &format!("expected 1, 3 or 5, got {replicas}"));
        }
        if replicas > 1 && self.nats.url.is_none() {
            let reason = format!(
                "{replicas} copies need a cluster, named by nats.url; the platform's own \
                 nats-server is one"
            );
            return bad("nats.replicas", &reason);
        }
        let slots = self.worker.slots;
        if !(1..=4096).contains(&slots) {
            return bad("worker.slots", &format!("expected 1 to 4096, got {slots}"));
        }
        for (key, seconds) in [
            ("worker.staging_seconds", self.worker.staging_seconds),
            ("worker.saving_seconds", self.worker.saving_seconds),
            ("agents.jobs.max_timeout_seconds", self.agents_jobs.max_timeout_seconds),
            ("retention.unfinished_seconds", self.retention.unfinished_seconds),
        ] {
            if seconds == 0 {
                return bad(key, "expected 1 or more, got 0");
            }
        }
        let grace = self.worker.grace_seconds;
        if grace > 86_400 {
            return bad("worker.grace_seconds", &format!("expected 0 to 86400, got {grace}"));
        }
        let most = self.worker.max_processes;
        if most != 0 && !PROCESSES.contains(&most) {
            let (least, largest) = (PROCESSES.start(), PROCESSES.end());
            let reason = format!(
                "expected 0 (no bound) or {least} to {largest}, got {most}; the runner and the \
                 adapter count too"
            );
            return bad("worker.max_processes", &reason);
        }
        let limits = self.fairness.workspaces.values().chain([&self.fairness.max_running]);
        if let Some(most) = limits.max().filter(|most| **most > MOST_RUNNING) {
            let reason = format!("expected 0 (no limit) to {MOST_RUNNING}, got {most}");
            return bad("fairness.max_running", &reason);
        }
        let lost_after = self.claims.lost_after_seconds;
        if lost_after < 10 {
            let reason = format!("expected 10 or more, got {lost_after}");
            return bad("claims.lost_after_seconds", &reason);
        }
        let most = self.agents_jobs.max_input_bytes;
        if !(1..=16 * 1024 * 1024).contains(&most) {
            let reason = format!("expected 1 to 16777216, got {most}");
            return bad("agents.jobs.max_input_bytes", &reason);
        }
        let keys = (&self.store.access_key, &self.store.secret_key);
        if let Some(endpoint) = &self.store.endpoint
            && !matches!(keys, (Some(_), Some(_)))
        {
            let reason =
                format!("'{endpoint}' needs store.access_key and store.secret_key beside it");
            return bad("store.endpoint", &reason);
        }
        Ok(())
    }
}

/// The user's home directory; the root directory for a user that has none.
pub fn home() -> PathBuf {
    std::env::home_dir().unwrap_or_else(|| Path::new("/").to_owned())
}

#[cfg(test)]
mod tests;
