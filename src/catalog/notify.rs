//! Who is told of a job's end: the same receivers, under the same rules, as those of the action
//! `agents.webhook`. The telling is `crate::notify`'s.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use streams::snapshot::Notify;
use workers::actions::{Refused, Registry, WEBHOOK};

use super::request;

/// Judges what a request asks for.
pub(super) fn judge(
    registry: &Registry,
    workspace: &str,
    asked: Option<&request::Notify>,
) -> Result<Option<Notify>, String> {
    let Some(request::Notify { on, webhook }) = asked else { return Ok(None) };
    match registry.check(WEBHOOK, webhook, workspace) {
        Ok(_) => Ok(Some(Notify { on: on.clone(), webhook: webhook.clone() })),
        Err(Refused::Config { reasons, .. }) => Err(format!("notify: {reasons}")),
        Err(refused @ Refused::Unknown { .. }) => Err(format!("notify: {refused}")),
    }
}

/// The secret that signs what is sent: what for, and the reference.
pub(crate) fn secrets(
    registry: &Registry,
    webhook: &Map<String, Value>,
) -> BTreeMap<String, String> {
    registry.get(WEBHOOK).map(|installed| installed.secrets(webhook)).unwrap_or_default()
}
