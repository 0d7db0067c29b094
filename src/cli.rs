//! The command line: what is typed and where it goes. Each command has its file; only
//! [`render`] prints to stdout.

mod agents;
mod batch;
mod completions;
mod config;
mod documents;
mod environments;
mod execute;
mod facts;
mod files;
mod filesets;
mod filter;
mod jobs;
mod last_output;
mod logs;
mod nats;
mod pages;
mod platform;
mod queue;
mod records;
mod register;
mod render;
mod rerun;
mod results;
mod secrets;
mod steps;
mod tokens;
mod topology;
mod tree;
mod watch;
mod workspaces;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::client::context::{Choice, Contexts};
use crate::client::{self, Client};
use crate::exit::Exit;
use environments::Kind;

pub use render::{Cells, Format, Output};

/// Runs an AI agent once, to completion, as a durable job.
#[derive(Debug, Parser)]
#[command(name = "errand", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
struct Global {
    /// Use this context instead of the current one [env: ERRAND_CONTEXT]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Global", value_parser = name)]
    context: Option<String>,
    /// Talk to this server [env: ERRAND_BASE_URL]
    #[arg(long, global = true, value_name = "URL", help_heading = "Global")]
    base_url: Option<String>,
    /// Work in this workspace; lists take - for all of them [env: ERRAND_WORKSPACE]
    #[arg(
        long,
        short,
        global = true,
        value_name = "NAME",
        help_heading = "Global",
        value_parser = name
    )]
    workspace: Option<String>,
    /// How data is printed; a table on a terminal and JSON elsewhere when not given
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "ERRAND_OUTPUT_FORMAT",
        hide_env_values = true,
        help_heading = "Global"
    )]
    output_format: Option<Format>,
    /// Show long values whole in tables
    #[arg(long, global = true, help_heading = "Global")]
    no_truncate: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start every part of the platform in the foreground
    Up(platform::Up),
    /// Serve the API against the configured queue, store and database
    Serve(platform::Serve),
    /// Run steps of the chain against the configured queue, store and database
    Worker(platform::WorkerArgs),
    /// Check everything that the platform needs and say how to mend what is wrong
    Doctor(platform::Doctor),
    /// Show streams, consumers and subjects, and how the server's differ
    Topology(topology::Topology),
    /// The records of a platform
    #[command(subcommand)]
    Records(records::Command),
    /// Tokens, with which callers of a platform's API show who they are
    #[command(subcommand)]
    Tokens(tokens::Command),
    /// The queue's server, for those who run one of their own
    #[command(subcommand)]
    Nats(nats::Command),
    /// Say what a failure code means and what to do
    Explain(platform::Explain),
    /// Contexts of this client, or the platform's configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Workspaces
    #[command(subcommand)]
    Workspaces(workspaces::Command),
    /// Agents, and jobs that run them
    #[command(subcommand)]
    Agents(agents::Command),
    /// Agent environments: an environment spec and a compute spec together
    #[command(subcommand)]
    Environments(environments::Command),
    /// What agents find: variables, secrets, model provider, MCP servers
    #[command(subcommand)]
    EnvironmentSpecs(environments::Command),
    /// What agents may use: CPU, memory, GPUs
    #[command(subcommand)]
    ComputeSpecs(environments::Command),
    /// Secrets that jobs may use
    #[command(subcommand)]
    Secrets(secrets::Command),
    /// Filesets
    #[command(subcommand)]
    Filesets(filesets::Command),
    /// Files in filesets
    #[command(subcommand)]
    Files(files::Command),
    /// Jobs, their logs and results
    #[command(subcommand)]
    Jobs(jobs::Command),
    /// Many jobs at once: a line of a file each
    #[command(subcommand)]
    Batch(batch::Command),
    /// Print a completion script for a shell
    Completions(completions::Completions),
}

/// The command line itself was wrong in a way that only the command could see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// What commands that talk to a server work with.
struct Session {
    client: Client,
    out: Output,
}

impl Cli {
    /// Reads the command line; ends the program on a wrong one and on `--help`.
    pub fn from_args() -> Self {
        let matches = command().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Whether the command is a part of the platform, which logs, or a client, which does not.
    pub const fn is_platform(&self) -> bool {
        matches!(self.command, Command::Up(_) | Command::Serve(_) | Command::Worker(_))
    }

    /// Carries the command out.
    pub async fn run(self) -> anyhow::Result<Exit> {
        let Self { global, command } = self;
        let cells = if global.no_truncate { Cells::Whole } else { Cells::Short };
        let out = Output::new(global.output_format, cells);
        match command {
            Command::Up(args) => args.run(out).await,
            Command::Serve(args) => args.run(out).await,
            Command::Worker(args) => args.run(out).await,
            Command::Doctor(args) => args.run(&out).await,
            Command::Topology(args) => args.run(&out).await,
            Command::Records(command) => command.run(&out).await,
            Command::Tokens(command) => command.run(global.workspace, &out).await,
            Command::Nats(command) => command.run(global.workspace, &out).await,
            Command::Explain(args) => args.run(&out),
            Command::Completions(args) => args.run(&out),
            Command::Config(command) => command.run(global.flags(), &out),
            Command::Secrets(secrets::Command::RotateKey(args)) => args.run(&out).await,
            command => command.run_in(&global.session(out)?).await,
        }
    }
}

impl Command {
    async fn run_in(self, session: &Session) -> anyhow::Result<Exit> {
        match self {
            Self::Workspaces(command) => command.run(session).await,
            Self::Agents(command) => command.run(session).await,
            Self::Environments(command) => command.run(Kind::Environments, session).await,
            Self::EnvironmentSpecs(command) => command.run(Kind::EnvironmentSpecs, session).await,
            Self::ComputeSpecs(command) => command.run(Kind::ComputeSpecs, session).await,
            Self::Secrets(command) => command.run(session).await,
            Self::Filesets(command) => command.run(session).await,
            Self::Files(command) => command.run(session).await,
            Self::Jobs(command) => command.run(session).await,
            Self::Batch(command) => command.run(session).await,
            Self::Up(_)
            | Self::Serve(_)
            | Self::Worker(_)
            | Self::Doctor(_)
            | Self::Topology(_)
            | Self::Records(_)
            | Self::Tokens(_)
            | Self::Nats(_)
            | Self::Explain(_)
            | Self::Completions(_)
            | Self::Config(_) => unreachable!("handled before a session is opened"),
        }
    }
}

impl Global {
    /// What the command line says. The token is no flag: the command lines of others are visible
    /// to everybody.
    fn flags(self) -> Choice {
        let Self { context, base_url, workspace, .. } = self;
        Choice { context, base_url, workspace, token: None }
    }

    fn session(self, out: Output) -> anyhow::Result<Session> {
        let context = Contexts::load()?.choose(&self.flags().or_environment())?;
        Ok(Session { client: Client::new(context)?, out })
    }
}

impl Session {
    /// The base path of a service in a workspace, the current one unless another is named.
    fn base(&self, service: &str, workspace: Option<&str>) -> String {
        let workspace = client::segment(workspace.unwrap_or(self.client.workspace()));
        format!("/apis/{service}/v2/workspaces/{workspace}")
    }
}

/// Reads an argument that names something. What would be another route is no name.
fn name(text: &str) -> Result<String, &'static str> {
    match text {
        "" => Err("a name cannot be empty"),
        "." | ".." => Err("that is no name"),
        text => Ok(text.to_owned()),
    }
}

/// What a person is told of an error: what happened, then what to do about it.
pub fn told(error: &anyhow::Error) -> String {
    let advice = error.chain().find_map(|cause| cause.downcast_ref::<client::Error>());
    let advice = advice.map(client::Error::advice).unwrap_or_default();
    std::iter::once(format!("errand: {error:#}")).chain(advice).collect::<Vec<_>>().join("\n")
}

/// How the program ends because of an error.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<client::Error>() {
            return error.exit();
        }
        if cause.is::<Usage>() || cause.is::<client::context::Error>() {
            return Exit::Usage;
        }
    }
    Exit::Failed
}

/// The command line's grammar with the table of exit codes below its help.
fn command() -> clap::Command {
    let codes: Vec<_> =
        Exit::ALL.iter().map(|exit| format!("{:>5} {}", exit.code(), exit.meaning())).collect();
    Cli::command().after_help(format!("Exit codes:\n{}", codes.join("\n")))
}

#[cfg(test)]
mod tests;
