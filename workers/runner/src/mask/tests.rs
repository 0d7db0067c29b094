use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
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
fn hex_and_html_forms_are_masked() {
    let secret = "a<b>&\"c'é-2024";
    check(secret, "0x613c623e26226327c3a92d32303234.", "0x***.");
    check(secret, "613C623E26226327C3A92D32303234", "***");
    let escaped = r"\x61\x3c\x62\x3e\x26\x22\x63\x27\xc3\xa9\x2d\x32\x30\x32\x34";
    check(secret, &format!("'{escaped}'"), "'***'");
    check(secret, &escaped.to_uppercase().replace('X', "x"), "***");
    check(secret, r#"b'a<b>&\"c\'\xc3\xa9-2024'"#, "b'***'");
    for (double, single) in [("&quot;", "&#x27;"), ("&#34;", "&#39;"), ("\"", "'")] {
        check(secret, &format!("<p>a&lt;b&gt;&amp;{double}c{single}é-2024</p>"), "<p>***</p>");
    }
}

#[test]
fn a_form_that_line_ends_break_is_masked_in_every_line_of_a_text() {
    // "s3cr3t-value-1" is czNjcjN0LXZhbHVlLT and a bit.
    check("s3cr3t-value-1", "a czNjcjN0\nLXZhbHVlLTE= b", "a ***\n***E= b");
    check("s3cr3t-value-1", "czNjcjN0\r\n  LXZh \n\n bHVl\nLTE=", "***\r\n*** \n\n***\n***E=");
    // Seven characters may be chance; with the eighth the rest is known.
    check("s3cr3t-value-1", "czNjcjN\n0LXZhbHVlLTE=", "czNjcjN\n***E=");
    check("s3cr3t-value-1", "czN\njcj\nN0L\nXZh\nbHV\nlLTE=", "czN\njcj\n***\n***\n***\n***E=");
    // What does not go on is not masked, however it began.
    check("s3cr3t-value-1", "czNjcjN0 \nend", "*** \nend");
    check("s3cr3t-value-1", "czNjcjN0 in a line", "czNjcjN0 in a line");
    check("s3cr3t-value-1", "czNjcjN\n0 went no further", "czNjcjN\n*** went no further");
    check("s3cr3t-value-1", "czNj cjN0\nLXZh", "czNj cjN0\nLXZh");
    check("s3cr3t-value-1", "czNj\nczNjc of another", "czNj\nczNjc of another");
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
fn records_are_masked_wherever_a_secret_can_stand() {
    let mut value = json!({
        "a": ["s3cr3t-value", 1],
        "b": {"c": "x s3cr3t-value", "by": {"s3cr3t-value": 3, "***": 4}},
        "account": 123_456_789_012_u64,
        "s3cr3t-value": 5,
    });
    Mask::new(["s3cr3t-value", "123456789012"]).record(&mut value);
    let masked = json!({
        "a": ["***", 1],
        "b": {"c": "x ***", "by": {"***": 3, "*** (2)": 4}},
        "account": "***",
        "s3cr3t-value": 5,
    });
    assert_eq!(value, masked);
}

#[test]
fn of_a_cut_text_the_beginning_of_a_secret_is_masked_too() {
    let mask = Mask::new(["s3cr3t-value", "sk-live-1234567890"]);
    let check = |text: &str, expected: &str| assert_eq!(mask.cut_text(text), expected);
    check("it is s3cr3t-valu", "it is ***");
    check("s3cr3t-value and sk-live-1234", "*** and ***");
    check("it is s3cr", "it is ***");
    // Nobody guesses the rest of that.
    check("it is s3c", "it is s3c");
    check("s3cr3t-value", "***");
    check("nothing", "nothing");
    check("", "");
    assert_eq!(Mask::new([]).cut_text("s3cr3t-valu"), "s3cr3t-valu");
}

#[test]
fn line_ends_of_a_value_may_be_gone_or_changed() {
    // A secret file ends with a newline, and `$(cat file)` has none.
    let secret = "s3cr3t-value-12345\n";
    check(secret, "s3cr3t-value-12345", "***");
    check(secret, &STANDARD_NO_PAD.encode("s3cr3t-value-12345"), "***");
    check(secret, &format!("{}==", STANDARD_NO_PAD.encode("xs3cr3t-value-12345")), "eH***==");
    check(secret, &hex(b"s3cr3t-value-12345"), "***");
    check("a b/c-2024\n", "q=a%20b%2Fc-2024&", "q=***&");
    // Tools of one system read what those of another wrote.
    let windows = "first line\r\nsecond line\r\n";
    let all = ["first line\nsecond line", "first line\nsecond line\n", "first linesecond line"];
    for read in all.into_iter().chain([windows, windows.trim_end()]) {
        check(windows, &hex(read.as_bytes()), "***");
        let masked = Mask::new([windows]).text(&STANDARD_NO_PAD.encode(read));
        assert!(masked.starts_with("***") && masked.len() <= 4, "{read:?} became {masked}");
        let json = serde_json::to_string(read).expect("a text");
        check(windows, &json, r#""***""#);
    }
}

#[test]
fn neighbours_may_be_any_bytes() {
    let mask = Mask::new(["s3cr3t-value"]);
    for byte in 0..=u8::MAX {
        let text = [&[byte, byte], b"s3cr3t-value".as_slice(), &[byte]].concat();
        let wanted = [&[byte, byte], STARS, &[byte]].concat();
        assert_eq!(&*mask.bytes(&text), wanted, "{byte}");
    }
}

#[test]
fn of_values_that_begin_alike_none_is_left_over() {
    let values = ["s3cr3t-value", "s3cr3t-value-1", "s3cr3t-value-12", "value-12-and"];
    let mask = Mask::new(values);
    for value in values {
        assert_eq!(mask.text(&format!("<{value}>")), "<***>");
    }
    assert_eq!(mask.text("<s3cr3t-value-12-and>"), "<***>");
    assert_eq!(mask.text("<s3cr3t-value-13>"), "<***3>");
}

#[test]
fn many_and_long_values_are_masked() {
    let many: Vec<_> = (0..300).map(|n| format!("value-{n:04}-of-many")).collect();
    let mask = Mask::new(many.iter().map(String::as_str));
    for value in &many {
        assert_eq!(mask.text(&format!("a {value} {} b", hex(value.as_bytes()))), "a *** *** b");
    }
    // Over 16 KiB the encodings are left alone, the value and its lines are not.
    let long = "0123456789abcdef-line\n".repeat(2000);
    let mask = Mask::new([long.as_str()]);
    assert_eq!(mask.text(&long), "***");
    assert_eq!(mask.text("0123456789abcdef-line"), "***");
    let encoded = hex(long.as_bytes());
    assert_eq!(mask.text(&encoded), encoded);
    let within = "x".repeat(16 * 1024);
    check(&within, &hex(within.as_bytes()), "***");
}

#[test]
fn a_stream_is_searched_over_the_borders_of_its_pieces() {
    let mask = Mask::new(["s3cr3t-value"]);
    let finds = |bytes: &[u8]| {
        let pieces = bytes.chunks(3).map(std::io::Cursor::new);
        let empty: Box<dyn std::io::Read> = Box::new(std::io::empty());
        let stream = pieces.fold(empty, |all, piece| {
            Box::new(std::io::Read::chain(all, piece)) as Box<dyn std::io::Read>
        });
        mask.finds_in(stream).expect("memory can be read")
    };
    for before in 0..9 {
        let text = [&vec![b'\0'; before], b"s3cr3t-value".as_slice(), b"\xff"].concat();
        assert!(finds(&text), "{before}");
        assert!(!finds(&text[..text.len() - 2]), "{before}");
    }
    assert!(!Mask::new([""]).finds_in(b"anything".as_slice()).expect("it can be read"));
}

fn hex(bytes: &[u8]) -> String {
    String::from_iter(bytes.iter().map(|byte| format!("{byte:02x}")))
}

/// What programs make of a value before they print it.
fn printed(how: usize, value: &str) -> Vec<u8> {
    match how {
        0 => value.into(),
        1 => value.trim_end_matches(['\r', '\n']).into(),
        2 => hex(value.as_bytes()).into(),
        3 => hex(value.as_bytes()).to_uppercase().into(),
        4 => json!(value).to_string().into(),
        5 => json!({ "k": [value.trim_end()] }).to_string().into(),
        6 => percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC)
            .to_string()
            .into(),
        _ => value.replace("\r\n", "\n").into(),
    }
}

proptest! {
    /// The form is gone, wherever it stands and whatever stands beside it.
    #[test]
    fn no_form_gets_through(
        values in proptest::collection::vec("[a-c\"/ é<\r\n]{6}[a-z]{4}\n?", 1..4),
        how in 0..8_usize,
        before in proptest::collection::vec(any::<u8>(), 0..20),
        after in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let mask = Mask::new(values.iter().map(String::as_str));
        for value in &values {
            let form = printed(how, value);
            let text = [&before, form.as_slice(), &after].concat();
            let masked = mask.bytes(&text);
            let quoted = form.strip_prefix(b"\"").and_then(|form| form.strip_suffix(b"\""));
            let inner = quoted.unwrap_or(&form);
            prop_assert!(!masked.windows(inner.len()).any(|window| window == inner));
            prop_assert!(mask.finds_in(text.as_slice()).expect("memory can be read"));
        }
    }

    /// In the middle of base64, the letters that are the value's alone are gone.
    #[test]
    fn no_base64_gets_through(
        value in "[a-c\"/ é?>~]{10,40}\n?",
        before in proptest::collection::vec(any::<u8>(), 0..7),
        after in proptest::collection::vec(any::<u8>(), 0..7),
        web in any::<bool>(),
    ) {
        let text = [&before, value.trim_end().as_bytes(), &after].concat();
        let engine = if web { URL_SAFE_NO_PAD } else { STANDARD_NO_PAD };
        let masked = Mask::new([value.as_str()]).text(&engine.encode(&text));
        let most = (before.len() + after.len()) * 4 / 3 + 6 + STARS.len();
        prop_assert!(masked.contains("***") && masked.len() <= most, "{}", masked);
    }

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
