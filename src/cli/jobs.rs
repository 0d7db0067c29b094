//! `errand jobs`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::Method;

use super::logs::GetLogs;
use super::pages::Sorted;
use super::render::Column;
use super::rerun::Rerun;
use super::watch::{Patience, Show, Watch};
use super::{Session, facts, filter, last_output, queue, results, steps};
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("DESCRIPTION", "/description"),
    ("STATUS", "/status"),
    ("AGENT", "/spec/agent_ref"),
    ("MESSAGE", "/status_details/message"),
    ("CREATED", "/created_at"),
];

const PROFILE_COLUMNS: &[Column] = &[
    ("PROFILE", "/profile"),
    ("BACKEND", "/backend"),
    ("PROVIDER", "/provider"),
    ("CONFIG", "/config"),
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List jobs, the newest first
    List(List),
    /// Show one
    Get(Job),
    /// Show where it is
    GetStatus(Job),
    /// Follow it to its end: log lines on stdout, status on stderr; see the exit codes
    Watch(WatchArgs),
    /// Show the end of its log
    Tail(Tail),
    /// Show its log as a list, page by page
    GetLogs(GetLogs),
    /// Stop its agent
    Cancel(Job),
    /// Hold it before its agent is started
    Pause(Job),
    /// Let a held one go on
    Resume(Job),
    /// Run it once more, as a new job
    Rerun(Rerun),
    /// Show who was told of its end, by the notify of its spec
    Notification(Notification),
    /// Delete its record and results
    Delete(Job),
    /// Its results
    #[command(subcommand)]
    Results(results::Command),
    /// Its steps
    #[command(subcommand)]
    Steps(steps::Command),
    /// Show its facts as the streams of a running platform hold them
    Facts(Facts),
    /// Show how many jobs wait and run in each workspace
    Queue,
    /// List where jobs can run
    ListExecutionProfiles,
}

#[derive(Debug, Args)]
pub(super) struct Job {
    /// Its name or id
    #[arg(value_parser = super::name)]
    job: String,
}

#[derive(Debug, Args)]
pub(super) struct Notification {
    #[command(flatten)]
    job: Job,
    /// Tell once more, whatever came of it before
    #[arg(long)]
    send: bool,
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Jobs of this source
    #[arg(long = "filter.source", value_name = "SOURCE")]
    source: Vec<String>,
    /// Jobs in this status; may be repeated
    #[arg(long = "filter.status", value_name = "STATUS")]
    status: Vec<String>,
    /// Jobs of this name
    #[arg(long = "filter.name", value_name = "NAME")]
    name: Vec<String>,
    /// Jobs of this project
    #[arg(long = "filter.project", value_name = "NAME")]
    project: Vec<String>,
    /// Jobs in this workspace, for lists of all of them (-w -)
    #[arg(id = "filter.workspace", long = "filter.workspace", value_name = "NAME")]
    workspace: Vec<String>,
    /// A filter as JSON, such as {"spec.agent_ref": {"$in": ["team/writer"]}}
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    #[command(flatten)]
    pages: Sorted,
}

#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// Its name or id
    #[arg(value_parser = super::name)]
    job: String,
    /// Stop watching after this time; the job goes on
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// The longest pause between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    poll_interval: u64,
    /// Leave out the lines that are there already
    #[arg(long, overrides_with = "history")]
    no_history: bool,
    /// Begin with the first line, which is so when nothing is said
    #[arg(long, overrides_with = "no_history")]
    history: bool,
}

#[derive(Debug, Args)]
pub(super) struct Tail {
    /// Its name or id
    #[arg(value_parser = super::name)]
    job: String,
    /// How many lines
    #[arg(long, short = 'n', default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    lines: u64,
    /// Go on with new lines until the job ends
    #[arg(long, short)]
    follow: bool,
}

#[derive(Debug, Args)]
pub(super) struct Facts {
    /// The job's name or id
    #[arg(value_parser = super::name)]
    job: String,
    /// The data directory of the running platform
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let jobs = format!("{}/jobs", session.base("jobs", None));
        let path = |job: &str| format!("{jobs}/{}", segment(job));
        match self {
            Self::List(list) => list.show(session, &jobs).await?,
            Self::Get(Job { job }) => out.one(&client.get(&path(&job)).await?),
            Self::GetStatus(Job { job }) => {
                let status = client.get(&format!("{}/status", path(&job))).await?;
                out.one(&status);
                if let Some(words) = last_output::words(&status) {
                    out.note(&words);
                }
            }
            Self::Watch(watch) => return watch.run(session).await,
            Self::Tail(tail) => {
                return Watch::new(session, &tail.job).tail(tail.lines, tail.follow).await;
            }
            Self::GetLogs(logs) => logs.run(session).await?,
            Self::Cancel(Job { job }) => ask(session, &path(&job), "cancel").await?,
            Self::Pause(Job { job }) => ask(session, &path(&job), "pause").await?,
            Self::Resume(Job { job }) => ask(session, &path(&job), "resume").await?,
            Self::Rerun(rerun) => rerun.run(session, &jobs).await?,
            Self::Notification(Notification { job: Job { job }, send }) => {
                if send {
                    ask(session, &path(&job), "notification/send").await?;
                } else {
                    out.one(&client.get(&format!("{}/notification", path(&job))).await?);
                }
            }
            Self::Delete(Job { job }) => {
                client.delete(&path(&job)).await?;
                out.note(&format!("job '{job}' is deleted"));
            }
            Self::Results(command) => return command.run(session).await,
            Self::Steps(command) => return command.run(session).await,
            Self::Facts(Facts { job, data_dir }) => facts::show(session, &job, data_dir).await?,
            Self::Queue => queue::show(session).await?,
            Self::ListExecutionProfiles => {
                let profiles = client.get("/apis/jobs/v2/execution-profiles").await?;
                out.list(&profiles, PROFILE_COLUMNS);
            }
        }
        Ok(Exit::Done)
    }
}

/// Asks for a change of a job's course, and shows the job as it is then.
async fn ask(session: &Session, job: &str, what: &str) -> anyhow::Result<()> {
    session.out.one(&session.client.call(Method::POST, &format!("{job}/{what}")).await?);
    Ok(())
}

impl List {
    async fn show(self, session: &Session, path: &str) -> anyhow::Result<()> {
        let fields: [(&str, &[String]); 5] = [
            ("source", &self.source),
            ("status", &self.status),
            ("name", &self.name),
            ("project", &self.project),
            ("workspace", &self.workspace),
        ];
        let filter = filter::combine(self.filter.as_deref(), &fields)?;
        self.pages.show(session, path, filter, COLUMNS).await
    }
}

impl WatchArgs {
    async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let mut watch = Watch::new(session, &self.job);
        watch.patience = Patience {
            most: self.timeout.map(Duration::from_secs),
            still: Duration::from_secs(self.poll_interval),
        };
        let show = if self.no_history { Show::NewLog } else { Show::Log };
        watch.run(show).await
    }
}
