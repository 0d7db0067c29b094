//! Environments, environment specs and compute specs: three kinds of named bodies.
//!
//! Bodies are kept as they were given; what they mean and whether a job can have them, the
//! catalog knows. Nothing here follows the references in them.

use futures_util::FutureExt;
use jiff::Timestamp;
use serde_json::Value;

use super::named::Named;
use super::statement::{Row, assembled};
use super::{Listed, Records, Result, Select, fresh_id};

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentKind {
    /// An environment: a spec and a compute spec, each a reference or inline.
    Environment,
    /// What merges into an agent's configuration.
    EnvironmentSpec,
    /// What a job asks of the machine.
    ComputeSpec,
}

/// One that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// What was given, without the name.
    pub body: Value,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// One to be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEnvironment {
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// What was given, without the name.
    pub body: Value,
}

/// Those of one kind.
pub struct Environments<'r> {
    pub(super) records: &'r Records,
    pub(super) kind: EnvironmentKind,
}

impl EnvironmentKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Environment, Self::EnvironmentSpec, Self::ComputeSpec];

    /// What a collection of them is called.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Environment => "environments",
            Self::EnvironmentSpec => "environment-specs",
            Self::ComputeSpec => "compute-specs",
        }
    }

    const fn rows(self) -> Named<Environment> {
        let table = match self {
            Self::Environment => "environments",
            Self::EnvironmentSpec => "environment_specs",
            Self::ComputeSpec => "compute_specs",
        };
        Named { table, read }
    }

    const fn id_prefix(self) -> &'static str {
        match self {
            Self::Environment => "agent-environment",
            Self::EnvironmentSpec => "agent-environment-spec",
            Self::ComputeSpec => "agent-compute-spec",
        }
    }
}

impl Environments<'_> {
    /// Keeps a new one.
    pub async fn insert(&self, new: NewEnvironment) -> Result<Environment> {
        self.records
            .write((self.kind, new), |(kind, new), db| {
                assembled(format!(
                    "INSERT INTO {} (id, name, workspace, body, created_at, updated_at)
                     VALUES ($1, $2, $3, $4, $5, $5) RETURNING *",
                    kind.rows().table
                ))
                .text(&fresh_id(kind.id_prefix()))
                .text(&new.name)
                .text(&new.workspace)
                .json(&new.body)
                .time(Timestamp::now())
                .row_as(db, read)
                .boxed()
            })
            .await
    }

    /// Finds one.
    pub async fn get(&self, workspace: &str, name: &str) -> Result<Environment> {
        self.kind.rows().get(self.records.reads(), workspace, name).await
    }

    /// Those of a workspace's, or of all, that are asked for.
    pub async fn list(
        &self,
        workspace: Option<&str>,
        asked: &Select,
    ) -> Result<Listed<Environment>> {
        self.kind.rows().select(self.records.reads(), workspace, asked).await
    }

    /// Removes one. What refers to it stays, and so do the snapshots of jobs that had it.
    pub async fn delete(&self, workspace: &str, name: &str) -> Result<()> {
        self.kind.rows().delete(self.records, workspace, name).await
    }
}

fn read(row: &Row) -> Result<Environment> {
    Ok(Environment {
        id: row.text("id")?,
        name: row.text("name")?,
        workspace: row.text("workspace")?,
        body: row.json("body")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
