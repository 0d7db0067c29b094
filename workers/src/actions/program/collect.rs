//! What a program leaves in `$ERRAND_RESULTS` becomes results of the job.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use errand_runner::SecretsFound;

use crate::actions::{Done, Occasion};
use crate::results::{self, Results, SaveError, name};
use crate::step::StepError;

/// Results of one action at most; they ride in a fact.
const MOST: usize = 16;

/// Names of what was left out that ride in the fact for each of them.
const SKIPPED_NAMED: usize = 5;

/// Names that the platform's own results have.
const RESERVED: [&str; 5] = [
    name::INPUT_WORKDIR,
    name::OUTPUT_WORKDIR,
    name::OUTPUT_ARTIFACTS,
    name::FABRIC_RUN_RESULT,
    name::FABRIC_ERROR,
];

/// Saves each entry of a directory as a result of its name, to the same keys each time. What
/// cannot be saved is a failure that names it, and keeps nothing else from being saved. `secrets`
/// says which paths in the directory hold the value of one.
pub(super) async fn save(
    results: &Results,
    run: &Path,
    directory: &Path,
    secrets: &SecretsFound,
    occasion: &Occasion<'_>,
) -> Result<Done, StepError> {
    let mut done = Done::default();
    let entries = match results::own(run, directory).and_then(|()| entries(directory)) {
        Ok(entries) => entries,
        Err(error) => return Ok(Done::failed(format!("$ERRAND_RESULTS cannot be read: {error}"))),
    };
    for (index, (name, path)) in entries.into_iter().enumerate() {
        let saved = match check(&name, index) {
            Err(reason) => {
                done.failure.get_or_insert(reason);
                continue;
            }
            Ok(()) if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) => {
                results.directory(&name, path).await
            }
            Ok(()) => results.file(&name, &path).await,
        };
        match saved {
            Ok(mut saved) => {
                let more = saved.skipped.len().saturating_sub(SKIPPED_NAMED);
                saved.skipped.truncate(SKIPPED_NAMED);
                saved.changed_while_saved.truncate(SKIPPED_NAMED);
                saved.skipped_more += more as u64;
                saved.secret_detected = of_result(&name, &secrets.results);
                saved.unsearched = secrets.unsearched;
                done.results.push(saved);
            }
            Err(error @ SaveError::Store { .. }) => {
                let reason = occasion.gives_up(error)?;
                done.failure.get_or_insert(reason);
            }
            Err(error) => {
                done.failure.get_or_insert(error.to_string());
            }
        }
    }
    Ok(done)
}

/// Those of the paths that are in this result, as they read from there.
fn of_result(name: &str, paths: &[String]) -> Vec<String> {
    let inside = |path: &String| match path.strip_prefix(name)? {
        "" => Some(path.clone()),
        rest => rest.strip_prefix('/').map(str::to_owned),
    };
    paths.iter().filter_map(inside).collect()
}

/// Sorted, so that the same ones are kept each time.
fn entries(directory: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        entries.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    entries.sort();
    Ok(entries)
}

fn check(name: &str, index: usize) -> Result<(), String> {
    let refuse = |reason: &str| Err(format!("result '{name}' is not saved: {reason}"));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.chars().all(plain) || name.starts_with('.') || name.len() > 128 {
        return refuse("a name has up to 128 letters, digits, '-', '_' and '.'");
    }
    if RESERVED.contains(&name) {
        return refuse("the name is the platform's own");
    }
    if index >= MOST {
        return refuse(&format!("an action has {MOST} results at most"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
