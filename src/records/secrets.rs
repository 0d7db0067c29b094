//! Secrets, sealed. What is inside, only [`crate::secrets`] can say.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::FutureExt;
use jiff::Timestamp;

use super::named::Named;
use super::statement::{Row, assembled, corrupt, places, sql};
use super::{Listed, Records, Result, Select, fresh_id};

/// A secret as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRow {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its value, sealed.
    pub sealed: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// A secret to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSecret {
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its value, sealed.
    pub sealed: Vec<u8>,
}

/// What to change about a secret; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretChange {
    /// What it is for.
    pub description: Option<String>,
    /// Its value, sealed.
    pub sealed: Option<Vec<u8>>,
}

const SECRETS: Named<SecretRow> = Named { table: "secrets", read };

/// Bytes at the beginning of a seal that say which key sealed it, and the letters that they are in
/// base64, where no other byte has a part in them.
const HEAD_BYTES: usize = 9;
const HEAD_LETTERS: usize = HEAD_BYTES / 3 * 4;

/// The sealed secrets.
pub struct Secrets<'r>(pub(super) &'r Records);

impl Secrets<'_> {
    /// Keeps a new one.
    pub async fn insert(&self, new: NewSecret) -> Result<SecretRow> {
        self.0
            .write(new, |new, db| {
                sql("INSERT INTO secrets (id, name, workspace, description, sealed, created_at,
                     updated_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING *")
                .text(&fresh_id("secret"))
                .text(&new.name)
                .text(&new.workspace)
                .optional_text(new.description.as_deref())
                .text(&BASE64_STANDARD.encode(&new.sealed))
                .time(Timestamp::now())
                .row_as(db, read)
                .boxed()
            })
            .await
    }

    /// Finds one.
    pub async fn get(&self, workspace: &str, name: &str) -> Result<SecretRow> {
        SECRETS.get(self.0.reads(), workspace, name).await
    }

    /// Those of a workspace's, or of all, that are asked for.
    pub async fn list(&self, workspace: Option<&str>, asked: &Select) -> Result<Listed<SecretRow>> {
        SECRETS.select(self.0.reads(), workspace, asked).await
    }

    /// Changes one. A change of nothing leaves its time, too.
    pub async fn update(
        &self,
        workspace: &str,
        name: &str,
        change: SecretChange,
    ) -> Result<SecretRow> {
        if change == SecretChange::default() {
            return self.get(workspace, name).await;
        }
        let input = (workspace.to_owned(), name.to_owned(), change);
        self.0
            .write(input, |(workspace, name, change), db| {
                sql("UPDATE secrets SET description = COALESCE($3, description),
                     sealed = COALESCE($4, sealed), updated_at = $5
                 WHERE workspace = $1 AND name = $2 RETURNING *")
                .text(workspace)
                .text(name)
                .optional_text(change.description.as_deref())
                .optional_text(
                    change.sealed.as_ref().map(|it| BASE64_STANDARD.encode(it)).as_deref(),
                )
                .time(Timestamp::now())
                .row_as(db, read)
                .boxed()
            })
            .await
    }

    /// Up to `limit` of all workspaces' whose seals begin with none of these bytes, by their ids,
    /// those after `after`.
    pub async fn sealed_otherwise(
        &self,
        heads: &[[u8; HEAD_BYTES]],
        after: &str,
        limit: u32,
    ) -> Result<Vec<SecretRow>> {
        let heads: Vec<_> = heads.iter().map(|head| BASE64_STANDARD.encode(head)).collect();
        let rows = assembled(format!(
            "SELECT * FROM secrets WHERE id > $1 AND substr(sealed, 1, {HEAD_LETTERS}) NOT IN ({})
             ORDER BY id LIMIT {limit}",
            places(2, heads.len())
        ));
        let rows = rows.text(after).texts(heads.iter().map(String::as_str));
        rows.all(self.0.reads()).await?.iter().map(read).collect()
    }

    /// Puts a new seal in the place of an old one, if that still stands; whether it did. For
    /// everybody else nothing has changed.
    pub async fn reseal(&self, id: &str, old: &[u8], new: &[u8]) -> Result<bool> {
        let input = (id.to_owned(), BASE64_STANDARD.encode(old), BASE64_STANDARD.encode(new));
        let touched = self.0.write(input, |(id, old, new), db| {
            sql("UPDATE secrets SET sealed = $3 WHERE id = $1 AND sealed = $2")
                .texts([&**id, old, new])
                .run(db)
                .boxed()
        });
        Ok(touched.await? > 0)
    }

    /// Removes one.
    pub async fn delete(&self, workspace: &str, name: &str) -> Result<()> {
        SECRETS.delete(self.0, workspace, name).await
    }
}

fn read(row: &Row) -> Result<SecretRow> {
    let sealed = BASE64_STANDARD.decode(row.text("sealed")?);
    Ok(SecretRow {
        id: row.text("id")?,
        name: row.text("name")?,
        workspace: row.text("workspace")?,
        description: row.optional_text("description")?,
        sealed: sealed.map_err(|error| corrupt("sealed", &error))?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
