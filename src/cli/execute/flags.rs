//! The flags of a job's spec: one for each scalar field of the spec's table, so that a new field
//! is a new flag. Objects and lists are for `--spec` and `--spec-file`; what a value may be is the
//! server's to judge.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use serde_json::{Map, Value, json};

use crate::catalog::request::SPEC;
use crate::catalog::shape::{Shape, Table};
use crate::cli::documents::lay_over;

/// What the help says: a field's path, how its value is called, what it is for.
const HELP: &[(&str, &str, &str)] = &[
    ("agent", "REF", "The agent: name or workspace/name"),
    ("input", "TEXT", "What it is asked; its own default when not given"),
    ("environment", "REF", "The agent environment: name or workspace/name"),
    (
        "workdir.base_workdir",
        "REF",
        "What fills the working directory: [workspace/]fileset[#path/]",
    ),
    ("timeout_seconds", "SECONDS", "How long the agent may run; an hour when not given"),
    ("auto_telemetry", "", "Record the agent's telemetry; so it is when nothing is said"),
    ("image", "IMAGE", "The image that the agent runs in"),
    (
        "post_run_action.kind",
        "KIND",
        "What follows a success: see `errand agents post-run-actions list`",
    ),
    ("max_attempts", "N", "How often the agent may be started if its worker is lost"),
    ("max_turns", "N", "How many turns the agent may take"),
    ("idle_timeout_seconds", "SECONDS", "How long the agent may say nothing"),
    ("queue_timeout_seconds", "SECONDS", "How long the job may wait for its start"),
    ("max_cost_usd", "USD", "What the agent may cost"),
    ("notify.url", "URL", "Who is told of the job's end, by a message"),
    ("notify.secret", "NAME", "The secret that signs it"),
    ("notify.timeout_seconds", "SECONDS", "How long its receiver may take to answer"),
];

/// The older name of `post_run_action`. Its flag works and is not advertised.
const OLDER_NAME: &str = "extension.kind";

/// The part of a spec that flags give.
#[derive(Clone, Debug, Default)]
pub(super) struct SpecFlags(pub(super) Map<String, Value>);

/// A scalar field of the spec.
struct Scalar {
    /// Its keys from the outside in.
    path: Vec<&'static str>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Switch,
    Number,
    Integer,
}

impl Scalar {
    /// All of them, in the table's order.
    fn all() -> Vec<Self> {
        let mut found = Vec::new();
        collect(&SPEC, &[], &mut found);
        found
    }

    /// `workdir.base_workdir`, which is also the id of its flag.
    fn id(&self) -> String {
        self.path.join(".")
    }

    /// `workdir.base-workdir`.
    fn long(&self) -> String {
        self.id().replace('_', "-")
    }

    fn flags(&self) -> Vec<Arg> {
        let id = self.id();
        let (_, value_name, help) =
            HELP.iter().find(|(path, ..)| *path == id).copied().unwrap_or(("", "", ""));
        let flag = Arg::new(id.clone()).long(self.long()).help(help).hide(id == OLDER_NAME);
        match self.kind {
            Kind::Switch => {
                let off = format!("no-{id}");
                let help = format!("The opposite of --{}", self.long());
                let off_flag = Arg::new(off.clone()).long(format!("no-{}", self.long())).help(help);
                vec![
                    flag.action(ArgAction::SetTrue).overrides_with(off),
                    off_flag.action(ArgAction::SetTrue).overrides_with(id),
                ]
            }
            // A prompt may begin with anything.
            Kind::Text => vec![flag.value_name(value_name).allow_hyphen_values(id == "input")],
            Kind::Number => {
                vec![flag.value_name(value_name).allow_negative_numbers(true).value_parser(finite)]
            }
            Kind::Integer => vec![
                flag.value_name(value_name)
                    .allow_negative_numbers(true)
                    .value_parser(value_parser!(i64)),
            ],
        }
    }

    fn value(&self, matches: &ArgMatches) -> Option<Value> {
        let id = self.id();
        match self.kind {
            Kind::Text => matches.get_one::<String>(&id).map(|text| json!(text)),
            Kind::Number => matches.get_one::<f64>(&id).map(|number| json!(number)),
            Kind::Integer => matches.get_one::<i64>(&id).map(|number| json!(number)),
            Kind::Switch => {
                let (on, off) = (matches.get_flag(&id), matches.get_flag(&format!("no-{id}")));
                (on || off).then_some(json!(on))
            }
        }
    }
}

/// Walks a table for its scalar fields.
fn collect(table: &'static Table, above: &[&'static str], found: &mut Vec<Scalar>) {
    for field in table.fields {
        let path = [above, &[field.name]].concat();
        let kind = match &field.shape {
            Shape::Object(inner) => {
                collect(inner, &path, found);
                continue;
            }
            Shape::Bool => Kind::Switch,
            Shape::Number(_) | Shape::StrictNumber(_) => Kind::Number,
            Shape::Integer { .. } => Kind::Integer,
            Shape::Text
            | Shape::Checked(_)
            | Shape::Pattern { .. }
            | Shape::Short { .. }
            | Shape::Words(_)
            | Shape::TextOr { .. } => Kind::Text,
            // Free objects and lists.
            _ => continue,
        };
        found.push(Scalar { path, kind });
    }
}

/// JSON has no other numbers.
fn finite(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err("expected a finite number".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Args for SpecFlags {
    fn augment_args(command: Command) -> Command {
        let flags = Scalar::all().into_iter().flat_map(|field| field.flags());
        command.args(flags.map(|flag| flag.help_heading("Spec")))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SpecFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut spec = Map::new();
        for field in Scalar::all() {
            let Some(value) = field.value(matches) else { continue };
            let nested = field.path.iter().rev().fold(value, |value, key| json!({*key: value}));
            if let Value::Object(nested) = nested {
                lay_over(&mut spec, nested);
            }
        }
        Ok(Self(spec))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
