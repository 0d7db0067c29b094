//! Files of filesets: listing, upload, download, removal.

use std::convert::Infallible;
use std::iter;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use futures_util::stream;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use streams::snapshot::{FileEntry, ObjectRef};
use workers::store::key;

use super::Api;
use super::error::{Answer, ApiError, or_not_found};
use super::filesets::Found;
use super::list::Pairs;
use super::range::Part;
use super::{filesets, job_files, range, upload};
use crate::auth::Caller;
use crate::catalog::shape::{self, Shape};
use crate::files::path;

/// Permission bits of a file that says none.
const DEFAULT_MODE: u32 = 0o644;

/// Files of a list that are made at once.
const LISTED_AT_ONCE: usize = 1000;

/// What stays as it is in the path of a URL.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

type Named = Path<(String, String, String)>;

/// A file and where its bytes are.
pub(super) struct Stored {
    pub entry: FileEntry,
    /// The key of the object.
    pub key: String,
}

impl From<FileEntry> for Stored {
    fn from(entry: FileEntry) -> Self {
        Self { key: key::blob(&entry.sha256), entry }
    }
}

impl Stored {
    fn object(&self) -> ObjectRef {
        let FileEntry { size, sha256, .. } = &self.entry;
        ObjectRef { key: self.key.clone(), size: *size, sha256: sha256.clone() }
    }
}

/// Lists the files below a path: all of them, a directory's, or the one.
pub(super) async fn list(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    query: Pairs,
) -> Answer {
    check_cache_status(&query)?;
    let found = filesets::find(&api, &workspace, &name).await?;
    let asked = query.get("path").unwrap_or_default();
    let under = normalise(asked)?;
    let mut files = match &found {
        Found::Stored(fileset) => api.records.filesets().files(&fileset.id, &under).await?,
        Found::OfJob(job) => {
            let files = job_files::files(&api, job).await?.into_iter().map(|file| file.entry);
            files.filter(|file| job_files::is_below(&file.path, &under)).collect()
        }
    };
    // `file/` names a directory, and there is none.
    if asked.ends_with('/') {
        files.retain(|file| file.path != under);
    }
    let show = move |file: &FileEntry| show(&workspace, &name, file, Some("not_cacheable"));
    Ok(listed(files, show).into_response())
}

/// A list that is made while it goes out: a fileset may have a hundred thousand files.
fn listed(
    files: Vec<FileEntry>,
    show: impl Fn(&FileEntry) -> Value + Send + 'static,
) -> impl IntoResponse {
    let pieces = (0..files.len()).step_by(LISTED_AT_ONCE).map(move |from| {
        let to = files.len().min(from + LISTED_AT_ONCE);
        let shown: Vec<_> = files[from..to].iter().map(|file| show(file).to_string()).collect();
        format!("{}{}", if from == 0 { "" } else { "," }, shown.join(","))
    });
    let text = iter::once("{\"data\":[".to_owned()).chain(pieces).chain(["]}".to_owned()]);
    let body = Body::from_stream(stream::iter(text.map(Ok::<_, Infallible>)));
    ([(header::CONTENT_TYPE, "application/json")], body)
}

/// Nothing of ours is cached, so the answer is the same either way.
fn check_cache_status(query: &Pairs) -> Answer<()> {
    const KEY: &str = "include_cache_status";
    let Some(asked) = query.get(KEY) else { return Ok(()) };
    let read = shape::read(&Shape::Bool, &json!(asked), &["query".into(), KEY.into()]);
    read.map(drop).map_err(ApiError::invalid)
}

/// Writes a file: the body is its content, or a form that has it.
pub(super) async fn put(
    State(api): State<Api>,
    Path((workspace, name, typed)): Named,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answer<Json<Value>> {
    let path = normalise(&typed)?;
    if path.is_empty() {
        return Err(put_root().await);
    }
    if let Some(segment) = path::too_long(&path) {
        return Err(ApiError::bad_request(format!(
            "Path segment '{segment}' has {} bytes, shorten it to {}",
            segment.len(),
            path::MAX_SEGMENT_BYTES
        )));
    }
    let mode = mode(request.headers())?;
    let fileset = filesets::writable(&api, &caller, &workspace, &name).await?;
    let file = if upload::is_form(request.headers()) {
        let mut form = upload::form(request).await?;
        let field = Box::pin(upload::file(&mut form).await?);
        api.files.put(&fileset, path, mode, field).await?
    } else {
        let bytes = request.into_body().into_data_stream();
        api.files.put(&fileset, path, mode, bytes).await?
    };
    Ok(Json(show(&workspace, &name, &FileEntry { path: typed, ..file }, None)))
}

/// A file that has no path.
pub(super) async fn put_root() -> ApiError {
    ApiError::bad_request("A file needs a path below the root of its fileset")
}

/// Reads a file, or a part of it.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, name, path)): Named,
    asked: HeaderMap,
) -> Answer {
    let file = find(&api, &workspace, &name, &path).await?;
    let part = part(&file.entry, &asked)?;
    let object = api.store.fetch_range(&file.object(), part.range).await?;
    let object =
        object.ok_or_else(|| ApiError::internal(format!("object '{}' is gone", file.key)))?;
    Ok(part.stream(object))
}

/// What a download would say, without its bytes.
pub(super) async fn head(
    State(api): State<Api>,
    Path((workspace, name, path)): Named,
    asked: HeaderMap,
) -> Answer {
    let file = find(&api, &workspace, &name, &path).await?.entry;
    Ok(part(&file, &asked)?.head())
}

/// Removes a file.
pub(super) async fn delete(
    State(api): State<Api>,
    Path((workspace, name, path)): Named,
    Extension(caller): Extension<Caller>,
) -> Answer<Json<Value>> {
    let normalised = normalise(&path)?;
    let fileset = filesets::writable(&api, &caller, &workspace, &name).await?;
    let deleted = api.records.filesets().delete_file(&fileset.id, &normalised).await;
    let deleted = or_not_found(deleted, || missing(&workspace, &name, &path))?;
    Ok(Json(show(&workspace, &name, &deleted, None)))
}

async fn find(api: &Api, workspace: &str, name: &str, path: &str) -> Answer<Stored> {
    let normalised = normalise(path)?;
    let missing = || missing(workspace, name, path);
    match filesets::find(api, workspace, name).await? {
        Found::Stored(fileset) => {
            let file = api.records.filesets().get_file(&fileset.id, &normalised).await;
            Ok(or_not_found(file, missing)?.into())
        }
        Found::OfJob(job) => {
            let mut files = job_files::files(api, &job).await?.into_iter();
            let file = files.find(|file| file.entry.path == normalised);
            file.ok_or_else(|| ApiError::not_found(missing()))
        }
    }
}

fn missing(workspace: &str, name: &str, path: &str) -> String {
    format!("File '{path}' not found in fileset '{workspace}/{name}'")
}

fn normalise(path: &str) -> Answer<String> {
    path::normalise(path).map_err(|outside| ApiError::bad_request(outside.to_string()))
}

/// The permission bits of an upload, in octal.
fn mode(headers: &HeaderMap) -> Answer<u32> {
    let Some(header) = headers.get("x-errand-mode") else { return Ok(DEFAULT_MODE) };
    let mode = header.to_str().ok().and_then(|text| u32::from_str_radix(text, 8).ok());
    mode.filter(|mode| *mode <= 0o777).ok_or_else(|| {
        let sent = String::from_utf8_lossy(header.as_bytes());
        ApiError::bad_request(format!(
            "Header x-errand-mode is '{sent}', expected 0 to 777 in octal"
        ))
    })
}

/// The part that is asked for, and the headers of the answer.
fn part(file: &FileEntry, asked: &HeaderMap) -> Answer<Part> {
    let etag = range::etag(&file.sha256)?;
    let mut part = range::part(asked, file.size, &[&etag])?;
    let kind = HeaderValue::from_static("application/octet-stream");
    part.headers.insert(header::CONTENT_TYPE, kind);
    part.headers.insert(header::ETAG, etag);
    part.headers.insert("x-errand-mode", range::value(&format!("{:o}", file.mode))?);
    part.headers.insert("x-errand-sha256", range::value(&file.sha256)?);
    Ok(part)
}

fn show(workspace: &str, name: &str, file: &FileEntry, cache_status: Option<&str>) -> Value {
    let encoded = utf8_percent_encode(&file.path, PATH);
    json!({
        "file_ref": format!("{workspace}/{name}#{}", file.path),
        "file_url": format!("/apis/files/v2/workspaces/{workspace}/filesets/{name}/-/{encoded}"),
        "path": file.path,
        "size": file.size,
        "cache_status": cache_status,
        "mode": format!("{:o}", file.mode),
        "sha256": file.sha256,
    })
}
