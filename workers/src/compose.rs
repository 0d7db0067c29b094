//! Puts a working directory together from pinned sources and stores it as one bundle, without
//! ever laying it out on a disk.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use streams::snapshot::{FileEntry, Mount, ObjectRef, Source};
use tokio::sync::mpsc;

use crate::bundle::{self, Limits, Pick, UnpackError, Writer};
use crate::store::{self, Store, Upload, drain, key};

/// Files up to this size are fetched ahead; larger ones stream through.
const AHEAD_BYTES: u64 = 256 * 1024;

/// How many are fetched at once.
const AHEAD: usize = 16;

/// Mode of directories that a fileset implies.
const DIRECTORY_MODE: u32 = 0o755;

/// Why a bundle could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// A source is gone or damaged: trying again does not help.
    #[error("{0}")]
    Broken(String),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The thread that packs failed.
    #[error("cannot pack the bundle: {0}")]
    Pack(#[from] io::Error),
}

/// What goes into the bundle.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Name of the top-level directory.
    pub top: String,
    /// What it is filled with first.
    pub base: Option<Source>,
    /// What is laid over it; a mount wins at its path.
    pub mounts: Vec<Mount>,
    /// Modification time, in seconds, of what has none of its own. Fixed, so that putting the
    /// bundle together again gives the same bytes.
    pub mtime: u64,
}

/// One thing for the packing thread to write.
enum Item {
    Directory { name: String },
    File { name: String, entry: FileEntry, body: Body },
    Bundle { body: Body, pick: Pick, prefix: String, single: bool, covered: Vec<String> },
}

type Body = Box<dyn Read + Send>;

/// Packs a recipe and stores it under a key. Adds to `packed` the bytes that were handed over,
/// for those who ask meanwhile. Dropped before its end, it leaves nothing behind.
pub async fn compose(
    store: &Store,
    key: &str,
    recipe: &Recipe,
    packed: &AtomicU64,
) -> Result<ObjectRef, ComposeError> {
    let (items, to_pack) = mpsc::channel(AHEAD);
    let (out, chunks) = bundle::pipe();
    let (top, mtime) = (recipe.top.clone(), i64::try_from(recipe.mtime).unwrap_or_default());
    let packing = tokio::task::spawn_blocking(move || pack(to_pack, out, &top, mtime));
    let mut upload = store.upload(key);
    let gathering = async {
        let gathered = gather(store, recipe, &items).await;
        drop(items);
        gathered
    };
    let (gathered, sent) = tokio::join!(gathering, send(chunks, &mut upload, packed));
    let written = packing.await.map_err(io::Error::other)?;
    // When one end fails the others fail for want of it: what happened first counts.
    if let Err(error) = sent.map_err(ComposeError::from).and(written).and(gathered) {
        upload.abort().await;
        return Err(error);
    }
    Ok(upload.finish().await?)
}

/// Owns the reading end: when it fails, so does the writer, instead of waiting for it.
async fn send(
    mut chunks: mpsc::Receiver<Bytes>,
    upload: &mut Upload,
    packed: &AtomicU64,
) -> Result<(), store::Error> {
    while let Some(chunk) = chunks.recv().await {
        upload.write(&chunk).await?;
        packed.fetch_add(chunk.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

async fn gather(
    store: &Store,
    recipe: &Recipe,
    items: &mpsc::Sender<Item>,
) -> Result<(), ComposeError> {
    let covered: Vec<_> = recipe.mounts.iter().map(|mount| mount.mount_path.clone()).collect();
    if let Some(base) = &recipe.base {
        add(store, base, "", covered, items).await?;
    }
    for mount in &recipe.mounts {
        for (slash, _) in mount.mount_path.match_indices('/') {
            let name = mount.mount_path[..slash].to_owned();
            give(items, Item::Directory { name }).await?;
        }
        add(store, &mount.source, &mount.mount_path, Vec::new(), items).await?;
    }
    Ok(())
}

/// Adds a source below `prefix`, but for what mounts cover.
async fn add(
    store: &Store,
    source: &Source,
    prefix: &str,
    covered: Vec<String>,
    items: &mpsc::Sender<Item>,
) -> Result<(), ComposeError> {
    match source {
        Source::Bundle { object, path } => {
            let body = open(store, object).await?;
            let pick = Pick { path: path.clone() };
            let prefix = prefix.to_owned();
            let single = !path.is_empty();
            give(items, Item::Bundle { body, pick, prefix, single, covered }).await
        }
        Source::Files { listing, path } => {
            let entries = listed(store, listing, path, prefix).await?;
            let entries = entries
                .into_iter()
                .filter(|(name, _)| !is_covered(&covered, name.as_bytes(), false));
            add_files(store, entries.collect(), items).await
        }
    }
}

async fn add_files(
    store: &Store,
    entries: Vec<(String, FileEntry)>,
    items: &mpsc::Sender<Item>,
) -> Result<(), ComposeError> {
    let mut known = BTreeSet::new();
    let opened = stream::iter(entries).map(|(name, entry)| async move {
        let body = fetch(store, &entry).await?;
        Ok::<_, ComposeError>((name, entry, body))
    });
    let mut opened = std::pin::pin!(opened.buffered(AHEAD));
    while let Some(next) = opened.next().await {
        let (name, entry, body) = next?;
        for (slash, _) in name.match_indices('/') {
            let directory = &name[..slash];
            if known.insert(directory.to_owned()) {
                give(items, Item::Directory { name: directory.to_owned() }).await?;
            }
        }
        give(items, Item::File { name, entry, body }).await?;
    }
    Ok(())
}

/// The entries of a listing below `path`, with their names below `prefix`.
async fn listed(
    store: &Store,
    listing: &ObjectRef,
    path: &str,
    prefix: &str,
) -> Result<Vec<(String, FileEntry)>, ComposeError> {
    let missing = || ComposeError::Broken(format!("listing {} is gone", listing.key));
    let bytes = read(store, listing).await?.ok_or_else(missing)?;
    let mut found = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let entry: FileEntry = serde_json::from_slice(line).map_err(|error| {
            ComposeError::Broken(format!("listing {} is damaged: {error}", listing.key))
        })?;
        let below = match entry.path.strip_prefix(path) {
            Some(rest) if path.is_empty() || rest.is_empty() => rest,
            Some(rest) if rest.starts_with('/') => &rest[1..],
            _ => continue,
        };
        let name = match (prefix.is_empty(), below.is_empty()) {
            (true, _) => below.to_owned(),
            (false, true) => prefix.to_owned(),
            (false, false) => format!("{prefix}/{below}"),
        };
        found.push((name, entry));
    }
    Ok(found)
}

async fn fetch(store: &Store, entry: &FileEntry) -> Result<Body, ComposeError> {
    let (size, sha256) = (entry.size, entry.sha256.clone());
    let blob = ObjectRef { key: key::blob(&sha256), size, sha256 };
    if entry.size > AHEAD_BYTES {
        return open(store, &blob).await;
    }
    let bytes: Bytes = read(store, &blob).await?.ok_or_else(|| gone(&blob.key))?;
    Ok(Box::new(io::Cursor::new(bytes)))
}

async fn open(store: &Store, object: &ObjectRef) -> Result<Body, ComposeError> {
    for place in places(object) {
        if let Some(opened) = store.fetch(&place).await? {
            return Ok(Box::new(opened.into_read()));
        }
    }
    Err(gone(&object.key))
}

async fn read(store: &Store, object: &ObjectRef) -> Result<Option<Bytes>, store::Error> {
    for place in places(object) {
        if let Some(bytes) = store.read(&place).await? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Where an object is looked for, one after the other. A blob that nothing named for a while, until
/// this job did, may just be on the way to its copy, or back.
fn places(object: &ObjectRef) -> [ObjectRef; 3] {
    let copy = ObjectRef { key: key::unnamed_copy(&object.sha256), ..object.clone() };
    [object.clone(), copy, object.clone()]
}

fn gone(key: &str) -> ComposeError {
    ComposeError::Broken(format!("object {key} is not in the store"))
}

async fn give(items: &mpsc::Sender<Item>, item: Item) -> Result<(), ComposeError> {
    // A packing thread that is gone has its own word to say about why.
    items.send(item).await.map_err(|_| ComposeError::Pack(io::ErrorKind::BrokenPipe.into()))
}

/// Runs on a thread that may block.
fn pack(
    mut items: mpsc::Receiver<Item>,
    out: impl Write,
    top: &str,
    mtime: i64,
) -> Result<(), ComposeError> {
    let mut writer = Writer::new(out, top, DIRECTORY_MODE, mtime)?;
    // Directories that what is laid over them must leave as they are.
    let made = RefCell::new(BTreeSet::new());
    while let Some(item) = items.blocking_recv() {
        match item {
            Item::Directory { name } => {
                if made.borrow_mut().insert(name.clone()) {
                    writer.directory(name.as_bytes(), DIRECTORY_MODE, mtime)?;
                }
            }
            Item::File { name, entry, mut body } => {
                let short =
                    writer.file(name.as_bytes(), entry.mode, mtime, entry.size, &mut body)?;
                if short {
                    let FileEntry { path, sha256, .. } = entry;
                    let why = format!("blob {sha256} of '{path}' is shorter than its listing says");
                    return Err(ComposeError::Broken(why));
                }
            }
            Item::Bundle { mut body, pick, prefix, single, covered } => {
                let covers = |name: &[u8], directory: bool| {
                    if directory
                        && covered.iter().any(|mount| is_below(mount.as_bytes(), name))
                        && let Ok(name) = std::str::from_utf8(name)
                    {
                        made.borrow_mut().insert(name.to_owned());
                    }
                    is_covered(&covered, name, directory)
                };
                let copied = bundle::copy_entries(
                    &mut body,
                    &pick,
                    &mut writer,
                    prefix.as_bytes(),
                    &covers,
                    Limits::default(),
                );
                // Bytes that arrived damaged may look like a bundle that is: they come first.
                drain(body)?;
                let entries = copied.map_err(broken)?;
                if single && entries == 0 {
                    return Err(ComposeError::Broken(format!("nothing at '{}'", pick.path)));
                }
            }
        }
    }
    writer.finish()?;
    Ok(())
}

fn broken(error: UnpackError) -> ComposeError {
    match error {
        UnpackError::Io(error) => ComposeError::Pack(error),
        error => ComposeError::Broken(error.to_string()),
    }
}

/// Whether a mount takes the place of an entry: at or above it, or below it where the entry is
/// no directory and so in the mount's way.
fn is_covered(mounts: &[String], name: &[u8], directory: bool) -> bool {
    mounts.iter().map(String::as_bytes).any(|mount| {
        name == mount || is_below(name, mount) || (!directory && is_below(mount, name))
    })
}

fn is_below(child: &[u8], parent: &[u8]) -> bool {
    child.strip_prefix(parent).is_some_and(|rest| rest.starts_with(b"/"))
}
