//! Steps across jobs. A job of ours has one step, so a list of steps is a list of jobs that is
//! narrowed in other ways; how a step is shown is the HTTP API's to know.

use streams::outcome::Status;

use super::{Job, Jobs, WHOLE, read};
use crate::records::statement::{page, places};
use crate::records::{Listed, Page, Result, Sort};

/// Which steps a list is about. What is not set does not narrow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepFilter {
    /// Those of a workspace.
    pub workspace: Option<String>,
    /// Those of the job of this name.
    pub job: Option<String>,
    /// Those of jobs that this made.
    pub source: Option<String>,
    /// Those with one of these statuses; an empty list matches none.
    pub statuses: Option<Vec<Status>>,
}

impl Jobs<'_> {
    /// A page of the jobs whose step matches.
    pub async fn with_steps(
        &self,
        filter: &StepFilter,
        which: Page,
        sort: Sort,
    ) -> Result<Listed<Job>> {
        let (condition, values) = filter.condition();
        let from = format!("{WHOLE} WHERE {condition}");
        page(self.0.reads(), &from, &values, (which, sort.job_order_by()), read).await
    }
}

impl StepFilter {
    /// The condition, and the values for its places.
    fn condition(&self) -> (String, Vec<&str>) {
        let mut condition = "deleted_at IS NULL".to_owned();
        let mut values = Vec::new();
        let texts = [("workspace", &self.workspace), ("name", &self.job), ("source", &self.source)];
        for (column, text) in texts {
            if let Some(text) = text {
                values.push(text.as_str());
                condition.push_str(&format!(" AND {column} = ${}", values.len()));
            }
        }
        match self.statuses.as_deref() {
            None => {}
            Some([]) => condition.push_str(" AND 1 = 0"),
            Some(statuses) => {
                let places = places(values.len() + 1, statuses.len());
                condition.push_str(&format!(" AND status IN ({places})"));
                values.extend(statuses.iter().map(|status| status.as_str()));
            }
        }
        (condition, values)
    }
}
