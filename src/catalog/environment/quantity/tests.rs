use super::*;

#[test]
fn quantities_in_base_units() {
    for (text, millis) in [
        ("2", 2000),
        ("500m", 500),
        ("0.5", 500),
        (".5", 500),
        ("2.", 2000),
        ("+1", 1000),
        ("1e3", 1_000_000),
        ("5e-1", 500),
        ("1E+2", 100_000),
        ("100u", 1),
        ("1n", 1),
        ("1.0001", 1001),
        ("0", 0),
        ("0.000", 0),
        ("1k", 1_000_000),
        ("1e-40", 1),
        ("9223372036854775.807", i64::MAX as u64),
    ] {
        assert_eq!(cpu_millis(text), Some(millis), "{text}");
    }
    for (text, bytes) in [
        ("1Ki", 1024),
        ("1.5Gi", 1_610_612_736),
        ("4Gi", 4_294_967_296),
        ("1Ei", 1 << 60),
        ("128M", 128_000_000),
        ("1G", 1_000_000_000),
        ("1E", 1_000_000_000_000_000_000),
        ("100m", 1),
        ("129e6", 129_000_000),
        ("0.1Ki", 103),
    ] {
        assert_eq!(memory_bytes(text), Some(bytes), "{text}");
    }
}

#[test]
fn what_is_no_quantity() {
    for text in [
        "",
        ".",
        "+",
        "-1",
        "-0.5Gi",
        "lots",
        "1 Gi",
        " 1",
        "1gi",
        "1KI",
        "1K",
        "1ki",
        "Gi",
        "1.2.3",
        "inf",
        "NaN",
        "1e",
        "1e1.5",
        "1e3Ki",
        "1mm",
        "0x10",
        "١",
        "1e99999999999",
        "1e40",
        "16Ei",
        "9223372036854775808",
    ] {
        assert_eq!(memory_bytes(text), None, "{text}");
    }
    let long = "9".repeat(10_000);
    assert_eq!(cpu_millis(&long), None);
}
