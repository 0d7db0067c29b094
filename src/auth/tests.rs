//! Roles and tokens, without anything around them.

use super::*;

fn token(roles: &[(&str, Role)]) -> Caller {
    let roles = roles.iter().map(|(workspace, role)| ((*workspace).to_owned(), *role)).collect();
    Caller::Token { id: "token-1".to_owned(), name: "ci".to_owned(), roles }
}

#[test]
fn a_role_counts_in_its_workspace_and_includes_the_lesser_ones() {
    let caller = token(&[("a", Role::Submitter), ("b", Role::Viewer)]);
    for (workspace, needed, allowed) in [
        ("a", Role::Viewer, true),
        ("a", Role::Submitter, true),
        ("a", Role::Admin, false),
        ("b", Role::Viewer, true),
        ("b", Role::Submitter, false),
        ("c", Role::Viewer, false),
        (EVERYWHERE, Role::Viewer, false),
    ] {
        assert_eq!(caller.needs(needed, workspace).is_ok(), allowed, "{needed} in {workspace}");
    }
    assert_eq!(caller.workspaces(Role::Viewer), Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(caller.workspaces(Role::Submitter), Some(vec!["a".to_owned()]));
}

#[test]
fn a_role_everywhere_counts_in_each_workspace() {
    let caller = token(&[("a", Role::Admin), (EVERYWHERE, Role::Viewer)]);
    assert_eq!(caller.role_in("a"), Some(Role::Admin));
    assert_eq!(caller.role_in("b"), Some(Role::Viewer));
    assert_eq!(caller.workspaces(Role::Viewer), None);
    assert_eq!(caller.workspaces(Role::Submitter), Some(vec!["a".to_owned()]));
    assert_eq!(Caller::Anyone.workspaces(Role::Admin), None);
}

#[test]
fn the_queue_counts_as_a_submitter_of_its_workspace() {
    let caller = Caller::Queue { workspace: "a".to_owned() };
    assert!(caller.needs(Role::Submitter, "a").is_ok());
    assert!(caller.needs(Role::Admin, "a").is_err());
    assert!(caller.needs(Role::Viewer, "b").is_err());
}

#[test]
fn a_refusal_names_workspace_role_and_who() {
    let caller = token(&[("a", Role::Viewer)]);
    let said = |needed, workspace| caller.needs(needed, workspace).map_err(|it| it.to_string());
    assert_eq!(
        said(Role::Admin, "a"),
        Err("role 'admin' in workspace 'a' is needed, token 'ci' has role 'viewer' there".into())
    );
    assert_eq!(
        said(Role::Viewer, "b"),
        Err("role 'viewer' in workspace 'b' is needed, token 'ci' has no role there".into())
    );
    assert_eq!(
        said(Role::Admin, EVERYWHERE),
        Err("role 'admin' in all workspaces is needed, token 'ci' has no role there".into())
    );
}

#[test]
fn tokens_are_read_back_and_nothing_else_is() {
    let token = Token::generate();
    let text = token.reveal().to_owned();
    let again = Token::read(&text).expect("it is a token");
    assert_eq!(again.public_part(), token.public_part());
    assert!(token.digest().is(&again.digest().hex()));
    assert!(!Token::generate().digest().is(&token.digest().hex()));
    assert!(!token.digest().is("") && !token.digest().is("zz"));
    let longer = format!("{text}1");
    for wrong in ["", "errand_", &text[1..], &text[..text.len() - 5], &longer, "errand_0OIl"] {
        assert!(Token::read(wrong).is_none(), "{wrong}");
    }
    assert!(!format!("{token:?} {:?}", token.digest()).contains(token.public_part()));
}

#[test]
fn roles_are_read_by_their_names() {
    for role in Role::ALL {
        assert_eq!(role.as_str().parse(), Ok(role));
    }
    assert_eq!("owner".parse::<Role>(), Err(UnknownRole("owner".to_owned())));
}
