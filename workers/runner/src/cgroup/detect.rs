//! Which control groups this process can make.
//!
//! Version 2 lets a group hold either processes or groups with controllers. So a process that is
//! alone in its group (a service with `Delegate=yes`) moves itself and its children one level
//! down, into `errand-platform`, before the controllers are handed on; where others are in the
//! group, root takes the hierarchy's root instead. Whatever is found was tried: a group was made
//! and removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::getpid;

use super::{CPU, FREEZER, MEMORY, PIDS, UNIFIED};
use crate::Cgroup;

/// Where the platform's own processes go on version 2.
const PLATFORM: &str = "errand-platform";

/// A file of each controller's groups that has to be there, in both versions.
const FILES_V1: [(&str, &str); 5] = [
    (CPU, "cpu.cfs_quota_us"),
    (MEMORY, "memory.limit_in_bytes"),
    (PIDS, "pids.max"),
    (FREEZER, "freezer.state"),
    (UNIFIED, "cgroup.kill"),
];
const FILES_V2: [(&str, &str); 4] =
    [(CPU, "cpu.max"), (MEMORY, "memory.max"), (PIDS, "pids.max"), (UNIFIED, "cgroup.kill")];

/// What limits a run can be held to; the rest of what is found serves to end it.
const LIMITING: [&str; 3] = [CPU, MEMORY, PIDS];

/// What to do where a limit is missing.
const MEND: &str = "run the platform as a service with Delegate=yes, under systemd-run --scope -p \
    Delegate=yes, or as root";

/// What there is to be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detected {
    /// Where groups can be made, by controller; all the same on version 2.
    bases: BTreeMap<String, PathBuf>,
    is_v2: bool,
}

/// Looks what there is.
pub fn detect() -> Detected {
    let mounts = mounts();
    let own = own_groups();
    let base = |controller: &str| {
        let mount = mounts.get(controller)?;
        let own = own.get(controller).map_or("/", String::as_str);
        // In a container the mount may begin at a group further down.
        let below = Path::new(own).strip_prefix(&mount.root).unwrap_or(Path::new(""));
        Some(mount.point.join(below))
    };
    if LIMITING.iter().any(|controller| mounts.contains_key(*controller)) {
        let usable = FILES_V1.iter().filter_map(|(controller, file)| {
            let base = base(controller)?;
            has(&base, &[(controller, file)]).contains(*controller).then_some(())?;
            Some(((*controller).to_owned(), base))
        });
        return Detected { bases: usable.collect(), is_v2: false };
    }
    let (Some(own), Some(root)) = (base(UNIFIED), mounts.get(UNIFIED)) else {
        return Detected::default();
    };
    let own = if own.ends_with(PLATFORM) { own.parent().unwrap_or(&own).to_owned() } else { own };
    let [own, root] = [own, root.point.clone()].map(|base| (usable_v2(&base), base));
    let (found, base) = if root.0.len() > own.0.len() { root } else { own };
    let bases = found.into_iter().map(|controller| (controller, base.clone())).collect();
    Detected { bases, is_v2: true }
}

impl Detected {
    /// The limits that a run cannot be held to, as compute specs call them, with the reason.
    pub fn missing(&self) -> BTreeMap<&'static str, String> {
        let missing = [CPU, MEMORY].into_iter().filter(|limit| !self.bases.contains_key(*limit));
        let reason = |limit| format!("no control group that it may make limits {limit}; {MEND}");
        missing.map(|limit| (limit, reason(limit))).collect()
    }

    /// The group of a run in the parent of that name; `None` where there are no groups. Nothing
    /// is made.
    pub fn group(&self, parent: &str, run: &str) -> Option<Cgroup> {
        let below = |base: &PathBuf| base.join(parent).join(run);
        if self.is_v2 {
            return self.bases.values().next().map(|base| Cgroup::V2 { path: below(base) });
        }
        let paths = self.bases.iter().map(|(controller, base)| (controller.clone(), below(base)));
        (!self.bases.is_empty()).then(|| Cgroup::V1 { paths: paths.collect() })
    }

    /// The names of the groups in the parent of that name.
    pub fn runs(&self, parent: &str) -> BTreeSet<String> {
        let bases: BTreeSet<&PathBuf> = self.bases.values().collect();
        let entries = bases.into_iter().flat_map(|base| fs::read_dir(base.join(parent)));
        let groups = entries.flatten().flatten();
        let groups = groups.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        groups.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

impl fmt::Display for Detected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bases.is_empty() {
            return write!(f, "none: jobs with limits are refused; mend: {MEND}");
        }
        let limits = LIMITING.into_iter().filter(|limit| self.bases.contains_key(*limit));
        let limits = match Vec::from_iter(limits).as_slice() {
            [] => "no limits".to_owned(),
            [one] => format!("{one} limits"),
            [others @ .., last] => format!("{} and {last} limits", others.join(", ")),
        };
        write!(f, "cgroup v{}: {limits}", if self.is_v2 { 2 } else { 1 })?;
        if self.bases.contains_key(UNIFIED) {
            f.write_str(", cgroup.kill")?;
        }
        if !self.missing().is_empty() {
            write!(f, "; jobs with other limits are refused; mend: {MEND}")?;
        }
        Ok(())
    }
}

/// Hands the controllers on to the groups in `parent`, as many of them as it has.
pub(super) fn enable(parent: &Path) {
    for controller in LIMITING {
        // Each by itself: the kernel takes all that it is given, or none. What is missing in the
        // end is seen by its files.
        let _ = fs::write(parent.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}

fn usable_v2(base: &Path) -> BTreeSet<String> {
    // Only the root itself may hold processes beside groups with controllers.
    let is_root = !base.join("cgroup.type").exists();
    if is_root || move_down(base) {
        enable(base);
    }
    has(base, &FILES_V2)
}

/// Moves this process and its children out of `base`; says whether nobody is left there.
fn move_down(base: &Path) -> bool {
    let procs = fs::read_to_string(base.join("cgroup.procs")).unwrap_or_default();
    let processes: Vec<i32> = procs.lines().filter_map(|line| line.parse().ok()).collect();
    if !processes.iter().all(|pid| is_ours(*pid)) {
        return false;
    }
    let platform = base.join(PLATFORM);
    let _ = fs::create_dir(&platform);
    processes.iter().all(|pid| fs::write(platform.join("cgroup.procs"), pid.to_string()).is_ok())
}

/// Whether a process is this one or descends from it.
fn is_ours(mut pid: i32) -> bool {
    while pid > 1 {
        if pid == getpid().as_raw_pid() {
            return true;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in parentheses may itself contain parentheses and spaces.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let parent = fields.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
        pid = parent.unwrap_or_default();
    }
    false
}

/// Which controllers a group in `base` has: makes one, looks, and removes it.
fn has(base: &Path, files: &[(&str, &str)]) -> BTreeSet<String> {
    static PROBES: AtomicU64 = AtomicU64::new(0);
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    let probe = base.join(format!("errand-probe-{}-{number}", std::process::id()));
    if fs::create_dir(&probe).is_err() {
        return BTreeSet::new();
    }
    let there = files.iter().filter(|(_, file)| probe.join(file).exists());
    let found = there.map(|(controller, _)| (*controller).to_owned()).collect();
    // Nobody is in it.
    let _ = fs::remove_dir(&probe);
    found
}

struct Mount {
    point: PathBuf,
    /// The group that the mount begins at.
    root: PathBuf,
}

/// The mounts of control groups, by controller.
fn mounts() -> BTreeMap<String, Mount> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut mounts = BTreeMap::new();
    for line in text.lines() {
        // 30 23 0:26 ROOT POINT OPTIONS … - TYPE SOURCE SUPER-OPTIONS
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let (left, right): (Vec<_>, Vec<_>) =
            (left.split(' ').collect(), right.split(' ').collect());
        let ([_, _, _, root, point, ..], [kind, _, options, ..]) = (&left[..], &right[..]) else {
            continue;
        };
        let controllers = match *kind {
            "cgroup" => *options,
            "cgroup2" => UNIFIED,
            _ => continue,
        };
        for controller in controllers.split(',') {
            let mount = Mount { point: (*point).into(), root: (*root).into() };
            mounts.entry(controller.to_owned()).or_insert(mount);
        }
    }
    mounts
}

/// The groups of this process, by controller.
fn own_groups() -> BTreeMap<String, String> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut groups = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let controllers = if controllers.is_empty() { UNIFIED } else { controllers };
        for controller in controllers.split(',') {
            groups.insert(controller.to_owned(), path.to_owned());
        }
    }
    groups
}

#[cfg(test)]
mod tests;
