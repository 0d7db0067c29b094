use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(secret: &str, text: &str, expected: &str) {
    assert_eq!(Mask::new([secret]).text(text), expected);
}

#[test]
fn the_value_is_masked_wherever_it_stands() {
    check("s3cr3t-value", "s3cr3t-value", "***");
    check("s3cr3t-value", "a s3cr3t-value b s3cr3t-value.", "a *** b ***.");
    check("s3cr3t-value", "s3cr3t-valu", "s3cr3t-valu");
}

#[test]
fn case_g1_each_line_and_the_compact_form_of_a_multi_line_value_are_masked() {
    let secret = "{\n  \"k\": \"s3cr3t-value-1\"\n}";
    check(secret, secret, "***");
    check(secret, "{  \"k\": \"s3cr3t-value-1\"}", "***");
    check(secret, "  \"k\": \"s3cr3t-value-1\"", "***");
    check(secret, "x \"k\": \"s3cr3t-value-1\" y", "x *** y");
    check(secret, "{", "{");
}

#[test]
fn case_g2_short_values_are_no_masks() {
    for short in ["", "a", "{", "true", "1", "1234567"] {
        check(short, "{ a is true, 1 of 1234567 }", "{ a is true, 1 of 1234567 }");
    }
    assert_eq!(Mask::new([""]).longest(), 0);
}

#[test]
fn base64_is_found_at_every_alignment_and_in_both_alphabets() {
    let secret = "pa??word>>with~~odd";
    let mask = Mask::new([secret]);
    for before in ["", "x", "xy", "xyz"] {
        for after in ["", "1", "12"] {
            let text = format!("{before}{secret}{after}");
            for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let masked = mask.text(&encoded);
                assert!(masked.contains("***"), "{encoded} became {masked}");
                assert!(masked.len() <= 12, "{encoded} became {masked}");
            }
        }
    }
}

#[test]
fn wrapped_base64_of_a_long_value_is_masked_line_by_line() {
    let secret = "0123456789-abcdefghij".repeat(12);
    let encoded = STANDARD_NO_PAD.encode(&secret);
    let mask = Mask::new([secret.as_str()]);
    for line in encoded.as_bytes().chunks(76) {
        let line = String::from_utf8_lossy(line);
        assert_eq!(mask.text(&line), "***");
    }
}

#[test]
fn url_and_json_forms_are_masked() {
    let secret = "a b/c\"d\\é-2024";
    check(secret, "q=a%20b%2Fc%22d%5C%C3%A9%2D2024&", "q=***&");
    check(secret, "q=a+b%2Fc%22d%5C%C3%A9-2024&", "q=***&");
    check(secret, r#"{"k":"a b/c\"d\\é-2024"}"#, r#"{"k":"***"}"#);
    check(secret, r#"{"k":"a b/c\"d\\\u00e9-2024"}"#, r#"{"k":"***"}"#);
}

#[test]
fn overlapping_secrets_leave_no_half() {
    let mask = Mask::new(["abcdefgh-XYZ", "XYZ-12345678"]);
    assert_eq!(mask.text("<abcdefgh-XYZ-12345678>"), "<***>");
}

#[test]
fn a_cut_in_the_middle_of_a_secret_shows_nothing_of_it() {
    let mask = Mask::new(["s3cr3t-value"]);
    let text = b"0123 s3cr3t-value and more";
    assert_eq!(&*mask.bytes_until(text, 8), b"0123 ***");
    assert_eq!(&*mask.bytes_until(text, 5), b"0123 ");
    assert_eq!(&*mask.bytes_until(text, 21), b"0123 *** and");
}

#[test]
fn json_values_are_masked_in_every_string() {
    let mut value = json!({"a": ["s3cr3t-value", 1], "b": {"c": "x s3cr3t-value"}});
    Mask::new(["s3cr3t-value"]).value(&mut value);
    assert_eq!(value, json!({"a": ["***", 1], "b": {"c": "x ***"}}));
}

proptest! {
    #[test]
    fn no_secret_gets_through(
        secret in "[a-c\"/ é]{8,24}",
        before in "[a-c\"/ é]{0,40}",
        after in "[a-c\"/ é]{0,40}",
    ) {
        let masked = Mask::new([secret.as_str()]).text(&format!("{before}{secret}{after}"));
        prop_assert!(!masked.contains(&secret));
    }
}
