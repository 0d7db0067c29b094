//! From a spec to its snapshot: everything that a job runs with is looked up, merged, judged and
//! pinned. What is wrong in places that do not depend on each other is named in one answer.

use serde_json::{Value, json};
use streams::snapshot::{Action, AgentSnapshot, Notify, QueueLimit, Resources, Snapshot, Spec};

use super::agent::Resolved;
use super::environment::{self, Environment, Secrets};
use super::refusal::{Gathered, Refusal, may_refer};
use super::shape::{Loc, Violation};
use super::{
    CatalogService, action, agent_config, context_schema, ethos, image, notify, refs, request,
};
use crate::auth::{Caller, Role};
use crate::records;

/// Limits of the spec that this executor does not watch over yet. A job that asks for one is
/// refused; silence would be a promise.
const NOT_ENFORCED: [&str; 1] = ["max_cost_usd"];

/// Paths that a job may expect files at.
const MOST_EXPECTED_FILES: usize = 100;

impl CatalogService {
    /// Decides everything that a job runs with.
    pub(super) async fn resolve(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &str,
        spec: &request::Spec,
    ) -> Result<Snapshot, Refusal> {
        let context = spec.context.clone().unwrap_or_default();
        if context.contains_key("nemo_helix") {
            return Err(Refusal::Unprocessable(
                "context must not set the reserved key 'nemo_helix'.".to_owned(),
            ));
        }
        let most = self.settings.max_input_bytes;
        fits("context", json!(context).to_string().len(), most)?;
        let mut gathered = Gathered::default();
        gathered.take(self.check_bounds(spec))?;
        let agent = gathered.take(self.resolve_agent(caller, workspace, &spec.agent).await)?;
        let environment = self.find_environment(caller, workspace, spec.environment.as_ref()).await;
        let environment = gathered.take(environment)?;
        let workdir = self.pin_workdir(caller, workspace, spec.workdir.as_ref()).await;
        let workdir = gathered.take(workdir)?;
        let (mut input, mut chosen, mut merged) = (None, None, None);
        if let Some(agent) = &agent {
            input = gathered.take(input_of(spec, agent))?;
            fits("input", input.as_ref().map_or(0, String::len), most)?;
            let action = action::choose(
                &self.settings.actions,
                workspace,
                spec.post_run_action.as_ref(),
                &agent.post_run_actions,
                !spec.sent["extension"].is_null(),
            );
            chosen = gathered.take(action.map_err(Refusal::Transform))?;
            if let Some(schema) = agent.context_schema.clone() {
                gathered.take(context_schema::check_context(schema, context.clone()).await)?;
            }
        }
        let notify = notify::judge(&self.settings.actions, workspace, spec.notify.as_ref());
        let notify = gathered.take(notify.map_err(Refusal::Transform))?.flatten();
        let mut resources = Resources::default();
        if let Some(compute) = environment.as_ref().and_then(|it| it.compute.as_ref()) {
            let checked = environment::check_compute(compute, &self.settings.profile);
            let checked = gathered.take(checked.map_err(Refusal::Compile))?;
            resources = checked.unwrap_or_default();
        }
        if let (Some(agent), Some(environment)) = (&agent, &environment) {
            merged = gathered.take(merge(spec, &agent.config, environment))?;
        }
        if let Some((config, secrets)) = &merged {
            let checked = environment::check_secrets(secrets).map_err(Refusal::Compile);
            gathered.take(checked)?;
            if let (Some(refused), false) = (&self.settings.secrets_refused, secrets.is_empty()) {
                gathered.take::<()>(Err(Refusal::Compile(refused.clone())))?;
            }
            let checked = environment::check_plain(&config["environment"]["env"]);
            gathered.take(checked.map_err(Refusal::Compile))?;
        }
        // Whatever is absent here has left its reason there.
        let whole = (agent, environment, workdir, input, chosen, merged, gathered.is_empty());
        let (
            Some(agent),
            Some(environment),
            Some(workdir),
            Some(input),
            Some(post_run_action),
            Some((config, secrets)),
            true,
        ) = whole
        else {
            return Err(gathered.into_refusal());
        };
        ethos::may_export(caller, workspace, &post_run_action)?;
        self.check_all_secrets(caller, workspace, &secrets, &post_run_action, notify.as_ref())
            .await?;
        Ok(Snapshot {
            name: name.to_owned(),
            input,
            context,
            timeout_seconds: spec.timeout_seconds,
            idle_timeout_seconds: spec.idle_timeout_seconds,
            queue_limit: spec.queue_timeout_seconds.and_then(QueueLimit::from_now),
            max_attempts: spec.max_attempts.unwrap_or(1),
            expect_files: spec.expect_files.clone().unwrap_or_default(),
            notify,
            spec: Spec {
                request: spec.request.clone(),
                agent: AgentSnapshot {
                    name: agent.name,
                    workspace: agent.workspace,
                    config,
                    config_format: agent_config::FORMAT.to_owned(),
                },
                agent_ref: agent.agent_ref,
                workdir: workdir.shown,
                compute: environment.compute,
                secrets,
                post_run_action,
                context: spec.context.clone(),
            },
            base: workdir.base,
            mounts: workdir.mounts,
            ethos: agent.ethos,
            image: image::resolve(&spec.image, &self.settings),
            resources,
        })
    }

    /// What the spec may not ask for here, whatever else it says.
    fn check_bounds(&self, spec: &request::Spec) -> Result<(), Refusal> {
        let (max, profile) = (self.settings.max_timeout_seconds, &self.settings.profile);
        let mut wrong = Vec::new();
        if spec.timeout_seconds > max {
            let entry = Violation::new(
                "less_than_equal",
                &at("timeout_seconds"),
                format!("Input should be less than or equal to {max}"),
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
        let expected = spec.expect_files.as_ref().map_or(0, Vec::len);
        if expected > MOST_EXPECTED_FILES {
            let text = format!(
                "expect_files has {expected} paths; at most {MOST_EXPECTED_FILES} are taken"
            );
            wrong.push(Violation::rule(&at("expect_files"), &text, &json!(expected)));
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
        if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
    }

    /// Checks that the secrets of a job, those of its action, also those that the action's own
    /// manifest names, and that of who tells of its end are there and for its caller to use.
    pub(super) async fn check_all_secrets(
        &self,
        caller: &Caller,
        workspace: &str,
        secrets: &Secrets,
        action: &Action,
        notify: Option<&Notify>,
    ) -> Result<(), Refusal> {
        let actions = &self.settings.actions;
        let installed = actions.get(&action.kind);
        let of_action = installed.map(|it| it.secrets(&action.config)).unwrap_or_default();
        let signing = notify.map(|notify| notify::secrets(actions, &notify.webhook));
        for secrets in [secrets, &of_action, &signing.unwrap_or_default()] {
            may_use(caller, workspace, secrets)?;
            self.check_secrets_exist(workspace, secrets).await?;
        }
        Ok(())
    }

    async fn check_secrets_exist(&self, workspace: &str, secrets: &Secrets) -> Result<(), Refusal> {
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

/// Whoever lets a job use a secret lets its agent read it: viewers may not.
fn may_use(caller: &Caller, workspace: &str, secrets: &Secrets) -> Result<(), Refusal> {
    secrets.values().try_for_each(|reference| {
        let (workspace, _) = refs::in_workspace(reference, workspace);
        may_refer(caller, Role::Submitter, workspace, || format!("Secret '{reference}'"))
    })
}

/// Checks the bytes that a part of the request has: of a text as UTF-8, of others as JSON.
pub(super) fn fits(field: &str, bytes: usize, most: u64) -> Result<(), Refusal> {
    if bytes as u64 <= most {
        return Ok(());
    }
    Err(Refusal::TooLarge(format!(
        "{field} has {bytes} bytes; at most {most} are taken (agents.jobs.max_input_bytes); put \
         the rest into a fileset"
    )))
}

fn input_of(spec: &request::Spec, agent: &Resolved) -> Result<String, Refusal> {
    let input = spec.input.as_ref().or(agent.default_input.as_ref()).cloned();
    input.ok_or_else(|| vec![Violation::missing(&at("input"), &spec.sent)].into())
}

/// The configuration that runs, and the secrets that it runs with.
fn merge(
    spec: &request::Spec,
    config: &Value,
    environment: &Environment,
) -> Result<(Value, Secrets), Refusal> {
    let mut config = config.clone();
    let secrets = match &environment.spec {
        Some(spec) => environment::merge(&mut config, spec).map_err(Refusal::Transform)?,
        None => Secrets::new(),
    };
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
    Ok((Value::Object(config), secrets))
}

/// Where a field of the spec stands.
fn at(field: &str) -> [Loc; 3] {
    ["body".into(), "spec".into(), field.into()]
}
