use streams::phase::{Phase, StepName};

use super::{diagram, rows};

#[test]
fn the_diagram_has_every_phase_and_step() {
    let text = diagram();
    for phase in Phase::CHAIN {
        assert!(text.contains(&format!("    {phase}[")), "{phase} is missing:\n{text}");
    }
    for step in StepName::ALL {
        let next = step.consumes().next().expect("a step produces a fact");
        let arrow = text.lines().any(|line| {
            line.contains(&format!("{} -->|{step}", step.consumes()))
                && line.ends_with(next.token())
        });
        assert!(arrow, "the arrow of {step} is missing:\n{text}");
    }
}

#[test]
fn per_workspace_consumers_are_shown_as_such() {
    let names: Vec<_> =
        rows().iter().filter_map(|row| row["name"].as_str().map(str::to_owned)).collect();
    assert!(names.contains(&"JOBS/invoke_<workspace>".to_owned()), "{names:?}");
    assert!(names.contains(&"INTAKE/resolve".to_owned()), "{names:?}");
}
