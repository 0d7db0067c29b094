//! Jobs that run another one once more: of its snapshot, or of its request resolved anew; with
//! its own input and working directory, or with others.

use jiff::Timestamp;
use serde_json::json;
use streams::id::JobId;
use streams::snapshot::{QueueLimit, Snapshot, Source, Spec};
use workers::results::name::OUTPUT_WORKDIR;

use super::refusal::{Refusal, may_refer};
use super::request::{Request, Workdir};
use super::{CatalogService, ethos, names, owned, refs, resolve};
use crate::auth::{Caller, Role};
use crate::records::{self, Job, NewJob};

/// How a job is run once more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Again {
    /// What the new job is called; made up when absent.
    pub name: Option<String>,
    /// Whether what its request names is looked up anew.
    pub latest: bool,
    /// What the agent is asked instead.
    pub input: Option<String>,
    /// Whether it begins with what the first job left in its working directory.
    pub from_output: bool,
    /// Whether it takes the place of the first job in its batch.
    pub in_batch: bool,
}

impl CatalogService {
    /// Judges a rerun. The answer is a record ready to be admitted.
    pub(crate) async fn again(
        &self,
        caller: &Caller,
        first: &Job,
        asked: &Again,
    ) -> Result<NewJob, Refusal> {
        let Some(snapshot) = &first.snapshot else {
            return Err(Refusal::Conflict(format!(
                "Job '{}' has nothing that could be run once more: {} Submit a new job.",
                first.name,
                first.refused.as_deref().unwrap_or("its record holds no snapshot.")
            )));
        };
        if asked.in_batch && first.batch.is_none() {
            return Err(Refusal::Conflict(format!("Job '{}' belongs to no batch.", first.name)));
        }
        let base = if asked.from_output { Some(self.output_of(first).await?) } else { None };
        let id = JobId::new();
        let name = asked.name.clone().unwrap_or_else(|| names::generated(id));
        let mut request = snapshot.spec.request.clone();
        if let Some(input) = &asked.input {
            request["input"] = json!(input);
        }
        if let Some(base) = &base {
            request["workdir"] = json!({"base_workdir": base, "artifact_mounts": []});
        }
        let workspace = &first.workspace;
        let snapshot = if asked.latest {
            let read = Request::read(&json!({"name": name, "spec": request}))?;
            self.resolve(caller, workspace, &name, &read.spec).await?
        } else {
            let mut snapshot = self.copied(caller, workspace, snapshot, asked, base).await?;
            snapshot.name.clone_from(&name);
            snapshot.spec.request = request;
            snapshot
        };
        Ok(NewJob {
            id,
            name,
            workspace: workspace.clone(),
            project: first.project.clone(),
            description: first.description.clone(),
            source: first.source.clone(),
            agent_ref: snapshot.spec.agent_ref.clone(),
            request: snapshot.spec.request.clone(),
            snapshot: Ok(snapshot),
            ownership: owned(first.ownership.clone(), caller),
            custom_fields: first.custom_fields.clone(),
            output_location: first.output_location.clone(),
            submission: None,
            rerun_of: Some(first.id),
            batch: first.batch.clone().filter(|_| asked.in_batch),
            created_at: Timestamp::now(),
        })
    }

    /// The same snapshot but for what is asked otherwise, and for the time that its job may wait.
    /// Nothing is resolved anew; what could have gone since is looked for.
    async fn copied(
        &self,
        caller: &Caller,
        workspace: &str,
        first: &Snapshot,
        asked: &Again,
        base: Option<String>,
    ) -> Result<Snapshot, Refusal> {
        let spec = &first.spec;
        let (action, notify) = (&spec.post_run_action, first.notify.as_ref());
        ethos::may_export(caller, workspace, action)?;
        may_repeat(caller, workspace, spec, base.is_none())?;
        self.may_use_environment(caller, workspace, spec).await?;
        self.check_all_secrets(caller, workspace, &spec.secrets, action, notify).await?;
        let queue_limit = first.queue_limit.and_then(|limit| QueueLimit::from_now(limit.seconds));
        let mut snapshot = Snapshot { queue_limit, ..first.clone() };
        if let Some(input) = &asked.input {
            resolve::fits("input", input.len(), self.settings.max_input_bytes)?;
            snapshot.input.clone_from(input);
        }
        if let Some(base) = base {
            // What had been mounted is in there, as the agent left it.
            let workdir = Workdir { base_workdir: Some(base), artifact_mounts: Vec::new() };
            let pinned = self.pin_workdir(caller, workspace, Some(&workdir)).await?;
            (snapshot.base, snapshot.mounts) = (pinned.base, pinned.mounts);
            snapshot.spec.workdir = pinned.shown;
        } else {
            self.has_results(&snapshot).await?;
        }
        Ok(snapshot)
    }

    /// Refuses when a result that it starts from went with its job. Files of filesets do not go
    /// while a job names them.
    async fn has_results(&self, snapshot: &Snapshot) -> Result<(), Refusal> {
        let mounts = snapshot.mounts.iter().map(|mount| &mount.source);
        for source in snapshot.base.iter().chain(mounts) {
            if let Source::Bundle { object, .. } = source
                && !self.files.has(object).await?
            {
                return Err(Refusal::Conflict(format!(
                    "Job '{}' cannot be run once more as it was: a result of another job that it \
                     starts from was deleted ({}). Run it once more with workdir_from \"output\", \
                     or submit a new job.",
                    snapshot.name, object.key
                )));
            }
        }
        Ok(())
    }

    /// The same for its environment, and for what one that is stored names now: what it named then
    /// nobody knows any more. One that is gone is in the snapshot.
    async fn may_use_environment(
        &self,
        caller: &Caller,
        workspace: &str,
        spec: &Spec,
    ) -> Result<(), Refusal> {
        let given = Some(&spec.request["environment"]).filter(|given| !given.is_null());
        match self.find_environment(caller, workspace, given).await {
            Err(refusal @ (Refusal::Forbidden(_) | Refusal::Unavailable(_))) => Err(refusal),
            _ => Ok(()),
        }
    }

    /// The reference of what a job left in its working directory, which must be whole.
    async fn output_of(&self, job: &Job) -> Result<String, Refusal> {
        let refuse = |reason: &str| {
            Err(Refusal::Conflict(format!(
                "Job '{}' left no working directory to go on from: {reason} Run it once more \
                 without workdir_from.",
                job.name
            )))
        };
        match self.records.jobs().result(job.id, OUTPUT_WORKDIR).await {
            Ok(row) if row.saved.complete => {}
            Ok(_) => return refuse("its output_workdir is incomplete."),
            Err(records::Error::NotFound) if job.status.is_terminal() => {
                return refuse("it has no output_workdir.");
            }
            Err(records::Error::NotFound) => {
                return refuse(&format!("it is '{}' and has not saved it yet.", job.status));
            }
            Err(error) => return Err(error.into()),
        }
        let (workspace, fileset) = (&job.workspace, refs::JOB_FILESET);
        let (name, attempt) = (&job.name, &job.attempt_id);
        Ok(format!("{workspace}/{fileset}{name}#results/{attempt}/{OUTPUT_WORKDIR}"))
    }
}

/// Refuses a caller without a role where the agent of a snapshot is from, or its files where they
/// are taken over: it could not have submitted such a job itself.
fn may_repeat(
    caller: &Caller,
    workspace: &str,
    spec: &Spec,
    with_files: bool,
) -> Result<(), Refusal> {
    if let Some(reference) = &spec.agent_ref {
        let (place, _) = refs::in_workspace(reference, workspace);
        may_refer(caller, Role::Viewer, place, || format!("Agent '{reference}'"))?;
    }
    let workdir = &spec.request["workdir"];
    let mounts = workdir["artifact_mounts"].as_array().into_iter().flatten();
    let files = mounts.map(|mount| &mount["ref"]).chain([&workdir["base_workdir"]]);
    for reference in files.filter_map(|it| it.as_str()).filter(|_| with_files) {
        let wanted = refs::fileset_ref("workdir", reference, workspace);
        let wanted = wanted.map_err(Refusal::Transform)?;
        may_refer(caller, Role::Viewer, &wanted.workspace, || format!("workdir '{reference}'"))?;
    }
    Ok(())
}
