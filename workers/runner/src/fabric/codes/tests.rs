use super::*;

fn check(code: &str, message: &str, expected: Failure) {
    assert_eq!(failure_of(code, message), expected, "{code}: {message}");
}

#[test]
fn our_own_codes_are_taken_as_they_are() {
    check("agent_failed", "exited with code 401", Failure::AgentFailed);
    check("agent_crashed", "killed by signal 9", Failure::AgentCrashed);
    check("no_result", "", Failure::NoResult);
    check("disk_full", "", Failure::DiskFull);
    check("timeout", "", Failure::Timeout);
}

#[test]
fn models_that_refuse_are_told_from_agents_that_fail() {
    check("api_error", "HTTP 401: bad key", Failure::ModelAuth);
    check("authentication_error", "x", Failure::ModelAuth);
    check("x", "Unauthorized", Failure::ModelAuth);
    check("x", "status=429", Failure::ModelRateLimited);
    check("rate_limit_error", "slow down", Failure::ModelRateLimited);
    check("x", "line 14290 of 4010", Failure::AgentFailed);
}

#[test]
fn fabrics_own_codes_tell_a_crash_from_a_broken_protocol() {
    let error = |operation, code: &str| FabricError::AdapterLifecycleOperation {
        operation,
        runtime_id: "r".into(),
        code: code.into(),
        message: String::new(),
        diagnostics: String::new(),
    };
    for (operation, code, expected) in [
        ("invoke", "host_timeout", Failure::Timeout),
        ("start", "host_timeout", Failure::AdapterProtocol),
        ("invoke", "host_crashed", Failure::AgentCrashed),
        ("invoke", "protocol_error", Failure::AdapterProtocol),
        ("start", "claude_process_failed", Failure::AgentFailed),
    ] {
        assert_eq!(failure_of_error(&error(operation, code)), expected);
    }
}
