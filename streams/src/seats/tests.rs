use super::*;

#[test]
fn every_workspace_has_a_key_of_its_own() {
    for (workspace, wanted) in [
        ("default", "default"),
        ("team.a", "team=2Ea"),
        ("team=2Ea", "team=3D2Ea"),
        ("a@b+c", "a=40b=2Bc"),
        ("a%40b", "a=2540b"),
        ("ä", "=C3=A4"),
    ] {
        assert_eq!(key(workspace), format!("w.{wanted}"));
    }
}
