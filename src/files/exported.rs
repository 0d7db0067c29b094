//! Files that post-run actions export, stored as uploads are.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde_json::json;
use streams::snapshot::FileEntry;
use workers::ports::{Filesets, FilesetsError, Unavailable};

use super::{Error, Files};
use crate::catalog::refs;
use crate::records::{self, NewFileset};

#[async_trait]
impl Filesets for Files {
    async fn ensure(&self, workspace: &str, fileset: &str) -> Result<(), FilesetsError> {
        if !refs::is_name(fileset) {
            let pattern = refs::NAME_PATTERN;
            let text = format!("fileset: '{fileset}' should match pattern '{pattern}'");
            return Err(FilesetsError::Refused(text));
        }
        let new = NewFileset {
            name: fileset.to_owned(),
            workspace: workspace.to_owned(),
            description: String::new(),
            purpose: "generic".to_owned(),
            project: String::new(),
            metadata: json!({}),
            custom_fields: json!({}),
        };
        match self.records.filesets().insert(new).await {
            Ok(_) | Err(records::Error::Conflict) => Ok(()),
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn put(
        &self,
        workspace: &str,
        fileset: &str,
        paths: &[String],
        mode: u32,
        bytes: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), FilesetsError> {
        let Some((first, others)) = paths.split_first() else { return Ok(()) };
        let found = self.records.filesets().get(workspace, fileset).await.map_err(unavailable)?;
        let stored = self.put(&found, first.clone(), mode, bytes).await.map_err(refused)?;
        for path in others {
            let entry = FileEntry { path: path.clone(), ..stored.clone() };
            self.name(&found, entry).await.map_err(refused)?;
        }
        Ok(())
    }
}

/// What is wrong with the path stays wrong; all else may pass.
fn refused(error: Error) -> FilesetsError {
    match error {
        Error::InTheWay(_) | Error::Records(records::Error::Text(_)) => {
            FilesetsError::Refused(error.to_string())
        }
        error => unavailable(error),
    }
}

fn unavailable(error: impl std::fmt::Display) -> FilesetsError {
    Unavailable(error.to_string()).into()
}
