//! Lists of jobs. Their records may be megabytes each, and a page may ask for a thousand: they are
//! read and sent a part at a time, so that no list costs the server more memory than one part.

use axum::Json;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use serde_json::Value;
use streams::id::JobId;

use super::Api;
use super::error::Answer;
use super::list::Asked;
use crate::records::filter::Condition;
use crate::records::{Error, Job, Listed, Outline};

/// Bytes of records that are read at once, unless one has more.
const PART_BYTES: u64 = 8 * 1024 * 1024;

/// How a job is shown.
pub(super) type Show = fn(&Job) -> Value;

/// Lists the jobs of a workspace, or of all, and adds `filter` to the answer.
pub(super) async fn answer(
    api: &Api,
    workspace: Option<&str>,
    asked: &Asked,
    condition: Option<Condition>,
    show: Show,
    filter: Option<Value>,
) -> Answer<Response> {
    let listed = api.records.jobs().list(workspace, &asked.select(condition)).await?;
    let filter = filter.map(|filter| ("filter".to_owned(), filter));
    let mut parts = parts(&listed.items);
    if parts.len() <= 1 {
        let ids = parts.pop().unwrap_or_default();
        let items = api.records.jobs().several(&ids).await?;
        let Listed { total, next, .. } = listed;
        let mut envelope = asked.envelope(Listed { items, total, next }, |job| show(&job));
        envelope.extend(filter);
        return Ok(Json(envelope).into_response());
    }
    let mut rest = asked.envelope(listed, |_| Value::Null);
    rest.extend(filter);
    rest.remove("data");
    let begin = stream::iter([Ok(Bytes::from_static(br#"{"data":["#))]);
    let end = Value::Object(rest).to_string().replacen('{', "],", 1);
    let end = stream::iter([Ok(Bytes::from(end))]);
    let body = Body::from_stream(begin.chain(items(api.clone(), parts, show)).chain(end));
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

/// The items as they stand in the list. One that is deleted meanwhile is left out. What cannot be
/// read breaks the answer off, so that nobody takes it for the whole.
fn items(
    api: Api,
    parts: Vec<Vec<JobId>>,
    show: Show,
) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    let begin = (api, parts.into_iter(), "");
    stream::try_unfold(begin, move |(api, mut parts, comma)| async move {
        let Some(part) = parts.next() else { return Ok(None) };
        let jobs = api.records.jobs().several(&part).await.inspect_err(|error| {
            tracing::error!(%error, "a list of jobs is broken off");
        })?;
        let shown: Vec<_> = jobs.iter().map(|job| show(job).to_string()).collect();
        let said = match shown.is_empty() {
            true => (String::new(), comma),
            false => (format!("{comma}{}", shown.join(",")), ","),
        };
        Ok(Some((Bytes::from(said.0), (api, parts, said.1))))
    })
}

/// Neighbours that are read together.
fn parts(jobs: &[Outline]) -> Vec<Vec<JobId>> {
    let (mut parts, mut bytes): (Vec<Vec<JobId>>, _) = (Vec::new(), 0);
    for job in jobs {
        match parts.last_mut() {
            Some(part) if bytes + job.bytes <= PART_BYTES => {
                part.push(job.id);
                bytes += job.bytes;
            }
            _ => {
                parts.push(vec![job.id]);
                bytes = job.bytes;
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_read_together_while_they_are_small() {
        let mebibyte = 1024 * 1024;
        let check = |sizes: &[u64], expected: &[usize]| {
            let jobs = sizes.iter().map(|mib| Outline { id: JobId::new(), bytes: mib * mebibyte });
            let jobs = Vec::from_iter(jobs);
            let found = parts(&jobs);
            assert_eq!(Vec::from_iter(found.iter().map(Vec::len)), expected, "{sizes:?}");
            assert_eq!(found.concat(), Vec::from_iter(jobs.iter().map(|job| job.id)));
        };
        check(&[], &[]);
        check(&[0, 1, 2], &[3]);
        check(&[4, 4, 1, 9, 1, 7, 1], &[2, 1, 1, 2, 1]);
    }
}
