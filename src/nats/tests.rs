use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn users() -> Users {
    Users::of(["team.a".to_owned(), "default".to_owned()], Vec::new())
}

fn keep(directory: &Path, rotate: &[&str]) -> Result<Passwords, Error> {
    let rotate: Vec<_> = rotate.iter().map(|it| (*it).to_owned()).collect();
    Passwords::keep(directory, &users().names(), &rotate)
}

fn password(directory: &Path, user: &str) -> String {
    fs::read_to_string(passwords::file(directory, user)).expect("it is there").trim().to_owned()
}

#[test]
fn a_configuration_that_is_written_anew_keeps_its_passwords() {
    let folder = tempfile::tempdir().expect("a directory");
    let write = |rotate: &[&str]| users().accounts(&keep(folder.path(), rotate).expect("written"));
    let first = write(&[]);
    assert_eq!(write(&[]), first);
    let of = |user: &str| password(folder.path(), user);
    let before = ["errand", "errand-worker", "workspace-default"].map(of);
    let a = of("workspace-team%2Ea");
    let rotated = write(&["workspace-team%2Ea"]);
    assert_ne!(rotated, first);
    assert_ne!(of("workspace-team%2Ea"), a);
    assert_eq!(["errand", "errand-worker", "workspace-default"].map(of), before);
    for user in users().names() {
        let path = passwords::file(folder.path(), &user);
        let mode = path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{user}");
        assert!(!rotated.contains(&of(&user)), "{user}'s password is in the configuration");
        let hash = rotated.split('"').filter(|it| it.starts_with("$2a$04$"));
        let fits = hash.filter(|it| bcrypt::verify(of(&user), it).unwrap_or(false)).count();
        assert_eq!(fits, 1, "{user}");
    }
}

#[test]
fn what_is_no_password_is_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let unknown = keep(folder.path(), &["workspace-b"]).expect_err("there is no such user");
    assert!(unknown.to_string().contains("'workspace-b'"), "{unknown}");
    fs::write(passwords::file(folder.path(), "errand"), "hunter2\n").expect("written");
    let weak = keep(folder.path(), &[]).expect_err("it is too short").to_string();
    assert!(weak.contains("errand.password holds no password"), "{weak}");
    assert!(!weak.contains("hunter2"));
    keep(folder.path(), &["errand"]).expect("it is replaced");
}

#[test]
fn a_workspace_takes_from_the_platform_what_is_its_own() {
    let folder = tempfile::tempdir().expect("a directory");
    let text = users().accounts(&keep(folder.path(), &[]).expect("written"));
    let lines = |start: &str| -> Vec<&str> {
        text.lines().map(str::trim).filter(|line| line.starts_with(start)).collect()
    };
    let exports = [lines("{service: \""), lines("{stream: \"")].concat();
    assert_eq!(exports.len(), 10);
    for line in &exports {
        let is_of = |user: &str, token: &str| {
            line.ends_with(&format!("accounts: [\"{user}\"]}}"))
                && line.contains(&format!(".{token}"))
        };
        let of_one =
            is_of("workspace-team%2Ea", "team%2Ea") || is_of("workspace-default", "default");
        assert!(of_one, "{line}");
    }
    assert_eq!(lines("{service: {account: \"ERRAND\"").len(), 6);
    assert_eq!(lines("{stream: {account: \"ERRAND\"").len(), 4);
}
