//! Admission of jobs that arrive as facts: the catalog as the Resolve step sees it.

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;
use streams::fact::Submitted;
use streams::id::JobId;
use streams::snapshot::Snapshot;
use workers::ports::{Admission, Catalog, Unavailable};

use super::refusal::{Refusal, SOURCE};
use super::request::Request;
use super::shape::{Violation, amount};
use super::{CatalogService, names, shape};
use crate::records::{Admitted, Job, NewJob};

#[async_trait]
impl Catalog for CatalogService {
    async fn admit(
        &self,
        job: JobId,
        workspace: &str,
        submitted: &Submitted,
    ) -> Result<Admission, Unavailable> {
        if let Some(known) = self.records.jobs().by_id(job).await.map_err(unavailable)? {
            // Whoever may publish in one workspace must not get at another's snapshot by its id.
            if known.workspace != workspace {
                return Ok(Admission::Refused(format!("Job id '{job}' is already in use.")));
            }
            // Its facts have left the streams: one that comes now was sent once more.
            return Ok(match known.ended_at {
                Some(_) => Admission::Deleted,
                None => admission(known),
            });
        }
        let judged = match self.judge(job, workspace, submitted).await {
            Err(Refusal::Unavailable(reason)) => return Err(Unavailable(reason)),
            Ok((name, snapshot)) => (name, Ok(snapshot)),
            // A refused job has a record too, under a name that nobody else asks for.
            Err(refusal) => (names::generated(job), Err(refusal.to_string())),
        };
        let (name, snapshot) = judged;
        match self.record(job, workspace, name.clone(), snapshot, submitted).await? {
            Admitted::NameTaken | Admitted::KeyTaken(_) => {
                let text = name_taken(&name, workspace);
                let name = names::generated(job);
                match self.record(job, workspace, name, Err(text.clone()), submitted).await? {
                    Admitted::Fresh(job) | Admitted::Known(job) => Ok(admission(job)),
                    Admitted::Deleted => Ok(Admission::Deleted),
                    Admitted::NameTaken | Admitted::KeyTaken(_) => Ok(Admission::Refused(text)),
                }
            }
            Admitted::Fresh(job) | Admitted::Known(job) => Ok(admission(job)),
            Admitted::Deleted => Ok(Admission::Deleted),
        }
    }
}

impl CatalogService {
    async fn judge(
        &self,
        job: JobId,
        workspace: &str,
        submitted: &Submitted,
    ) -> Result<(String, Snapshot), Refusal> {
        if submitted.spec.is_none() && submitted.record.is_some() {
            // A job of HTTP, whose record the database has lost: a rebuild may bring it back.
            let text = "The submit fact carries no spec and the job has no record.";
            return Err(Refusal::Unprocessable(text.to_owned()));
        }
        let sent = [("name", &submitted.name), ("spec", &submitted.spec)];
        let sent =
            sent.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
        let body = Value::Object(sent.collect());
        if amount::of_text(body.to_string().as_bytes()) > amount::MAX_VALUES {
            let loc = ["body".into()];
            return Err(vec![Violation::rule(&loc, &amount::too_many(), &Value::Null)].into());
        }
        let request = Request::read(&body)?;
        self.check_workspace(workspace).await?;
        let name = request.name.unwrap_or_else(|| names::generated(job));
        let caller = self.of_queue(workspace);
        let snapshot = self.resolve(&caller, workspace, &name, &request.spec).await?;
        Ok((name, snapshot))
    }

    async fn record(
        &self,
        job: JobId,
        workspace: &str,
        name: String,
        snapshot: Result<Snapshot, String>,
        submitted: &Submitted,
    ) -> Result<Admitted, Unavailable> {
        let new = arrived(job, workspace, name, snapshot, submitted);
        self.records.jobs().admit(new).await.map_err(unavailable)
    }
}

/// The record of a job that came as a fact.
pub(crate) fn arrived(
    job: JobId,
    workspace: &str,
    name: String,
    snapshot: Result<Snapshot, String>,
    submitted: &Submitted,
) -> NewJob {
    let resolved = snapshot.as_ref().ok();
    let request = match (resolved, &submitted.spec) {
        (Some(snapshot), _) => snapshot.spec.request.clone(),
        (None, Some(spec)) => spec.clone(),
        (None, None) => Value::Null,
    };
    // One that is refused for its depth would make a list with this job unreadable.
    let request = if shape::too_deep(&request, &[]).is_some() { Value::Null } else { request };
    NewJob {
        id: job,
        workspace: workspace.to_owned(),
        name,
        description: None,
        project: None,
        source: SOURCE.to_owned(),
        agent_ref: resolved.and_then(|snapshot| snapshot.spec.agent_ref.clone()),
        request,
        snapshot,
        ownership: None,
        custom_fields: None,
        output_location: None,
        submission: None,
        rerun_of: None,
        batch: None,
        created_at: Timestamp::now(),
    }
}

/// The text for a job whose name another has.
pub(crate) fn name_taken(name: &str, workspace: &str) -> String {
    format!(
        "Job '{name}' already exists in workspace '{workspace}'. Choose a different job name or \
         delete the existing job before creating a new one."
    )
}

/// What the record of a job says.
fn admission(job: Job) -> Admission {
    match (job.refused, job.snapshot) {
        (Some(text), _) => Admission::Refused(text),
        (None, Some(snapshot)) => Admission::Admitted(Box::new(snapshot)),
        (None, None) => Admission::Refused("The job's record holds no snapshot.".to_owned()),
    }
}

fn unavailable(error: crate::records::Error) -> Unavailable {
    Unavailable(error.to_string())
}
