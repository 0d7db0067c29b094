use super::{HELP, OLDER_NAME, Scalar};

/// A field that is added to the spec gets its flag by itself; what it is for must be said here.
#[test]
fn every_scalar_field_has_a_help_text_and_no_text_is_left_over() {
    let mut fields: Vec<_> = Scalar::all().iter().map(Scalar::id).collect();
    fields.retain(|field| field != OLDER_NAME);
    let texts: Vec<_> = HELP.iter().map(|(field, ..)| *field).collect();
    assert_eq!(fields, texts);
}

#[test]
fn nested_fields_are_dotted_and_underscores_are_dashes() {
    let flags: Vec<_> = Scalar::all().iter().map(Scalar::long).collect();
    for flag in [
        "agent",
        "input",
        "environment",
        "workdir.base-workdir",
        "timeout-seconds",
        "auto-telemetry",
        "image",
        "post-run-action.kind",
        "max-attempts",
        "max-turns",
    ] {
        assert!(flags.iter().any(|known| known == flag), "no --{flag} among {flags:?}");
    }
    assert!(!flags.iter().any(|flag| flag == "context" || flag.contains("artifact")), "{flags:?}");
}
