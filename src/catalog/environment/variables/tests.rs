use serde_json::json;

use super::*;

#[test]
fn names_of_secret_variables() {
    let check = |name: &str, reference: &str, expected: Result<(), &str>| {
        let checked = check_secrets(&Secrets::from([(name.to_owned(), reference.to_owned())]));
        match (checked, expected) {
            (Ok(()), Ok(())) => {}
            (Err(text), Err(expected)) => assert!(text.starts_with(expected), "{text}"),
            (checked, expected) => panic!("{name}: {checked:?}, expected {expected:?}"),
        }
    };
    check("TAVILY_API_KEY", "default/tavily", Ok(()));
    check("nemo_job_id", "tavily", Ok(()));
    check(
        "NHX_BASE_URL",
        "tavily",
        Err("Secret env var(s) NHX_BASE_URL collide with reserved job env var name(s). Reserved \
             names: AGENT_CONFIG_PATH, NAT_CONFIG_PATH, NEMO_JOB_ATTEMPT_ID, "),
    );
    for reserved in ["NEMO_JOB_ANYTHING", "NHX_X", "ERRAND_X", "PATH", "PYTHONPATH", "HOME"] {
        check(reserved, "tavily", Err(&format!("Secret env var(s) {reserved} collide")));
    }
    check("BAD NAME=", "tavily", Err("Secret env var 'BAD NAME=' is not a valid"));
    check(&"N".repeat(254), "tavily", Ok(()));
    check(&"N".repeat(255), "tavily", Err("Secret env var 'NNN"));
    check("TOK", "a/b/c", Err("Secret reference 'a/b/c' of env var 'TOK'"));
}

#[test]
fn plain_variables() {
    let check = |name: &str, value: &str, expected: &str| {
        let text = check_plain(&json!({name: value})).err().unwrap_or_default();
        assert!(text.starts_with(expected) && text.is_empty() == expected.is_empty(), "{text}");
    };
    check("MODE", "fast = yes", "");
    check("with-dash.and dot", "", "");
    check("FULL", &"x".repeat(MAX_VALUE_BYTES), "");
    for reserved in ["NHX_X", "ERRAND_ANYTHING", "LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "PATH"]
    {
        let expected =
            format!("Env var(s) {reserved} collide with reserved job env var name(s). Reserved");
        check(reserved, "1", &expected);
    }
    check("", "1", "Env var '' is not a valid variable name");
    check("A=B", "1", "Env var 'A=B' is not a valid variable name");
    check("A\0", "1", "Env var 'A\\0' is not a valid variable name");
    check(&"N".repeat(255), "1", "Env var 'NNN");
    check("A", "a\0b", "The value of env var 'A' contains a NUL character.");
    let much = "x".repeat(MAX_VALUE_BYTES + 1);
    check("A", &much, "The value of env var 'A' has 130817 bytes; at most 130816 fit.");
}
