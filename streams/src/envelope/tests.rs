mod any;

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fact::{Acted, Archived, Invoked, Resolved, Staged, Submitted};
use crate::phase::Phase;

const JOB: &str = "0190163d-8694-739b-aea5-966c26f8ad91";
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const SUBJECT: &str = "jobs.submitted.team%2Ea.0190163d-8694-739b-aea5-966c26f8ad91";

fn stored_at() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().expect("a time")
}

fn decode<F: Fact>(subject: &str, message: &Value) -> Result<Envelope<F>, Undecodable> {
    Envelope::decode(subject, message.to_string().as_bytes(), stored_at())
}

fn comes_back<F: Fact + Debug + PartialEq>(envelope: &Envelope<F>) -> Result<(), TestCaseError> {
    let bytes = envelope.encode().expect("a fact is JSON");
    let decoded = Envelope::<F>::decode(&envelope.subject(), &bytes, stored_at());
    prop_assert_eq!(decoded.as_ref().ok(), Some(envelope), "{:?}", decoded);

    // A later program may write more than we know.
    let mut later: Value = serde_json::from_slice(&bytes).expect("JSON");
    later["unheard_of"] = json!({"deep": [1, 2, 3]});
    let decoded = decode::<F>(&envelope.subject(), &later);
    prop_assert_eq!(decoded.as_ref().ok(), Some(envelope), "{:?}", decoded);

    // Unless it says that it means something else.
    later["v"] = json!(2);
    let refused = decode::<F>(&envelope.subject(), &later);
    prop_assert!(matches!(refused, Err(Undecodable::Version(2))), "{:?}", refused);
    Ok(())
}

/// Reads bytes as a fact of the phase; whether they are one matters less than that it returns.
fn read(phase: Phase, bytes: &[u8]) -> Result<(), Undecodable> {
    let job = JOB.parse().expect("a UUID");
    let subject = &subject::fact(phase, "default", job);
    match phase {
        Phase::Submitted => Envelope::<Submitted>::decode(subject, bytes, stored_at()).map(drop),
        Phase::Resolved => Envelope::<Resolved>::decode(subject, bytes, stored_at()).map(drop),
        Phase::Staged => Envelope::<Staged>::decode(subject, bytes, stored_at()).map(drop),
        Phase::Invoked => Envelope::<Invoked>::decode(subject, bytes, stored_at()).map(drop),
        Phase::Acted => Envelope::<Acted>::decode(subject, bytes, stored_at()).map(drop),
        Phase::Archived => Envelope::<Archived>::decode(subject, bytes, stored_at()).map(drop),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn submitted_comes_back(envelope in any::envelope(any::submitted())) { comes_back(&envelope)?; }

    #[test]
    fn resolved_comes_back(envelope in any::envelope(any::resolved())) { comes_back(&envelope)?; }

    #[test]
    fn staged_comes_back(envelope in any::envelope(any::staged())) { comes_back(&envelope)?; }

    #[test]
    fn invoked_comes_back(envelope in any::envelope(any::invoked())) { comes_back(&envelope)?; }

    #[test]
    fn acted_comes_back(envelope in any::envelope(any::acted())) { comes_back(&envelope)?; }

    #[test]
    fn archived_comes_back(envelope in any::envelope(any::archived())) { comes_back(&envelope)?; }

    #[test]
    fn a_cut_message_is_refused(envelope in any::envelope(any::invoked()), at in any::<prop::sample::Index>()) {
        let bytes = envelope.encode().expect("a fact is JSON");
        let cut = &bytes[..at.index(bytes.len())];
        prop_assert!(Envelope::<Invoked>::decode(&envelope.subject(), cut, stored_at()).is_err());
    }

    #[test]
    fn bytes_that_are_no_object_are_refused(
        bytes in prop::collection::vec(prop::num::u8::ANY, 0..200),
        phase in prop::sample::select(Phase::CHAIN.to_vec()),
    ) {
        let is_object = serde_json::from_slice::<Map<String, Value>>(&bytes).is_ok();
        prop_assert!(is_object || read(phase, &bytes).is_err());
    }
}

#[test]
fn other_json_than_an_object_is_refused() {
    for phase in Phase::CHAIN {
        for bytes in ["", "null", "[]", "[1]", "[null, null]", "1", "\"spec\"", "{}{}", "{\"spec\""]
        {
            assert!(read(phase, bytes.as_bytes()).is_err(), "{phase}: {bytes}");
        }
    }
    let deep = "[".repeat(100_000);
    assert!(read(Phase::Submitted, deep.as_bytes()).is_err());
}

#[test]
fn a_submitter_needs_to_say_nothing_but_the_spec() {
    let submitted: Envelope<Submitted> =
        decode(SUBJECT, &json!({"spec": {}})).expect("it is accepted");
    assert_eq!(
        submitted,
        Envelope {
            job: JOB.parse().expect("a UUID"),
            workspace: "team.a".to_owned(),
            at: stored_at(),
            traceparent: None,
            fact: Submitted { spec: Some(json!({})), name: None, record: None },
        }
    );
}

#[test]
fn a_submitter_may_say_more() {
    let message = json!({
        "v": 1, "job": JOB, "workspace": "team.a", "at": "2020-01-01T00:00:00Z",
        "traceparent": TRACE, "name": "nightly", "spec": {"agent": "a"}, "comment": "hello",
    });
    let submitted: Envelope<Submitted> = decode(SUBJECT, &message).expect("it is accepted");
    assert_eq!(submitted.at.to_string(), "2020-01-01T00:00:00Z");
    assert_eq!(submitted.traceparent.as_deref(), Some(TRACE));
    assert_eq!(submitted.fact.name, Some("nightly".into()));
}

/// They make a job, which is refused where its owner looks.
#[test]
fn a_wrong_spec_and_a_wrong_name_are_read_as_they_were_sent() {
    for wrong in [json!([]), json!("agent"), json!(1), Value::Null] {
        let submitted = decode(SUBJECT, &json!({"spec": wrong, "name": wrong}));
        let submitted: Envelope<Submitted> = submitted.expect("it is accepted");
        assert_eq!(submitted.fact.spec, Some(wrong.clone()));
        assert_eq!(submitted.fact.name, Some(wrong));
    }
}

#[test]
fn what_does_not_fit_the_subject_is_refused() {
    let other = "0190163d-8694-739b-aea5-000000000000";
    for head in [json!({"job": other}), json!({"workspace": "team"}), json!({"workspace": ""})] {
        let refused = decode::<Submitted>(SUBJECT, &head);
        assert!(matches!(refused, Err(Undecodable::Mismatch { .. })), "{head}: {refused:?}");
    }
    for wrong in
        [json!({"v": "1"}), json!({"v": -1}), json!({"job": "nightly"}), json!({"at": "yesterday"})]
    {
        let refused = decode::<Submitted>(SUBJECT, &wrong);
        assert!(matches!(refused, Err(Undecodable::Payload { .. })), "{wrong}: {refused:?}");
    }
    for v in [0, 2, 4_000_000_000_u32] {
        let refused = decode::<Submitted>(SUBJECT, &json!({"v": v, "spec": {}}));
        assert!(matches!(refused, Err(Undecodable::Version(found)) if found == v), "{refused:?}");
    }
    let refused = decode::<Staged>(SUBJECT, &json!({}));
    assert!(matches!(refused, Err(Undecodable::Phase { .. })), "{refused:?}");
    let refused = decode::<Submitted>("jobs.submitted.team", &json!({}));
    assert!(matches!(refused, Err(Undecodable::Subject(_))), "{refused:?}");
}

/// Reads a frozen message of version 1 and writes it again.
fn rewritten<F: Fact>(subject: &str, message: &Value) -> Value {
    let envelope: Envelope<F> = decode(subject, message).expect("it decodes for ever");
    assert_eq!(envelope.subject(), subject);
    serde_json::from_slice(&envelope.encode().expect("a fact is JSON")).expect("JSON")
}

/// Whether everything that `old` says is in `new` too, which may say more.
fn keeps(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            old.iter().all(|(name, old)| new.get(name).is_some_and(|new| keeps(new, old)))
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| keeps(new, old))
        }
        _ => new == old,
    }
}

/// The files are what stands in streams of running installations: they are never edited, and
/// nothing of what they say may get lost.
#[test]
fn frozen_facts_decode_for_ever() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/facts/v1");
    let mut seen = Vec::new();
    for entry in fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        let file = fs::read_to_string(&path).expect("it can be read");
        let file: Value = serde_json::from_str(&file).expect("it is JSON");
        let subject = file["subject"].as_str().expect("it names its subject");
        let phase = subject::parse_fact(subject).expect("it is a fact's").phase;
        seen.push(phase);
        let old = &file["message"];
        let new = match phase {
            Phase::Submitted => rewritten::<Submitted>(subject, old),
            Phase::Resolved => rewritten::<Resolved>(subject, old),
            Phase::Staged => rewritten::<Staged>(subject, old),
            Phase::Invoked => rewritten::<Invoked>(subject, old),
            Phase::Acted => rewritten::<Acted>(subject, old),
            Phase::Archived => rewritten::<Archived>(subject, old),
        };
        assert!(keeps(&new, old), "{}: {new} lost something", path.display());
    }
    for phase in Phase::CHAIN {
        assert!(seen.contains(&phase), "there is no {phase} among them");
    }
}

/// It goes into a header, where a line break would be a panic.
#[test]
fn what_is_no_trace_context_is_ignored() {
    let subject = subject::fact(Phase::Submitted, "default", JobId::new());
    let decoded = |traceparent: &str| {
        let message = serde_json::json!({"spec": {}, "traceparent": traceparent}).to_string();
        let at = jiff::Timestamp::UNIX_EPOCH;
        let envelope = Envelope::<Submitted>::decode(&subject, message.as_bytes(), at);
        envelope.expect("it is a fact").traceparent
    };
    assert_eq!(decoded(TRACE).as_deref(), Some(TRACE));
    for bad in ["a\nb", "", "00-0-0-01", &TRACE.to_uppercase(), &format!("{TRACE}\r\nx: y")] {
        assert_eq!(decoded(bad), None, "{bad:?}");
    }
}
