//! The catalog: turns a request into a job record with its snapshot, or says why not.
//!
//! Everything that a job runs with is decided here, once: HTTP create and the Resolve step both
//! end in [`CatalogService`], so both refuse with the same words. Nothing here runs anything or
//! talks to the queue.

mod action;
mod admit;
mod agent;
pub mod agent_config;
mod environment;
pub(crate) mod names;
pub(crate) mod refs;
mod refusal;
pub(crate) mod request;
pub(crate) mod shape;
mod workdir;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use streams::id::JobId;
use streams::snapshot::{AgentSnapshot, Snapshot, Spec};
use workers::store::Store;

use crate::files::Files;
use crate::records::{self, NewJob, Records};
use request::Request;

pub(crate) use action::{INSTALLED as INSTALLED_ACTIONS, installed as check_action};
pub(crate) use admit::name_taken;
pub(crate) use environment::MAX_VALUE_BYTES;
pub use refusal::Refusal;
pub(crate) use refusal::SOURCE;
pub use shape::{Loc, Violation};

/// Limits of the spec that this executor does not watch over yet. A job that asks for one is
/// refused; silence would be a promise.
const NOT_ENFORCED: [&str; 3] = ["idle_timeout_seconds", "max_cost_usd", "queue_timeout_seconds"];

/// What an installation allows its jobs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The longest `timeout_seconds`.
    pub max_timeout_seconds: f64,
    /// The only execution profile.
    pub profile: Profile,
}

/// What the executor behind a profile can honour.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What requests call it.
    pub name: String,
    /// Whether it runs images.
    pub images: bool,
    /// Whether it can hold an agent to a limit of processors and memory.
    pub limits: bool,
    /// How many GPUs it has.
    pub gpus: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let profile = Profile { name: "default".to_owned(), images: false, limits: false, gpus: 0 };
        Self { max_timeout_seconds: 7.0 * 24.0 * 3600.0, profile }
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

    /// Judges the body of an execute request. The answer is a record ready to be admitted.
    pub async fn prepare(&self, workspace: &str, body: &Value) -> Result<NewJob, Refusal> {
        let request = Request::read(body)?;
        self.check_workspace(workspace).await?;
        self.check_place(&request)?;
        let id = JobId::new();
        let name = request.name.clone().unwrap_or_else(|| names::generated(id));
        let snapshot = self.resolve(workspace, &name, &request.spec).await?;
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
            ownership: request.ownership,
            custom_fields: Some(Value::Object(with_telemetry(request.custom_fields))),
            output_location: None,
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

    /// Decides everything that a job runs with.
    async fn resolve(
        &self,
        workspace: &str,
        name: &str,
        spec: &request::Spec,
    ) -> Result<Snapshot, Refusal> {
        self.check_bounds(spec)?;
        let agent = self.resolve_agent(workspace, &spec.agent).await?;
        let input = spec.input.clone().or(agent.default_input);
        let input = input.ok_or_else(|| vec![Violation::missing(&at("input"), &spec.sent)])?;
        let mut config = agent.config;
        let (secrets, compute) = merge_environment(workspace, &mut config, &spec.environment)?;
        if let Some(turns) = spec.max_turns {
            config["runtime"]["max_turns"] = json!(turns);
        }
        let config = agent_config::normalise(&config)
            .map_err(|text| Refusal::Transform(format!("Invalid agent config: {text}")))?;
        if config["environment"]["provider"] != "local" {
            return Err(Refusal::Transform(
                "agents.execute jobs only support local Fabric environments.".to_owned(),
            ));
        }
        let workdir = self.pin_workdir(workspace, spec.workdir.as_ref()).await?;
        let action = action::choose(spec.post_run_action.as_ref(), &agent.post_run_actions)
            .map_err(Refusal::Transform)?;
        if let Some(compute) = &compute {
            environment::check_compute(compute, &self.settings.profile)
                .map_err(Refusal::Compile)?;
        }
        environment::check_secrets(&secrets).map_err(Refusal::Compile)?;
        environment::check_plain(&config["environment"]["env"]).map_err(Refusal::Compile)?;
        self.check_secrets_exist(workspace, &secrets).await?;
        Ok(Snapshot {
            name: name.to_owned(),
            input,
            context: spec.context.clone().unwrap_or_default(),
            timeout_seconds: spec.timeout_seconds,
            max_attempts: spec.max_attempts.unwrap_or(1),
            spec: Spec {
                request: spec.request.clone(),
                agent: AgentSnapshot {
                    name: agent.name,
                    workspace: agent.workspace,
                    config: Value::Object(config),
                    config_format: agent_config::FORMAT.to_owned(),
                },
                agent_ref: agent.agent_ref,
                workdir: workdir.shown,
                compute,
                secrets,
                post_run_action: action,
                context: spec.context.clone(),
            },
            base: workdir.base,
            mounts: workdir.mounts,
            ethos: agent.ethos,
        })
    }

    /// What the spec may not ask for here, whatever else it says.
    fn check_bounds(&self, spec: &request::Spec) -> Result<(), Refusal> {
        let (max, profile) = (self.settings.max_timeout_seconds, &self.settings.profile);
        let mut wrong = Vec::new();
        if spec.timeout_seconds > max {
            let msg = format!("Input should be less than or equal to {max}");
            let entry = Violation::new(
                "less_than_equal",
                &at("timeout_seconds"),
                msg,
                &json!(spec.timeout_seconds),
            );
            wrong.push(entry.with(json!({"le": max})));
        }
        if !spec.image.is_empty() && !profile.images {
            let text = format!(
                "image '{}': the execution profile '{}' runs no images",
                spec.image, profile.name
            );
            wrong.push(Violation::rule(&at("image"), &text, &json!(spec.image)));
        }
        for name in NOT_ENFORCED {
            if let Some(value) = spec.others.get(name) {
                let text = format!(
                    "{name}: the execution profile '{}' does not watch over it; leave it out",
                    profile.name
                );
                wrong.push(Violation::rule(&at(name), &text, value));
            }
        }
        if !wrong.is_empty() {
            return Err(wrong.into());
        }
        match &spec.context {
            Some(context) if context.contains_key("nemo_helix") => Err(Refusal::Unprocessable(
                "context must not set the reserved key 'nemo_helix'.".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    async fn check_secrets_exist(
        &self,
        workspace: &str,
        secrets: &environment::Secrets,
    ) -> Result<(), Refusal> {
        for reference in secrets.values() {
            let (workspace, name) = refs::in_workspace(reference, workspace);
            match self.records.secrets().get(workspace, name).await {
                Ok(_) => {}
                Err(records::Error::NotFound) => {
                    return Err(Refusal::Conflict(
                        "Unable to create job because one or more referenced secrets were not \
                         found or are not accessible. Verify each platform_spec secret reference \
                         uses the expected workspace/name and that you have access."
                            .to_owned(),
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Merges the environment; answers its secrets and its compute spec.
fn merge_environment(
    workspace: &str,
    config: &mut Value,
    environment: &Option<Value>,
) -> Result<(environment::Secrets, Option<Value>), Refusal> {
    let missing = |kind: &str, reference: &str| {
        let (workspace, name) = refs::in_workspace(reference, workspace);
        Refusal::Transform(format!("{kind} '{name}' not found in workspace '{workspace}'."))
    };
    let Some(environment) = environment else { return Ok(Default::default()) };
    if let Value::String(reference) = environment {
        return Err(missing("AgentEnvironment", reference));
    }
    let secrets = match &environment["environment_spec"] {
        Value::Null => environment::Secrets::new(),
        Value::String(reference) => return Err(missing("AgentEnvironmentSpec", reference)),
        spec => environment::merge(config, spec).map_err(Refusal::Transform)?,
    };
    let compute = match &environment["compute_spec"] {
        Value::Null => None,
        Value::String(reference) => return Err(missing("AgentComputeSpec", reference)),
        compute => Some(compute.clone()),
    };
    Ok((secrets, compute))
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

/// Where a field of the spec stands.
fn at(field: &str) -> [Loc; 3] {
    ["body".into(), "spec".into(), field.into()]
}
