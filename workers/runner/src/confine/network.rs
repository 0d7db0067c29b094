//! No network: a namespace with nothing but a loopback, or else no sockets but those of this
//! machine's files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use landlock::{ABI, Access, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr};
use nix::libc::{AF_NETLINK, AF_UNIX, EPERM, SYS_io_uring_setup, SYS_socket};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use super::{Error, reach};
use errand_runner::abilities::Means;

/// System calls of the x32 form of x86-64 have this bit.
const X32: i64 = 0x4000_0000;

/// Flags of an interface: up, loopback.
const LOOPBACK_UP: &str = "0x9";

/// Enters a network namespace of this process's own and raises the loopback in it; `spot` is any
/// directory, and is not changed. Says `false` where that is not permitted.
pub(super) fn own_namespace(spot: &Path) -> Result<bool, Error> {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => {}
        Err(nix::errno::Errno::EPERM | nix::errno::Errno::EINVAL) => return Ok(false),
        Err(error) => return Err(Error::Network(format!("no namespace can be had: {error}"))),
    }
    raise_loopback(spot)
        .map_err(|error| Error::Network(format!("the loopback cannot be raised: {error}")))?;
    Ok(true)
}

/// Of a namespace's devices only a sysfs knows that was mounted from inside it.
fn raise_loopback(spot: &Path) -> io::Result<()> {
    reach::own_mounts()?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("errand", spot, "sysfs", flags, None)?;
    let raised = fs::write(spot.join("class/net/lo/flags"), LOOPBACK_UP);
    unmount(spot, UnmountFlags::DETACH)?;
    raised
}

/// Without a namespace: sockets of the network cannot be made. Says by what means.
pub(super) fn refuse_sockets() -> Result<Means, Error> {
    match filter_sockets() {
        Ok(()) => Ok(Means::Seccomp),
        Err(filter) => match no_tcp() {
            Ok(()) => Ok(Means::Landlock),
            Err(landlock) => Err(Error::Network(format!("{filter}; {landlock}"))),
        },
    }
}

/// Sockets are made for files and for asking the kernel about itself, and for nothing else;
/// io_uring makes sockets of its own, past any filter, so it goes too.
fn filter_sockets() -> Result<(), Box<dyn std::error::Error>> {
    let is_not = |family: i32| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    };
    let mut rules = BTreeMap::new();
    for bit in [0, X32] {
        let rule = SeccompRule::new(vec![is_not(AF_UNIX)?, is_not(AF_NETLINK)?])?;
        rules.insert(SYS_socket | bit, vec![rule]);
        rules.insert(SYS_io_uring_setup | bit, Vec::new());
    }
    let refuse = SeccompAction::Errno(EPERM.unsigned_abs());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    Ok(apply_filter(&program)?)
}

fn no_tcp() -> Result<(), landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::from_all(ABI::V4))?
        .create()?
        .restrict_self()
        .map(drop)
}
