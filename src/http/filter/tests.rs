use axum::response::IntoResponse;
use http_body_util::BodyExt;
use serde_json::json;

use super::*;

fn pairs(query: &[(&str, &str)]) -> Pairs {
    Pairs::from_pairs(query)
}

fn words(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn both_forms_say_the_same() {
    let check = |query: &[(&str, &str)], expected: Filter| {
        let read = read(&pairs(query), Collection::Generic).expect("it is a filter");
        assert_eq!(read, expected, "{query:?}");
    };
    check(&[("page", "1")], Filter::default());
    let echo = Some(json!({"status": {"$eq": "active"}}));
    let active =
        || Filter { statuses: words(&["active"]), echo: echo.clone(), ..Filter::default() };
    check(&[("filter", r#"{"status": "active"}"#)], active());
    check(&[("filter[status]", "active")], active());
    check(&[("filter[status][$eq]", "active")], active());
    check(&[("filter[status][eq]", "active")], active());
    let echo = Some(json!({"status": {"$in": ["active", "error"]}}));
    let either = Filter { statuses: words(&["active", "error"]), echo, ..Filter::default() };
    check(&[("filter[status][$in]", "active,error")], either);
    let text =
        r#"{"spec.agent_ref": {"$in": ["default/calc"]}, "source": "nemo-agents-plugin-execute"}"#;
    let parts = [
        json!({"data.spec.agent_ref": {"$in": ["default/calc"]}}),
        json!({"source": {"$eq": "nemo-agents-plugin-execute"}}),
    ];
    let agents = || Filter {
        agent_refs: words(&["default/calc"]),
        sources: words(&["nemo-agents-plugin-execute"]),
        echo: Some(json!({"$and": parts})),
        ..Filter::default()
    };
    check(&[("filter", text)], agents());
    let nested = r#"{"$and": [{"spec.agent_ref": {"$in": ["default/calc"]}}, {"source": "nemo-agents-plugin-execute"}]}"#;
    check(&[("filter", nested)], agents());
    // `filter=` wins over brackets.
    check(&[("filter[name]", "x"), ("filter", r#"{"status": "active"}"#)], active());
}

#[tokio::test]
async fn refusals() {
    let fields = "['created_at', 'entity_type', 'id', 'name', 'project', 'source', 'spec', \
                  'status', 'updated_at', 'workspace']";
    let unknown = format!("Unknown filter field 'zz'. Valid fields: {fields}");
    let cases = [
        (r#"{"zz": 1}"#, Collection::Generic, unknown.as_str()),
        ("{bad", Collection::Generic, "Invalid JSON in filter parameter: {bad"),
        ("", Collection::Generic, "Filter query cannot be empty"),
        ("{}", Collection::Generic, "No valid filter criteria found"),
        (r#"{"name": {"$zz": 1}}"#, Collection::Generic, "'$zz' is not a valid FilterOperator"),
        (
            r#"{"name": {"$like": "x"}}"#,
            Collection::Generic,
            "Operator '$like' is not supported on 'name'; use one of ['$eq', '$in']",
        ),
        (
            r#"{"$or": [], "status": "error"}"#,
            Collection::Generic,
            "Top-level filter mixes a logical operator with sibling keys (['$or', 'status']); wrap \
             the siblings inside the logical operator or under an explicit $and",
        ),
        (
            r#"{"status": "zzz"}"#,
            Collection::Typed,
            "Invalid status value 'zzz'; valid values: ['active', 'cancelled', 'cancelling', \
             'completed', 'created', 'error', 'paused', 'pausing', 'pending', 'resuming']",
        ),
    ];
    for (text, collection, expected) in cases {
        let refused = read(&pairs(&[("filter", text)]), collection).expect_err(text);
        let body = refused.into_response().into_body().collect().await.expect("a body");
        let body: Value = serde_json::from_slice(&body.to_bytes()).expect("it is JSON");
        assert_eq!(body, json!({"detail": expected}), "{text}");
    }
}

#[test]
fn a_status_that_does_not_exist_matches_nothing_in_the_generic_list() {
    let read = read(&pairs(&[("filter[status]", "FOOBAR")]), Collection::Generic);
    assert_eq!(read.expect("it is a filter").statuses, words(&["FOOBAR"]));
}
