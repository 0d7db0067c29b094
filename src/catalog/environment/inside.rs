//! Directories of an agent: relative to its base, and never out of it.

/// The working directory, as written.
pub(crate) fn workspace_inside(path: &str) -> Result<String, String> {
    inside("workspace", path)
}

/// The directory of what the agent leaves, as written.
pub(crate) fn artifacts_inside(path: &str) -> Result<String, String> {
    inside("artifacts", path)
}

fn inside(what: &str, path: &str) -> Result<String, String> {
    if path.starts_with('/') {
        return Err(format!("Local {what} path must be relative to the agent base directory."));
    }
    if path.contains('\0') || leads_out(path) {
        return Err(format!("Local {what} path must remain within the agent base directory."));
    }
    Ok(path.to_owned())
}

/// Whether some part of the way is above its beginning.
fn leads_out(path: &str) -> bool {
    let mut depth = 0usize;
    path.split('/').any(|segment| match segment {
        "" | "." => false,
        ".." => match depth.checked_sub(1) {
            Some(above) => {
                depth = above;
                false
            }
            None => true,
        },
        _ => {
            depth += 1;
            false
        }
    })
}

#[cfg(test)]
mod tests;
