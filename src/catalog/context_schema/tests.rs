use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::*;

/// The places and texts of what is wrong with a schema.
fn schema(schema: &Value) -> Vec<String> {
    schema_violations(schema).iter().map(|found| found.msg.clone()).collect()
}

/// The same of a context.
fn context(schema: &Value, context: Value) -> Vec<String> {
    context_violations(schema, &context).iter().map(|found| found.msg.clone()).collect()
}

/// The processor time of this thread. A machine that is busy otherwise does not lengthen it.
fn spent() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(spent).expect("it only grows")
}

fn since() -> Value {
    json!({
        "type": "object",
        "properties": {"since": {"type": "string", "format": "date-time"}},
        "required": ["since"],
        "additionalProperties": false,
    })
}

#[test]
fn schemas_that_are_good() {
    for good in [
        json!(true),
        json!(false),
        json!({}),
        since(),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": true}}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema"}),
        json!({"properties": {"$ref": {"type": "string"}, "$dynamicRef": true}}),
        json!({"patternProperties": {"$ref": true}, "$defs": {"$ref": {}}}),
        json!({"const": {"$ref": "#"}, "enum": [{"$ref": "#"}], "default": {"$ref": "#"}}),
        json!({"examples": [{"$recursiveRef": "#"}], "x-note": {"$ref": "#"}}),
        json!({"required": ["$ref"], "dependentRequired": {"$ref": ["a"]}}),
        json!({"type": "string", "pattern": "^(?!x)[a-z]+$"}),
    ] {
        assert_eq!(schema(&good), Vec::<String>::new(), "{good}");
    }
}

#[test]
fn schemas_that_are_refused() {
    let check = |given: Value, expected: &[&str]| {
        let found = schema(&given);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            let expected = format!("Value error, context_schema#{expected}");
            assert!(found.starts_with(&expected), "{found} lacks {expected}");
        }
    };
    let reference = |keyword: &str, place: &str| format!("{place}/{keyword}: '{keyword}' is not");
    for keyword in REFERENCES {
        check(json!({keyword: "#/$defs/a"}), &[&reference(keyword, "")]);
        check(json!({keyword: 5}), &[&reference(keyword, "")]);
        let below = json!({keyword: "http://127.0.0.1:9/x"});
        for (place, given) in [
            ("/allOf/0", json!({"allOf": [below]})),
            ("/items", json!({"items": below})),
            ("/items/1", json!({"items": [true, below]})),
            ("/properties/a~1b", json!({"properties": {"a/b": below}})),
            ("/properties/$ref", json!({"properties": {"$ref": below}})),
            ("/patternProperties/^x", json!({"patternProperties": {"^x": below}})),
            ("/$defs/a/not", json!({"$defs": {"a": {"not": below}}})),
            ("/dependentSchemas/a", json!({"dependentSchemas": {"a": below}})),
            ("/dependencies/a", json!({"dependencies": {"a": below}})),
            ("/if", json!({"if": below})),
            ("/contentSchema", json!({"contentSchema": below})),
        ] {
            check(given, &[&reference(keyword, place)]);
        }
    }
    check(json!({"$ref": "#", "not": {"$ref": "#"}}), &["/$ref: ", "/not/$ref: "]);
    let unknown = "/$schema: 'http://127.0.0.1:9/meta' is not a known dialect";
    check(json!({"$schema": "http://127.0.0.1:9/meta"}), &[unknown]);
    let inner = json!({"$defs": {"a": {"$id": "urn:a", "$schema": "http://127.0.0.1:9/meta"}}});
    check(inner, &["/$defs/a/$schema: "]);
    check(json!({"$schema": 5}), &["/$schema: 5 is not of type \"string\""]);
    check(json!([]), &[": [] is not of types \"boolean\", \"object\""]);
    check(json!("x"), &[": "]);
    check(json!({"type": "strin"}), &["/type: \"strin\" is not valid"]);
    check(json!({"minimum": "3"}), &["/minimum: \"3\" is not of type \"number\""]);
    check(json!({"properties": {"a": {"type": 1}}}), &["/properties/a/type: "]);
    check(json!({"pattern": "("}), &["/pattern: "]);
}

#[test]
fn schemas_are_bounded() {
    let nested = |levels: usize| (0..levels).fold(json!({}), |below, _| json!({"allOf": [below]}));
    // The last level holds nothing, and each but it is an object and a list.
    assert_eq!(schema(&nested(MAX_SCHEMA_DEPTH / 2)), Vec::<String>::new());
    let deep = schema(&nested(MAX_SCHEMA_DEPTH / 2 + 1));
    assert_eq!(deep, ["Value error, context_schema#: is nested deeper than 64 levels"]);

    let begun = spent();
    let large = schema(&json!({"description": "x".repeat(5_000_000)}));
    let text = "context_schema#: has 5000018 bytes, the limit is 262144 bytes";
    assert_eq!(large, [format!("Value error, {text}")]);
    let huge = "(a{100}){100}";
    for (place, given) in [
        ("/pattern: ", json!({"pattern": huge})),
        ("/patternProperties/(a{100}){100}: ", json!({"patternProperties": {huge: true}})),
    ] {
        let found = schema(&given);
        let expected = format!("Value error, context_schema#{place}the pattern cannot be used: ");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
    }
    let took = spent() - begun;
    assert!(took < Duration::from_millis(500), "{took:?}");
}

#[test]
fn a_schema_has_so_many_patterns() {
    let patterns = |count: usize| {
        let one = |n| (format!("k{n}"), json!({"pattern": format!("^[a-z]{{{n}}}$")}));
        json!({"properties": (0..count).map(one).collect::<Map<_, _>>()})
    };
    let begun = spent();
    assert_eq!(schema(&patterns(MAX_PATTERNS)), Vec::<String>::new());
    let many = schema(&patterns(MAX_PATTERNS + 1));
    assert_eq!(many, ["Value error, context_schema#: has 101 patterns, the limit is 100"]);
    let took = spent() - begun;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn case_i1_date_times_are_those_of_rfc_3339() {
    for dialect in
        ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
    {
        let mut schema = since();
        schema["$schema"] = json!(dialect);
        for wrong in [
            "yesterday",
            "2026-10-01",
            "2026-10-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2024-03-19T26:34:56Z",
            "2026-02-30T00:00:00Z",
            "2026-10-01T00:00:60Z",
            "2026-10-01T00:00:00+0200",
        ] {
            let found = context(&schema, json!({"since": wrong}));
            let expected = "context.since: the value is not a \"date-time\"";
            assert_eq!(found, [expected], "{wrong} {dialect}");
        }
        for right in [
            "2026-10-01t00:00:00z",
            "2026-06-30T23:59:60Z",
            "2026-10-01T00:00:00+02:00",
            "2026-10-01T00:00:00.123456789Z",
            "2026-07-01T01:59:60+02:00",
        ] {
            assert_eq!(context(&schema, json!({"since": right})), Vec::<String>::new(), "{right}");
        }
    }
}

#[test]
fn everything_that_is_wrong_with_a_context_is_named() {
    let found = context_violations(&since(), &json!({"sinse": "x", "zzz": 1}));
    let found: Vec<_> = found.iter().map(|it| (it.kind, it.path(), it.msg.as_str())).collect();
    let place = |key: &str| format!("body.spec.context.{key}");
    let expected = [
        ("extra_forbidden", place("sinse"), "context.sinse: unknown key, did you mean `since`"),
        ("extra_forbidden", place("zzz"), "context.zzz: unknown key"),
        ("missing", place("since"), "context.since: required key is missing"),
    ];
    assert_eq!(found.len(), 3, "{found:?}");
    for entry in expected {
        assert!(found.contains(&entry), "{entry:?} is not in {found:?}");
    }

    let nested = json!({
        "properties": {"a": {"type": "array", "items": {
            "properties": {"limit": {"type": "integer", "minimum": 1}},
            "unevaluatedProperties": false,
        }}},
    });
    let found = context(&nested, json!({"a": [{"limit": 1}, {"limit": 0, "limits": 2}]}));
    assert!(found.iter().any(|text| text.starts_with("context.a.1.limit: the value is less")));
    assert!(found.contains(&"context.a.1.limits: unknown key, did you mean `limit`".to_owned()));
    assert_eq!(context(&json!(false), json!({})).len(), 1);
    assert_eq!(context(&json!(true), json!({"any": "thing"})), Vec::<String>::new());

    let many = json!({"additionalProperties": {"type": "integer"}});
    let texts: Map<_, _> = (0..1000).map(|n| (format!("k{n}"), json!("x"))).collect();
    assert_eq!(context(&many, Value::Object(texts)).len(), MAX_VIOLATIONS);
}

#[test]
fn patterns_take_bounded_time() {
    let text = format!("{}!", "a".repeat(40));
    for pattern in ["^(a+)+$", "^(?=a)(a+)+$", r"^(a+)+\1$"] {
        let schema = json!({"properties": {"text": {"type": "string", "pattern": pattern}}});
        assert_eq!(schema_violations(&schema), [], "{pattern}");
        let begun = spent();
        let found = context(&schema, json!({"text": text}));
        let took = spent() - begun;
        assert!(took < Duration::from_millis(100), "{pattern}: {took:?}");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("context.text: "), "{found:?}");
    }
}

#[test]
fn look_around_is_tried_on_little_text() {
    let schema = json!({"properties": {"text": {"pattern": "^(?:(?=.*!)a)+$"}}});
    let begun = spent();
    let found = context(&schema, json!({"text": "a".repeat(16_000)}));
    assert_eq!(found.len(), 1, "{found:?}");
    let took = spent() - begun;
    assert!(took < Duration::from_secs(2), "{took:?}");
    let found = context(&schema, json!({"text": "a".repeat(16_384)}));
    assert!(found[0].starts_with("context: has 16395 bytes, at most 16384 are"), "{found:?}");

    let linear = json!({"properties": {"text": {"pattern": "^(a+)+$"}}});
    let begun = spent();
    let found = context(&linear, json!({"text": format!("{}!", "a".repeat(1_000_000))}));
    assert_eq!(found.len(), 1);
    let took = spent() - begun;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn no_schema_opens_a_socket() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it can be polled");
    let url = format!("http://{}/meta", listener.local_addr().expect("an address"));
    for given in [
        json!({"$schema": url}),
        json!({"$ref": url}),
        json!({"allOf": [{"$dynamicRef": url}]}),
        json!({"$id": url, "$vocabulary": {&url: true}}),
        json!({"$defs": {"a": {"$id": url, "$schema": url}}}),
    ] {
        // Refused or not, and should one ever get past the check: there is nothing to fetch with.
        let _ = (schema_violations(&given), compile(&given));
    }
    let nobody = listener.accept().expect_err("nobody connects");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

/// Twenty gigabytes, were each of the alternatives explained.
#[test]
fn alternatives_of_alternatives_are_not_explained_for_a_large_context() {
    let twice = |inner: Value, _| json!({"anyOf": [inner, inner]});
    let alternatives = (0..12).fold(json!({"type": "integer"}), twice);
    assert_eq!(schema(&alternatives), Vec::<String>::new());
    let numbers: Vec<_> = (0..20_000).collect();
    let found = context(&alternatives, json!({"numbers": numbers}));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("too large to say where"), "{found:?}");
    let found = context(&alternatives, json!({"a": 1}));
    assert!(found[0].contains("'anyOf'"), "{found:?}");
}
