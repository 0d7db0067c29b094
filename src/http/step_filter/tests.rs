use serde_json::json;

use super::*;

fn read(pairs: &[(&str, &str)]) -> StepQuery {
    StepQuery::read(&Pairs::from_pairs(pairs)).expect("it is a filter")
}

#[test]
fn both_forms_say_the_same() {
    let wanted = StepFilter {
        job: Some("run-1".to_owned()),
        statuses: Some(vec![Status::Completed, Status::Error]),
        ..StepFilter::default()
    };
    let echo = json!({"status": ["completed", "error"], "job": "run-1"});
    for pairs in [
        &[("filter[status]", "completed,error"), ("filter[job]", "run-1")][..],
        &[("filter[status]", "completed"), ("filter[status]", "error"), ("filter[job]", "run-1")],
        &[("filter", r#"{"status": ["completed", "error"], "job": "run-1"}"#)],
        &[("filter", r#"{"status": {"$in": ["completed", "error"]}, "job": {"$eq": "run-1"}}"#)],
    ] {
        let read = read(pairs);
        assert_eq!(read.filter, wanted, "{pairs:?}");
        assert_eq!(Value::Object(read.echo), echo, "{pairs:?}");
    }
}

#[test]
fn conditions_on_a_status_must_all_hold() {
    let both =
        read(&[("filter[status]", "error,completed"), ("filter[task_cleanup_pending]", "false")]);
    assert_eq!(both.filter.statuses, Some(vec![Status::Error]));
    assert_eq!(read(&[("filter[task_cleanup_pending]", "true")]).filter.statuses, Some(vec![]));
    let mut other = read(&[("filter[job]", "run-1")]);
    other.of_job("run-2");
    assert_eq!(other.filter.statuses, Some(vec![]), "no job has two names");
}

#[test]
fn what_is_no_filter_is_refused() {
    for pair in [
        ("filter[bogus]", "1"),
        ("filter[status]", "bogus"),
        ("filter[job]", "a,b"),
        ("filter[task_cleanup_pending]", "perhaps"),
        ("filter", "{"),
        ("filter", "[1]"),
        ("filter", r#"{"status": {"$like": "a"}}"#),
        ("filter", r#"{"status": {"$in": ["error"], "$eq": "error"}}"#),
    ] {
        assert!(StepQuery::read(&Pairs::from_pairs(&[pair])).is_err(), "{pair:?}");
    }
}
