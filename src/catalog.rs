//! The catalog: turns a request into a job record with its snapshot, or says why not.
//!
//! Everything that a job runs with is decided here, once: HTTP create and the Resolve step both
//! end in [`CatalogService`], so both refuse with the same words. Nothing here runs anything or
//! talks to the queue.

mod action;
mod admit;
mod again;
mod agent;
pub mod agent_config;
mod context_schema;
mod environment;
pub(crate) mod ethos;
mod image;
pub(crate) mod names;
pub(crate) mod notify;
pub(crate) mod refs;
mod refusal;
pub(crate) mod request;
mod resolve;
pub(crate) mod shape;
mod workdir;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use streams::id::JobId;
use workers::actions::{Registry, Webhooks};
use workers::executor::cgroup;
use workers::store::Store;

use crate::auth::Caller;
use crate::files::Files;
use crate::records::{NewJob, Records};
use request::Request;

pub(crate) use admit::{arrived, name_taken};
pub(crate) use again::Again;
pub(crate) use context_schema::check_schema;
pub(crate) use environment::{MAX_VALUE_BYTES, read_stored, show_stored, stored_body};
pub use refusal::Refusal;
pub(crate) use refusal::SOURCE;
pub use shape::{Loc, Violation};

/// Where a job's ownership names the token of whoever made it.
pub(crate) const PRINCIPAL: &str = "principal_id";

/// What an installation allows its jobs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The longest `timeout_seconds`.
    pub max_timeout_seconds: f64,
    /// The largest input and the largest context, in bytes.
    pub max_input_bytes: u64,
    /// The image of jobs that name none.
    pub default_image: Option<String>,
    /// The only execution profile.
    pub profile: Profile,
    /// The installed post-run actions.
    pub actions: Arc<Registry>,
    /// Why no job may have secrets, where that is so.
    pub secrets_refused: Option<String>,
    /// Whether callers have roles. Those who submit over the queue have one in the workspace of
    /// their subject then, and no other.
    pub authenticated: bool,
}

/// What the executor behind a profile can honour.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What requests call it.
    pub name: String,
    /// Whether it runs images.
    pub images: bool,
    /// The image of jobs that name none, where the platform has no default either.
    pub default_task_image: Option<String>,
    /// The limits that it cannot hold an agent to (`cpu`, `memory`), with the reason.
    pub no_limits: BTreeMap<&'static str, String>,
    /// How many GPUs it has.
    pub gpus: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let profile = Profile {
            name: "default".to_owned(),
            images: false,
            default_task_image: None,
            no_limits: cgroup::Detected::default().missing(),
            gpus: 0,
        };
        Self {
            max_timeout_seconds: 7.0 * 24.0 * 3600.0,
            max_input_bytes: 8 * 1024 * 1024,
            default_image: None,
            profile,
            actions: Arc::new(Registry::built_in(Webhooks::new(false))),
            secrets_refused: None,
            authenticated: false,
        }
    }
}

impl Settings {
    /// Checks that they fit together: a default that no job could have is a mistake of whoever
    /// configured it, not of everybody who submits.
    pub fn check(&self) -> Result<(), String> {
        let profile = &self.profile;
        for (key, image) in [
            ("agents.jobs.default_image", &self.default_image),
            ("default_task_image", &profile.default_task_image),
        ] {
            let image = image.as_deref().filter(|image| !image.trim().is_empty());
            let Some(image) = image else { continue };
            if !profile.images {
                return Err(format!(
                    "{key} is '{image}', but the execution profile '{}' runs no images; leave the \
                     key out",
                    profile.name
                ));
            }
            if !image::is_reference(image) {
                return Err(format!("{key} is '{image}', which is not a valid image reference"));
            }
        }
        Ok(())
    }
}

/// Resolves, merges, validates and pins.
#[derive(Clone)]
pub struct CatalogService {
    records: Records,
    files: Files,
    settings: Settings,
}

impl CatalogService {
    /// A catalog over these records and this store.
    pub fn new(records: Records, store: Store, settings: Settings) -> Self {
        Self { files: Files::new(records.clone(), store), records, settings }
    }

    /// What the installation allows.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Who submits over the queue, to be judged by [`Self::prepare`].
    pub fn of_queue(&self, workspace: &str) -> Caller {
        match self.settings.authenticated {
            true => Caller::Queue { workspace: workspace.to_owned() },
            false => Caller::Anyone,
        }
    }

    /// Judges the body of an execute request by a caller who may submit to the workspace. The
    /// answer is a record ready to be admitted.
    pub async fn prepare(
        &self,
        caller: &Caller,
        workspace: &str,
        body: &Value,
    ) -> Result<NewJob, Refusal> {
        let request = Request::read(body)?;
        self.check_workspace(workspace).await?;
        self.check_place(&request)?;
        let id = JobId::new();
        let name = request.name.clone().unwrap_or_else(|| names::generated(id));
        let snapshot = self.resolve(caller, workspace, &name, &request.spec).await?;
        Ok(NewJob {
            id,
            workspace: workspace.to_owned(),
            name,
            description: request.description,
            project: None,
            source: SOURCE.to_owned(),
            agent_ref: snapshot.spec.agent_ref.clone(),
            request: snapshot.spec.request.clone(),
            snapshot: Ok(snapshot),
            ownership: owned(request.ownership, caller),
            custom_fields: Some(Value::Object(with_telemetry(request.custom_fields))),
            output_location: None,
            submission: None,
            rerun_of: None,
            batch: None,
            created_at: Timestamp::now(),
        })
    }

    async fn check_workspace(&self, workspace: &str) -> Result<(), Refusal> {
        // `-` stands for all workspaces in lists, and is a workspace nowhere.
        if workspace != "-" && !refs::is_name(workspace) {
            return Err(Refusal::NotFound(format!("Workspace '{workspace}' not found")));
        }
        if self.records.workspaces().exists(workspace).await? {
            return Ok(());
        }
        Err(Refusal::Unprocessable(format!(
            "Workspace '{workspace}' does not exist. Please create the workspace first."
        )))
    }

    fn check_place(&self, request: &Request) -> Result<(), Refusal> {
        let profile = &self.settings.profile.name;
        match &request.profile {
            Some(asked) if asked != profile => {
                return Err(Refusal::Unprocessable(format!(
                    "The execution profile 'cpu/{asked}' specified in step 'execute-agent' does \
                     not exist."
                )));
            }
            _ => {}
        }
        if request.project.is_some() {
            return Err(Refusal::Unprocessable(
                "Invalid job request. Check that the name, project, platform_spec, and referenced \
                 resources are valid for this workspace, then try again."
                    .to_owned(),
            ));
        }
        if let Some(location) = &request.output_location {
            let loc = ["body".into(), "output_location".into()];
            let text = "output_location is not supported; results are kept with the job";
            return Err(vec![Violation::rule(&loc, text, &json!(location))].into());
        }
        Ok(())
    }
}

/// Who made a job is written into what is said of its owner, where callers are known: nobody can
/// say so of another.
pub(crate) fn owned(ownership: Option<Value>, caller: &Caller) -> Option<Value> {
    if *caller == Caller::Anyone {
        return ownership;
    }
    let mut ownership = ownership.filter(Value::is_object);
    if let Some(fields) = ownership.as_mut().and_then(Value::as_object_mut) {
        fields.shift_remove(PRINCIPAL);
    }
    let Some(token) = caller.token() else { return ownership };
    let mut ownership = ownership.unwrap_or_else(|| json!({}));
    ownership[PRINCIPAL] = token.into();
    Some(ownership)
}

/// The client's own mark, which the reference's typed route always leaves on a job.
fn with_telemetry(custom_fields: Option<Map<String, Value>>) -> Map<String, Value> {
    let mut fields = custom_fields.unwrap_or_default();
    let mark = fields.entry("_nemo_telemetry").or_insert_with(|| json!({}));
    if let Some(mark) = mark.as_object_mut()
        && let Some(plugins) = mark.entry("plugins").or_insert_with(|| json!([])).as_array_mut()
    {
        plugins.push(json!("agents-plugin-execute"));
    }
    fields
}

#[cfg(test)]
mod tests;
