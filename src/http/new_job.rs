//! `POST …/jobs` of the generic collection. The reference makes jobs of any kind here, out of
//! steps that are containers. This platform runs agents, and their jobs are made by the execute
//! route: a request is read, so that what is wrong with it is said first, and then refused.

use std::collections::HashSet;

use axum::extract::{Path, State};
use serde_json::{Map, Value};

use super::body::Body;
use super::error::{Answer, ApiError};
use super::{Api, workspaces};
use crate::catalog::SOURCE;
use crate::catalog::request::{NAME, fits_a_job};
use crate::catalog::shape::{Absent, Shape, Table, Unknown, field, no_rule};

pub(super) const BODY: Table = Table {
    fields: &[
        field("name", NAME, Absent::Null),
        field("description", Shape::Text, Absent::Null),
        field("project", Shape::Text, Absent::Null),
        field("spec", Shape::Dict, Absent::Refused),
        field("platform_spec", Shape::Object(&PLATFORM_SPEC), Absent::Refused),
        field("source", Shape::Text, Absent::Refused),
        field("ownership", Shape::Dict, Absent::Null),
        field("custom_fields", Shape::Dict, Absent::Null),
        field("output_location", Shape::Text, Absent::Null),
    ],
    unknown: Unknown::Dropped,
    rule: name_fits,
};

const PLATFORM_SPEC: Table = Table {
    fields: &[
        field("steps", Shape::List(&Shape::Object(&STEP)), Absent::Refused),
        field("secrets", Shape::List(&Shape::Dict), Absent::Null),
    ],
    unknown: Unknown::Dropped,
    rule: steps_have_names_of_their_own,
};

const STEP: Table = Table {
    fields: &[
        field("name", NAME, Absent::Refused),
        field("environment", Shape::List(&Shape::Dict), Absent::Null),
        field("executor", Shape::Object(&EXECUTOR), Absent::Refused),
        field("config", Shape::Dict, Absent::Object),
        field("lifecycle", Shape::Dict, Absent::Object),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

const EXECUTOR: Table = Table {
    fields: &[
        field(
            "provider",
            Shape::Words(&["cpu", "gpu", "gpu_distributed", "subprocess"]),
            Absent::Refused,
        ),
        field("profile", Shape::Text, Absent::Text("default")),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

/// Says what is wrong with the request, or where jobs are made.
pub(super) async fn create(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    body: Body,
) -> Answer<()> {
    let job = body.read(&BODY)?;
    workspaces::check(&api, &workspace).await?;
    let place = format!("POST /apis/agents/v2/workspaces/{workspace}/jobs/execute");
    Err(ApiError::unprocessable(match job["source"].as_str() {
        Some(SOURCE) => format!(
            "Jobs of source '{SOURCE}' are made by {place}, which resolves their agent; send it \
             the spec alone"
        ),
        source => format!(
            "Jobs of source '{}' cannot be run: this platform runs agents. Their jobs are made by \
             {place}",
            source.unwrap_or_default()
        ),
    }))
}

fn name_fits(job: &Map<String, Value>) -> Result<(), String> {
    match (job["name"].as_str(), job["output_location"].is_null()) {
        (Some(name), true) => fits_a_job(name),
        _ => Ok(()),
    }
}

fn steps_have_names_of_their_own(spec: &Map<String, Value>) -> Result<(), String> {
    let steps = spec["steps"].as_array().into_iter().flatten();
    let names: Vec<_> = steps.map(|step| step["name"].as_str()).collect();
    if names.is_empty() {
        return Err("At least one step is required in the job specification.".to_owned());
    }
    if names.iter().collect::<HashSet<_>>().len() < names.len() {
        return Err("Each step must have a unique name.".to_owned());
    }
    Ok(())
}
