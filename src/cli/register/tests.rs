use serde_json::{Value, json};

use super::{MOST_BYTES, Register, lift_registration, own_files};

#[test]
fn registration_is_lifted_out_of_the_config() {
    let mut config = match json!({"name": "a", "helix_registration": {"default_input": "hi"}}) {
        Value::Object(config) => config,
        _ => unreachable!("it is an object"),
    };
    let lifted = lift_registration(&mut config).expect("it is valid");
    assert_eq!(Value::Object(lifted), json!({"default_input": "hi"}));
    assert_eq!(Value::Object(config), json!({"name": "a"}));
}

#[test]
fn unknown_registration_keys_are_refused_by_name() {
    let mut config = serde_json::Map::new();
    config.insert("helix_registration".into(), json!({"default_inptu": "hi"}));
    let error = lift_registration(&mut config).expect_err("it is unknown").to_string();
    assert!(error.contains("unknown key 'default_inptu'"), "{error}");
}

#[test]
fn an_agent_config_that_cannot_be_read_is_named_with_the_reason() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let agent_config = dir.path().join("agent.yaml");
    let register = Register { name: "a".to_owned(), agent_config, description: None, force: false };
    let refused = |text: Option<&[u8]>, reason: &str| {
        if let Some(text) = text {
            std::fs::write(&register.agent_config, text).expect("a file");
        }
        let error = format!("{:#}", register.body().expect_err(reason));
        assert!(error.contains(&register.agent_config.display().to_string()), "{error}");
        assert!(error.contains(reason), "{error}");
    };
    refused(None, "cannot read agent config");
    refused(Some(b"name: \xff"), "cannot read agent config");
    refused(Some(b"name: [a"), "is not valid YAML");
    refused(Some(b"- name"), "must be a mapping");
    refused(Some(b"helix_registration: 7"), "expected a mapping, got 7");
}

#[test]
fn too_much_beside_the_agent_is_refused_with_the_figures() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("agent.yaml"), "x").expect("a file");
    std::fs::create_dir(dir.path().join(".git")).expect("a directory");
    let big = std::fs::File::create(dir.path().join(".git/objects")).expect("a file");
    big.set_len(MOST_BYTES * 2).expect("a size");
    assert_eq!(own_files(dir.path()).expect("version control does not count").len(), 1);

    let big = std::fs::File::create(dir.path().join("big.bin")).expect("a file");
    big.set_len(MOST_BYTES).expect("a size");
    let error = own_files(dir.path()).expect_err("it is too much").to_string();
    assert!(error.contains("2 files with 900001 bytes"), "{error}");
}
