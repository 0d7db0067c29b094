use proptest::prelude::*;

use super::*;

fn job() -> impl Strategy<Value = JobId> {
    any::<u128>().prop_map(|number| JobId::from_uuid(uuid::Uuid::from_u128(number)))
}

fn phase() -> impl Strategy<Value = Phase> {
    prop::sample::select(Phase::CHAIN.to_vec())
}

/// Strings that are nearly subjects, so that the property does not only see noise.
fn near_subject() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        phase().prop_map(|phase| phase.token().to_owned()),
        job().prop_map(|job| job.to_string()),
        job().prop_map(|job| job.to_string().to_uppercase()),
        "[a-zA-Z]{1,3}",
        "(%[0-9a-fA-F]{0,2}|[a-z]){0,4}",
        "\\PC{0,4}",
    ];
    prop::collection::vec(token, 0..5).prop_map(|tokens| format!("jobs.{}", tokens.join(".")))
}

proptest! {
    #[test]
    fn any_workspace_is_one_token_and_comes_back(workspace in any::<String>(), job in job(), phase in phase()) {
        prop_assume!(!workspace.is_empty());
        let token = escape(&workspace);
        prop_assert!(token.bytes().all(|byte| byte.is_ascii_graphic() && !b".*>/\\".contains(&byte)));
        prop_assert_eq!(unescape(&token), Some(workspace.clone()));

        let subject = fact(phase, &workspace, job);
        prop_assert_eq!(subject.split('.').count(), 4);
        prop_assert_eq!(parse_fact(&subject), Ok(FactSubject { phase, workspace, job }));
    }

    #[test]
    fn only_what_fact_prints_is_accepted(subject in prop_oneof![any::<String>(), near_subject()]) {
        if let Ok(found) = parse_fact(&subject) {
            prop_assert_eq!(fact(found.phase, &found.workspace, found.job), subject);
        }
    }
}

#[test]
fn every_job_has_one_subject_a_phase() {
    let id = "0190163d-8694-739b-aea5-966c26f8ad91";
    let parses = |subject: String| parse_fact(&subject).is_ok();
    assert!(parses(format!("jobs.staged.team%2Ea.{id}")));
    for other_spelling in [
        format!("jobs.staged.team%2ea.{id}"),
        format!("jobs.staged.%74eam.{id}"),
        format!("jobs.staged.team.{}", id.to_uppercase()),
        format!("jobs.staged.team.{}", id.replace('-', "")),
        format!("jobs.Staged.team.{id}"),
        format!("jobs.staged..{id}"),
        format!("jobs.staged.team.{id}."),
        format!("jobs.staged.te%FFam.{id}"),
        format!("jobs.staged.*.{id}"),
        format!("jobs.refused.team.{id}"),
        REFUSED.to_owned(),
    ] {
        assert!(!parses(other_spelling.clone()), "{other_spelling}");
    }
}

#[test]
fn subjects_look_as_documented() {
    let job: JobId = "0190163d-8694-739b-aea5-966c26f8ad91".parse().expect("a UUID");
    let printed = [
        fact(Phase::Submitted, "team.a", job),
        facts(Phase::Staged),
        facts_in(Phase::Staged, "team.a"),
        status("default", job),
        changes("team.a", job),
        submit("team.a"),
        logs("default", job),
    ];
    assert_eq!(
        printed,
        [
            "jobs.submitted.team%2Ea.0190163d-8694-739b-aea5-966c26f8ad91",
            "jobs.staged.>",
            "jobs.staged.team%2Ea.>",
            "status.default.0190163d-8694-739b-aea5-966c26f8ad91",
            "changes.team%2Ea.0190163d-8694-739b-aea5-966c26f8ad91",
            "submit.team%2Ea",
            "logs.default.0190163d-8694-739b-aea5-966c26f8ad91",
        ]
    );
}

#[test]
fn a_workspace_has_one_subject_to_ask_on() {
    assert_eq!(parse_submit("submit.team%2Ea").as_deref(), Some("team.a"));
    for other in ["submit", "submit.", "submit.a.b", "submit.%61", "submit.team%2ea", "jobs.a"] {
        assert_eq!(parse_submit(other), None, "{other}");
    }
}

#[test]
fn what_streams_keep_and_what_they_send_on_is_reserved() {
    for stream in crate::topology::streams(crate::topology::Limits::default()) {
        let sent_on = stream.sent_on.iter().map(|(_, to)| (*to).to_owned());
        for subject in stream.subjects.into_iter().chain(sent_on) {
            assert!(is_reserved(&subject), "{subject}");
        }
    }
    assert!(is_reserved(SUBMITS));
    assert!(is_reserved("$JS.API.STREAM.DELETE.JOBS"));
    for free in ["_INBOX.a.b", "_R_.x", "events.jobs", "jobsx.a", ""] {
        assert!(!is_reserved(free), "{free}");
    }
}
