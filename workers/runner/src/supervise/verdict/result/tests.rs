use super::*;

#[test]
fn the_shape_is_the_references_whatever_fabric_left_out() {
    let result = json!({
        "agent_name": "a", "status": "failed", "request_id": "job-1",
        "output": {"response": "96"},
        "error": {"stage": "invoke", "code": "c", "message": "m", "retryable": false},
        "artifacts": {},
    });
    let shape = reference_shape(&result);
    let keys: Vec<&String> = shape.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "status",
            "output",
            "response",
            "error",
            "artifacts",
            "telemetry",
            "events",
            "metadata",
            "runtime_id",
            "invocation_id",
            "request_id"
        ]
    );
    assert_eq!(shape["response"], "96");
    assert_eq!(shape["artifacts"], json!({"root": null, "artifacts": []}));
    assert_eq!(shape["error"]["metadata"], json!({}));
    assert_eq!(shape["events"], json!([]));
}

#[test]
fn an_output_that_is_no_object_has_no_response() {
    let shape = reference_shape(&json!({"status": "succeeded", "output": "text"}));
    assert_eq!(shape["response"], Value::Null);
    assert_eq!(shape["error"], Value::Null);
}

#[test]
fn tokens_are_counted_with_the_cache() {
    let usage = |usage: Value| usage_of(json!({"output": {"usage": usage}}));
    assert_eq!(
        usage(json!({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 2})),
        Some((15, 2))
    );
    assert_eq!(usage(json!({"prompt_tokens": 3, "completion_tokens": 4})), Some((3, 4)));
    assert_eq!(usage(json!({"input_tokens": -1, "output_tokens": 2})), None);
    assert_eq!(usage(json!({"input_tokens": 1.5, "output_tokens": 2})), None);
    assert_eq!(usage(json!({"input_tokens": 1})), None);
    assert_eq!(usage_of(json!({"usage": {"input_tokens": 7, "output_tokens": 8}})), Some((7, 8)));
}

fn usage_of(result: Value) -> Option<(u64, u64)> {
    usage(&result).map(|usage| (usage.input_tokens, usage.output_tokens))
}
