//! `errand jobs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;

use super::render::Column;
use super::watch::{Show, Watch};
use super::{Session, facts, filter, results};
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("STATUS", "/status"),
    ("AGENT", "/spec/agent_ref"),
    ("MESSAGE", "/status_details/message"),
    ("CREATED", "/created_at"),
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
    Watch(Job),
    /// Show the end of its log
    Tail(Tail),
    /// Stop its agent
    Cancel(Job),
    /// Delete its record and results
    Delete(Job),
    /// Its results
    #[command(subcommand)]
    Results(results::Command),
    /// Show its facts as the streams of a running platform hold them
    Facts(Facts),
}

#[derive(Debug, Args)]
pub(super) struct Job {
    /// Its name or id
    #[arg(value_parser = super::name)]
    job: String,
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
    /// A filter as JSON
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
    /// The order
    #[arg(long, default_value = "-created_at", allow_hyphen_values = true)]
    sort: String,
    /// Which page
    #[arg(long, default_value_t = 1)]
    page: u32,
    /// Jobs on a page
    #[arg(long, default_value_t = 100)]
    page_size: u32,
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
            Self::List(list) => out.list(&client.query(&jobs, &list.query()?).await?, COLUMNS),
            Self::Get(Job { job }) => out.one(&client.get(&path(&job)).await?),
            Self::GetStatus(Job { job }) => {
                out.one(&client.get(&format!("{}/status", path(&job))).await?);
            }
            Self::Watch(Job { job }) => return Watch::new(session, &job).run(Show::Log).await,
            Self::Tail(tail) => {
                let mut watch = Watch::new(session, &tail.job);
                return watch.tail(tail.lines, tail.follow).await;
            }
            Self::Cancel(Job { job }) => {
                out.one(&client.call(Method::POST, &format!("{}/cancel", path(&job))).await?);
            }
            Self::Delete(Job { job }) => {
                client.delete(&path(&job)).await?;
                out.note(&format!("job '{job}' is deleted"));
            }
            Self::Results(command) => return command.run(session).await,
            Self::Facts(Facts { job, data_dir }) => facts::show(session, &job, data_dir).await?,
        }
        Ok(Exit::Done)
    }
}

impl List {
    fn query(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        let fields: [(&str, &[String]); 3] =
            [("source", &self.source), ("status", &self.status), ("name", &self.name)];
        let mut query = vec![
            ("page", self.page.to_string()),
            ("page_size", self.page_size.to_string()),
            ("sort", self.sort.clone()),
        ];
        query.extend(
            filter::combine(self.filter.as_deref(), &fields)?.map(|filter| ("filter", filter)),
        );
        Ok(query)
    }
}
