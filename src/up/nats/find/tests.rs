use super::{OLDEST, check, parse_version};
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn versions_are_read() {
    let check = |said, expected| assert_eq!(parse_version(said), expected, "{said}");
    check("nats-server: v2.15.1\n", Some((2, 15, 1)));
    check("nats-server: v2.12.0-beta.1", Some((2, 12, 0)));
    check("nats-server: v2.9", None);
    check("2.10.0", None);
    check("", None);
    assert!((2, 9) < OLDEST && (2, 10) >= OLDEST && (3, 0) >= OLDEST);
}

#[test]
fn an_old_server_is_refused_with_both_versions() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = dir.path().join("nats-server");
    std::fs::write(&program, "#!/bin/sh\necho 'nats-server: v2.9.10'\n").expect("it is written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let reason = check(&program).expect_err("it is too old");
    assert_eq!(reason, "has version 2.9.10, 2.10 or newer is needed");
}
