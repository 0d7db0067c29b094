use super::*;

#[test]
fn a_text_has_no_fewer_values_than_what_is_read_from_it() {
    let check = |json: &str, text: usize, value: usize| {
        let read = serde_json::from_str(json).expect("it is JSON");
        assert_eq!((of_text(json.as_bytes()), of_value(&read)), (text, value), "{json}");
    };
    check("1", 1, 1);
    check("[]", 2, 1);
    check(r#"{"a": [1, 2], "b": {"c": null}}"#, 6, 6);
    check(r#"["a,[{\"b,", "\\", 1]"#, 4, 4);
}
