//! Post-run actions: which one a job gets. What is installed, and which configurations that
//! accepts, the registry of `workers::actions` says.

use serde_json::Map;
use streams::snapshot::Action;
use workers::actions::{NOOP, Refused, Registry, canonical};

use super::request;

/// Chooses a job's action. `declared` is what its agent allows; empty means nothing in
/// particular. `older` is whether the request names it as `extension`.
pub(crate) fn choose(
    registry: &Registry,
    workspace: &str,
    requested: Option<&request::Action>,
    declared: &[String],
    older: bool,
) -> Result<Action, String> {
    let action = match (requested, declared) {
        (Some(requested), _) => {
            let request::Action { kind, config } = requested;
            Action { kind: kind.clone(), config: config.clone() }
        }
        (None, []) => Action { kind: NOOP.to_owned(), config: Map::new() },
        (None, [only]) => Action { kind: only.clone(), config: Map::new() },
        (None, several) => {
            return Err(format!(
                "The agent declares several post-run actions ({}); post_run_action must name one.",
                several.join(", ")
            ));
        }
    };
    let say = |refused: Refused| if older { older_words(&refused) } else { refused.to_string() };
    registry.get(&action.kind).map_err(say)?;
    let kind = canonical(&action.kind);
    if !declared.is_empty() && !declared.iter().any(|allowed| canonical(allowed) == kind) {
        return Err(format!(
            "Post-run action '{}' is not one of those that the agent declares: {}.",
            action.kind,
            declared.join(", ")
        ));
    }
    registry.check(&action.kind, &action.config, workspace).map_err(say)?;
    Ok(Action { kind: kind.to_owned(), config: action.config })
}

/// The reference's words, for requests that are made in them.
fn older_words(refused: &Refused) -> String {
    match refused {
        Refused::Unknown { kind, .. } => format!("Unknown agents.execute extension '{kind}'."),
        Refused::Config { kind, reasons } => {
            format!("Invalid config for agents.execute extension '{kind}': {reasons}")
        }
    }
}

#[cfg(test)]
mod tests;
