use super::super::{Records, connect, statement};
use super::*;

/// A pool of one connection with a table, on a database of few pages.
async fn small() -> (AnyPool, tempfile::TempDir) {
    sqlx::any::install_default_drivers();
    let directory = tempfile::tempdir().expect("a temporary directory");
    todo!()
}
