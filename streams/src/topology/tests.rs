use std::fmt::Write;

use super::*;

/// Everything that is made on a server, one line each: what an operator sees change.
fn described(limits: Limits) -> String {
    let mut text = String::new();
    for stream in streams(limits) {
        let StreamSpec {
            name, subjects, per_subject, refuse_second, max_bytes, full, sent_on, ..
        } = stream;
        let subjects = subjects.join(" ");
        let sent_on = sent_on.map(|(from, to)| format!("; {from} sent on to {to}"));
        let second = if refuse_second { " (a second one is refused)" } else { "" };
        let name = name.as_str();
        writeln!(
            text,
            "{name}: {subjects}; {per_subject} a subject{second}; {max_bytes} bytes, {full:?}{}",
            sent_on.unwrap_or_default()
        )
        .expect("a string takes it");
    }
    let workspace = step_consumer(StepName::Invoke, "team.a");
    for consumer in shared_consumers().into_iter().chain([workspace]) {
        let ConsumerSpec { stream, name, filter } = consumer;
        writeln!(text, "{}/{name}: {filter}", stream.as_str()).expect("a string takes it");
    }
    text
}

#[test]
fn the_topology_is_the_designed_one() {
    let expected = "\
INTAKE: jobs.submitted.>; 1 a subject (a second one is refused); 1000 bytes, RefuseNew
JOBS: jobs.resolved.> jobs.staged.> jobs.invoked.> jobs.acted.> jobs.archived.>; 1 a subject (a second one is refused); 0 bytes, RefuseNew
STATUS: status.>; 16 a subject; 0 bytes, DropOldest; status.> sent on to changes.>
LOGS: logs.>; 0 a subject; 2000 bytes, RefuseNew
REFUSED: jobs.refused; 0 a subject; 67108864 bytes, DropOldest
INTAKE/resolve: jobs.submitted.>
JOBS/stage: jobs.resolved.>
JOBS/act: jobs.invoked.>
JOBS/archive: jobs.acted.>
INTAKE/projector: jobs.submitted.>
JOBS/projector: 
STATUS/projector: 
JOBS/invoke_team%2Ea: jobs.staged.team%2Ea.>
";
    let limits = Limits { intake_max_bytes: 1000, logs_max_bytes: 2000, replicas: 1 };
    assert_eq!(described(limits), expected);
}

#[test]
fn a_scoped_consumer_names_its_workspace() {
    for workspace in ["default", "team.a", "invoke_x", "ünï 1", "%2E"] {
        let consumer = step_consumer(StepName::Invoke, workspace);
        assert_eq!(scope_of(StepName::Invoke, &consumer.name).as_deref(), Some(workspace));
    }
    for shared in shared_consumers() {
        assert_eq!(scope_of(StepName::Invoke, &shared.name), None, "{}", shared.name);
    }
}
