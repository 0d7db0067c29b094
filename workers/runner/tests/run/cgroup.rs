//! Runs in control groups of their own: their limits, what is said of them, and that nothing is
//! left. On a machine with version 1 the same tests are run once more in a kernel with version 2
//! (see `uml`).

mod ends;
mod limits;
mod uml;

use std::fs;
use std::path::{Path, PathBuf};

use errand_runner::cgroup::{Detected, detect};
use errand_runner::{Cgroup, Limits};

use crate::scene::{Done, Scene};

pub(crate) const MIB: u64 = 1024 * 1024;

impl Scene {
    /// The same run, in a group with these limits.
    pub(crate) fn in_group(self, limits: Limits) -> Self {
        self.in_group_without(&[], limits)
    }

    /// The same, as on a machine that has not all hierarchies of version 1.
    pub(crate) fn in_group_without(self, missing: &[&str], limits: Limits) -> Self {
        let group = detected().group(&self.parent(), "run");
        let mut group = group.expect("there are control groups");
        if let Cgroup::V1 { paths } = &mut group {
            paths.retain(|controller, _| !missing.contains(&controller.as_str()));
        }
        group.make(&limits).expect("the group can be made and limited");
        self.with(|launch| {
            launch.limits = limits;
            launch.cgroup = Some(group);
        })
    }

    pub(crate) fn group(&self) -> &Cgroup {
        self.launch.cgroup.as_ref().expect("it has a group")
    }

    /// A parent of its own for each test.
    fn parent(&self) -> String {
        let own = self.root.path().file_name().expect("a temporary directory has a name");
        format!("errand-test{}", own.display())
    }
}

impl Done {
    /// Neither the group nor its parent is there any more.
    pub(crate) fn assert_group_is_gone(&self) {
        for directory in directories(self.scene.group()) {
            assert!(!directory.exists(), "{} is still there", directory.display());
            let parent = directory.parent().expect("a group has a parent");
            assert!(!parent.exists(), "{} is still there", parent.display());
        }
    }
}

/// Everything is to be had, or the tests mean nothing.
fn detected() -> Detected {
    let detected = detect();
    let said = detected.to_string();
    assert!(said.ends_with("cpu, memory and pids limits, cgroup.kill"), "{said}");
    detected
}

fn is_v2(group: &Cgroup) -> bool {
    matches!(group, Cgroup::V2 { .. })
}

fn directories(group: &Cgroup) -> Vec<PathBuf> {
    match group {
        Cgroup::V2 { path } => vec![path.clone()],
        Cgroup::V1 { paths } => paths.values().cloned().collect(),
    }
}

/// A file of the group, wherever its controller is.
fn file(group: &Cgroup, name: &str) -> Option<String> {
    let read = |directory: &PathBuf| fs::read_to_string(Path::new(directory).join(name)).ok();
    directories(group).iter().find_map(read).map(|text| text.trim().to_owned())
}

/// Processes that have exactly this argument.
fn running_with_argument(argument: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("a Linux machine").flatten();
    let command = |process: fs::DirEntry| fs::read(process.path().join("cmdline")).ok();
    processes
        .filter_map(command)
        .filter(|words| words.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()))
        .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
        .collect()
}
