//! Lists of jobs.

use streams::outcome::Status;

use super::{Job, Jobs, WHOLE, read};
use crate::records::statement::{page, places};
use crate::records::{Listed, Page, Result, Sort};

/// Which jobs a list is about. What is not set does not narrow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Those of a workspace.
    pub workspace: Option<String>,
    /// Those that this made.
    pub source: Option<String>,
    /// Those with one of these statuses; empty stands for all.
    pub statuses: Vec<Status>,
    /// Those of one of these registered agents; an empty list matches none.
    pub agent_refs: Option<Vec<String>>,
}

impl Jobs<'_> {
    /// A page of the jobs that match. The total counts what matches, on all pages.
    pub async fn list(&self, filter: &JobFilter, which: Page, sort: Sort) -> Result<Listed<Job>> {
        let (condition, values) = filter.condition();
        let from = format!("{WHOLE} WHERE {condition}");
        let order = (which, sort.job_order_by());
        page(self.0.reads(), &from, &values, order, read).await
    }
}

impl JobFilter {
    /// The condition, and the values for its places.
    fn condition(&self) -> (String, Vec<&str>) {
        let mut condition = "deleted_at IS NULL".to_owned();
        let mut bound: Vec<&str> = Vec::new();
        let sets = [
            ("workspace", self.workspace.as_ref().map(|it| vec![it.as_str()])),
            ("source", self.source.as_ref().map(|it| vec![it.as_str()])),
            ("status", self.statuses()),
            (
                "agent_ref",
                self.agent_refs.as_ref().map(|it| it.iter().map(String::as_str).collect()),
            ),
        ];
        for (column, values) in sets.into_iter().filter_map(|(column, set)| Some((column, set?))) {
            if values.is_empty() {
                condition.push_str(" AND 1 = 0");
            } else {
                let places = places(bound.len() + 1, values.len());
                condition.push_str(&format!(" AND {column} IN ({places})"));
            }
            bound.extend(values);
        }
        (condition, bound)
    }

    fn statuses(&self) -> Option<Vec<&str>> {
        let words: Vec<_> = self.statuses.iter().map(|status| status.as_str()).collect();
        (!words.is_empty()).then_some(words)
    }
}
