//! What commands are given as files or on stdin: text, and objects as YAML or JSON.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value};

use super::Usage;

/// The text of a file, or of stdin for `-`.
pub(super) fn text(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
    } else {
        text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
    }
    Ok(text)
}

/// The object in a file of YAML or JSON, or on stdin for `-`.
pub(super) fn object_in(file: &Path) -> anyhow::Result<Map<String, Value>> {
    Ok(object(&text(file)?, &file.display().to_string())?)
}

/// The object that YAML or JSON text holds. `origin` names the text to the user.
pub(super) fn object(text: &str, origin: &str) -> Result<Map<String, Value>, Usage> {
    // Nearly all JSON is YAML, but JSON's own parser says better what is wrong with it.
    let value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    };
    match value {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(Usage(format!("{origin}: expected an object, got {other}"))),
        Err(error) => Err(Usage(format!("{origin}: {error}"))),
    }
}

/// Lays an object over another: what it says wins, what it does not say stays.
pub(super) fn lay_over(below: &mut Map<String, Value>, above: Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => lay_over(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
