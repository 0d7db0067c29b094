use std::collections::BTreeMap;

use super::*;

#[test]
fn only_the_group_of_the_run_is_believed_to_be_it() {
    let v2 = |path: &str| Cgroup::V2 { path: path.into() };
    for (path, expected) in [
        ("/sys/fs/cgroup/errand-1/run-1", true),
        // Nothing is there, so nothing can come to harm.
        ("/no/such/place/errand-1/run-1", true),
        ("/sys/fs/cgroup/errand-2/run-1", false),
        ("/sys/fs/cgroup/errand-1/run-2", false),
        ("/sys/fs/cgroup/errand-1/run-1/inside", false),
        ("/", false),
    ] {
        assert_eq!(v2(path).is_of("errand-1", "run-1"), expected, "{path}");
    }
    let paths = ["/sys/fs/cgroup/pids/errand-1/run-1", "/sys/fs/cgroup/pids"];
    let paths = ["pids", "cpu"].into_iter().zip(paths);
    let paths: BTreeMap<_, _> = paths.map(|(name, path)| (name.into(), path.into())).collect();
    assert!(!Cgroup::V1 { paths }.is_of("errand-1", "run-1"), "every path counts");
    let outside = tempfile::tempdir().expect("a temporary directory");
    let forged = outside.path().join("errand-1/run-1");
    fs::create_dir_all(&forged).expect("a directory can be made");
    assert!(!Cgroup::V2 { path: forged }.is_of("errand-1", "run-1"), "it is no control group");
}

#[test]
fn a_controller_that_is_missing_refuses_what_was_asked_for_and_nothing_else() {
    let nowhere = Cgroup::V1 { paths: BTreeMap::new() };
    let limits =
        |cpu_millis, memory_bytes| crate::Limits { cpu_millis, memory_bytes, processes: Some(9) };
    assert!(nowhere.make(&limits(None, None)).is_ok());
    let error = nowhere.make(&limits(Some(500), None)).expect_err("there is no controller");
    assert_eq!(
        error.to_string(),
        "the limit cpu.cfs_period_us = 100000 cannot be set: this process has no controller cpu; \
         leave it out of the compute spec, or see what errand doctor says of control groups"
    );
    assert!(nowhere.make(&limits(None, Some(1 << 20))).is_err());
}
