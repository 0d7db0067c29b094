//! Filesets: what they are called and which files they have. The files' bytes are blobs in the
//! object store, which the sweeper removes once nothing names them (see `blobs`).

mod files;

use futures_util::FutureExt;
use jiff::Timestamp;
use serde_json::Value;
use streams::snapshot::ObjectRef;

use super::named::Named;
use super::statement::{Row, sql};
use super::{Listed, Records, Result, Select, fresh_id};

/// A fileset.
#[derive(Clone, Debug, PartialEq)]
pub struct Fileset {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// What it holds.
    pub description: String,
    /// `generic`, `dataset`, `environment` or `model`.
    pub purpose: String,
    /// Its project, empty when it has none.
    pub project: String,
    /// Facts about its contents.
    pub metadata: Value,
    /// What its owner wants remembered.
    pub custom_fields: Value,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last, its files aside.
    pub updated_at: Timestamp,
    /// Raised by every change of a file.
    pub version: i64,
    /// The version that was frozen last.
    pub pinned_version: Option<i64>,
    /// The frozen listing of that version.
    pub pinned: Option<ObjectRef>,
}

/// A fileset to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFileset {
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// What it holds.
    pub description: String,
    /// `generic`, `dataset`, `environment` or `model`.
    pub purpose: String,
    /// Its project, empty when it has none.
    pub project: String,
    /// Facts about its contents.
    pub metadata: Value,
    /// What its owner wants remembered.
    pub custom_fields: Value,
}

/// What to change about a fileset; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilesetChange {
    /// What it holds.
    pub description: Option<String>,
    /// What it is for.
    pub purpose: Option<String>,
    /// Its project, empty for none.
    pub project: Option<String>,
    /// Facts about its contents.
    pub metadata: Option<Value>,
    /// What its owner wants remembered.
    pub custom_fields: Option<Value>,
}

const FILESETS: Named<Fileset> = Named { table: "filesets", read };

/// The filesets and their files.
pub struct Filesets<'r>(pub(super) &'r Records);

impl Filesets<'_> {
    /// Makes one.
    pub async fn insert(&self, new: NewFileset) -> Result<Fileset> {
        self.0
            .write(new, |new, db| {
                sql("INSERT INTO filesets (id, name, workspace, description, purpose, project,
                     metadata, custom_fields, created_at, updated_at, version)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, 0) RETURNING *")
                .text(&fresh_id("fileset"))
                .texts([&*new.name, &new.workspace, &new.description, &new.purpose, &new.project])
                .json(&new.metadata)
                .json(&new.custom_fields)
                .time(Timestamp::now())
                .row_as(db, read)
                .boxed()
            })
            .await
    }

    /// Finds one.
    pub async fn get(&self, workspace: &str, name: &str) -> Result<Fileset> {
        FILESETS.get(self.0.reads(), workspace, name).await
    }

    /// Those of a workspace's, or of all, that are asked for.
    pub async fn list(&self, workspace: Option<&str>, asked: &Select) -> Result<Listed<Fileset>> {
        FILESETS.select(self.0.reads(), workspace, asked).await
    }

    /// Changes what is said about one.
    pub async fn update(
        &self,
        workspace: &str,
        name: &str,
        change: FilesetChange,
    ) -> Result<Fileset> {
        let input = (workspace.to_owned(), name.to_owned(), change);
        self.0
            .write(input, |(workspace, name, change), db| {
                sql("UPDATE filesets SET description = COALESCE($3, description),
                     purpose = COALESCE($4, purpose), project = COALESCE($5, project),
                     metadata = COALESCE($6, metadata),
                     custom_fields = COALESCE($7, custom_fields), updated_at = $8
                 WHERE workspace = $1 AND name = $2 RETURNING *")
                .text(workspace)
                .text(name)
                .optional_text(change.description.as_deref())
                .optional_text(change.purpose.as_deref())
                .optional_text(change.project.as_deref())
                .optional_json(change.metadata.as_ref())
                .optional_json(change.custom_fields.as_ref())
                .time(Timestamp::now())
                .row_as(db, read)
                .boxed()
            })
            .await
    }

    /// Removes one with its list of files, and returns what it was.
    pub async fn delete(&self, workspace: &str, name: &str) -> Result<Fileset> {
        let input = (workspace.to_owned(), name.to_owned());
        self.0
            .write(input, |(workspace, name), db| {
                sql("DELETE FROM filesets WHERE workspace = $1 AND name = $2 RETURNING *")
                    .text(workspace)
                    .text(name)
                    .row_as(db, read)
                    .boxed()
            })
            .await
    }

    /// Remembers the frozen listing of a version. An older version than the one that is
    /// remembered changes nothing.
    pub async fn set_pinned(&self, fileset: &str, version: i64, listing: &ObjectRef) -> Result<()> {
        let input = (fileset.to_owned(), version, listing.clone());
        self.0
            .write(input, |(fileset, version, listing), db| {
                async move {
                    sql("UPDATE filesets SET pinned_version = $2, pinned = $3
                     WHERE id = $1 AND (pinned_version IS NULL OR pinned_version < $2)")
                    .text(fileset)
                    .int(*version)
                    .json(listing)
                    .run(db)
                    .await
                    .map(drop)
                }
                .boxed()
            })
            .await
    }
}

fn read(row: &Row) -> Result<Fileset> {
    Ok(Fileset {
        id: row.text("id")?,
        name: row.text("name")?,
        workspace: row.text("workspace")?,
        description: row.text("description")?,
        purpose: row.text("purpose")?,
        project: row.text("project")?,
        metadata: row.json("metadata")?,
        custom_fields: row.json("custom_fields")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        version: row.int("version")?,
        pinned_version: row.optional_int("pinned_version")?,
        pinned: row.optional_json("pinned")?,
    })
}
