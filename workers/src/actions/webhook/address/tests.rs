use super::*;

#[test]
fn only_public_addresses_pass() {
    let check = |address: &str, expected: bool| {
        let parsed = address.parse().expect("an address");
        assert_eq!(is_public(parsed), expected, "{address}");
    };
    for public in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "192.0.1.1"] {
        check(public, true);
        check(&format!("::ffff:{public}"), true);
    }
    for private in [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "203.0.113.1",
    ] {
        check(private, false);
        check(&format!("::ffff:{private}"), false);
        check(&format!("64:ff9b::{private}"), false);
    }
    for public in ["2606:4700:4700::1111", "2a00:1450:4001::1", "2002:101:101::1", "3fff:1000::1"] {
        check(public, true);
    }
    for private in [
        "::",
        "::1",
        "::127.0.0.1",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "fec0::1",
        "2001:db8::1",
        "3fff::1",
        "3fff:fff::1",
        "2001::1",
        "2002:7f00:1::1",
        "100::1",
    ] {
        check(private, false);
    }
}
