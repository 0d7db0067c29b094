//! `agents.export-files`: puts files of the agent's working directory into a fileset.
//!
//! The bundle is read twice: once for the names, so that a path that matches nothing is known
//! before anything is written, and once for the contents, which stream into the fileset.

mod pattern;

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use streams::snapshot::ObjectRef;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::{Definition, Done, Occasion, Way};
use crate::bundle::{self, FileFound, Limits, UnpackError, display_name};
use crate::ports::{Filesets, FilesetsError};
use crate::results::name;
use crate::step::StepError;
use crate::store::{Store, drain};
pub(crate) use pattern::Pattern;

/// Files of one job at most; their names are held in memory.
const MAX_FILES: usize = 10_000;

/// Bytes of holes that are written out as zeros, in all files of one job; what of a file has fewer
/// than some does not count.
const MAX_HOLES: u64 = 1 << 30;
const COUNTED_HOLES: u64 = 1 << 20;

/// Filesets of such names show the results of jobs; nothing is written there.
const JOB_FILESET: &str = "job-fileset-";

/// Bytes a chunk on the way to the store, and how many of them.
const CHUNK_BYTES: usize = 256 * 1024;
const CHUNKS: usize = 4;

#[derive(Deserialize)]
struct Config {
    fileset: String,
    paths: Vec<String>,
    workspace: Option<String>,
}

/// The files that are meant: the name in the bundle, and the paths that it goes to.
type Chosen = BTreeMap<Vec<u8>, Vec<String>>;

/// A file on its way.
struct Item {
    paths: Vec<String>,
    mode: u32,
    bytes: mpsc::Receiver<io::Result<Bytes>>,
}

/// Why files are not exported.
enum Failure {
    Failed(String),
    Later(StepError),
}

pub(super) fn definition() -> Definition {
    let schema = json!({
        "type": "object",
        "required": ["fileset", "paths"],
        "additionalProperties": false,
        "properties": {
            "fileset": {
                "type": "string",
                "pattern": r"^[a-z](?!.*--)[a-z0-9\-@.+_]{1,62}(?<!-)$",
                "description": "Made when it does not exist.",
            },
            "paths": {
                "type": "array",
                "minItems": 1,
                "maxItems": 100,
                "items": {"type": "string", "minLength": 1, "maxLength": 1024},
                "description": "Files or directories in output_workdir; * and ? match within a \
                                name, ** across directories.",
            },
            "workspace": {"type": "string", "description": "The job's own."},
        },
    });
    let description = "Puts files of output_workdir into a fileset.";
    ("agents.export-files", "Export files", description, schema, Way::ExportFiles)
}

/// What the schema cannot say.
pub(super) fn check(config: &Map<String, Value>, workspace: &str) -> Result<(), String> {
    let config: Config = super::read(config)?;
    patterns(&config.paths)?;
    if config.fileset.starts_with(JOB_FILESET) {
        return Err(format!(
            "fileset: names beginning with '{JOB_FILESET}' are kept for the results of jobs, got \
             '{}'",
            config.fileset
        ));
    }
    match config.workspace {
        Some(other) if other != workspace => Err(format!(
            "workspace: '{other}' is not the job's workspace '{workspace}'; files are exported \
             into that one only"
        )),
        _ => Ok(()),
    }
}

/// Puts the files into the fileset. Doing it again writes the same.
pub(crate) async fn export(
    filesets: &dyn Filesets,
    occasion: &Occasion<'_>,
    config: &Map<String, Value>,
) -> Result<Done, StepError> {
    match exported(filesets, occasion, config).await {
        Ok(()) => Ok(Done::default()),
        Err(Failure::Failed(reason)) => Ok(Done::failed(reason)),
        Err(Failure::Later(error)) => Err(error),
    }
}

async fn exported(
    filesets: &dyn Filesets,
    occasion: &Occasion<'_>,
    config: &Map<String, Value>,
) -> Result<(), Failure> {
    let workspace = &occasion.job.workspace;
    let config: Config = super::read(config)?;
    let bundle = &occasion.result(name::OUTPUT_WORKDIR)?.object;
    let patterns = patterns(&config.paths)?;
    let body = open(occasion.store, bundle).await?;
    let chosen = spawn_blocking(move || choose(body, &patterns)).await.map_err(later)??;

    filesets.ensure(workspace, &config.fileset).await?;
    let body = open(occasion.store, bundle).await?;
    let (items, mut arriving) = mpsc::channel(1);
    let reading = spawn_blocking(move || read_out(body, &chosen, &items));
    let mut put = Ok(());
    while let Some(Item { paths, mode, bytes }) = arriving.recv().await {
        let bytes =
            stream::unfold(bytes, |mut bytes| async move { Some((bytes.recv().await?, bytes)) });
        put = filesets.put(workspace, &config.fileset, &paths, mode, bytes.boxed()).await;
        if put.is_err() {
            break;
        }
    }
    drop(arriving);
    // Where writing failed, reading failed for want of a reader: the first is the cause.
    let read = reading.await.map_err(later)?;
    put.map_err(Failure::from).and(read.map_err(Failure::from))
}

fn patterns(paths: &[String]) -> Result<Vec<Pattern>, String> {
    paths.iter().map(|path| Pattern::parse(path).map_err(|why| format!("paths: {why}"))).collect()
}

async fn open(store: &Store, bundle: &ObjectRef) -> Result<impl Read + Send + use<>, Failure> {
    let object = store.fetch(bundle).await.map_err(later)?;
    let object = object.ok_or_else(|| Failure::Failed(format!("object {} is gone", bundle.key)))?;
    Ok(object.into_read())
}

/// Finds the files that are meant. Every pattern must mean at least one.
fn choose(mut bundle: impl Read + Send, patterns: &[Pattern]) -> Result<Chosen, Failure> {
    let mut chosen = Chosen::new();
    let mut unmatched: Vec<_> = patterns.iter().collect();
    let (mut count, mut unnamed) = (0, None);
    let mut holes = HashMap::new();
    let read = bundle::files(&mut bundle, Limits::default(), |name, found| {
        let source = match found {
            FileFound::File { size, stored, .. } => {
                if size - stored >= COUNTED_HOLES {
                    holes.insert(hashed(name), (size, stored));
                }
                name
            }
            FileFound::Link { first } => first,
        };
        let text = String::from_utf8_lossy(name);
        if !patterns.iter().any(|pattern| pattern.matches(&text)) {
            return Ok(());
        }
        unmatched.retain(|pattern| !pattern.matches(&text));
        count += 1;
        match str::from_utf8(name) {
            Ok(path) if count <= MAX_FILES => {
                chosen.entry(source.to_vec()).or_default().push(path.to_owned());
            }
            Ok(_) => {}
            Err(_) => unnamed = Some(display_name(name)),
        }
        Ok(())
    });
    drain(bundle).map_err(later)?;
    read?;
    let failed = |reason: String| Err(Failure::Failed(reason));
    if !unmatched.is_empty() {
        let paths: Vec<_> = unmatched.iter().map(|pattern| format!("'{pattern}'")).collect();
        return failed(format!("output_workdir has no file at {}", paths.join(", ")));
    }
    if let Some(name) = unnamed {
        return failed(format!("'{name}' has a name that is not UTF-8, which no fileset can hold"));
    }
    if count > MAX_FILES {
        return failed(format!("paths match {count} files, {MAX_FILES} at most are exported"));
    }
    let mut in_holes = 0;
    let holey = |name| Some((name, holes.get(&hashed(name))?));
    for (name, (size, stored)) in chosen.keys().map(Vec::as_slice).filter_map(holey) {
        in_holes += size - stored;
        if in_holes > MAX_HOLES {
            return failed(format!(
                "'{}' has {size} bytes, of which {stored} are stored: a fileset keeps no holes, and \
                 at most {MAX_HOLES} bytes of them are exported",
                display_name(name)
            ));
        }
    }
    Ok(chosen)
}

/// Instead of a name: there may be very many of files that nobody has chosen.
fn hashed(name: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    name.hash(&mut hash);
    hash.finish()
}

/// Runs on a thread that may block, and gives each chosen file to whoever writes it.
fn read_out(
    mut bundle: impl Read + Send,
    chosen: &Chosen,
    items: &mpsc::Sender<Item>,
) -> Result<(), UnpackError> {
    let gone = || UnpackError::from(io::Error::from(io::ErrorKind::BrokenPipe));
    let read = bundle::files(&mut bundle, Limits::default(), |name, found| {
        let (FileFound::File { mode, data, .. }, Some(paths)) = (found, chosen.get(name)) else {
            return Ok(());
        };
        let (chunks, bytes) = mpsc::channel(CHUNKS);
        let item = Item { paths: paths.clone(), mode, bytes };
        items.blocking_send(item).map_err(|_| gone())?;
        loop {
            let mut chunk = Vec::new();
            match data.take(CHUNK_BYTES as u64).read_to_end(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(_) => chunks.blocking_send(Ok(chunk.into())).map_err(|_| gone())?,
                Err(error) => {
                    // Whoever writes must not take what there is for the whole file.
                    let _ = chunks.blocking_send(Err(io::ErrorKind::UnexpectedEof.into()));
                    return Err(error.into());
                }
            }
        }
    });
    drain(bundle)?;
    read
}

fn later(error: impl std::fmt::Display) -> Failure {
    Failure::Later(StepError::retry(error))
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl From<UnpackError> for Failure {
    fn from(error: UnpackError) -> Self {
        match error {
            UnpackError::Io(error) => later(error),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<FilesetsError> for Failure {
    fn from(error: FilesetsError) -> Self {
        match error {
            FilesetsError::Refused(reason) => Self::Failed(reason),
            FilesetsError::Unavailable(error) => later(error),
        }
    }
}

#[cfg(test)]
mod tests;
