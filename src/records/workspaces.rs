//! Workspaces. That `default` and `system` must stay is the HTTP API's to know.

use futures_util::FutureExt;
use jiff::Timestamp;
use sqlx::AnyConnection;

use super::named::Named;
use super::statement::{Row, assembled, sql};
use super::{Listed, Records, Result, Select, fresh_id};

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// What a workspace holds: how many of each kind. Empty when it holds nothing.
pub type Contents = Vec<(&'static str, u64)>;

/// What can be in a workspace, and where it is kept.
const HOLDS: [(&str, &str); 7] = [
    ("job", "jobs WHERE workspace = $1 AND deleted_at IS NULL"),
    ("agent", "agents WHERE workspace = $1"),
    ("fileset", "filesets WHERE workspace = $1"),
    ("secret", "secrets WHERE workspace = $1"),
    ("environment", "environments WHERE workspace = $1"),
    ("environment spec", "environment_specs WHERE workspace = $1"),
    ("compute spec", "compute_specs WHERE workspace = $1"),
];

/// The workspaces.
pub struct Workspaces<'r>(pub(super) &'r Records);

impl Workspaces<'_> {
    /// Makes one.
    pub async fn insert(&self, name: &str, description: Option<&str>) -> Result<Workspace> {
        let input = (name.to_owned(), description.map(str::to_owned));
        self.0
            .write(input, |(name, description), db| {
                sql("INSERT INTO workspaces (id, name, description, created_at, updated_at)
                 VALUES ($1, $2, $3, $4, $4) RETURNING *")
                .text(&fresh_id("workspace"))
                .text(name)
                .optional_text(description.as_deref())
                .time(Timestamp::now())
                .row_as(db, read)
                .boxed()
            })
            .await
    }

    /// Finds one.
    pub async fn get(&self, name: &str) -> Result<Workspace> {
        let found = sql("SELECT * FROM workspaces WHERE name = $1").text(name);
        found.row_as(self.0.reads(), read).await
    }

    /// Whether one is there.
    pub async fn exists(&self, name: &str) -> Result<bool> {
        let found = sql("SELECT id FROM workspaces WHERE name = $1").text(name);
        Ok(found.one(self.0.reads()).await?.is_some())
    }

    /// Those that are asked for.
    pub async fn list(&self, asked: &Select) -> Result<Listed<Workspace>> {
        Named { table: "workspaces", read }.select(self.0.reads(), None, asked).await
    }

    /// The names of all.
    pub async fn names(&self) -> Result<Vec<String>> {
        let names = sql("SELECT name FROM workspaces ORDER BY name");
        names.all(self.0.reads()).await?.iter().map(|row| row.text("name")).collect()
    }

    /// Replaces its description.
    pub async fn update(&self, name: &str, description: Option<&str>) -> Result<Workspace> {
        let input = (name.to_owned(), description.map(str::to_owned));
        self.0
            .write(input, |(name, description), db| {
                sql("UPDATE workspaces SET description = $2, updated_at = $3 WHERE name = $1
                 RETURNING *")
                .text(name)
                .optional_text(description.as_deref())
                .time(Timestamp::now())
                .row_as(db, read)
                .boxed()
            })
            .await
    }

    /// Removes it if nothing is in it; what is in it otherwise, with its name left as it is.
    pub async fn delete(&self, name: &str) -> Result<Contents> {
        self.0.write(name.to_owned(), |name, db| delete(name, db).boxed()).await
    }
}

async fn delete(name: &str, db: &mut AnyConnection) -> Result<Contents> {
    // The first statement locks the row, and says whether there is one.
    sql("UPDATE workspaces SET name = name WHERE name = $1").text(name).touch(&mut *db).await?;
    let mut contents = Contents::new();
    for (what, condition) in HOLDS {
        let count = assembled(format!("SELECT COUNT(*) AS held FROM {condition}"));
        let held = count.text(name).row(&mut *db).await?.number("held")?;
        if held > 0 {
            contents.push((what, held));
        }
    }
    if contents.is_empty() {
        // What is left of a batch without its jobs is nothing that anybody keeps.
        sql("DELETE FROM batches WHERE workspace = $1").text(name).run(&mut *db).await?;
        sql("DELETE FROM token_roles WHERE workspace = $1").text(name).run(&mut *db).await?;
        sql("DELETE FROM workspaces WHERE name = $1").text(name).run(db).await?;
    }
    Ok(contents)
}

fn read(row: &Row) -> Result<Workspace> {
    Ok(Workspace {
        id: row.text("id")?,
        name: row.text("name")?,
        description: row.optional_text("description")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
