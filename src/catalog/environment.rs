//! Environments: what one may hold, stored or inline; how it is found, how it merges into an
//! agent's configuration, and what its secrets and its compute spec may ask for.

mod compute;
mod inside;
mod lookup;
mod merge;
mod quantity;
mod stored;
mod variables;

use std::collections::BTreeMap;

use super::shape::{Absent, Shape, Table, field, table};

pub(crate) use compute::check as check_compute;
pub(crate) use inside::{artifacts_inside, workspace_inside};
pub(crate) use lookup::Environment;
pub(crate) use merge::merge;
pub(crate) use stored::{body_of as stored_body, read as read_stored, shown as show_stored};
pub(crate) use variables::{MAX_VALUE_BYTES, check_plain, check_secrets};

/// An environment: each part a reference, inline, or absent. A name inside an inline one says
/// nothing, but a definition that was once stored may be pasted with it.
pub(crate) const ENVIRONMENT: Table = table(&[
    field("name", Shape::Text, Absent::Dropped),
    field("description", Shape::Text, Absent::Text("")),
    field("environment_spec", Shape::TextOr { text: &Shape::Text, object: &SPEC }, Absent::Null),
    field("compute_spec", Shape::TextOr { text: &Shape::Text, object: &COMPUTE }, Absent::Null),
]);

/// Absent fields stay absent: only what is given overrides the agent's configuration.
const SPEC: Table = table(&[
    field("name", Shape::Text, Absent::Dropped),
    field("description", Shape::Text, Absent::Text("")),
    field("env", Shape::Map(&Shape::Text), Absent::Object),
    field("secrets", Shape::Map(&Shape::Text), Absent::Object),
    field("model_provider_override", Shape::Object(&MODEL_PROVIDER), Absent::Dropped),
    field("provider", Shape::Text, Absent::Dropped),
    field("workspace_path", Shape::Checked(workspace_inside), Absent::Dropped),
    field("artifacts_path", Shape::Checked(artifacts_inside), Absent::Dropped),
    field("control_location", Shape::Text, Absent::Dropped),
    field("ownership", Shape::Text, Absent::Dropped),
    field("connection", Shape::Dict, Absent::Object),
    field("metadata", Shape::Dict, Absent::Object),
    field("settings", Shape::Dict, Absent::Object),
    field("mcp", Shape::Map(&Shape::Object(&MCP)), Absent::Object),
]);

const MODEL_PROVIDER: Table = table(&[
    field("base_url", Shape::Text, Absent::Refused),
    field("api_key", Shape::Text, Absent::Dropped),
    field("provider", Shape::Text, Absent::Dropped),
]);

const MCP: Table = table(&[
    field("url", Shape::Text, Absent::Refused),
    field("env", Shape::Map(&Shape::Text), Absent::Object),
    field("secrets", Shape::Map(&Shape::Text), Absent::Object),
]);

const COMPUTE: Table = table(&[
    field("name", Shape::Text, Absent::Dropped),
    field("description", Shape::Text, Absent::Text("")),
    field("resources", Shape::Object(&RESOURCES), Absent::Object),
]);

const RESOURCES: Table = table(&[
    field("limits", Shape::Map(&Shape::Text), Absent::Object),
    field("requests", Shape::Map(&Shape::Text), Absent::Object),
]);

/// Variable → secret reference, as typed.
pub(crate) type Secrets = BTreeMap<String, String>;

#[cfg(test)]
mod tests;
