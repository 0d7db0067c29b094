//! The store of secrets: sealed rows in, values out, for the HTTP API and for launches.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use workers::ports::{self, SecretsError, Unavailable};
use zeroize::Zeroizing;

use super::keyring::{Keyring, Keys};
use super::rotation;
use super::seal::{HEADER_BYTES, SealError};
use crate::records::{self, NewSecret, Records, SecretChange, SecretRow};

/// Secrets that are read at once.
pub(super) const PAGE: u32 = 100;

/// A value of a secret. Shows itself to nobody by accident, and is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

/// The secrets of all workspaces.
#[derive(Clone, Debug)]
pub struct SecretStore {
    records: Records,
    keyring: Arc<Keyring>,
}

/// Why a secret could not be kept or opened.
#[derive(Debug, thiserror::Error)]
pub enum SecretStoreError {
    /// The records did not do it.
    #[error(transparent)]
    Records(#[from] records::Error),
    /// It cannot be opened.
    #[error("secret '{secret}': {source}")]
    Seal {
        /// `workspace/name`.
        secret: String,
        /// Why.
        source: SealError,
    },
}

type Result<T> = std::result::Result<T, SecretStoreError>;

impl SecretValue {
    /// Takes a value into custody.
    pub fn new(value: String) -> Self {
        Self(Zeroizing::new(value))
    }

    /// The value itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

impl SecretStore {
    /// The secrets in these records, sealed with these keys.
    pub fn new(records: Records, keyring: Keyring) -> Self {
        Self { records, keyring: Arc::new(keyring) }
    }

    /// Looks whether there is a key for each secret. The first one without is the error.
    pub async fn check_keys(&self) -> Result<()> {
        let keys = self.keyring.keys();
        let strange = self.records.secrets().sealed_otherwise(&keys.headers(), "", 1).await?;
        strange.first().map_or(Ok(()), |row| open(&keys, row).map(drop))
    }

    /// The same for a platform that starts: it can do without the keys of some secrets, but not
    /// of all, which means that the key file is another's.
    pub async fn check_some_keys(&self) -> Result<()> {
        let error = match self.check_keys().await {
            Err(error @ SecretStoreError::Seal { .. }) => error,
            checked => return checked,
        };
        let headers = self.keyring.keys().headers();
        // No seal begins so: all secrets are looked at.
        let nobody = [[0; HEADER_BYTES]];
        let (mut after, mut count, mut without) = (String::new(), 0_u64, 0_u64);
        loop {
            let rows = self.records.secrets().sealed_otherwise(&nobody, &after, PAGE).await?;
            let Some(last) = rows.last() else { break };
            after.clone_from(&last.id);
            let strange = |row: &&SecretRow| !headers.iter().any(|it| row.sealed.starts_with(it));
            count += rows.len() as u64;
            without += rows.iter().filter(strange).count() as u64;
        }
        if without == count {
            return Err(error);
        }
        tracing::warn!(%error, secrets.count = count, secrets.without_key = without,
            "some secrets cannot be opened");
        Ok(())
    }

    /// Keeps a new secret.
    pub async fn create(
        &self,
        workspace: &str,
        name: &str,
        description: Option<&str>,
        value: &SecretValue,
    ) -> Result<SecretRow> {
        let keys = self.sealing_keys(workspace, name)?;
        let new = NewSecret {
            name: name.to_owned(),
            workspace: workspace.to_owned(),
            description: description.map(str::to_owned),
            sealed: seal(&keys, workspace, name, value)?,
        };
        let row = self.records.secrets().insert(new).await?;
        self.keep_up(&keys, &row).await?;
        Ok(row)
    }

    /// Replaces what is given of a secret.
    pub async fn update(
        &self,
        workspace: &str,
        name: &str,
        description: Option<&str>,
        value: Option<&SecretValue>,
    ) -> Result<SecretRow> {
        let keys = value.map(|_| self.sealing_keys(workspace, name)).transpose()?;
        let keys = keys.unwrap_or_else(|| self.keyring.keys());
        let sealed = value.map(|value| seal(&keys, workspace, name, value)).transpose()?;
        let change = SecretChange { description: description.map(str::to_owned), sealed };
        let row = self.records.secrets().update(workspace, name, change).await?;
        self.keep_up(&keys, &row).await?;
        Ok(row)
    }

    /// Opens a secret.
    pub async fn value(&self, workspace: &str, name: &str) -> Result<SecretValue> {
        let row = self.records.secrets().get(workspace, name).await?;
        open(&self.keyring.keys(), &row)
    }

    fn sealing_keys(&self, workspace: &str, name: &str) -> Result<Arc<Keys>> {
        let secret = owner(workspace, name);
        self.keyring.sealing_keys().map_err(|source| SecretStoreError::Seal { secret, source })
    }

    /// A rotation may have begun while a value was sealed and kept, and may not have seen it.
    async fn keep_up(&self, sealed_with: &Keys, row: &SecretRow) -> Result<()> {
        let now = self.keyring.keys();
        if now.present() != sealed_with.present() {
            let both = Keys(now.0.iter().chain(&sealed_with.0).cloned().collect());
            rotation::reseal(&self.records, &both, row).await?;
        }
        Ok(())
    }
}

fn seal(keys: &Keys, workspace: &str, name: &str, value: &SecretValue) -> Result<Vec<u8>> {
    let owner = owner(workspace, name);
    keys.seal(&owner, value.reveal().as_bytes())
        .map_err(|source| SecretStoreError::Seal { secret: owner, source })
}

fn open(keys: &Keys, row: &SecretRow) -> Result<SecretValue> {
    let owner = owner(&row.workspace, &row.name);
    let plain = keys.open(&owner, &row.sealed).and_then(|plain| {
        let text = str::from_utf8(&plain).map_err(|_| SealError::Damaged)?;
        Ok(SecretValue::new(text.to_owned()))
    });
    plain.map_err(|source| SecretStoreError::Seal { secret: owner, source })
}

/// What a seal is bound to.
pub(super) fn owner(workspace: &str, name: &str) -> String {
    format!("{workspace}/{name}")
}

#[async_trait]
impl ports::Secrets for SecretStore {
    async fn open(
        &self,
        workspace: &str,
        references: &BTreeMap<String, String>,
    ) -> std::result::Result<BTreeMap<String, String>, SecretsError> {
        let mut values = BTreeMap::new();
        for (variable, reference) in references {
            let (of, name) = reference.split_once('/').unwrap_or((workspace, reference));
            let value = match self.value(of, name).await {
                Ok(value) => value.reveal().to_owned(),
                Err(SecretStoreError::Records(records::Error::NotFound)) => {
                    let (variable, reference) = (variable.clone(), reference.clone());
                    return Err(SecretsError::Missing { variable, reference });
                }
                Err(error) => return Err(Unavailable(error.to_string()).into()),
            };
            values.insert(variable.clone(), value);
        }
        Ok(values)
    }
}
