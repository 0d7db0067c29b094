//! Who may do what: roles, and callers with what they may do. Pure: where tokens are kept is the
//! records' affair, and what a route needs stands in the table of routes.

mod token;

use std::collections::BTreeMap;
use std::fmt;

pub use token::{Digest, Token};

/// Stands for all workspaces where a role is given.
pub const EVERYWHERE: &str = "*";

/// Roles by workspace, or [`EVERYWHERE`].
pub type Roles = BTreeMap<String, Role>;

/// What somebody may do in a workspace. Each role may do all that those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read all but the values of secrets.
    Viewer,
    /// Run jobs and end them, write files, let jobs use secrets.
    Submitter,
    /// Change everything, and read values of secrets where that is allowed at all.
    Admin,
}

/// A word that is no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no role; there are viewer, submitter and admin")]
pub struct UnknownRole(String);

/// Who asks for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Authentication is off: whoever reaches the platform may do everything.
    Anyone,
    /// Whoever has this token.
    Token {
        /// Its id in the records.
        id: String,
        /// Its name.
        name: String,
        /// What it is good for.
        roles: Roles,
    },
    /// Whoever may publish submissions of a workspace to the queue. That is all that the queue
    /// lets them do, so it counts for no other workspace.
    Queue {
        /// The workspace.
        workspace: String,
    },
}

/// A role that a caller lacks. The same whether or not there is such a workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("role '{needed}' in {} is needed, {who} has {}", place(workspace), had(*has))]
pub struct Lacking {
    needed: Role,
    workspace: String,
    who: String,
    has: Option<Role>,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Submitter, Self::Admin];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Role {
    type Err = UnknownRole;

    fn from_str(word: &str) -> Result<Self, UnknownRole> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == word);
        found.ok_or_else(|| UnknownRole(word.to_owned()))
    }
}

impl Caller {
    /// The role that it has in a workspace.
    pub fn role_in(&self, workspace: &str) -> Option<Role> {
        match self {
            Self::Anyone => Some(Role::Admin),
            Self::Token { roles, .. } => role_in(roles, workspace),
            Self::Queue { workspace: own } => (own == workspace).then_some(Role::Submitter),
        }
    }

    /// Refuses a caller that has not at least this role in a workspace.
    pub fn needs(&self, needed: Role, workspace: &str) -> Result<(), Lacking> {
        let has = self.role_in(workspace);
        if has >= Some(needed) {
            return Ok(());
        }
        Err(Lacking { needed, workspace: workspace.to_owned(), who: self.to_string(), has })
    }

    /// The workspaces in which it has at least this role; `None` when these are all.
    pub fn workspaces(&self, needed: Role) -> Option<Vec<String>> {
        if self.role_in(EVERYWHERE) >= Some(needed) {
            return None;
        }
        Some(match self {
            Self::Anyone => Vec::new(),
            Self::Token { roles, .. } => {
                let enough = roles.iter().filter(|(_, role)| **role >= needed);
                enough.map(|(workspace, _)| workspace.clone()).collect()
            }
            Self::Queue { workspace } => {
                (needed <= Role::Submitter).then(|| workspace.clone()).into_iter().collect()
            }
        })
    }

    /// The name of its token.
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::Token { name, .. } => Some(name),
            Self::Anyone | Self::Queue { .. } => None,
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone => f.write_str("somebody"),
            Self::Token { name, .. } => write!(f, "token '{name}'"),
            Self::Queue { workspace } => write!(f, "a submission to the queue of '{workspace}'"),
        }
    }
}

/// The role that these roles are in a workspace.
pub fn role_in(roles: &Roles, workspace: &str) -> Option<Role> {
    roles.get(workspace).max(roles.get(EVERYWHERE)).copied()
}

fn place(workspace: &str) -> String {
    match workspace {
        EVERYWHERE => "all workspaces".to_owned(),
        workspace => format!("workspace '{workspace}'"),
    }
}

fn had(role: Option<Role>) -> String {
    role.map_or_else(|| "no role there".to_owned(), |role| format!("role '{role}' there"))
}

#[cfg(test)]
mod tests;
