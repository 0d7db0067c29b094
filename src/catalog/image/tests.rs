use super::*;
use crate::catalog::Profile;

#[test]
fn references() {
    let hex = "a".repeat(64);
    for image in [
        "busybox",
        "library/busybox:1.36",
        "ghcr.io/org/some-image:tag",
        "localhost:5000/a/b__c.d-e---f",
        "registry.example.com/x@sha256:HEX",
        "registry.example.com:443/x:v1.2_3-x@sha256:HEX",
        "[::1]:5000/x",
        "[::1]/x",
        "Registry.Example/x",
        "a/b",
        "x:_",
    ] {
        assert!(is_reference(&image.replace("HEX", &hex)), "{image}");
    }
    for image in [
        "!!not an image!!",
        " busybox",
        "busybox ",
        "Busybox",
        "a//b",
        "/a",
        "a/",
        "a:",
        "a@",
        "a:b:c",
        "a:-x",
        "a..b",
        "a___b",
        "-a",
        "a-",
        "a@sha256:abc",
        "a@sha256:zHEX",
        "host:port/x",
        "http://host/x",
        "a\0b",
        "é",
    ] {
        assert!(!is_reference(&image.replace("HEX", &hex)), "{image}");
    }
    assert!(!is_reference(&"a".repeat(256)));
    assert!(is_reference(&format!("a:{}", "t".repeat(128))));
    assert!(!is_reference(&format!("a:{}", "t".repeat(129))));
}

#[test]
fn the_nearest_image_wins() {
    let settings = |default: &str, profile: &str, images| {
        let some = |image: &str| Some(image.to_owned()).filter(|image| !image.is_empty());
        let standard = Settings::default();
        Settings {
            default_image: some(default),
            profile: Profile { images, default_task_image: some(profile), ..standard.profile },
            ..standard
        }
    };
    for (requested, default, profile, expected) in [
        ("mine", "platform", "profile", Some("mine")),
        ("", "platform", "profile", Some("platform")),
        ("", "", "profile", Some("profile")),
        ("", "  ", "profile", Some("profile")),
        ("", "", "", None),
    ] {
        let resolved = resolve(requested, &settings(default, profile, true));
        assert_eq!(resolved.as_deref(), expected, "{requested} {default} {profile}");
    }
    assert_eq!(resolve("", &settings("", "profile", false)), None, "a profile that runs none");
}
