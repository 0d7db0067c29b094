//! The compute spec: which resources a job may ask for, and whether its profile can give them.

use serde_json::Value;
use streams::snapshot::{Amounts, Resources};

use super::quantity::{cpu_millis, memory_bytes};
use crate::catalog::Profile;

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const GPU: &str = "nvidia.com/gpu";
const SUPPORTED: [&str; 3] = [CPU, MEMORY, GPU];

/// Reads a compute spec and checks it against what a profile can honour: nothing is dropped in
/// silence. The failure is the text of all that is wrong.
pub(crate) fn check(compute: &Value, profile: &Profile) -> Result<Resources, String> {
    let mut wrong = Vec::new();
    let mut read = |part| amounts(part, &compute["resources"][part], profile, &mut wrong);
    let resources = Resources { limits: read("limits"), requests: read("requests") };
    if wrong.is_empty() {
        wrong = above_limits(compute, &resources);
    }
    if wrong.is_empty() { Ok(resources) } else { Err(wrong.join(" ")) }
}

fn amounts(part: &str, given: &Value, profile: &Profile, wrong: &mut Vec<String>) -> Amounts {
    let mut amounts = Amounts::default();
    let mut unsupported = Vec::new();
    for (key, value) in given.as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let read = match key.as_str() {
            CPU => quantity(part, key, value, cpu_millis).map(|it| amounts.cpu_millis = Some(it)),
            MEMORY => {
                quantity(part, key, value, memory_bytes).map(|it| amounts.memory_bytes = Some(it))
            }
            GPU => gpus(part, value, profile).map(|it| amounts.gpus = Some(it)),
            other => {
                unsupported.push(other);
                continue;
            }
        };
        if let Err(reason) = read {
            wrong.push(reason);
        } else if part == "limits"
            && let Some(reason) = profile.no_limits.get(key.as_str())
        {
            wrong.push(format!(
                "limits.{key}: the execution profile '{}' cannot hold an agent to a limit: \
                 {reason}.",
                profile.name
            ));
        }
    }
    if !unsupported.is_empty() {
        wrong.push(format!(
            "Unsupported compute resource key(s) in {part}: {}. agents.execute jobs support only \
             {}.",
            unsupported.join(", "),
            SUPPORTED.join(", ")
        ));
    }
    amounts
}

fn quantity(
    part: &str,
    key: &str,
    value: &str,
    read: fn(&str) -> Option<u64>,
) -> Result<u64, String> {
    match read(value) {
        // Nothing runs with a limit of zero.
        Some(amount) if amount > 0 || part != "limits" => Ok(amount),
        _ => Err(format!(
            "Invalid '{key}' value '{value}' in {part}; expected a Kubernetes quantity, for \
             example 500m, 2 or 1.5Gi."
        )),
    }
}

fn gpus(part: &str, value: &str, profile: &Profile) -> Result<u32, String> {
    let count: u32 = value
        .trim()
        .parse()
        .map_err(|_| format!("Invalid '{GPU}' value '{value}'; expected an integer GPU count."))?;
    if count > profile.gpus {
        return Err(format!(
            "{part}.{GPU}: the execution profile '{}' has {} GPUs, {count} are asked for.",
            profile.name, profile.gpus
        ));
    }
    Ok(count)
}

/// Requests are what is set aside, limits are what may be used: the first fit into the second.
fn above_limits(compute: &Value, resources: &Resources) -> Vec<String> {
    let (limits, requests) = (&resources.limits, &resources.requests);
    let pairs = [
        (CPU, requests.cpu_millis, limits.cpu_millis),
        (MEMORY, requests.memory_bytes, limits.memory_bytes),
        (GPU, requests.gpus.map(u64::from), limits.gpus.map(u64::from)),
    ];
    let above = pairs.into_iter().filter(|(_, request, limit)| {
        request.zip(*limit).is_some_and(|(request, limit)| request > limit)
    });
    let text = |part: &str, key: &str| compute["resources"][part][key].as_str().unwrap_or_default();
    above
        .map(|(key, ..)| {
            let (request, limit) = (text("requests", key), text("limits", key));
            format!("requests.{key} '{request}' is above limits.{key} '{limit}'.")
        })
        .collect()
}
