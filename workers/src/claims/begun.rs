//! How far what is to run under a claim has come.

use errand_runner::Life;

use super::Held;
use crate::executor::{Executor, RunName};
use crate::step::StepError;

/// Whether the runner of an attempt was started.
pub(crate) enum Begun {
    /// It was not, and none that is still on its way passes the start gate.
    No,
    /// It was; what became of it can be told from what is here.
    Yes,
    /// It was, and what is left of it is not here.
    Gone,
}

impl Held<'_> {
    /// Tells so. What a lost place took with it is gone; so is a run whose directory is, also when
    /// its own agent has removed that: it is not run twice.
    pub(crate) async fn begun(
        &self,
        executor: &dyn Executor,
        run: RunName,
    ) -> Result<Begun, StepError> {
        if self.is_lost().await {
            return Ok(Begun::Gone);
        }
        if executor.look(run).await? != Life::Fresh {
            return Ok(Begun::Yes);
        }
        if !self.is_started().await {
            return Ok(Begun::No);
        }
        if !executor.is_prepared(run).await? {
            executor.sweep(run).await?;
            return Ok(Begun::Gone);
        }
        // Its runner may be on the way, and must not begin after what is decided here.
        Ok(if executor.close(run).await? { Begun::No } else { Begun::Yes })
    }
}
