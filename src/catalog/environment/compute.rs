//! The compute spec: which resources a job may ask for, and whether its profile can give them.

use serde_json::Value;

use crate::catalog::Profile;

const SUPPORTED: [&str; 3] = ["cpu", "memory", GPU];
const GPU: &str = "nvidia.com/gpu";

/// Checks a compute spec against what a profile can honour: nothing is dropped in silence.
pub(crate) fn check(compute: &Value, profile: &Profile) -> Result<(), String> {
    for part in ["limits", "requests"] {
        let resources = compute["resources"][part].as_object();
        let unsupported: Vec<_> = resources
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_str())
            .filter(|key| !SUPPORTED.contains(key))
            .collect();
        if !unsupported.is_empty() {
            return Err(format!(
                "Unsupported compute resource key(s) in {part}: {}. agents.execute jobs support \
                 only {}.",
                unsupported.join(", "),
                SUPPORTED.join(", ")
            ));
        }
        for (key, value) in resources.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            check_one(part, key, value, profile)?;
        }
    }
    Ok(())
}

fn check_one(part: &str, key: &str, value: &str, profile: &Profile) -> Result<(), String> {
    if key == GPU {
        let count: u32 = value.trim().parse().map_err(|_| {
            format!("Invalid '{GPU}' value '{value}'; expected an integer GPU count.")
        })?;
        if count > profile.gpus {
            return Err(format!(
                "{part}.{GPU}: the execution profile '{}' has {} GPUs, {count} are asked for.",
                profile.name, profile.gpus
            ));
        }
        return Ok(());
    }
    if !is_quantity(value) {
        return Err(format!("Invalid '{key}' value '{value}' in {part}; expected a quantity."));
    }
    if part == "limits" && !profile.limits {
        return Err(format!(
            "limits.{key}: the execution profile '{}' cannot hold an agent to a limit.",
            profile.name
        ));
    }
    Ok(())
}

/// Whether this is a Kubernetes quantity above zero: `500m`, `2`, `1.5Gi`, `1e3`.
fn is_quantity(value: &str) -> bool {
    const SUFFIXES: [&str; 16] =
        ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "n", "u", "m", "k", "M", "G", "T", "P", "E", ""];
    SUFFIXES.iter().filter_map(|suffix| value.strip_suffix(suffix)).any(|number| {
        number.starts_with(|c: char| c.is_ascii_digit())
            && number.parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0)
    })
}
