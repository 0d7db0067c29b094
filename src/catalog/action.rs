//! Post-run actions: which are installed, and which one a job gets.

use serde_json::Map;
use streams::snapshot::Action;

use super::request;

/// An installed action, as lists show it.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Installed {
    /// What requests call it.
    pub kind: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// One sentence.
    pub description: &'static str,
}

/// Every installed action.
pub(crate) const INSTALLED: [Installed; 1] =
    [Installed { kind: NOOP, title: "No-op", description: "Does nothing." }];

const NOOP: &str = "agents.noop";

/// Chooses a job's action. `declared` is what its agent allows; empty means nothing in
/// particular.
pub(crate) fn choose(
    requested: Option<&request::Action>,
    declared: &[String],
) -> Result<Action, String> {
    let Some(requested) = requested else {
        return match declared {
            [] => Ok(Action { kind: NOOP.to_owned(), config: Map::new() }),
            [only] => Ok(Action { kind: canonical(only).to_owned(), config: Map::new() }),
            several => Err(format!(
                "The agent declares several post-run actions ({}); post_run_action must name one.",
                several.join(", ")
            )),
        };
    };
    let kind = canonical(&requested.kind);
    installed(&requested.kind)?;
    if !declared.is_empty() && !declared.iter().any(|allowed| canonical(allowed) == kind) {
        return Err(format!(
            "Post-run action '{}' is not one of those that the agent declares: {}.",
            requested.kind,
            declared.join(", ")
        ));
    }
    if let Some(key) = requested.config.keys().next() {
        return Err(format!(
            "Invalid config for agents.execute extension '{}': {key}: Extra inputs are not \
             permitted",
            requested.kind
        ));
    }
    Ok(Action { kind: kind.to_owned(), config: requested.config.clone() })
}

/// Checks that an action of this kind is installed.
pub(crate) fn installed(kind: &str) -> Result<(), String> {
    if INSTALLED.iter().any(|action| action.kind == canonical(kind)) {
        return Ok(());
    }
    Err(format!("Unknown agents.execute extension '{kind}'."))
}

/// The reference's older name is still good.
fn canonical(kind: &str) -> &str {
    if kind == "noop" { NOOP } else { kind }
}

#[cfg(test)]
mod tests;
