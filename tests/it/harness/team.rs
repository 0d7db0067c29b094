//! The parts apart, on a queue with a user for each workspace, as `errand nats config` sets it up.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use streams::jetstream::{Connect, JetStream, Login};
use streams::topology::Limits;
use tempfile::TempDir;

use super::{Database, HERE, Nats, Part, Parts, Plain, Platform};

/// Every step.
const STEPS: &str = "resolve,stage,invoke,act,archive";

/// What the parts and the clients share.
pub struct Team {
    pub parts: Parts,
    pub nats: Nats,
    pub folder: TempDir,
}

impl Team {
    /// A queue for these workspaces; no part runs yet.
    pub async fn of(workspaces: &[&str], database: Database) -> Self {
        let folder = TempDir::new().expect("a temporary directory");
        let configured = Command::new(env!("CARGO_BIN_EXE_errand"))
            .args(["nats", "config"])
            .args(workspaces)
            .args(["--publish", "events.>", "--output"])
            .arg(folder.path())
            .env("ERRAND__DATA_DIR", folder.path().join("none"))
            .output()
            .expect("errand runs");
        assert!(configured.status.success(), "{configured:?}");
        let nats = Nats::configured(folder.path().join("nats-server.conf"));
        let lender = Platform::start().await;
        let (endpoint, queue) = (lender.store(), (nats.url().await, Limits::default()));
        let mut team = Self { parts: Parts::of(lender, &endpoint, queue, database), nats, folder };
        team.parts.set("nats.user", "errand");
        team.parts.set("nats.password", team.password("errand"));
        team
    }

    /// A user's password.
    pub fn password(&self, user: &str) -> String {
        let file = self.folder.path().join(format!("{user}.password"));
        fs::read_to_string(&file).expect("each user has a file").trim().to_owned()
    }

    /// A worker with the rights of one, and further keys of the configuration.
    pub fn worker(&self) -> Part {
        let password = self.password("errand-worker");
        let own = [("nats.user", "errand-worker"), ("nats.password", &password)];
        self.parts.worker_at(HERE, STEPS, &own)
    }

    /// A client that knows nothing of us.
    pub async fn client(&self, user: &str) -> Plain {
        let password = self.password(user);
        let connected = Plain::connect(&self.nats.url().await, Some((user, &password)));
        connected.expect("the server lets it in")
    }

    /// How the platform connects as some user.
    pub async fn login(&self, user: &str) -> Connect {
        let login = Login { user: user.to_owned(), password: self.password(user) };
        let (url, name) = (self.nats.url().await, "test".to_owned());
        Connect { url, login: Some(login), name, ..Connect::default() }
    }

    /// A connection of the platform's own kind.
    pub async fn broker(&self, user: &str) -> Arc<JetStream> {
        let connected = JetStream::connect(&self.login(user).await, Limits::default()).await;
        Arc::new(connected.expect("nats answers").0)
    }
}
