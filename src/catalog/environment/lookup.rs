//! Finds the environment of a job and the specs that it refers to.

use serde_json::Value;

use crate::auth::{Caller, Role};
use crate::catalog::CatalogService;
use crate::catalog::refs;
use crate::catalog::refusal::{Gathered, Refusal, may_refer};
use crate::records::{self, EnvironmentKind};

/// An environment with nothing left to look up.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// What merges into the agent's configuration.
    pub spec: Option<Value>,
    /// What is asked of the machine.
    pub compute: Option<Value>,
}

impl CatalogService {
    /// Finds what a request names as its environment. A bare name means the job's workspace; in
    /// a stored environment, the workspace of that environment.
    pub(in crate::catalog) async fn find_environment(
        &self,
        caller: &Caller,
        workspace: &str,
        given: Option<&Value>,
    ) -> Result<Environment, Refusal> {
        let (workspace, parts) = match given {
            None => return Ok(Environment::default()),
            Some(Value::String(reference)) => {
                let stored = self.find(caller, EnvironmentKind::Environment, workspace, reference);
                (refs::in_workspace(reference, workspace).0, stored.await?)
            }
            Some(inline) => (workspace, inline.clone()),
        };
        let mut gathered = Gathered::default();
        let (kind, part) = (EnvironmentKind::EnvironmentSpec, &parts["environment_spec"]);
        let spec = gathered.take(self.part(caller, kind, workspace, part).await)?;
        let (kind, part) = (EnvironmentKind::ComputeSpec, &parts["compute_spec"]);
        let compute = gathered.take(self.part(caller, kind, workspace, part).await)?;
        match (spec, compute) {
            (Some(spec), Some(compute)) => Ok(Environment { spec, compute }),
            _ => Err(gathered.into_refusal()),
        }
    }

    async fn part(
        &self,
        caller: &Caller,
        kind: EnvironmentKind,
        workspace: &str,
        given: &Value,
    ) -> Result<Option<Value>, Refusal> {
        let mut part = match given {
            Value::Null => return Ok(None),
            Value::String(reference) => self.find(caller, kind, workspace, reference).await?,
            inline => inline.clone(),
        };
        if let Some(fields) = part.as_object_mut() {
            fields.shift_remove("name");
        }
        Ok(Some(part))
    }

    async fn find(
        &self,
        caller: &Caller,
        kind: EnvironmentKind,
        workspace: &str,
        reference: &str,
    ) -> Result<Value, Refusal> {
        let (workspace, name) = refs::in_workspace(reference, workspace);
        let noun = match kind {
            EnvironmentKind::Environment => "AgentEnvironment",
            EnvironmentKind::EnvironmentSpec => "AgentEnvironmentSpec",
            EnvironmentKind::ComputeSpec => "AgentComputeSpec",
        };
        may_refer(caller, Role::Viewer, workspace, || format!("{noun} '{reference}'"))?;
        match self.records.environments(kind).get(workspace, name).await {
            Ok(found) => Ok(found.body),
            Err(records::Error::NotFound | records::Error::Text(_)) => Err(Refusal::Transform(
                format!("{noun} '{name}' not found in workspace '{workspace}'."),
            )),
            Err(error) => Err(error.into()),
        }
    }
}
