//! `action.json`: what it says, and everything that may be wrong with it, said at start-up.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::actions::InstallError;
use crate::actions::schema::Schema;

/// What a manifest is called.
const FILE: &str = "action.json";

/// How long a program may take, unless its manifest says.
const TIMEOUT_SECONDS: f64 = 600.0;

/// Variables that the platform sets.
const OWN_PREFIXES: [&str; 4] = ["ERRAND_", "NEMO_", "NHX_", "FABRIC_"];
const OWN_VARIABLES: [&str; 3] = ["HOME", "PATH", "TMPDIR"];

/// A program that is an action.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    /// Where it stands.
    pub(crate) file: PathBuf,
    pub(crate) kind: String,
    pub(crate) title: String,
    pub(crate) description: String,
    /// Absolute, but for what is looked for on PATH and for plain arguments.
    pub(crate) command: Vec<String>,
    pub(crate) timeout_seconds: f64,
    /// Variable → reference.
    pub(crate) secrets: BTreeMap<String, String>,
    config_schema: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    kind: String,
    title: String,
    description: String,
    command: Vec<String>,
    config_schema: Option<Value>,
    timeout_seconds: Option<f64>,
    #[serde(default)]
    secrets: BTreeMap<String, String>,
}

/// The manifests of the directories in a directory, sorted by their paths.
pub(crate) fn manifests(directory: &Path) -> Result<Vec<Manifest>, InstallError> {
    let unreadable =
        |path: &Path, reason| InstallError::Unreadable { path: path.to_owned(), reason };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| unreadable(directory, error))? {
        let entry = entry.map_err(|error| unreadable(directory, error))?;
        // Resolved, so that a directory that is reached twice is one.
        match entry.path().join(FILE).canonicalize() {
            Ok(file) => found.push(file),
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(unreadable(&entry.path().join(FILE), error)),
        }
    }
    found.sort();
    found.into_iter().map(|file| read(&file)).collect()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read(file: &Path) -> Result<Manifest, InstallError> {
    let unreadable = |reason| InstallError::Unreadable { path: file.to_owned(), reason };
    let text = fs::read(file).map_err(unreadable)?;
    let written: Written = serde_json::from_slice(&text)
        .map_err(|error| refused(file, "it is no manifest", &error.to_string()))?;
    let Written { kind, title, description, .. } = written;
    let refuse = |field: &str, reason: &str| Err(refused(file, field, reason));
    if !is_kind(&kind) {
        let reason =
            format!("'{kind}' should be lower-case words with dots, like insights.analysis");
        return refuse("kind", &reason);
    }
    let timeout_seconds = written.timeout_seconds.unwrap_or(TIMEOUT_SECONDS);
    if !(timeout_seconds > 0.0 && timeout_seconds.is_finite()) {
        return refuse("timeout_seconds", &format!("expected more than 0, got {timeout_seconds}"));
    }
    if let Some(name) = written.secrets.keys().find(|name| !is_free_variable(name)) {
        let reason = format!("'{name}' is no variable name, or one that the platform sets");
        return refuse("secrets", &reason);
    }
    let command = resolve(&written.command, file.parent().unwrap_or(file));
    match command {
        Err(reason) => refuse("command", &reason),
        Ok(command) => Ok(Manifest {
            file: file.to_owned(),
            kind,
            title,
            description,
            command,
            timeout_seconds,
            secrets: written.secrets,
            config_schema: written.config_schema,
        }),
    }
}

impl Manifest {
    /// Compiles the schema of its configuration.
    pub(in crate::actions) fn schema(&self) -> Result<Schema, InstallError> {
        Schema::compile(self.config_schema.clone())
            .map_err(|reason| refused(&self.file, "config_schema", &reason))
    }
}

fn refused(file: &Path, field: &str, reason: &str) -> InstallError {
    let (file, field, reason) = (file.to_owned(), field.to_owned(), reason.to_owned());
    InstallError::Manifest { file, field, reason }
}

fn is_kind(kind: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
    };
    kind.len() <= 128 && kind.contains('.') && kind.split('.').all(word)
}

fn is_free_variable(name: &str) -> bool {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_ours =
        OWN_VARIABLES.contains(&name) || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    is_name && !is_ours
}

/// Words that are files beside the manifest become their paths. The program itself must be
/// there, there or on PATH.
fn resolve(command: &[String], beside: &Path) -> Result<Vec<String>, String> {
    let Some(program) = command.first() else {
        return Err("expected a program and its arguments, got an empty list".to_owned());
    };
    if command.iter().any(|word| word.contains('\0')) {
        return Err("a word contains a NUL character".to_owned());
    }
    let words = command.iter().map(|word| {
        let file = beside.join(word);
        if file.is_file() { file.display().to_string() } else { word.clone() }
    });
    let words: Vec<_> = words.collect();
    let is_bare = !program.contains('/');
    let on_path = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    };
    let is_there = Path::new(&words[0]).is_absolute() && Path::new(&words[0]).is_file();
    if is_there || (is_bare && on_path()) {
        return Ok(words);
    }
    Err(format!("'{program}' is no file beside the manifest and not on PATH"))
}
