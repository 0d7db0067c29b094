//! Tokens, of which only the public part and a digest are here. What a token may do, `auth` says.

use futures_util::FutureExt;
use jiff::Timestamp;
use sqlx::AnyConnection;

use super::statement::{Row, assembled, sql};
use super::{Records, Result, fresh_id};
use crate::auth::{EVERYWHERE, Roles};

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The part of it that may be seen.
    pub public_part: String,
    /// The SHA-256 of it, in hexadecimal.
    pub digest: String,
    /// What it is good for.
    pub roles: Roles,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends, if it does.
    pub expires_at: Option<Timestamp>,
    /// About when it was used last.
    pub used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A token to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Its name.
    pub name: String,
    /// The part of it that may be seen.
    pub public_part: String,
    /// The SHA-256 of it, in hexadecimal.
    pub digest: String,
    /// What it is good for, in workspaces that exist.
    pub roles: Roles,
    /// When it ends, if it does.
    pub expires_at: Option<Timestamp>,
}

impl TokenRow {
    /// Whether it is good for anything.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// The tokens.
pub struct Tokens<'r>(pub(super) &'r Records);

impl Tokens<'_> {
    /// Keeps a new one. A workspace of its roles that does not exist is not found.
    pub async fn insert(&self, new: NewToken) -> Result<()> {
        self.0.write(new, |new, db| insert(new, db).boxed()).await
    }

    /// Those with a public part: one, or by a great accident several.
    pub async fn by_public_part(&self, part: &str) -> Result<Vec<TokenRow>> {
        self.select("public_part = $1", &[part]).await
    }

    /// Finds one by its id.
    pub async fn by_id(&self, id: &str) -> Result<Option<TokenRow>> {
        Ok(self.select("id = $1", &[id]).await?.pop())
    }

    /// All of them, the oldest first.
    pub async fn all(&self) -> Result<Vec<TokenRow>> {
        self.select("1 = 1", &[]).await
    }

    /// Revokes one; one that is revoked stays so.
    pub async fn revoke(&self, name: &str) -> Result<()> {
        self.0
            .write(name.to_owned(), |name, db| {
                sql("UPDATE tokens SET revoked_at = COALESCE(revoked_at, $2) WHERE name = $1")
                    .text(name)
                    .time(Timestamp::now())
                    .touch(db)
                    .boxed()
            })
            .await
    }

    /// Notes that one is used.
    pub async fn used(&self, id: &str) -> Result<()> {
        self.0
            .write(id.to_owned(), |id, db| {
                let used = sql("UPDATE tokens SET used_at = $2 WHERE id = $1").text(id);
                async move { used.time(Timestamp::now()).run(db).await.map(drop) }.boxed()
            })
            .await
    }

    async fn select(&self, condition: &str, values: &[&str]) -> Result<Vec<TokenRow>> {
        let rows = assembled(format!(
            "SELECT id, name, public_part, digest, created_at, expires_at, used_at, revoked_at,
             workspace, role
             FROM tokens LEFT JOIN token_roles ON token_roles.token = tokens.id
             WHERE {condition} ORDER BY created_at, id, workspace"
        ));
        gathered(&rows.texts(values.iter().copied()).all(self.0.reads()).await?)
    }
}

async fn insert(new: &NewToken, db: &mut AnyConnection) -> Result<()> {
    let id = fresh_id("token");
    sql("INSERT INTO tokens (id, name, public_part, digest, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6)")
    .texts([&id, &new.name, &new.public_part, &new.digest].map(String::as_str))
    .time(Timestamp::now())
    .optional_time(new.expires_at)
    .run(&mut *db)
    .await?;
    for (workspace, role) in &new.roles {
        let granted = if workspace == EVERYWHERE {
            sql("INSERT INTO token_roles (token, workspace, role) VALUES ($1, $3, $2)")
        } else {
            // With the workspace its roles go: one of the same name that is made later is another.
            sql("INSERT INTO token_roles (token, workspace, role)
                 SELECT $1, name, $2 FROM workspaces WHERE name = $3")
        };
        granted.texts([&*id, role.as_str(), workspace]).touch(&mut *db).await?;
    }
    Ok(())
}

/// Each token has a row for each of its roles, one after another, and at least one row.
fn gathered(rows: &[Row]) -> Result<Vec<TokenRow>> {
    let mut tokens: Vec<TokenRow> = Vec::new();
    for row in rows {
        let id = row.text("id")?;
        if tokens.last().is_none_or(|last| last.id != id) {
            tokens.push(read(row)?);
        }
        let role = row.optional_text("workspace")?.zip(row.optional_word("role")?);
        if let Some(token) = tokens.last_mut() {
            token.roles.extend(role);
        }
    }
    Ok(tokens)
}

fn read(row: &Row) -> Result<TokenRow> {
    Ok(TokenRow {
        id: row.text("id")?,
        name: row.text("name")?,
        public_part: row.text("public_part")?,
        digest: row.text("digest")?,
        roles: Roles::new(),
        created_at: row.time("created_at")?,
        expires_at: row.optional_time("expires_at")?,
        used_at: row.optional_time("used_at")?,
        revoked_at: row.optional_time("revoked_at")?,
    })
}
