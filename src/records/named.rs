//! Things that have a name within a workspace, and how any of them is found, listed and removed.
//!
//! How one is made and changed, and what its row holds, its own module knows.

use futures_util::FutureExt;
use sqlx::AnyPool;

use super::listing::List;
use super::statement::{Read, assembled};
use super::{Listed, Records, Result, Select};

/// The things of one table.
pub(super) struct Named<T> {
    pub(super) table: &'static str,
    pub(super) read: Read<T>,
}

impl<T> Named<T> {
    /// Finds one.
    pub(super) async fn get(&self, reads: &AnyPool, workspace: &str, name: &str) -> Result<T> {
        let table = self.table;
        assembled(format!("SELECT * FROM {table} WHERE workspace = $1 AND name = $2"))
            .texts([workspace, name])
            .row_as(reads, self.read)
            .await
    }

    /// Those of a workspace's, or of all, that are asked for.
    pub(super) async fn select(
        &self,
        reads: &AnyPool,
        workspace: Option<&str>,
        asked: &Select,
    ) -> Result<Listed<T>> {
        let (table, columns) = (self.table, "*");
        let list = List { table, whole: table, columns, always: None, workspace };
        let asked = Select { sort: asked.sort.without_source(), ..asked.clone() };
        list.select(reads, &asked, self.read).await
    }

    /// Removes one.
    pub(super) async fn delete(
        &self,
        records: &Records,
        workspace: &str,
        name: &str,
    ) -> Result<()> {
        let input = (self.table, workspace.to_owned(), name.to_owned());
        records
            .write(input, |(table, workspace, name), db| {
                assembled(format!("DELETE FROM {table} WHERE workspace = $1 AND name = $2"))
                    .texts([&**workspace, name])
                    .touch(db)
                    .boxed()
            })
            .await
    }
}
