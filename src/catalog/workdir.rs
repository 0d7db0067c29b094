//! Working directories: what a job's references point to, pinned.

use serde_json::{Value, json};
use streams::fact::ResultKind;
use streams::snapshot::{Mount, Source};

use super::CatalogService;
use super::ethos;
use super::refs::{self, FilesetRef};
use super::refusal::{Gathered, Refusal, may_refer};
use super::request::{Mount as Mounted, Workdir};
use crate::auth::{Caller, Role};
use crate::records;

const BASE: &str = "workdir.base_workdir";
const MOUNT: &str = "workdir.artifact_mounts.ref";

/// A working directory, pinned.
#[derive(Debug, Default)]
pub(super) struct Pinned {
    /// With canonical references; what the API shows.
    pub shown: Option<Value>,
    pub base: Option<Source>,
    pub mounts: Vec<Mount>,
}

impl CatalogService {
    /// Pins what a working directory is filled from.
    pub(super) async fn pin_workdir(
        &self,
        caller: &Caller,
        workspace: &str,
        workdir: Option<&Workdir>,
    ) -> Result<Pinned, Refusal> {
        let Some(workdir) = workdir else { return Ok(Pinned::default()) };
        let mut pinned = Pinned::default();
        let mut gathered = Gathered::default();
        let mut shown_base = None;
        if let Some(base) = &workdir.base_workdir {
            let found = self.pin_as(caller, BASE, base, workspace).await;
            if let Some((base, source)) = gathered.take(found)? {
                pinned.base = Some(source);
                shown_base = Some(base.directory());
            }
        }
        let mut shown_mounts = Vec::new();
        for Mounted { reference, mount_path } in &workdir.artifact_mounts {
            let found = self.pin_as(caller, MOUNT, reference, workspace).await;
            if let Some((reference, source)) = gathered.take(found)? {
                pinned.mounts.push(Mount { mount_path: mount_path.clone(), source });
                shown_mounts.push(json!({"ref": reference.to_string(), "mount_path": mount_path}));
            }
        }
        if !gathered.is_empty() {
            return Err(gathered.into_refusal());
        }
        if pinned.base.is_some() || !pinned.mounts.is_empty() {
            pinned.shown =
                Some(json!({"base_workdir": shown_base, "artifact_mounts": shown_mounts}));
        }
        Ok(pinned)
    }

    /// The files beside a stored agent's configuration, if it has any.
    pub(super) async fn pin_ethos(
        &self,
        workspace: &str,
        agent: &str,
    ) -> Result<Option<Source>, Refusal> {
        let whole = FilesetRef {
            workspace: workspace.to_owned(),
            fileset: ethos::fileset_of(agent),
            path: String::new(),
        };
        match self.records.filesets().get(workspace, &whole.fileset).await {
            Ok(fileset) => Ok(self.pin_files(MOUNT, fileset, &whole).await?),
            Err(records::Error::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Pins what a field refers to.
    async fn pin_as(
        &self,
        caller: &Caller,
        field: &str,
        reference: &str,
        workspace: &str,
    ) -> Result<(FilesetRef, Source), Refusal> {
        let wanted = refs::fileset_ref(field, reference, workspace).map_err(Refusal::Transform)?;
        may_refer(caller, Role::Viewer, &wanted.workspace, || format!("{field} '{reference}'"))?;
        match self.pin(field, &wanted).await? {
            Some(source) => Ok((wanted, source)),
            None if field == BASE => {
                Err(refuse(field, "must point to a non-empty directory or fileset root."))
            }
            None => Err(refuse(field, "must point to an existing fileset artifact.")),
        }
    }

    /// Pins one reference; `None` when nothing is there, or when a base would be a file.
    async fn pin(&self, field: &str, wanted: &FilesetRef) -> Result<Option<Source>, Refusal> {
        match self.records.filesets().get(&wanted.workspace, &wanted.fileset).await {
            Ok(fileset) => return self.pin_files(field, fileset, wanted).await,
            Err(records::Error::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(job) = wanted.fileset.strip_prefix(refs::JOB_FILESET) {
            match self.records.jobs().get(&wanted.workspace, job).await {
                Ok(job) => return self.pin_result(field, &job, &wanted.path).await,
                Err(records::Error::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::Transform(format!(
            "HTTP 404: Fileset '{}' not found in workspace '{}'",
            wanted.fileset, wanted.workspace
        )))
    }

    async fn pin_files(
        &self,
        field: &str,
        fileset: records::Fileset,
        wanted: &FilesetRef,
    ) -> Result<Option<Source>, Refusal> {
        let listing = self.files.freeze(&fileset).await?;
        let is_there = if wanted.path.is_empty() {
            listing.size > 0
        } else {
            let found = self.records.filesets().files(&fileset.id, &wanted.path).await?;
            let is_file = found.first().is_some_and(|first| first.path == wanted.path);
            // A single file is no base.
            let fits = field != BASE || !is_file;
            fits && !found.is_empty()
        };
        Ok(is_there.then(|| Source::Files { listing, path: wanted.path.clone() }))
    }

    /// `results/<attempt>/<result>[/path]` of a job.
    async fn pin_result(
        &self,
        field: &str,
        job: &records::Job,
        path: &str,
    ) -> Result<Option<Source>, Refusal> {
        let mut parts = path.splitn(4, '/');
        let (Some("results"), Some(attempt), Some(name)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(refuse(
                field,
                "must name a result: 'job-fileset-<job>#results/<attempt>/<result>'.",
            ));
        };
        if attempt != job.attempt_id {
            return Ok(None);
        }
        let row = match self.records.jobs().result(job.id, name).await {
            Ok(row) => row,
            Err(records::Error::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if row.saved.kind == ResultKind::File {
            return Ok(None);
        }
        let path = parts.next().unwrap_or_default().to_owned();
        Ok(Some(Source::Bundle { object: row.saved.object, path }))
    }
}

fn refuse(field: &str, reason: &str) -> Refusal {
    Refusal::Transform(format!("{field} {reason}"))
}
