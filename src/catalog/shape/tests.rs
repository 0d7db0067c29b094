use serde_json::json;

use super::*;

const INNER: Table = table(&[field("n", Shape::Number(POSITIVE), Absent::Number(1.0))]);
const OUTER: Table = Table {
    fields: &[
        field("name", Shape::Short { most: 3 }, Absent::Refused),
        field("inner", Shape::Object(&INNER), Absent::Object),
        field("kind", Shape::Words(&["a", "b", "c"]), Absent::Text("a")),
    ],
    unknown: Unknown::Refused,
    rule: no_rule,
};

fn check(given: Value, expected: Result<Value, Value>) {
    let read = read(&Shape::Object(&OUTER), &given, &["body".into()]);
    let read = read.map_err(|violations| json!(violations));
    assert_eq!(read, expected, "{given}");
}

#[test]
fn everything_that_is_wrong_is_named_in_one_answer() {
    let given = json!({"inner": {"n": 0}, "kind": "z", "extra": null});
    let expected = "'a', 'b' or 'c'";
    check(
        given.clone(),
        Err(json!([
            {"type": "missing", "loc": ["body", "name"], "msg": "Field required", "input": given},
            {"type": "greater_than", "loc": ["body", "inner", "n"],
             "msg": "Input should be greater than 0", "input": 0, "ctx": {"gt": 0.0}},
            {"type": "enum", "loc": ["body", "kind"], "msg": format!("Input should be {expected}"),
             "input": "z", "ctx": {"expected": expected}},
            {"type": "extra_forbidden", "loc": ["body", "extra"],
             "msg": "Extra inputs are not permitted", "input": null},
        ])),
    );
}

#[test]
fn null_is_absence_except_where_a_value_is_required() {
    let full = json!({"name": "x", "inner": {"n": 1.0}, "kind": "a"});
    check(json!({"name": "x"}), Ok(full.clone()));
    check(json!({"name": "x", "inner": null, "kind": null}), Ok(full));
    let input = json!({"name": null});
    check(
        input,
        Err(json!([{"type": "string_type", "loc": ["body", "name"],
                    "msg": "Input should be a valid string", "input": null}])),
    );
}

#[test]
fn numbers_may_be_spelled_as_text_but_are_finite() {
    check(
        json!({"name": "x", "inner": {"n": " 2.5 "}}),
        Ok(json!({"name": "x", "inner": {"n": 2.5}, "kind": "a"})),
    );
    for endless in ["inf", "NaN", "1e999"] {
        let given = json!({"name": "x", "inner": {"n": endless}});
        let found = read(&Shape::Object(&OUTER), &given, &[]).expect_err("it is not finite");
        assert_eq!(found[0].kind, "finite_number");
    }
}

#[test]
fn an_answer_is_bounded() {
    let given = json!({"n": vec![json!({"n": 0}); 10_000]});
    let shape = Shape::Map(&Shape::List(&Shape::Object(&INNER)));
    let found = read(&shape, &given, &[]).expect_err("none of them is well");
    assert_eq!(found.len(), 100);
    let unknown: Map<_, _> = (0..200).map(|n| (format!("extra-{n}"), json!(0))).collect();
    let found = read(&Shape::Object(&INNER), &Value::Object(unknown), &[]).expect_err("unknown");
    assert_eq!(found.len(), 100);
}
