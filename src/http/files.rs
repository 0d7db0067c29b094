//! Files of filesets: listing, upload, download, removal.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use streams::snapshot::FileEntry;

use super::Api;
use super::error::{Answer, ApiError, or_not_found};
use super::list::Pairs;
use super::{filesets, range};
use crate::files::path;
use crate::records::Fileset;

/// Permission bits of a file that says none.
const DEFAULT_MODE: u32 = 0o644;

/// What stays as it is in the path of a URL.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

type Named = Path<(String, String, String)>;

/// Lists the files below a path: all of them, a directory's, or the one.
pub(super) async fn list(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    query: Pairs,
) -> Answer<Json<Value>> {
    let fileset = filesets::find(&api, &workspace, &name).await?;
    let asked = query.get("path").unwrap_or_default();
    let under = normalise(asked)?;
    let mut files = api.records.filesets().files(&fileset.id, &under).await?;
    // `file/` names a directory, and there is none.
    if asked.ends_with('/') {
        files.retain(|file| file.path != under);
    }
    let shown = files.iter().map(|file| show(&fileset, file, Some("not_cacheable")));
    Ok(Json(json!({"data": shown.collect::<Vec<_>>()})))
}

/// Writes a file: the body is its content.
pub(super) async fn put(
    State(api): State<Api>,
    Path((workspace, name, typed)): Named,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<Value>> {
    let path = normalise(&typed)?;
    if path.is_empty() {
        return Err(ApiError::bad_request("A file needs a path below the root of its fileset"));
    }
    if let Some(segment) = path::too_long(&path) {
        return Err(ApiError::bad_request(format!(
            "Path segment '{segment}' has {} bytes, shorten it to {}",
            segment.len(),
            path::MAX_SEGMENT_BYTES
        )));
    }
    let mode = mode(&headers)?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("multipart/")) {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Multipart uploads are not supported; send the file's bytes as the body",
        ));
    }
    let fileset = filesets::find(&api, &workspace, &name).await?;
    let file = api.files.put(&fileset, path, mode, body.into_data_stream()).await?;
    Ok(Json(show(&fileset, &FileEntry { path: typed, ..file }, None)))
}

/// Reads a file, or a part of it.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, name, path)): Named,
    asked: HeaderMap,
) -> Answer {
    let (_, file) = find(&api, &workspace, &name, &path).await?;
    let range = range::asked(&asked, file.size)?;
    let (status, headers) = file_headers(&file, range)?;
    let object = api.files.open(&file, range).await?;
    let object =
        object.ok_or_else(|| ApiError::internal(format!("blob {} is gone", file.sha256)))?;
    Ok::<Response, _>(range::stream(status, headers, object))
}

/// What a download would say, without its bytes.
pub(super) async fn head(
    State(api): State<Api>,
    Path((workspace, name, path)): Named,
    asked: HeaderMap,
) -> Answer {
    let (_, file) = find(&api, &workspace, &name, &path).await?;
    let (status, headers) = file_headers(&file, range::asked(&asked, file.size)?)?;
    Ok((status, headers).into_response())
}

/// Removes a file.
pub(super) async fn delete(
    State(api): State<Api>,
    Path((workspace, name, path)): Named,
) -> Answer<Json<Value>> {
    let (fileset, file) = find(&api, &workspace, &name, &path).await?;
    let deleted = api.records.filesets().delete_file(&fileset.id, &file.path).await;
    let deleted = or_not_found(deleted, || missing(&fileset, &path))?;
    Ok(Json(show(&fileset, &deleted, None)))
}

async fn find(api: &Api, workspace: &str, name: &str, path: &str) -> Answer<(Fileset, FileEntry)> {
    let normalised = normalise(path)?;
    let fileset = filesets::find(api, workspace, name).await?;
    let file = api.records.filesets().get_file(&fileset.id, &normalised).await;
    let file = or_not_found(file, || missing(&fileset, path))?;
    Ok((fileset, file))
}

fn missing(fileset: &Fileset, path: &str) -> String {
    format!("File '{path}' not found in fileset '{}/{}'", fileset.workspace, fileset.name)
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

fn file_headers(file: &FileEntry, range: Option<(u64, u64)>) -> Answer<(StatusCode, HeaderMap)> {
    let (status, mut headers) = range::headers(file.size, range)?;
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert("x-errand-mode", range::value(&format!("{:o}", file.mode))?);
    headers.insert("x-errand-sha256", range::value(&file.sha256)?);
    Ok((status, headers))
}

fn show(fileset: &Fileset, file: &FileEntry, cache_status: Option<&str>) -> Value {
    let (workspace, name) = (&fileset.workspace, &fileset.name);
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
