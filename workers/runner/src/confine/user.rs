//! Becoming another user, for good: no groups, no capabilities, no way back.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::{Error, failed};

/// Makes this process one of the user and of the group of that number, and of nothing else.
pub(super) fn become_user(id: u32) -> Result<(), Error> {
    // System V segments and message queues outlive whoever made them, but not their namespace.
    // Without the right to one, they are left to be seen by the next run of that number at most.
    let _ = unshare(CloneFlags::CLONE_NEWIPC);
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[]).map_err(failed("leave the groups"))?;
    setresgid(group, group, group).map_err(failed("change the group"))?;
    setresuid(user, user, user).map_err(failed("change the user"))?;
    // The kernel takes them from whoever leaves root, unless somebody told it not to.
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(failed("give up capabilities"))
}
