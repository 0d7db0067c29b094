use super::combine;

#[track_caller]
fn check(json: Option<&str>, status: &[&str], expected: Option<&str>) {
    let status: Vec<_> = status.iter().map(|word| (*word).to_owned()).collect();
    let found = combine(json, &[("status", &status)]).expect("it is valid");
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
fn what_is_no_object_is_refused() {
    assert!(combine(Some("{"), &[]).is_err());
    assert!(combine(Some("[]"), &[]).is_err());
}
