//! Variables of an agent's environment: which names jobs may set, plainly or from secrets, and
//! what fits into one. Where their values come from is decided elsewhere.

use serde_json::Value;

use super::Secrets;
use crate::catalog::refs;

/// Bytes of a name.
const MAX_NAME_BYTES: usize = 254;

/// Bytes of a value. The kernel takes 128 KiB with the name, a `=` and a NUL.
pub(crate) const MAX_VALUE_BYTES: usize = 128 * 1024 - MAX_NAME_BYTES - 2;

/// Variables that the platform sets itself.
const RESERVED: [&str; 18] = [
    "AGENT_CONFIG_PATH",
    "NAT_CONFIG_PATH",
    "NEMO_JOB_ATTEMPT_ID",
    "NEMO_JOB_EPHEMERAL_TASK_STORAGE_PATH",
    "NEMO_JOB_FILESET",
    "NEMO_JOB_ID",
    "NEMO_JOB_PERSISTENT_JOB_STORAGE_PATH",
    "NEMO_JOB_SECRETS",
    "NEMO_JOB_STEP",
    "NEMO_JOB_STEP_CONFIG_FILE_PATH",
    "NEMO_JOB_STEP_CONFIG_STORAGE_PATH",
    "NEMO_JOB_TASK",
    "NEMO_JOB_WORKSPACE",
    "NHX_AGENT_NAME",
    "NHX_BASE_URL",
    "NHX_TASK_CONFIG",
    "NHX_WORKSPACE",
    "PYTHONPATH",
];

/// Prefixes of such variables. `LD_` is the dynamic loader's, which acts in the runner before that
/// has confined itself.
const RESERVED_PREFIXES: [&str; 6] =
    ["ERRAND_", "LD_", "NEMO_JOB_", "NEMO_WORKLOAD_", "NEMO_WORKFLOW_", "NHX_"];

/// Variables that the runner sets, or that would change what runs rather than what it knows.
const OURS: [&str; 9] = [
    "FABRIC_ARTIFACTS",
    "FABRIC_HOME",
    "FABRIC_RUNTIME_ID",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "HOME",
    "PATH",
    "PYTHONHOME",
    "TMPDIR",
];

/// Checks the names of the variables that secrets are bound to, and the references.
pub(crate) fn check_secrets(secrets: &Secrets) -> Result<(), String> {
    check_reserved("Secret env var", secrets.keys().map(String::as_str))?;
    for (name, reference) in secrets {
        if !is_variable(name) {
            return Err(format!("Secret env var '{name}' is not a valid variable name."));
        }
        check_length("Secret env var", name)?;
        if !refs::is_secret_ref(reference) {
            return Err(format!(
                "Secret reference '{reference}' of env var '{name}' must be a secret name or \
                 'workspace/name'."
            ));
        }
    }
    Ok(())
}

/// Checks the variables that a configuration sets in plain text: no process could be started
/// with others. Their names may be odder than those of secrets.
pub(crate) fn check_plain(env: &Value) -> Result<(), String> {
    let Some(env) = env.as_object() else { return Ok(()) };
    check_reserved("Env var", env.keys().map(String::as_str))?;
    for (name, value) in env {
        let value = value.as_str().unwrap_or_default();
        if name.is_empty() || name.contains(['=', '\0']) {
            let shown = name.escape_debug();
            return Err(format!(
                "Env var '{shown}' is not a valid variable name: it must not be empty or contain \
                 '=' or NUL."
            ));
        }
        check_length("Env var", name)?;
        if value.contains('\0') {
            return Err(format!("The value of env var '{name}' contains a NUL character."));
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(format!(
                "The value of env var '{name}' has {} bytes; at most {MAX_VALUE_BYTES} fit.",
                value.len()
            ));
        }
    }
    Ok(())
}

fn check_reserved<'n>(what: &str, names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let reserved: Vec<_> = names.filter(|name| is_reserved(name)).collect();
    if reserved.is_empty() {
        return Ok(());
    }
    let mut all = RESERVED.to_vec();
    all.extend(reserved.iter().copied().filter(|name| !RESERVED.contains(name)));
    all.sort_unstable();
    Err(format!(
        "{what}(s) {} collide with reserved job env var name(s). Reserved names: {}.",
        reserved.join(", "),
        all.join(", ")
    ))
}

fn check_length(what: &str, name: &str) -> Result<(), String> {
    if name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let begin: String = name.chars().take(40).collect();
    Err(format!(
        "{what} '{begin}…' has a name of {} bytes, shorten it to {MAX_NAME_BYTES}.",
        name.len()
    ))
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
        || OURS.contains(&name)
        || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_variable(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(rest)
}

#[cfg(test)]
mod tests;
