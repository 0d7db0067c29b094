//! `errand doctor`: looks at everything that the platform needs and says how to mend it.
//!
//! Nothing here changes anything that is not put back; it may be run beside a running platform.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use streams::jetstream::JetStream;
use streams::topology::Limits;
use workers::executor::cgroup;
use workers::executor::process::confinement::Kind;
use workers::store::Store;

use crate::config::{Config, Overrides};
use crate::records::Records;
use crate::secrets::{Keyring, SecretStore};
use crate::{serve, up};

/// How long one check may take.
const LIMIT: Duration = Duration::from_secs(10);

/// What one check found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// What is there.
    pub found: String,
    /// What to do; `None` when all is well.
    pub mend: Option<String>,
}

type Checked = Result<String, (String, String)>;

/// Makes every check.
pub async fn examine(overrides: &Overrides) -> Vec<Finding> {
    let config = match Config::load(overrides) {
        Ok(config) => config,
        Err(error) => {
            let mend = "mend the file or variable that it names".to_owned();
            return vec![finding("configuration", Err((error.to_string(), mend)))];
        }
    };
    let running = up::running(&config.data_dir()).ok();
    let nats = running.as_ref().map(up::Ready::connect).or_else(|| serve::configured_nats(&config));
    let objects =
        running.as_ref().map(up::Ready::store).or_else(|| serve::configured_store(&config));
    let mut findings = vec![
        finding("configuration", Ok("valid".to_owned())),
        finding("data directory", data_dir(&config.data_dir())),
        finding("runner", runner()),
        finding("control groups", Ok(cgroup::detect().to_string())),
        finding("sandbox", sandbox(&config)),
        finding("post-run actions", actions(&config)),
    ];
    findings.push(match nats {
        Some(connect) => finding("nats", in_time(queue(connect, serve::limits(&config))).await),
        None => finding("nats-server", nats_program()),
    });
    if let Some(objects) = objects {
        findings.push(finding("object store", in_time(store(objects)).await));
    }
    if config.database.url.is_some() || config.data_dir().join("errand.db").exists() {
        findings.push(finding("database", in_time(database(config.database_url())).await));
        if config.key_file().exists() {
            findings.push(finding("secrets", in_time(secrets(&config)).await));
        }
    }
    findings
}

fn finding(check: &'static str, checked: Checked) -> Finding {
    match checked {
        Ok(found) => Finding { check, found, mend: None },
        Err((found, mend)) => Finding { check, found, mend: Some(mend) },
    }
}

async fn in_time(check: impl Future<Output = Checked>) -> Checked {
    tokio::time::timeout(LIMIT, check).await.unwrap_or_else(|_| {
        let found = format!("no answer within {} s", LIMIT.as_secs());
        Err((found, "check that it runs and that no firewall is between".to_owned()))
    })
}

fn data_dir(dir: &Path) -> Checked {
    let mend = "choose a directory that you may write to with --data-dir or data_dir".to_owned();
    let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let writable = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK);
    if let Err(error) = writable {
        return Err((format!("{} cannot be written: {error}", existing.display()), mend));
    }
    match rustix::fs::statvfs(existing) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize) / (1024 * 1024);
            let found = format!("{}, {free} MiB free", dir.display());
            if free < 512 { Err((found, "free some space".to_owned())) } else { Ok(found) }
        }
        Err(error) => Err((format!("{}: {error}", existing.display()), mend)),
    }
}

fn runner() -> Checked {
    let program = serve::runner_program();
    if program.is_file() {
        return Ok(program.display().to_string());
    }
    let mend = "build it (cargo build -p errand-runner) and put it beside errand".to_owned();
    Err((format!("{} does not exist", program.display()), mend))
}

fn sandbox(config: &Config) -> Checked {
    let confinement = serve::confinement(config).map_err(|error| {
        let mend = "change worker.sandbox or worker.network, or what it asks for".to_owned();
        (error.to_string(), mend)
    })?;
    match confinement.secrets_refused() {
        None => {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
            Ok(format!("{confinement}{}", note(&confinement.kind, &release)))
        }
        Some(refused) => Err((confinement.to_string(), refused)),
    }
}

/// What the sandbox does not do, where one would think that it did: only since Linux 6.12 can
/// Landlock keep an agent from sending signals to other processes of its user.
fn note(kind: &Kind, release: &str) -> &'static str {
    let mut numbers = release.split(|it: char| !it.is_ascii_digit()).map(str::parse::<u32>);
    let version = (numbers.next().and_then(Result::ok), numbers.next().and_then(Result::ok));
    match kind {
        Kind::Landlock if version < (Some(6), Some(12)) => {
            "; before Linux 6.12 it does not keep agents from ending processes of the platform: \
             run the worker as root, or use a later kernel"
        }
        _ => "",
    }
}

fn actions(config: &Config) -> Checked {
    match serve::installed_actions(config) {
        Ok(actions) => {
            let kinds: Vec<_> = actions.installed().map(|action| action.kind.as_str()).collect();
            Ok(kinds.join(", "))
        }
        Err(error) => Err((error.to_string(), "mend the manifest, or remove it".to_owned())),
    }
}

fn nats_program() -> Checked {
    match up::nats::find() {
        Ok(found) => Ok(format!("{} {}", found.program.display(), found.version)),
        Err(error) => Err((error.to_string(), up::nats::INSTALL.to_owned())),
    }
}

async fn queue(connect: streams::jetstream::Connect, limits: Limits) -> Checked {
    let mend = format!(
        "start the server at {}, with JetStream, or mend nats.url and nats.token",
        connect.url
    );
    match JetStream::connect(&connect, limits).await {
        Err(error @ streams::broker::Error::Refused { .. }) => {
            let mend = "mend nats.user, nats.password or nats.token, or what the user may do: \
                        errand nats config writes it";
            Err((error.to_string(), mend.to_owned()))
        }
        Err(error) => Err((error.to_string(), mend)),
        Ok((_, drift)) if drift.is_empty() => {
            Ok(format!("{}, all streams as they should be", connect.url))
        }
        Ok((_, drift)) => {
            let drift: Vec<_> = drift.iter().map(ToString::to_string).collect();
            Err((drift.join("; "), "change the settings back, see errand topology".to_owned()))
        }
    }
}

/// Writes, reads and removes an object.
async fn store(config: workers::store::StoreConfig) -> Checked {
    let mend = format!("check store.endpoint ({}), the bucket and the keys", config.endpoint);
    let key = format!("probes/{}", uuid::Uuid::new_v4());
    let store = Store::new(&config);
    let probe = async {
        store.ensure_bucket().await?;
        let probe = store.put(&key, Bytes::from_static(b"probe")).await?;
        let read = store.read(&probe).await?;
        store.delete(&key).await?;
        Ok::<_, workers::store::Error>(read)
    };
    match probe.await {
        Ok(Some(read)) if read == b"probe".as_slice() => Ok(config.endpoint),
        Ok(_) => Err(("an object that was written is not there".to_owned(), mend)),
        Err(error) => Err((error.to_string(), mend)),
    }
}

async fn database(url: String) -> Checked {
    match Records::connect(&url).await {
        Ok(records) => {
            records.close().await;
            Ok("opened".to_owned())
        }
        Err(error) => {
            Err((error.to_string(), "check database.url, or the file's owner".to_owned()))
        }
    }
}

/// Whether there is a key for each secret.
async fn secrets(config: &Config) -> Checked {
    let mend = || format!("restore the key file {} from a backup", config.key_file().display());
    let keyring = Keyring::open(&config.key_file()).map_err(|error| (error.to_string(), mend()))?;
    let records = Records::connect(&config.database_url()).await;
    let records = records.map_err(|error| (error.to_string(), "mend the database".to_owned()))?;
    let checked = SecretStore::new(records.clone(), keyring).check_keys().await;
    records.close().await;
    match checked {
        Ok(()) => Ok("there is a key for each".to_owned()),
        Err(error) => Err((error.to_string(), mend())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_landlock_that_keeps_no_signals_is_told() {
        for release in ["6.8.0-45-generic", "5.15.0", "6", ""] {
            assert!(note(&Kind::Landlock, release).contains("Linux 6.12"), "{release}");
            assert_eq!(note(&Kind::Waived, release), "");
        }
        for release in ["6.12.0-1-amd64\n", "6.12", "7.0.1"] {
            assert_eq!(note(&Kind::Landlock, release), "", "{release}");
        }
    }
}
