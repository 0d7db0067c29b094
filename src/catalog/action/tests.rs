use serde_json::json;
use workers::actions::Webhooks;

use super::*;

#[test]
fn which_action_a_job_gets() {
    let registry = Registry::built_in(Webhooks::new(false));
    let check = |requested: Option<(&str, serde_json::Value)>,
                 declared: &[&str],
                 expected: Result<&str, &str>| {
        let requested = requested.map(|(kind, config)| request::Action {
            kind: kind.to_owned(),
            config: config.as_object().cloned().expect("an object"),
        });
        let declared: Vec<_> = declared.iter().map(|kind| (*kind).to_owned()).collect();
        let chosen = choose(&registry, "default", requested.as_ref(), &declared, false);
        match (chosen.map(|action| action.kind), expected) {
            (Ok(kind), Ok(expected)) => assert_eq!(kind, expected),
            (Err(text), Err(expected)) => assert!(text.contains(expected), "{text}"),
            (chosen, expected) => panic!("{chosen:?}, expected {expected:?}"),
        }
    };
    let empty = || json!({});
    check(None, &[], Ok("agents.noop"));
    check(None, &["noop"], Ok("agents.noop"));
    check(None, &["agents.noop", "agents.other"], Err("post_run_action must name one"));
    // An agent that declares what needs a configuration leaves its jobs no default.
    check(None, &["agents.publish"], Err("subject: Field required"));
    check(None, &["agents.gone"], Err("Unknown post-run action 'agents.gone'."));
    check(Some(("noop", empty())), &[], Ok("agents.noop"));
    check(Some(("agents.noop", empty())), &["noop"], Ok("agents.noop"));
    check(Some(("nope", empty())), &[], Err("Unknown post-run action 'nope'."));
    check(Some(("noop", empty())), &["agents.other"], Err("not one of those"));
    check(Some(("noop", json!({"x": 1}))), &[], Err("post-run action 'noop': x"));
}
