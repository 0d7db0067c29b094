//! The fileset of a job: its results as files, `results/<attempt>/<result>`. Nobody makes it and
//! nobody writes it; a result that was a directory is one file, its gzipped tar.

use serde_json::{Value, json};
use streams::snapshot::FileEntry;

use super::error::Answer;
use super::files::Stored;
use super::{Api, filesets, results, time};
use crate::catalog::{names, refs};
use crate::records::{self, Job, ResultRow};

/// The job whose fileset has this name.
pub(super) async fn job(api: &Api, workspace: &str, fileset: &str) -> Answer<Option<Job>> {
    let Some(name) = fileset.strip_prefix(refs::JOB_FILESET) else { return Ok(None) };
    match api.records.jobs().get(workspace, name).await {
        // One whose results go elsewhere has no fileset of its own.
        Ok(job) => Ok(Some(job).filter(|job| job.name == name && job.output_location.is_none())),
        Err(records::Error::NotFound | records::Error::Text(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The fileset as an object.
pub(super) fn fileset(job: &Job) -> Value {
    let name = format!("{}{}", refs::JOB_FILESET, job.name);
    json!({
        "id": names::part_id("fileset", job.id),
        "storage": filesets::storage(&job.workspace, &name),
        "name": name,
        "workspace": job.workspace,
        "description": "",
        "purpose": "generic",
        "metadata": {"dataset": null, "model": null, "environment": null},
        "custom_fields": {},
        "project": "",
        "created_at": time(job.created_at),
        "updated_at": time(job.updated_at),
    })
}

/// Its files, in the order of their paths.
pub(super) async fn files(api: &Api, job: &Job) -> Answer<Vec<Stored>> {
    let rows = api.records.jobs().results(job.id).await?;
    let mut files: Vec<_> = rows.iter().map(|row| file(job, row)).collect();
    files.sort_by(|one, other| one.entry.path.cmp(&other.entry.path));
    Ok(files)
}

/// Whether a path is another, or lies below it.
pub(super) fn is_below(path: &str, directory: &str) -> bool {
    match path.strip_prefix(directory) {
        Some(rest) => directory.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

fn file(job: &Job, row: &ResultRow) -> Stored {
    let object = &row.saved.object;
    let (path, sha256) = (results::place(job, row), object.sha256.clone());
    let entry = FileEntry { path, mode: 0o644, size: object.size, sha256 };
    Stored { entry, key: object.key.clone() }
}
