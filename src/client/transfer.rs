//! Files up and down, streamed: memory stays flat for any size.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use reqwest::Method;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio_util::io::ReaderStream;

use super::error::innermost;
use super::{Client, Error, MODE_HEADER};

/// A header in which the server says the digest of what it sends.
const SHA256_HEADER: &str = "x-errand-sha256";

/// What came.
#[derive(Clone, Debug)]
pub struct Downloaded {
    /// Where it is now.
    pub path: PathBuf,
    /// Its bytes.
    pub size: u64,
    /// Its digest.
    pub sha256: String,
}

/// A download that was asked for and is about to be written.
pub struct Download {
    response: reqwest::Response,
    base: String,
    request: String,
}

impl Client {
    /// Uploads a regular file with its mode, but for what the server does not keep: set-id bits.
    pub async fn upload(&self, path: &str, file: &Path) -> Result<Value, Error> {
        let failed = |reason| Error::File { path: file.to_owned(), reason };
        let opened = tokio::fs::File::open(file).await.map_err(failed)?;
        let metadata = opened.metadata().await.map_err(failed)?;
        let request = self
            .request(&self.patient, Method::PUT, path)
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_LENGTH, metadata.len())
            .header(MODE_HEADER, format!("{:o}", metadata.permissions().mode() & 0o777))
            .body(reqwest::Body::wrap_stream(ReaderStream::with_capacity(opened, 64 * 1024)));
        self.json(request).await
    }

    /// Asks for a file or a result.
    pub async fn download(&self, path: &str) -> Result<Download, Error> {
        let (response, request) = self.answer(self.request(&self.http, Method::GET, path)).await?;
        let base = self.context.base_url.clone();
        Ok(Download { response, base, request })
    }
}

impl Download {
    /// The file name that the server gives it.
    pub fn file_name(&self) -> Option<String> {
        let value = self.header("content-disposition")?;
        let name = value.split("filename=\"").nth(1)?.split('"').next()?;
        // A name, never a way to another directory.
        let name = Path::new(name).file_name()?.to_str()?;
        Some(name.to_owned())
    }

    /// Writes it beside `target` and puts it in place once it is whole. `progress` hears how far
    /// it is and, if known, of how much.
    pub async fn write(
        self,
        target: &Path,
        progress: impl Fn(u64, Option<u64>),
    ) -> Result<Downloaded, Error> {
        let failed = |reason| Error::File { path: target.to_owned(), reason };
        let expected = self.header("content-length").and_then(|length| length.parse().ok());
        let digest = self.header(SHA256_HEADER).map(str::to_lowercase);
        let mode = self.header(MODE_HEADER).and_then(|mode| u32::from_str_radix(mode, 8).ok());
        let mode = mode.filter(|mode| *mode <= 0o777);
        // Not made of the target's name, which may be as long as names can be.
        let name = format!(".errand-{}.part", uuid::Uuid::new_v4().simple());
        let temporary = Partial(target.with_file_name(name));
        let mut file = tokio::fs::File::create(&temporary.0).await.map_err(failed)?;
        let mut body = self.response.bytes_stream();
        let (mut size, mut hash) = (0u64, Sha256::new());
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|error| Error::Unreachable {
                sent: true,
                base: self.base.clone(),
                reason: format!("the download broke off after {size} bytes: {}", innermost(&error)),
                request: self.request.clone(),
            })?;
            hash.update(&chunk);
            size += chunk.len() as u64;
            file.write_all(&chunk).await.map_err(failed)?;
            progress(size, expected);
        }
        file.flush().await.map_err(failed)?;
        if let Some(mode) = mode {
            file.set_permissions(Permissions::from_mode(mode)).await.map_err(failed)?;
        }
        let sha256 = hex::encode(hash.finalize());
        let wrong = match (expected, digest) {
            (Some(expected), _) if expected != size => {
                Some(format!("{size} of {expected} bytes came"))
            }
            (_, Some(digest)) if digest != sha256 => {
                Some(format!("sha256 is {sha256}, the server says {digest}"))
            }
            _ => None,
        };
        if let Some(reason) = wrong {
            return Err(Error::Answer { reason, request: self.request });
        }
        tokio::fs::rename(&temporary.0, target).await.map_err(failed)?;
        Ok(Downloaded { path: target.to_owned(), size, sha256 })
    }

    fn header(&self, name: &str) -> Option<&str> {
        header(self.response.headers(), name)
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A file that is not whole yet; removed unless it was put in place.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests;
