//! Post-run actions: what may follow an agent's success.

use streams::code::Code;
use streams::outcome::Outcome;
use streams::snapshot::Action;

/// Does nothing; every platform has it.
pub const NOOP: &str = "agents.noop";

/// An action that is installed.
#[derive(Clone, Copy, Debug)]
pub struct Installed {
    /// Its kind.
    pub kind: &'static str,
    /// A few words.
    pub title: &'static str,
    /// A sentence.
    pub description: &'static str,
}

/// Every action that is installed.
pub const INSTALLED: &[Installed] =
    &[Installed { kind: NOOP, title: "No-op", description: "Does nothing." }];

/// Runs an action and says how the job ends.
pub(crate) fn run(action: &Action) -> Outcome {
    match action.kind.as_str() {
        NOOP => Outcome::Succeeded,
        // Refused at submission; here only when it was uninstalled since.
        kind => Outcome::Failed {
            code: Code::ActionMissing,
            message: format!("post-run action '{kind}' is not installed"),
        },
    }
}
