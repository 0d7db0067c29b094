//! The Python SDK: one script, which asserts by itself.

use tempfile::TempDir;

use super::nemo::{fixture, python};
use crate::harness::Platform;

#[tokio::test]
async fn the_python_sdk_does_all_that_it_can_with_a_job() {
    let platform = Platform::start().await;
    let home = TempDir::new().expect("a temporary directory");
    let said = python(&platform, home.path()).arg(fixture("sdk.py")).output().expect("it runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
