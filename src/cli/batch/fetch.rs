//! The results of one job of a batch, into a directory of its own. What is there already, whole,
//! is not fetched again.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;

use super::server::Server;
use crate::cli::Session;
use crate::client::{Error, segment};

/// What the agent was given, which whoever submits has.
const INPUT: &str = "input_workdir";

/// How often a download that breaks off is begun again.
const MOST_BREAKS: u32 = 5;

/// Which results are fetched: those of these names; all but the agent's input when there is none.
pub(super) type Wanted = [String];

/// Fetches the results of a job into a directory; what the index beside that says of each.
pub(super) async fn results(
    (session, server): (&Session, &Server<'_>),
    job: &str,
    wanted: &Wanted,
    directory: &Path,
) -> anyhow::Result<Vec<Value>> {
    let at = format!("{}/jobs/{}/results", session.base("jobs", None), segment(job));
    let listed = server.call(async || session.client.get(&at).await).await;
    let listed = match listed {
        // It was deleted just now.
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut fetched = Vec::new();
    for result in listed["data"].as_array().into_iter().flatten() {
        let name = result["name"].as_str().unwrap_or_default();
        let is_wanted = match wanted {
            [] => name != INPUT,
            wanted => wanted.iter().any(|wanted| wanted == name),
        };
        if is_wanted {
            let url = format!("{at}/{}/download", segment(name));
            fetched.extend(one((session, server), &url, result, directory).await?);
        }
    }
    Ok(fetched)
}

/// Fetches one; none when it is gone.
async fn one(
    (session, server): (&Session, &Server<'_>),
    url: &str,
    result: &Value,
    directory: &Path,
) -> anyhow::Result<Option<Value>> {
    let name = result["name"].as_str().unwrap_or_default();
    let extension = if result["kind"] == "directory" { ".tar.gz" } else { "" };
    let file = format!("{}{extension}", segment(name));
    let path = directory.join(&file);
    let job = directory.file_name().unwrap_or_default().to_string_lossy();
    let entry = json!({
        "name": name,
        "path": format!("{job}/{file}"),
        "size": result["size"],
        "sha256": result["sha256"],
        "complete": result["complete"],
    });
    if is_there(path.clone(), result).await? {
        return Ok(Some(entry));
    }
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let broken = Cell::new(0);
    let download = async || {
        let written = session.client.download(url).await?.write(&path, |_, _| {}).await;
        let written = match written {
            // A server that breaks off again and again has something against this one.
            Err(Error::Unreachable { reason, request, .. })
                if broken.replace(broken.get() + 1) >= MOST_BREAKS =>
            {
                return Err(Error::Answer { reason, request });
            }
            written => written?,
        };
        match result["sha256"].as_str() {
            Some(sha256) if sha256 != written.sha256 => Err(Error::Answer {
                reason: format!("sha256 is {}, the list says {sha256}", written.sha256),
                request: format!("GET {url}"),
            }),
            _ => Ok(()),
        }
    };
    match server.call(download).await {
        Ok(()) => Ok(Some(entry)),
        Err(error) if error.is_not_found() => Ok(None),
        // It may be there another time; the other results are not kept waiting for it.
        Err(error @ (Error::Refused { .. } | Error::Answer { .. })) => {
            Ok(Some(json!({"name": name, "error": error.to_string()})))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a file is what the server lists.
async fn is_there(path: PathBuf, result: &Value) -> anyhow::Result<bool> {
    let size = path.metadata().ok().map(|metadata| metadata.len());
    if size.is_none() || size != result["size"].as_u64() {
        return Ok(false);
    }
    let digest = spawn_blocking(move || -> io::Result<String> {
        let mut hash = Sha256::new();
        io::copy(&mut File::open(path)?, &mut hash)?;
        Ok(hex::encode(hash.finalize()))
    });
    Ok(digest.await??.as_str() == result["sha256"].as_str().unwrap_or_default())
}
