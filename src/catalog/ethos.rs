//! The files beside an agent's configuration, in a fileset whose name follows from the agent's.
//! They are a part of the agent: who may not change it may not write them, in whichever way.

use serde_json::Value;
use streams::snapshot::Action;

use super::CatalogService;
use super::refusal::{Refusal, may_refer};
use crate::auth::{Caller, Role};
use crate::records;

/// What stands behind the agent's name.
const SUFFIX: &str = "-ethos";

/// The action that writes a fileset.
const EXPORT_FILES: &str = "agents.export-files";

/// The fileset of an agent.
pub(super) fn fileset_of(agent: &str) -> String {
    format!("{agent}{SUFFIX}")
}

impl CatalogService {
    /// Refuses a caller that would write the files of an agent that it may not change.
    pub(crate) async fn may_write(
        &self,
        caller: &Caller,
        workspace: &str,
        fileset: &str,
    ) -> Result<(), Refusal> {
        let Some(agent) = fileset.strip_suffix(SUFFIX) else { return Ok(()) };
        if caller.needs(Role::Admin, workspace).is_ok() {
            return Ok(());
        }
        match self.records.agents().get(workspace, agent).await {
            Ok(_) => may_refer(caller, Role::Admin, workspace, || {
                format!("Fileset '{fileset}', which is a part of agent '{agent}',")
            }),
            Err(records::Error::NotFound | records::Error::Text(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The same of a job whose action would.
    pub(super) async fn may_export(
        &self,
        caller: &Caller,
        workspace: &str,
        action: &Action,
    ) -> Result<(), Refusal> {
        match action.config.get("fileset").and_then(Value::as_str) {
            Some(fileset) if action.kind == EXPORT_FILES => {
                self.may_write(caller, workspace, fileset).await
            }
            _ => Ok(()),
        }
    }
}
