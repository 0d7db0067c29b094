//! The contract between a worker and the program beside the agent: one run directory.
//!
//! A worker fills a fresh directory and starts `errand-runner supervise DIR`; from then on the
//! two talk through files only, so either side may die and come back.
//!
//! ```text
//! launch.json   what to run (worker; the control group is noted right before the start)
//! given.list    what the agent was given, to be compared when results are saved (worker)
//! secrets.json  values of secrets, mode 0600; unlinked by the supervisor before the agent starts
//! started       created exclusively by the supervisor; it holds a lock on it while it lives
//! lease         when the worker held the claim; too old = nobody holds it any more
//! stop          created by the worker: end the run now, for the reason inside
//! io/           what the processes inside leave for the supervisor; `reserve` in it is space set
//!               aside for how the run ends
//! base/         the Fabric base directory: ethos tree, workspace/, artifacts/
//! home/ tmp/    HOME and TMPDIR of the agent, outside the base
//! runner.err    what the supervisor says on stderr (created by the worker)
//! agent.log     one JSON object a line, masked
//! outcome.json  written last and atomically, whatever happened
//! ```
//!
//! Only `base`, `home`, `tmp` and `io` are the agent's, by owner or by Landlock; the rest it can
//! neither read nor write (see [`Sandbox`]).
//!
//! Beside the run directories lie `.ids` (which user each run has), `.cgroup` (whose the control
//! groups are) and `.RUN.partial` (a directory that is being filled).
//!
//! Nothing here knows NATS, S3 or SQL.

pub mod abilities;
pub mod adapters;
pub mod cgroup;
pub mod launch;
pub mod log_line;
pub mod moment;
pub mod names;
pub mod outcome;
pub mod output;
pub mod run_dir;

pub use abilities::Abilities;
pub use launch::{Cgroup, Launch, Limits, Network, SHORTEST_MASKED, Sandbox, Secrets};
pub use log_line::{LogLine, LogStream};
pub use moment::Moment;
pub use outcome::{End, Failure, Outcome, SecretsFound, Usage};
pub use run_dir::{Life, RunDir};
