//! The store of secrets: sealed rows in, values out, for the HTTP API and for launches.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use workers::ports::{self, SecretsError, Unavailable};
use zeroize::Zeroizing;

use super::seal::{SealError, Sealer};
use crate::records::{self, NewSecret, Records, SecretChange, SecretRow};

/// A value of a secret. Shows itself to nobody by accident, and is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

/// The secrets of all workspaces.
#[derive(Clone, Debug)]
pub struct SecretStore {
    records: Records,
    sealer: Arc<Sealer>,
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
    /// The secrets in these records, sealed with this key.
    pub fn new(records: Records, sealer: Sealer) -> Self {
        Self { records, sealer: Arc::new(sealer) }
    }

    /// Keeps a new secret.
    pub async fn create(
        &self,
        workspace: &str,
        name: &str,
        description: Option<&str>,
        value: &SecretValue,
    ) -> Result<SecretRow> {
        let new = NewSecret {
            name: name.to_owned(),
            workspace: workspace.to_owned(),
            description: description.map(str::to_owned),
            sealed: self.seal(workspace, name, value)?,
        };
        Ok(self.records.secrets().insert(new).await?)
    }

    /// Replaces what is given of a secret.
    pub async fn update(
        &self,
        workspace: &str,
        name: &str,
        description: Option<&str>,
        value: Option<&SecretValue>,
    ) -> Result<SecretRow> {
        let sealed = value.map(|value| self.seal(workspace, name, value)).transpose()?;
        let change = SecretChange { description: description.map(str::to_owned), sealed };
        Ok(self.records.secrets().update(workspace, name, change).await?)
    }

    /// Opens a secret.
    pub async fn value(&self, workspace: &str, name: &str) -> Result<SecretValue> {
        let row = self.records.secrets().get(workspace, name).await?;
        let owner = owner(workspace, name);
        let failed = |source| SecretStoreError::Seal { secret: owner.clone(), source };
        let plain = self.sealer.open(&owner, &row.sealed).map_err(failed)?;
        let text = str::from_utf8(&plain).map_err(|_| failed(SealError::Damaged))?;
        Ok(SecretValue::new(text.to_owned()))
    }

    fn seal(&self, workspace: &str, name: &str, value: &SecretValue) -> Result<Vec<u8>> {
        let owner = owner(workspace, name);
        self.sealer
            .seal(&owner, value.reveal().as_bytes())
            .map_err(|source| SecretStoreError::Seal { secret: owner, source })
    }
}

fn owner(workspace: &str, name: &str) -> String {
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
