use super::combine;

#[track_caller]
fn check(filter: Option<&str>, status: &[&str], expected: Option<&str>) {
    let status: Vec<_> = status.iter().map(|word| (*word).to_owned()).collect();
    let found = combine(filter, &[("status", &status)]).expect("it is valid");
    assert_eq!(found.as_deref(), expected);
}

#[test]
fn flags_and_json_become_one_filter() {
    check(None, &[], None);
    check(None, &["active"], Some(r#"{"status":"active"}"#));
    check(None, &["active", "error"], Some(r#"{"status":{"$in":["active","error"]}}"#));
    check(
        Some(r#"{"spec.agent_ref":{"$in":["default/a"]},"status":"error"}"#),
        &["active"],
        Some(r#"{"spec.agent_ref":{"$in":["default/a"]},"status":"active"}"#),
    );
}

#[test]
fn beside_an_operator_the_fields_stand_apart() {
    check(
        Some(r#"{"$or":[{"name":"a"},{"name":"b"}]}"#),
        &["active"],
        Some(r#"{"$and":[{"$or":[{"name":"a"},{"name":"b"}]},{"status":"active"}]}"#),
    );
}

#[test]
fn other_text_goes_to_the_server_as_it_is() {
    check(Some(r#"name:"x" OR name:"y""#), &[], Some(r#"name:"x" OR name:"y""#));
    assert!(combine(Some("name:\"x\""), &[("status", &["active".to_owned()])]).is_err());
}

#[test]
fn json_that_is_no_object_is_refused() {
    for text in ["{", "[]"] {
        let error = combine(Some(text), &[]).expect_err(text).to_string();
        assert!(error.starts_with("Invalid filter JSON: "), "{error}");
    }
}
