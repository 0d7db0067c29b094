use std::{env, fs, path::Path};

use super::*;

/// `ERRAND_UPDATE=1` (or `just gen`) writes the files; otherwise they must be current.
#[test]
fn the_files_are_what_the_types_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    for (name, schema) in all() {
        let path = folder.join(format!("{name}.json"));
        let wanted = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
        if env::var_os("ERRAND_UPDATE").is_some() {
            fs::create_dir_all(&folder).expect("the folder can be made");
            fs::write(&path, &wanted).expect("the file can be written");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, wanted, "{} is not current: run `just gen`", path.display());
    }
}

/// The frozen messages carry the envelope's fields too: the schemas must know all of them.
#[test]
fn facts_are_described_with_their_envelope() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/facts/v1");
    for (name, schema) in all().into_iter().take(Phase::CHAIN.len()) {
        let file = fs::read_to_string(fixtures.join(format!("{name}.json")));
        let file: Value =
            serde_json::from_str(&file.expect("there is one for each phase")).expect("JSON");
        let message = file["message"].as_object().expect("a message is an object");
        let properties = schema.get("properties").expect("it describes an object");
        for field in message.keys() {
            assert!(properties.get(field).is_some(), "{name}.json does not describe '{field}'");
        }
        let required = schema.get("required").and_then(Value::as_array);
        for field in required.into_iter().flatten() {
            let field = field.as_str().expect("a name");
            assert!(message.contains_key(field), "{name}.json requires '{field}'");
        }
    }
}

#[test]
fn a_submission_needs_nothing() {
    let (name, schema) = fact::<Submitted>();
    assert_eq!((name, schema.get("required")), ("submitted", None));
    assert_eq!(schema.get("additionalProperties"), None, "readers ignore what they do not know");
}

#[test]
fn descriptions_need_no_rust() {
    for (name, schema) in all() {
        let text = schema.to_value().to_string();
        for foreign in ["[`", "crate::", "\\n"] {
            assert!(!text.contains(foreign), "{name}.json has {foreign}");
        }
    }
}
