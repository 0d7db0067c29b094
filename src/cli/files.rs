//! `errand files`: a fileset's files, up and down, eight at a time.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::render::Column;
use super::tree::{Found, Links, walk};
use super::{Session, Usage};
use crate::client::reference::FileRef;
use crate::client::{segment, segments};
use crate::exit::Exit;

/// Transfers at the same time.
const AT_ONCE: usize = 8;

const COLUMNS: &[Column] = &[("PATH", "/path"), ("SIZE", "/size"), ("REF", "/file_ref")];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Upload a file or a directory; `DIR/` uploads what is in it, `DIR` the directory itself
    Upload {
        /// What to upload
        source: PathBuf,
        /// Where to: [workspace/]fileset[#path]
        #[arg(value_name = "REF")]
        target: FileRef,
    },
    /// List files
    List {
        /// What: [workspace/]fileset[#path]
        #[arg(value_name = "REF")]
        reference: FileRef,
    },
    /// Download a file, or all below a path
    Download {
        /// What: [workspace/]fileset[#path]
        #[arg(value_name = "REF")]
        reference: FileRef,
        /// The directory to put it in
        #[arg(long, short, value_name = "DIR", default_value = ".")]
        output: PathBuf,
    },
    /// Delete one file
    Delete {
        /// Which: [workspace/]fileset#path
        #[arg(value_name = "REF")]
        reference: FileRef,
    },
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        match self {
            Self::Upload { source, target } => upload(session, &source, &target).await?,
            Self::List { reference } => {
                session.out.list(&list(session, &reference).await?, COLUMNS);
            }
            Self::Download { reference, output } => download(session, &reference, &output).await?,
            Self::Delete { reference } => {
                if reference.path.is_empty() {
                    return Err(Usage("name the file to delete: fileset#path".to_owned()).into());
                }
                let path = file_path(&fileset_path(session, &reference), &reference.path);
                session.out.one(&session.client.delete(&path).await?);
            }
        }
        Ok(Exit::Done)
    }
}

async fn upload(session: &Session, source: &Path, target: &FileRef) -> anyhow::Result<()> {
    let found = plan(source, target, &mut |path, why| {
        session.out.note(&format!("left out {}: {why}", path.display()));
    })?;
    let path = fileset_path(session, target);
    match session.client.get(&path).await {
        Ok(_) => {}
        Err(error) if error.is_not_found() => {
            let filesets =
                format!("{}/filesets", session.base("files", target.workspace.as_deref()));
            session.client.post(&filesets, &json!({"name": target.fileset})).await?;
            session.out.note(&format!("fileset '{}' is made", target.fileset));
        }
        Err(error) => return Err(error.into()),
    }
    upload_all(session, &path, "", &found).await?;
    let bytes: u64 = found.iter().map(|file| file.size).sum();
    session.out.one(&json!({"fileset": target.fileset, "files": found.len(), "bytes": bytes}));
    Ok(())
}

/// What goes up, each file with its path in the fileset.
fn plan(
    source: &Path,
    target: &FileRef,
    left_out: &mut dyn FnMut(&Path, &str),
) -> anyhow::Result<Vec<Found>> {
    let metadata =
        source.metadata().with_context(|| format!("cannot read {}", source.display()))?;
    let name = || match source.canonicalize()?.file_name().and_then(|name| name.to_str()) {
        Some(name) => Ok(name.to_owned()),
        None => bail!("{}: has no name that can be uploaded", source.display()),
    };
    let contents_only =
        source.as_os_str().as_encoded_bytes().ends_with(b"/") || source == Path::new(".");
    let mut found = if metadata.is_dir() {
        walk(source, Links::FollowToFiles, left_out)?
    } else {
        let relative = String::new();
        vec![Found { relative, path: source.to_owned(), size: metadata.len() }]
    };
    // A file lies under its own name in a directory, or under the name that was typed.
    let below_its_name = if metadata.is_dir() { !contents_only } else { target.is_dir };
    let prefix = if below_its_name { join(&target.path, &name()?) } else { target.path.clone() };
    for file in &mut found {
        file.relative = join(&prefix, &file.relative);
    }
    Ok(found)
}

/// Uploads files below a path of the fileset, the first failure ends it.
pub(super) async fn upload_all(
    session: &Session,
    fileset: &str,
    below: &str,
    found: &[Found],
) -> anyhow::Result<()> {
    let mut done = 0usize;
    let mut uploads = stream::iter(found)
        .map(|file| async move {
            let path = file_path(fileset, &join(below, &file.relative));
            session.client.upload(&path, &file.path).await
        })
        .buffer_unordered(AT_ONCE);
    let outcome = loop {
        match uploads.try_next().await {
            Ok(None) => break Ok(()),
            Ok(Some(_)) => {
                done += 1;
                session.out.progress(&format!("{done} of {} files uploaded", found.len()));
            }
            Err(error) => break Err(error.into()),
        }
    };
    session.out.progress("");
    outcome
}

async fn download(session: &Session, reference: &FileRef, output: &Path) -> anyhow::Result<()> {
    let listing = list(session, reference).await?;
    let paths: Vec<_> = listing["data"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|file| file["path"].as_str())
        .map(str::to_owned)
        .collect();
    if paths.is_empty() {
        bail!("nothing is at '{}#{}'", reference.fileset, reference.path);
    }
    let fileset = &fileset_path(session, reference);
    let bytes = stream::iter(&paths)
        .map(|path| async move {
            let target = output.join(local_path(path, &reference.path)?);
            if let Some(dir) = target.parent() {
                std::fs::create_dir_all(dir)
                    .with_context(|| format!("cannot make {}", dir.display()))?;
            }
            let download = session.client.download(&file_path(fileset, path)).await?;
            anyhow::Ok(download.write(&target, |_, _| {}).await?.size)
        })
        .buffer_unordered(AT_ONCE)
        .try_fold(0, |sum, size| async move { Ok(sum + size) })
        .await?;
    session.out.one(&json!({"directory": output, "files": paths.len(), "bytes": bytes}));
    Ok(())
}

/// Where a downloaded file goes, below the directory: its path below what was asked for, or its
/// name when it was asked for itself.
fn local_path(path: &str, asked: &str) -> anyhow::Result<PathBuf> {
    let below = match path.strip_prefix(asked) {
        Some("") => path.rsplit('/').next().unwrap_or(path),
        Some(rest) if !asked.is_empty() => rest.strip_prefix('/').unwrap_or(rest),
        _ => path,
    };
    // The server's word must not lead out of the directory.
    if below.split('/').any(|part| matches!(part, "" | "." | "..")) {
        bail!("the server names a file '{path}', which cannot be written");
    }
    Ok(below.into())
}

async fn list(session: &Session, reference: &FileRef) -> anyhow::Result<Value> {
    let path = format!("{}/files", fileset_path(session, reference));
    let query = [("path", reference.path.clone())];
    let query = if reference.path.is_empty() { &[][..] } else { &query[..] };
    Ok(session.client.query(&path, query).await?)
}

fn fileset_path(session: &Session, reference: &FileRef) -> String {
    let base = session.base("files", reference.workspace.as_deref());
    format!("{base}/filesets/{}", segment(&reference.fileset))
}

fn file_path(fileset: &str, path: &str) -> String {
    format!("{fileset}/-/{}", segments(path))
}

fn join(dir: &str, name: &str) -> String {
    match (dir, name) {
        ("", name) => name.to_owned(),
        (dir, "") => dir.to_owned(),
        (dir, name) => format!("{dir}/{name}"),
    }
}

#[cfg(test)]
mod tests;
