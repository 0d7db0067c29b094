//! `errand-runner probe ID DIR`: tries what [`super::enter`] would do, and tells it as JSON.
//!
//! DIR is a directory that runs are to lie below, ID the first of the agents' users. What is tried
//! cannot be taken back, which is why it is done in a process that ends afterwards.

use std::path::Path;
use std::process::ExitCode;

use errand_runner::Abilities;
use errand_runner::abilities::{Means, Reach};
use rustix::fs::{Access, access};

use super::{Error, landlocked, network, reach, user};

/// Tries everything and says what came of it.
pub(crate) fn probe(first_id: u32, runs: &Path) -> ExitCode {
    let landlock = landlocked::ruleset().map(drop).map_err(|error| error.to_string());
    let isolated = network::own_namespace(runs);
    let user = match rustix::process::geteuid().is_root() {
        true => try_user(first_id, runs).map_err(|error| error.to_string()),
        false => Err("only root can".to_owned()),
    };
    let no_network = match isolated {
        Ok(true) => Ok(Means::Namespace),
        Ok(false) => network::refuse_sockets(),
        Err(error) => Err(error),
    };
    let no_network = no_network.map_err(|error| error.to_string());
    let found = Abilities { user, landlock, no_network };
    println!("{}", serde_json::json!(found));
    ExitCode::SUCCESS
}

fn try_user(id: u32, runs: &Path) -> Result<Reach, Error> {
    let program = std::env::current_exe().map_err(super::failed("find this program"))?;
    let mut mounted = reach::open_up(runs, std::slice::from_ref(&program), id)?;
    if !mounted && !reach::is_open(runs, id) {
        // A run lies deeper, behind this one.
        reach::own_mounts().map_err(super::failed("mount anything for another user"))?;
        mounted = true;
    }
    user::become_user(id)?;
    let doing = "start errand-runner as another user; others must be allowed to run it";
    access(&program, Access::EXEC_OK).map_err(super::failed(doing))?;
    Ok(if mounted { Reach::PrivateMounts } else { Reach::Open })
}
