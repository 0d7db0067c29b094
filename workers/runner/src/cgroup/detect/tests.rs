use super::*;

#[test]
fn what_there_is_is_said_in_one_line() {
    let detected = |is_v2, controllers: &[&str]| Detected {
        bases: controllers.iter().map(|name| ((*name).to_owned(), "/base".into())).collect(),
        is_v2,
    };
    let mend = "run the platform as a service with Delegate=yes, under systemd-run --scope -p \
        Delegate=yes, or as root";
    for (found, expected) in [
        (detected(true, &LIMITING), "cgroup v2: cpu, memory and pids limits".to_owned()),
        (
            detected(false, &[CPU, MEMORY, PIDS, FREEZER, UNIFIED]),
            "cgroup v1: cpu, memory and pids limits, cgroup.kill".to_owned(),
        ),
        (
            detected(true, &[MEMORY, PIDS, UNIFIED]),
            format!(
                "cgroup v2: memory and pids limits, cgroup.kill; jobs with other limits are \
                 refused; mend: {mend}"
            ),
        ),
        (Detected::default(), format!("none: jobs with limits are refused; mend: {mend}")),
    ] {
        assert_eq!(found.to_string(), expected);
    }
    assert_eq!(Detected::default().group("parent", "run"), None);
}
