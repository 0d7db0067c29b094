//! Registered agents. Configs are kept as they are given: what is valid, the catalog knows.

use futures_util::FutureExt;
use jiff::Timestamp;
use serde_json::Value;

use super::named::Named;
use super::statement::{Row, sql};
use super::{Listed, Records, Result, Select, fresh_id};

/// A registered agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// Its project.
    pub project: Option<String>,
    /// What it does.
    pub description: String,
    /// Its configuration.
    pub config: Value,
    /// The configuration's format.
    pub config_format: String,
    /// What a job's context must look like.
    pub context_schema: Option<Value>,
    /// What it is asked when a job does not say.
    pub default_input: Option<String>,
    /// The post-run actions that it may name.
    pub post_run_actions: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// An agent to be registered.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAgent {
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// Its project.
    pub project: Option<String>,
    /// What it does.
    pub description: String,
    /// Its configuration.
    pub config: Value,
    /// The configuration's format.
    pub config_format: String,
    /// What a job's context must look like.
    pub context_schema: Option<Value>,
    /// What it is asked when a job does not say.
    pub default_input: Option<String>,
    /// The post-run actions that it may name.
    pub post_run_actions: Vec<String>,
}

const AGENTS: Named<Agent> = Named { table: "agents", read };

/// The registered agents.
pub struct Agents<'r>(pub(super) &'r Records);

impl Agents<'_> {
    /// Registers one.
    pub async fn insert(&self, new: NewAgent) -> Result<Agent> {
        self.0
            .write(new, |new, db| {
                sql("INSERT INTO agents (id, name, workspace, project, description, config,
                     config_format, context_schema, default_input, post_run_actions,
                     created_at, updated_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11) RETURNING *")
                .text(&fresh_id("agent"))
                .text(&new.name)
                .text(&new.workspace)
                .optional_text(new.project.as_deref())
                .text(&new.description)
                .json(&new.config)
                .text(&new.config_format)
                .optional_json(new.context_schema.as_ref())
                .optional_text(new.default_input.as_deref())
                .json(&new.post_run_actions)
                .time(Timestamp::now())
                .row_as(db, read)
                .boxed()
            })
            .await
    }

    /// Finds one.
    pub async fn get(&self, workspace: &str, name: &str) -> Result<Agent> {
        AGENTS.get(self.0.reads(), workspace, name).await
    }

    /// Those of a workspace's, or of all, that are asked for.
    pub async fn list(&self, workspace: Option<&str>, asked: &Select) -> Result<Listed<Agent>> {
        AGENTS.select(self.0.reads(), workspace, asked).await
    }

    /// Removes one. Jobs that were submitted with it keep their snapshot.
    pub async fn delete(&self, workspace: &str, name: &str) -> Result<()> {
        AGENTS.delete(self.0, workspace, name).await
    }
}

fn read(row: &Row) -> Result<Agent> {
    Ok(Agent {
        id: row.text("id")?,
        name: row.text("name")?,
        workspace: row.text("workspace")?,
        project: row.optional_text("project")?,
        description: row.text("description")?,
        config: row.json("config")?,
        config_format: row.text("config_format")?,
        context_schema: row.optional_json("context_schema")?,
        default_input: row.optional_text("default_input")?,
        post_run_actions: row.json("post_run_actions")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
