//! The ends of jobs: they are looked for, what they left is fetched, and those that failed as
//! nobody wants it are run once more.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use streams::outcome::Status;

use super::{Batch, number};
use crate::cli::batch::directory::of_job;
use crate::cli::batch::{batch, fetch};
use crate::client::segment;
use crate::exit::Exit;

/// Lines that the server is asked about at once.
const LOOK_LINES: usize = 200;

/// Jobs whose results are fetched at once.
const FETCHES: usize = 8;

impl Batch<'_> {
    /// Looks after the jobs that go on; says whether any has ended.
    pub(super) async fn look(&mut self) -> anyhow::Result<bool> {
        let lines: Vec<u32> = self.on_their_way.keys().copied().collect();
        let mut ended = Vec::new();
        for lines in lines.chunks(LOOK_LINES) {
            let mut jobs = self.jobs(lines).await?;
            for line in lines {
                match jobs.remove(line) {
                    None => ended.push(json!({"line": line, "status": "deleted"})),
                    Some(job) if is_over(&job) => ended.push(job),
                    Some(_) => {}
                }
            }
        }
        let any = !ended.is_empty();
        let waiting = std::mem::take(&mut self.waiting_for_room);
        for entry in self.fetch(ended).await?.into_iter().chain(waiting) {
            match self.room() {
                0 => self.waiting_for_room.push(entry),
                _ => self.retry(&entry).await?,
            }
        }
        Ok(any)
    }

    /// The jobs of some lines.
    async fn jobs(&self, lines: &[u32]) -> anyhow::Result<BTreeMap<u32, Value>> {
        let words: Vec<_> = lines.iter().map(u32::to_string).collect();
        let group = batch(self.session, &self.directory.begun.group);
        let path = format!("{group}/jobs?lines={}", words.join(","));
        let client = &self.session.client;
        let mut answer = self.server.call(async || client.get(&path).await).await?;
        let jobs = answer["data"].as_array_mut().into_iter().flatten();
        jobs.map(|job| Ok((number(job)?, job.take()))).collect()
    }

    /// Fetches what jobs that are over have left, and gives what the index says of them.
    async fn fetch(&mut self, ended: Vec<Value>) -> anyhow::Result<Vec<Value>> {
        let at = (self.session, &self.server);
        let (path, wanted) = (self.directory.path.as_path(), self.asked.results.as_slice());
        let fetches = ended.into_iter().map(|job| async move {
            let results = match job["name"].as_str() {
                Some(name) => fetch::results(at, name, wanted, &of_job(path, name)).await?,
                None => Vec::new(),
            };
            anyhow::Ok((job, results))
        });
        let mut fetches = stream::iter(fetches).buffer_unordered(FETCHES);
        let mut entries = Vec::new();
        while let Some(fetched) = fetches.next().await {
            let (job, results) = fetched?;
            let line = number(&job)?;
            let runs = self.on_their_way.remove(&line).unwrap_or_default();
            let entry = json!({
                "line": line,
                "job": job["name"],
                "id": job["id"],
                "status": job["status"],
                "code": job["code"],
                "results": results,
                "runs": runs,
            });
            self.directory.index.put(&entry)?;
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Runs a job once more, if it ended as those did that are to be. The new one takes its place
    /// in the batch, and the index keeps its name.
    pub(super) async fn retry(&mut self, entry: &Value) -> anyhow::Result<()> {
        let line = number(entry)?;
        let code = entry["code"].as_str().and_then(|code| code.parse().ok());
        let is_wanted = code.is_some_and(|code| self.asked.retry_failed.contains(&code));
        let Some(job) = entry["job"].as_str().filter(|_| is_wanted) else { return Ok(()) };
        if self.retried.contains(&line) {
            return Ok(());
        }
        if !self.waiting_for_room.is_empty() {
            // The refusal of one speaks for those after it.
            self.waiting_for_room.push(entry.clone());
            return Ok(());
        }
        let mut runs = entry["runs"].as_array().cloned().unwrap_or_default();
        runs.push(json!(job));
        let key = format!("{}/{line}/{}", self.directory.begun.key, runs.len());
        let path = format!("{}/jobs/{}/rerun", self.session.base("jobs", None), segment(job));
        let (client, body) = (&self.session.client, json!({"in_batch": true}));
        let rerun = async || match client.submit(&path, &body, Some(key.clone())).await {
            Err(full) if full.is_for_want_of_room() => Ok(Err(full)),
            made => made.map(Ok),
        };
        let made = match self.server.call(rerun).await {
            Ok(Ok(made)) => made,
            Ok(Err(full)) => {
                self.server.has_room(Some(&json!(full.to_string())));
                self.waiting_for_room.push(entry.clone());
                return Ok(());
            }
            Err(error) if matches!(error.exit(), Exit::Refused | Exit::NotFound) => {
                let note = format!("line {line}: job '{job}' is not run once more: {error}");
                self.session.out.note(&note);
                self.retried.insert(line);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.retried.insert(line);
        self.directory.index.put(&json!({
            "line": line, "job": made["name"], "id": made["id"], "status": "created", "runs": runs,
        }))?;
        self.on_their_way.insert(line, runs);
        Ok(())
    }
}

fn is_over(job: &Value) -> bool {
    let status = job["status"].as_str().and_then(|word| word.parse::<Status>().ok());
    status.is_some_and(Status::is_terminal)
}
