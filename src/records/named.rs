//! Things that have a name within a workspace, and how any of them is found, listed and removed.
//!
//! How one is made and changed, and what its row holds, its own module knows.

use futures_util::FutureExt;
use sqlx::AnyPool;

use super::statement::{Read, assembled, page};
use super::{Listed, Page, Records, Result, Sort};

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

    /// A page of a workspace's, or of all.
    pub(super) async fn list(
        &self,
        reads: &AnyPool,
        workspace: Option<&str>,
        which: Page,
        sort: Sort,
    ) -> Result<Listed<T>> {
        let from = match workspace {
            None => self.table.to_owned(),
            Some(_) => format!("{} WHERE workspace = $1", self.table),
        };
        page(reads, &from, workspace.as_slice(), (which, sort.order_by()), self.read).await
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
