use super::{Choice, Contexts, valid_base_url};

fn contexts() -> Contexts {
    let text = "current_context: team\ncontexts:\n  team:\n    base_url: http://team:1/\n    workspace: w\n    token: t\n  other: {}\n";
    serde_saphyr::from_str(text).expect("it is valid")
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let context = contexts().choose(&Choice::default()).expect("it exists");
    assert_eq!((context.base_url.as_str(), context.workspace.as_str()), ("http://team:1", "w"));
    assert_eq!(context.token.as_deref(), Some("t"));

    let choice = Choice {
        workspace: Some("v".into()),
        base_url: Some("https://h".into()),
        ..Default::default()
    };
    let context = contexts().choose(&choice).expect("it exists");
    assert_eq!((context.base_url.as_str(), context.workspace.as_str()), ("https://h", "v"));

    let choice = Choice { context: Some("other".into()), ..Default::default() };
    let context = contexts().choose(&choice).expect("it exists");
    assert_eq!(
        (context.base_url.as_str(), context.workspace.as_str()),
        ("http://127.0.0.1:7740", "default")
    );
}

#[test]
fn unknown_contexts_are_refused_with_those_that_exist() {
    let choice = Choice { context: Some("x".into()), ..Default::default() };
    let error = contexts().choose(&choice).expect_err("it does not exist").to_string();
    assert!(error.contains("no context 'x'") && error.contains("other, team"), "{error}");
    assert!(contexts().switch("x").is_err());
    assert!(contexts().switch("other").is_ok());
}

#[test]
fn unknown_keys_are_refused() {
    assert!(serde_saphyr::from_str::<Contexts>("current_context: a\ncontext: {}\n").is_err());
}

#[test]
fn base_urls_are_checked() {
    assert!(valid_base_url("127.0.0.1:7740").is_err());
    assert!(valid_base_url("ftp://h").is_err());
    assert_eq!(valid_base_url("http://h:1/x/").ok().as_deref(), Some("http://h:1/x"));
}

#[test]
fn the_default_takes_the_place_of_a_current_context_that_is_removed() {
    let mut contexts = contexts();
    assert!(!contexts.remove("other").expect("it exists"));
    assert!(contexts.remove("team").expect("it exists"));
    assert_eq!(contexts.current_context, "default");
    assert!(contexts.remove("team").is_err(), "it is gone");
    assert!(contexts.choose(&Choice::default()).is_ok());
}
