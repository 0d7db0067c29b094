//! What each list can be filtered by, in the order in which refusals name it.

/// A column of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    /// What callers call it.
    pub name: &'static str,
    /// What kind of values it has.
    pub kind: Kind,
    /// What it is in SQL, the same on both databases.
    pub(in crate::records) sql: &'static str,
}

/// A kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Microseconds since 1970.
    Time,
    /// The UUID of a job; callers know its HTTP form.
    JobId,
    /// JSON. Its own name is the first part of every path in it.
    Document,
}

impl Column {
    /// Whether it is a document, or a column that was taken out of one.
    pub(super) fn is_in_a_document(&self) -> bool {
        self.kind == Kind::Document || self.name.contains('.')
    }
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text, sql: name }
}

const fn time(name: &'static str) -> Column {
    Column { name, kind: Kind::Time, sql: name }
}

/// A column that has the same value everywhere.
const fn constant(name: &'static str, sql: &'static str) -> Column {
    Column { name, kind: Kind::Text, sql }
}

const JOB_ID: Column = Column { name: "id", kind: Kind::JobId, sql: "jobs.id" };

const JOB_TYPE: Column = constant("entity_type", "'platform_job'");

/// What jobs show as `spec`: of one that was refused, what was asked for.
const SPEC: Column = Column {
    name: "spec",
    kind: Kind::Document,
    sql: r#"COALESCE(snapshot, '{"spec":{"request":' || request || '}}')"#,
};

/// The one place in a spec with a column and an index of its own.
const AGENT_REF: Column = Column { name: "spec.agent_ref", kind: Kind::Text, sql: "agent_ref" };

/// The batch that a job belongs to, with a column and an index of its own.
const BATCH: Column = Column { name: "batch.group", kind: Kind::Text, sql: "batch" };

/// The name of anything that has one.
pub static NAME: Column = text("name");

/// The workspace of anything that is in one.
pub static WORKSPACE: Column = text("workspace");

/// What a job came from.
pub static SOURCE: Column = text("source");

/// What users see of where a job is.
pub static STATUS: Column = text("status");

/// All jobs.
pub static JOBS: [Column; 12] = [
    time("created_at"),
    JOB_TYPE,
    JOB_ID,
    text("name"),
    text("project"),
    text("source"),
    SPEC,
    text("status"),
    time("updated_at"),
    text("workspace"),
    AGENT_REF,
    BATCH,
];

/// Execute jobs, which all have the same source.
pub static TYPED_JOBS: [Column; 11] = [
    time("created_at"),
    JOB_TYPE,
    JOB_ID,
    text("name"),
    text("project"),
    SPEC,
    text("status"),
    time("updated_at"),
    text("workspace"),
    AGENT_REF,
    BATCH,
];

/// Registered agents.
pub static AGENTS: [Column; 10] = [
    Column { name: "config", kind: Kind::Document, sql: r#"'{"config":' || config || '}'"# },
    text("config_format"),
    time("created_at"),
    text("description"),
    constant("entity_type", "'agent'"),
    text("id"),
    text("name"),
    text("project"),
    time("updated_at"),
    text("workspace"),
];

/// Filesets.
pub static FILESETS: [Column; 10] = [
    time("created_at"),
    text("description"),
    constant("entity_type", "'fileset'"),
    text("id"),
    text("name"),
    text("project"),
    text("purpose"),
    constant("storage_type", "'local'"),
    time("updated_at"),
    text("workspace"),
];

/// Workspaces.
pub static WORKSPACES: [Column; 5] =
    [time("created_at"), text("description"), text("id"), text("name"), time("updated_at")];

/// What all that has a name within a workspace has in common.
pub static NAMED: [Column; 5] =
    [time("created_at"), text("id"), text("name"), time("updated_at"), text("workspace")];
