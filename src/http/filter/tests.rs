use axum::response::IntoResponse;
use http_body_util::BodyExt;
use serde_json::json;

use super::*;
use streams::id::JobId;

use crate::records::filter::{Field, Scalar, Test};

/// The filter of a query, with what is refused as its text.
async fn read(list: &Filterable, query: &[(&str, &str)]) -> Result<Filter, String> {
    match list.read(&Pairs::from_pairs(query)) {
        Ok(filter) => Ok(filter),
        Err(refused) => {
            let body = refused.into_response().into_body().collect().await.expect("a body");
            let body: Value = serde_json::from_slice(&body.to_bytes()).expect("it is JSON");
            Err(body["detail"].as_str().expect("a sentence").to_owned())
        }
    }
}

async fn echo(list: &Filterable, query: &[(&str, &str)]) -> Option<Value> {
    read(list, query).await.unwrap_or_else(|text| panic!("{query:?}: {text}")).echo
}

#[tokio::test]
async fn both_forms_say_the_same_and_are_echoed_canonically() {
    let check = async |query: &[(&str, &str)], expected: Value| {
        assert_eq!(echo(&JOBS, query).await, Some(expected.clone()), "{query:?}");
        // What is echoed asks for the same again.
        let again = expected.to_string();
        let (first, second) = (read(&JOBS, query).await, read(&JOBS, &[("filter", &again)]).await);
        let condition = |read: Result<Filter, String>| read.map(|filter| filter.condition);
        if !query.iter().any(|(key, _)| key.contains("spec")) {
            assert_eq!(condition(first), condition(second), "{query:?}");
        }
        assert_eq!(echo(&JOBS, &[("filter", &again)]).await, Some(expected), "{query:?}");
    };
    let active = json!({"status": {"$eq": "active"}});
    check(&[("filter", r#"{"status": "active"}"#)], active.clone()).await;
    check(&[("filter[status]", "active")], active.clone()).await;
    check(&[("filter[status][$eq]", "active")], active.clone()).await;
    check(&[("filter[status][eq]", "active")], active.clone()).await;
    // `filter=` wins over brackets.
    check(&[("filter[bogus]", "x"), ("filter", r#"{"status": "active"}"#)], active).await;

    let either = json!({"status": {"$in": ["active", "error"]}});
    check(&[("filter[status][$in]", "active,error")], either.clone()).await;
    check(&[("filter[status]", "active"), ("filter[status]", "error")], either.clone()).await;
    check(&[("filter[status]", "active,error")], either.clone()).await;
    check(&[("filter", r#"{"status": ["active", "error"]}"#)], either.clone()).await;
    check(&[("filter", r#"{"status": {"$in": "active,error"}}"#)], either).await;

    let calc = json!({"data.spec.agent_ref": {"$in": ["default/calc", "research/calc"]}});
    let source = json!({"source": {"$eq": "nemo-agents-plugin-execute"}});
    let text = r#"{"spec.agent_ref": {"$in": ["default/calc", "research/calc"]},
                   "source": "nemo-agents-plugin-execute"}"#;
    check(&[("filter", text)], json!({"$and": [calc, source]})).await;
    check(
        &[("filter[created_at][gte]", "2026-01-01"), ("filter[created_at][$lt]", "2027-01-01")],
        json!({"$and": [
            {"created_at": {"$gte": "2026-01-01"}}, {"created_at": {"$lt": "2027-01-01"}}
        ]}),
    )
    .await;
    check(
        &[("filter", r#"{"$not": {"$or": [{"name": "a"}, {"name": {"$like": "b"}}]}}"#)],
        json!({"$not": {"$or": [{"name": {"$eq": "a"}}, {"name": {"$like": "b"}}]}}),
    )
    .await;
    check(&[("filter", r#"{"project": null}"#)], json!({"project": {"$eq": null}})).await;
    check(
        &[("filter[spec][agent][name]", "one-off")],
        json!({"data.spec": {"$eq": {"agent": {"name": "one-off"}}}}),
    )
    .await;
    assert_eq!(
        echo(&TYPED_JOBS, &[("filter", r#"{"spec.agent.name": "x"}"#)]).await,
        Some(json!({"spec.agent.name": {"$eq": "x"}}))
    );
    assert_eq!(echo(&JOBS, &[("page", "1")]).await, None);
}

#[tokio::test]
async fn values_are_what_their_field_has() {
    let check = async |name: &str, query: (&str, &str), expected: Test| {
        let field = Field::find(JOBS.columns, name).expect("it is a field");
        let condition = read(&JOBS, &[query]).await.map(|filter| filter.condition);
        assert_eq!(condition, Ok(Some(Condition::Test(field, expected))), "{query:?}");
    };
    let text = |text: &str| Scalar::Text(text.to_owned());
    let one = |scalar: Scalar| Test::OneOf(vec![scalar]);
    let micros = |micros: i64| Scalar::Number(micros.into());
    let noon = "2026-11-29T12:00:00Z".parse::<jiff::Timestamp>().expect("a time").as_microsecond();
    for spelled in [
        "2026-11-29T12:00:00Z",
        "2026-11-29T12:00:00.000000",
        "2026-11-29 12:00:00",
        "2026-11-29T14:00:00+02:00",
        "2026-11-29T04:30:00-07:30",
    ] {
        check("created_at", ("filter[created_at]", spelled), one(micros(noon))).await;
    }
    let half_a_day = 12 * 3600 * 1_000_000;
    check("created_at", ("filter[created_at]", "2026-11-29"), one(micros(noon - half_a_day))).await;
    check("created_at", ("filter", r#"{"created_at": 1}"#), Test::OneOf(vec![])).await;
    check("name", ("filter", r#"{"name": 1}"#), Test::OneOf(vec![])).await;
    check("name", ("filter", r#"{"name": {"$in": ["a", null, 1]}}"#), one(text("a"))).await;
    check("name", ("filter", r#"{"name": {"$eq": ["a"]}}"#), Test::OneOf(vec![])).await;
    check("id", ("filter[id]", "junk"), Test::OneOf(vec![])).await;
    let id = JobId::new();
    check("id", ("filter[id]", &id.http()), one(text(&id.to_string()))).await;
    let path = "spec.request.timeout_seconds";
    let sixty = || Scalar::Number(60.into());
    check(path, ("filter", r#"{"spec.request.timeout_seconds": 60}"#), one(sixty())).await;
    // Brackets have no other way to say a number.
    let either = Test::OneOf(vec![text("60"), sixty()]);
    check(path, ("filter[spec.request.timeout_seconds]", "60"), either).await;
    let below = Test::Ordered(crate::records::filter::Order::Before, sixty());
    check(path, ("filter[spec.request.timeout_seconds][$lt]", "60"), below).await;
    check(path, ("filter", r#"{"data.spec.request.timeout_seconds": 60}"#), one(sixty())).await;
}

#[tokio::test]
async fn refusals() {
    let generic = "['created_at', 'entity_type', 'id', 'name', 'project', 'source', 'spec', \
                   'status', 'updated_at', 'workspace']";
    let typed = generic.replace(" 'source',", "");
    let statuses = "['active', 'cancelled', 'cancelling', 'completed', 'created', 'error', \
                    'paused', 'pausing', 'pending', 'resuming']";
    let unknown =
        |name: &str, fields: &str| format!("Unknown filter field '{name}'. Valid fields: {fields}");
    let not_a_time = |text: &str| {
        format!(
            "Filter field 'created_at' takes a time such as 2026-01-31T12:00:00Z, \
             2026-01-31T12:00:00+02:00 (in a URL the + is %2B) or 2026-01-31, got \"{text}\""
        )
    };
    let on = |operator: &str, field: &str, all: &str| {
        format!("Operator '{operator}' is not supported on '{field}'; use one of {all}")
    };
    let deep = format!("{}{}{}", r#"{"$not": "#.repeat(17), r#"{"name": "a"}"#, "}".repeat(17));
    let wide = format!(r#"{{"$or": [{}]}}"#, vec![r#"{"name": "a"}"#; 101].join(","));
    let members: Vec<_> = (0..101).map(|n| format!(r#""k{n}": 1"#)).collect();
    let heavy = format!(r#"{{"spec.l": {{"$elemMatch": {{{}}}}}}}"#, members.join(","));
    let far = format!(r#"{{"spec{}": 1}}"#, ".a".repeat(32));
    let long = format!(r#"{{"name": {{"$in": "{}"}}}}"#, ",".repeat(10_000));
    let cases: &[(&Filterable, &str, String)] = &[
        (&JOBS, r#"{"zz": 1}"#, unknown("zz", generic)),
        (&JOBS, r#"{"description": "x"}"#, unknown("description", generic)),
        (&JOBS, r#"{"platform_spec.steps": 1}"#, unknown("platform_spec.steps", generic)),
        (&JOBS, r#"{"name.x": 1}"#, unknown("name.x", generic)),
        (&JOBS, r#"{"data.name": 1}"#, unknown("data.name", generic)),
        (&JOBS, r#"{"'); drop table jobs;--": 1}"#, unknown("'); drop table jobs;--", generic)),
        (&TYPED_JOBS, r#"{"source": "x"}"#, unknown("source", &typed)),
        (&JOBS, "{bad", "Invalid JSON in filter parameter: {bad".to_owned()),
        (&JOBS, "", "Filter query cannot be empty".to_owned()),
        (&JOBS, "{}", "No valid filter criteria found".to_owned()),
        (&JOBS, r#"{"$not": {}}"#, "No valid filter criteria found".to_owned()),
        (&JOBS, r#"{"name": {}}"#, "Filter field 'name' has no operator; give it a value".to_owned()),
        (&JOBS, r#"{"name": {"$ne": 1}}"#, "'$ne' is not a valid FilterOperator".to_owned()),
        (&JOBS, r#"{"name": {"a": 1}}"#, "'a' is not a valid FilterOperator".to_owned()),
        (&JOBS, r#"{"$where": "1"}"#, "'$where' is not a valid FilterOperator".to_owned()),
        (&JOBS, r#"{"$or": []}"#, "'$or' takes a list of at least one object".to_owned()),
        (&JOBS, r#"{"$or": [1]}"#, "'$or' takes a list of at least one object".to_owned()),
        (&JOBS, r#"{"$not": []}"#, "'$not' takes an object".to_owned()),
        (&JOBS, r#"{"$in": []}"#, "'$in' belongs to a field: {\"field\": {\"$in\": …}}".to_owned()),
        (
            &JOBS,
            r#"{"$or": [], "status": "error"}"#,
            "Top-level filter mixes a logical operator with sibling keys (['$or', 'status']); wrap \
             the siblings inside the logical operator or under an explicit $and"
                .to_owned(),
        ),
        (&JOBS, r#"{"created_at": {"$gte": "junk"}}"#, not_a_time("junk")),
        (&JOBS, r#"{"created_at": {"$gte": "2026-13-01"}}"#, not_a_time("2026-13-01")),
        (&JOBS, r#"{"created_at": "99999-01-01"}"#, not_a_time("99999-01-01")),
        (
            &JOBS,
            r#"{"created_at": {"$gte": 5}}"#,
            "Operator '$gte' on 'created_at' takes a time, got 5".to_owned(),
        ),
        (
            &JOBS,
            r#"{"name": {"$like": null}}"#,
            "Operator '$like' on 'name' takes text, got null".to_owned(),
        ),
        (
            &JOBS,
            r#"{"name": {"$in": 5}}"#,
            "Operator '$in' on 'name' takes a list or text with commas, got 5".to_owned(),
        ),
        (
            &JOBS,
            r#"{"id": {"$like": "x"}}"#,
            on("$like", "id", "['$eq', '$in', '$nin']"),
        ),
        (
            &JOBS,
            r#"{"name": {"$hasKey": "x"}}"#,
            on(
                "$hasKey",
                "name",
                "['$endsWith', '$eq', '$gt', '$gte', '$in', '$like', '$lt', '$lte', '$nin', \
                 '$startsWith']",
            ),
        ),
        (
            &JOBS,
            r#"{"spec.l": {"$elemMatch": {"$hasKey": "x"}}}"#,
            "Operator '$hasKey' is not supported inside '$elemMatch'".to_owned(),
        ),
        (
            &JOBS,
            r#"{"status": "error", "status": "active"}"#,
            "Filter parameter: key 'status' stands twice; put both conditions into an explicit \
             $and"
                .to_owned(),
        ),
        (
            &JOBS,
            r#"{"name": "a\u0000"}"#,
            "Filter parameter: a text holds a NUL character, leave it out"
                .to_owned(),
        ),
        (&JOBS, &deep, "A filter may be nested 16 deep, this one is deeper".to_owned()),
        (&JOBS, &wide, "A filter may have 100 conditions, this one has more".to_owned()),
        (&JOBS, &heavy, "A filter may have 100 conditions, this one has more".to_owned()),
        (
            &JOBS,
            &far,
            format!("Filter field 'spec{}': its path has more than 32 parts", ".a".repeat(32)),
        ),
        (&JOBS, &long, "Operator '$in' on 'name' takes at most 10000 values, got 10001".to_owned()),
        (
            &TYPED_JOBS,
            r#"{"status": "zzz"}"#,
            format!("Invalid status value 'zzz'; valid values: {statuses}"),
        ),
        (
            &TYPED_JOBS,
            r#"{"status": {"$nin": ["error", "zzz"]}}"#,
            format!("Invalid status value 'zzz'; valid values: {statuses}"),
        ),
        (
            &TYPED_JOBS,
            r#"{"status": {"$like": "c"}}"#,
            on("$like", "status", "['$eq', '$in', '$nin']"),
        ),
        (
            &TYPED_JOBS,
            r#"{"created_at": {"$like": "2026"}}"#,
            on("$like", "created_at", "['$gt', '$gte', '$lt', '$lte']"),
        ),
    ];
    for (list, text, expected) in cases {
        let refused = read(list, &[("filter", text)]).await;
        assert_eq!(refused, Err(expected.clone()), "{text}");
    }
    for text in ["[1]", "name:\"x\" AND status:\"error\"", "garbage"] {
        let refused = read(&JOBS, &[("filter", text)]).await.expect_err("it is refused");
        assert!(
            refused.contains("use JSON") && refused.contains("filter[field]=value"),
            "{refused}"
        );
    }
    let part = read(&JOBS, &[("filter", r#"{"spec.a\"b": 1}"#)]).await.expect_err("it is refused");
    assert!(part.starts_with("Filter field 'spec.a\"b': part 'a\"b' of the path"), "{part}");
    for name in ["spec.", "spec..a", "spec.a\\b"] {
        assert!(read(&JOBS, &[(&format!("filter[{name}]"), "1")]).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn brackets_that_are_none_are_refused() {
    let check = async |query: &[(&str, &str)], expected: &str| {
        let refused = read(&JOBS, query).await.expect_err("it is refused");
        assert!(refused.starts_with(expected), "{query:?}: {refused}");
    };
    check(&[("filter[status", "x")], "Query parameter 'filter[status' is none of").await;
    check(&[("filter[name]", "a\0")], "Filter parameter: a text holds a NUL").await;
    check(&[("filter[name][zz]", "x")], "'zz' is not a valid FilterOperator").await;
    check(&[("filter[name][$zz]", "x")], "'$zz' is not a valid FilterOperator").await;
    check(&[("filter[name][]", "x")], "'' is not a valid FilterOperator").await;
    check(&[("filter[bogus]", "x")], "Unknown filter field 'bogus'").await;
    check(&[("filter[name]", "x"), ("filter[name][like]", "y")], "Query parameter").await;
    let deep = format!("filter[spec]{}", "[a]".repeat(20_000));
    check(&[(&deep, "x")], "Query parameter").await;
}

#[tokio::test]
async fn agents_echo_brackets_as_they_came() {
    let list = plain(&filter::AGENTS);
    let check = async |query: &[(&str, &str)], expected: Value| {
        let filter = read(&list, query).await.expect("it is a filter");
        assert_eq!(filter.echo_of_agents(), expected, "{query:?}");
    };
    check(&[], json!({})).await;
    check(&[("filter[config_format]", "x")], json!({"config_format": "x"})).await;
    check(&[("filter", r#"{"name": "x"}"#)], json!({"name": {"$eq": "x"}})).await;
}
