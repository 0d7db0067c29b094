//! A nats-server for many teams: its configuration, with a user for each kind of process and for
//! each workspace. What a user may do is `streams::rights`; here it is written down.
//!
//! Each workspace is an account of its own, which takes from the platform's what is its own and
//! nothing else. That is more than permissions: the server answers a request wherever it says, so
//! in an account that is shared any user could have an answer stored as another's fact.

mod passwords;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;
use streams::rights::{self, Rights};
use streams::subject;

use crate::up::nats::MAX_FILE_STORE;

pub use passwords::Passwords;

/// The account of the platform, in which the streams are.
const ACCOUNT: &str = "ERRAND";

/// What `errand serve` and `errand up` are: the one user that makes streams, and the one that
/// deletes and purges.
pub const PLATFORM: &str = "errand";

/// What `errand worker` is.
pub const WORKER: &str = "errand-worker";

/// Bytes of a message at most; a submission may have as many.
const MAX_PAYLOAD: u64 = 1024 * 1024;

/// What the clients of one workspace may have: connections, and subscriptions.
const MAX_CONNECTIONS: u64 = 100;
const MAX_SUBSCRIPTIONS: u64 = 1000;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of it cannot be read or written.
    #[error("cannot {act} {}: {reason}", path.display())]
    File {
        /// What was tried.
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
    /// A password's file holds something else.
    #[error("{} holds no password of 64 hexadecimal digits; remove it or rotate it", .0.display())]
    Password(PathBuf),
    /// A user that is not in the configuration cannot be given another password.
    #[error("there is no user '{0}' to rotate; its workspace must be named too")]
    NoUser(String),
}

/// The name of a workspace's user, and of its account.
pub fn workspace_user(workspace: &str) -> String {
    format!("workspace-{}", subject::escape(workspace))
}

/// Who uses the server.
#[derive(Clone, Debug, Default)]
pub struct Users {
    workspaces: BTreeSet<String>,
    /// Subjects that post-run actions may publish to.
    publish: Vec<String>,
}

impl Users {
    /// The platform's processes and the clients of these workspaces.
    pub fn of(workspaces: impl IntoIterator<Item = String>, publish: Vec<String>) -> Self {
        Self { workspaces: workspaces.into_iter().collect(), publish }
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        let own = [PLATFORM, WORKER].map(str::to_owned);
        own.into_iter().chain(self.workspaces.iter().map(|it| workspace_user(it))).collect()
    }

    /// The accounts, as a part of a server's configuration.
    pub fn accounts(&self, passwords: &Passwords) -> String {
        let mut text = String::from(
            "# Written by `errand nats config`, which writes this file anew each time: change what it\n\
             # was told instead, then `nats-server --signal reload`. Passwords are random, and each is\n\
             # in a file of its own.\n\
             accounts {\n",
        );
        self.platform(&mut text, passwords);
        for workspace in &self.workspaces {
            put_workspace(&mut text, workspace, passwords);
        }
        text.push_str("}\n");
        text
    }

    fn platform(&self, text: &mut String, passwords: &Passwords) {
        put(text, 1, &format!("{} {{", json!(ACCOUNT)));
        put(text, 2, "jetstream: enabled");
        put(text, 2, "users: [");
        put(text, 3, "# errand serve: makes streams, deletes and purges; nobody else does");
        put_user(text, PLATFORM, passwords, None);
        put(text, 3, "# errand worker: makes every fact but the first; removes nothing but holds");
        let rights = rights::of_worker(WORKER, &self.publish);
        put_user(text, WORKER, passwords, Some(&rights));
        put(text, 2, "]");
        put(text, 2, "exports: [");
        for workspace in &self.workspaces {
            let account = json!([workspace_user(workspace)]);
            for subject in rights::services(workspace) {
                let subject = json!(subject);
                put(text, 3, &format!("{{service: {subject}, accounts: {account}}}"));
            }
            for subject in rights::news(workspace) {
                let subject = json!(subject);
                put(text, 3, &format!("{{stream: {subject}, accounts: {account}}}"));
            }
        }
        put(text, 2, "]");
        put(text, 1, "}");
    }
}

fn put_workspace(text: &mut String, workspace: &str, passwords: &Passwords) {
    let user = workspace_user(workspace);
    put(text, 1, &format!("{} {{", json!(user)));
    put(text, 2, "users: [");
    put_user(text, &user, passwords, Some(&rights::of_workspace(workspace)));
    put(text, 2, "]");
    put(text, 2, "imports: [");
    let from = json!(ACCOUNT);
    for subject in rights::services(workspace) {
        put(text, 3, &format!("{{service: {{account: {from}, subject: {}}}}}", json!(subject)));
    }
    for subject in rights::news(workspace) {
        put(text, 3, &format!("{{stream: {{account: {from}, subject: {}}}}}", json!(subject)));
    }
    put(text, 2, "]");
    let limits = format!(
        "limits {{max_connections: {MAX_CONNECTIONS}, max_subscriptions: {MAX_SUBSCRIPTIONS}, \
         max_payload: {MAX_PAYLOAD}}}"
    );
    put(text, 2, &limits);
    put(text, 1, "}");
}

/// Without rights, a user may do everything in its account.
fn put_user(text: &mut String, name: &str, passwords: &Passwords, rights: Option<&Rights>) {
    let (user, password) = (json!(name), json!(passwords.hash(name)));
    let Some(Rights { publish, subscribe }) = rights else {
        return put(text, 3, &format!("{{user: {user}, password: {password}}}"));
    };
    put(text, 3, &format!("{{user: {user}, password: {password}, permissions: {{"));
    for (act, subjects) in [("publish", publish), ("subscribe", subscribe)] {
        put(text, 4, &format!("{act}: {{allow: ["));
        for subject in subjects {
            put(text, 5, &json!(subject).to_string());
        }
        put(text, 4, "]}");
    }
    put(text, 3, "}}");
}

fn put(text: &mut String, depth: usize, line: &str) {
    // A string takes everything.
    let _ = writeln!(text, "{:1$}{line}", "", depth * 2);
}

/// The rest of a server's configuration: written once, and its owner's from then on.
pub fn server(listen: SocketAddr, store: &Path) -> String {
    let (listen, store) = (json!(listen.to_string()), json!(store.display().to_string()));
    format!(
        "# Written once by `errand nats config`, and yours from then on: certificates (tls), a\n\
         # cluster, another address. Without tls, passwords can be read on the way.\n\
         listen: {listen}\n\
         max_payload: {MAX_PAYLOAD}\n\
         jetstream {{ store_dir: {store}, sync_interval: 10s, max_file_store: {MAX_FILE_STORE} }}\n"
    )
}

#[cfg(test)]
mod tests;
