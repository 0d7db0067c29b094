use serde_json::{Value, json};

use super::{lay_over, object};

#[test]
fn objects_are_yaml_or_json() {
    let expected = json!({"a": {"b": [1, "x"]}});
    for text in ["a:\n  b: [1, x]\n", " {\"a\": {\"b\": [1, \"x\"]}}"] {
        let found = object(text, "f").expect("it is an object");
        assert_eq!(Value::Object(found), expected, "{text}");
    }
}

#[test]
fn other_text_is_refused_with_its_origin() {
    for text in ["[1]", "7", "{\"a\": }", "a: b: c", ""] {
        let error = object(text, "spec.yaml").expect_err("it is no object");
        assert!(error.0.starts_with("spec.yaml: "), "{text}: {error}");
    }
}

#[test]
fn what_lies_above_wins_key_by_key() {
    let mut below =
        object(r#"{"a": {"x": 1, "y": 2}, "b": [1, 2], "c": {"d": 1}}"#, "").expect("it is");
    let above = object(r#"{"a": {"y": 3}, "b": [4], "c": "text", "e": null}"#, "").expect("it is");
    lay_over(&mut below, above);
    assert_eq!(
        Value::Object(below),
        json!({"a": {"x": 1, "y": 3}, "b": [4], "c": "text", "e": null})
    );
}
