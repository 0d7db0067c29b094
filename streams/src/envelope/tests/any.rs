//! Facts with anything in them that their types allow.

use jiff::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::option::of as maybe;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::attempt::AttemptEnd;
use crate::code::Code;
use crate::fact::{
    Acted, Archived, Invoked, OutputChanges, Resolved, ResultKind, Run, SavedResult, Skipped,
    Staged, Submitted, Usage,
};
use crate::id::{Attempt, JobId};
use crate::outcome::Outcome;
use crate::snapshot::{ObjectRef, Part};

use super::Envelope;

/// A fact in an envelope.
pub(super) fn envelope<F: std::fmt::Debug>(
    fact: impl Strategy<Value = F>,
) -> impl Strategy<Value = Envelope<F>> {
    (any::<u128>(), "\\PC{1,12}", at(), maybe("00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]"), fact).prop_map(
        |(job, workspace, at, traceparent, fact)| {
            let job = JobId::from_uuid(Uuid::from_u128(job));
            Envelope { job, workspace, at, traceparent, fact }
        },
    )
}

pub(super) fn submitted() -> impl Strategy<Value = Submitted> {
    (maybe(object()), maybe(text()), maybe(part())).prop_map(|(spec, name, record)| Submitted {
        spec: spec.map(Value::Object),
        name: name.map(Value::String),
        record,
    })
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![value().prop_map(Part::Inline), object_ref().prop_map(Part::Stored)]
}

pub(super) fn resolved() -> impl Strategy<Value = Resolved> {
    (maybe(part()), maybe(outcome())).prop_map(|(snapshot, outcome)| Resolved { snapshot, outcome })
}

pub(super) fn staged() -> impl Strategy<Value = Staged> {
    (maybe(result()), maybe(object_ref()), maybe(outcome()))
        .prop_map(|(input_workdir, ethos, outcome)| Staged { input_workdir, ethos, outcome })
}

pub(super) fn invoked() -> impl Strategy<Value = Invoked> {
    (outcome(), maybe(run()), vec(result(), 0..3), vec(attempt(), 0..3))
        .prop_map(|(outcome, run, results, attempts)| Invoked { outcome, run, results, attempts })
}

pub(super) fn acted() -> impl Strategy<Value = Acted> {
    (outcome(), vec(result(), 0..3)).prop_map(|(outcome, results)| Acted { outcome, results })
}

pub(super) fn archived() -> impl Strategy<Value = Archived> {
    (outcome(), object_ref(), maybe(object_ref())).prop_map(|(outcome, manifest, logs)| Archived {
        outcome,
        manifest,
        logs,
    })
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

/// Any time to the microsecond, which is what the platform keeps.
fn at() -> impl Strategy<Value = Timestamp> {
    (0..=4_102_444_800_000_000_i64)
        .prop_map(|us| Timestamp::from_microsecond(us).expect("years 1970 to 2100"))
}

/// JSON. Floats are halves: serde_json does not read every other one back to the last bit.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|halves| json!(f64::from(halves) / 2.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    btree_map(text(), value(), 0..4).prop_map(|fields| fields.into_iter().collect())
}

fn object_ref() -> impl Strategy<Value = ObjectRef> {
    (text(), any::<u64>(), "[0-9a-f]{64}").prop_map(|(key, size, sha256)| ObjectRef {
        key,
        size,
        sha256,
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let code = || prop::sample::select(Code::ALL);
    prop_oneof![
        Just(Outcome::Succeeded),
        (code(), text()).prop_map(|(code, message)| Outcome::Failed { code, message }),
        (code(), text()).prop_map(|(code, message)| Outcome::TimedOut { code, message }),
        text().prop_map(|message| Outcome::Cancelled { message }),
        (code(), text()).prop_map(|(code, message)| Outcome::NotRun { code, message }),
    ]
}

fn run() -> impl Strategy<Value = Run> {
    let usage = any::<(u64, u64)>()
        .prop_map(|(input_tokens, output_tokens)| Usage { input_tokens, output_tokens });
    (any::<u32>(), text(), at(), maybe(at()), at(), maybe(usage), any::<u64>()).prop_map(
        |(attempt, place, started_at, invoked_at, ended_at, usage, log_lines)| Run {
            attempt: Attempt(attempt),
            place,
            started_at,
            invoked_at,
            ended_at,
            usage,
            log_lines,
        },
    )
}

fn attempt() -> impl Strategy<Value = AttemptEnd> {
    (any::<u32>(), text(), at(), at(), outcome()).prop_map(
        |(attempt, place, started_at, ended_at, outcome)| AttemptEnd {
            attempt: Attempt(attempt),
            place,
            started_at,
            ended_at,
            outcome,
        },
    )
}

fn result() -> impl Strategy<Value = SavedResult> {
    let kind = prop::sample::select(vec![ResultKind::Directory, ResultKind::File]);
    let skipped = (text(), text()).prop_map(|(path, reason)| Skipped { path, reason });
    let skipped = vec(skipped, 0..3);
    let marked = (vec(text(), 0..3), vec(text(), 0..3), prop::option::of(output_changes()));
    (text(), kind, object_ref(), any::<bool>(), skipped, any::<u64>(), marked, at()).prop_map(
        |(name, kind, object, complete, skipped, skipped_more, marked, saved_at)| {
            let (changed_while_saved, secret_detected, output_changes) = marked;
            SavedResult {
                name,
                kind,
                object,
                complete,
                skipped,
                skipped_more,
                changed_while_saved,
                secret_detected,
                unsearched: !complete,
                output_changes,
                saved_at,
            }
        },
    )
}

fn output_changes() -> impl Strategy<Value = OutputChanges> {
    let paths = || vec(text(), 0..3);
    (paths(), paths(), paths(), any::<[u64; 3]>(), prop::option::of(object_ref())).prop_map(
        |(added, modified, deleted, totals, all)| OutputChanges {
            added,
            modified,
            deleted,
            totals,
            all,
        },
    )
}
