//! `POST …/jobs/{name}/rerun`: makes a job that runs another one once more. What it is made of is
//! the catalog's to say.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::Api;
use super::body::MaybeBody;
use super::error::Answer;
use super::filter::Collection;
use super::idempotency::{self, IdempotencyKey};
use super::jobs::find;
use crate::auth::Caller;
use crate::catalog::Again;
use crate::catalog::request::{NAME, fits_a_job};
use crate::catalog::shape::{Absent, Shape, Table, Unknown, field};

/// What is left out stays so: older requests are the same ones under their keys.
pub(super) const BODY: Table = Table {
    fields: &[
        field("name", NAME, Absent::Null),
        field("latest", Shape::Bool, Absent::Dropped),
        field("input", Shape::Text, Absent::Dropped),
        field("workdir_from", Shape::Words(&["output"]), Absent::Dropped),
        field("in_batch", Shape::Bool, Absent::Dropped),
    ],
    unknown: Unknown::Refused,
    rule: |rerun| rerun["name"].as_str().map_or(Ok(()), fits_a_job),
};

/// Makes a job that runs another one once more.
pub(super) async fn rerun(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    collection: Collection,
    Extension(caller): Extension<Caller>,
    key: IdempotencyKey,
    body: MaybeBody,
) -> Answer<(StatusCode, Json<Value>)> {
    let asked = body.read(&BODY)?;
    let first = find(&api, &workspace, &name).await?;
    let flag = |name: &str| asked[name].as_bool().unwrap_or_default();
    let again = Again {
        name: asked["name"].as_str().map(str::to_owned),
        latest: flag("latest"),
        input: asked["input"].as_str().map(str::to_owned),
        from_output: asked["workdir_from"].is_string(),
        in_batch: flag("in_batch"),
    };
    let request = json!({"rerun": first.id, "asked": asked});
    let prepare = async { Ok(api.catalog.again(&caller, &first, &again).await?) };
    let job = idempotency::make(&api, &workspace, key, &request, prepare).await?;
    Ok((StatusCode::CREATED, Json(collection.show(&job))))
}
