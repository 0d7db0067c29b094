//! The files beside an agent's configuration, in a fileset whose name follows from the agent's.
//! They are a part of the agent: who may not change it may not write them, in whichever way. The
//! name alone decides: what is written before there is such an agent would be its files then.

use serde_json::Value;
use streams::snapshot::Action;

use super::refusal::{Refusal, may_refer};
use crate::auth::{Caller, Role};

/// What stands behind the agent's name.
const SUFFIX: &str = "-ethos";

/// The action that writes a fileset.
const EXPORT_FILES: &str = "agents.export-files";

/// The fileset of an agent.
pub(super) fn fileset_of(agent: &str) -> String {
    format!("{agent}{SUFFIX}")
}

/// Refuses a caller that would write the files of an agent that it may not change.
pub(crate) fn may_write(caller: &Caller, workspace: &str, fileset: &str) -> Result<(), Refusal> {
    let Some(agent) = fileset.strip_suffix(SUFFIX) else { return Ok(()) };
    may_refer(caller, Role::Admin, workspace, || {
        format!("Fileset '{fileset}', which is a part of agent '{agent}',")
    })
}

/// The same of a job whose action would.
pub(super) fn may_export(caller: &Caller, workspace: &str, action: &Action) -> Result<(), Refusal> {
    match action.config.get("fileset").and_then(Value::as_str) {
        Some(fileset) if action.kind == EXPORT_FILES => may_write(caller, workspace, fileset),
        _ => Ok(()),
    }
}
