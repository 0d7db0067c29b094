//! Keeping a claim while something runs under it, and with the claim the lease of the run.

use streams::id::Attempt;
use tokio::time::Instant;

use super::{Gone, Held};
use crate::executor::{Executor, RunName};

impl Held<'_> {
    /// Renews the claim and the lease of the run that an attempt has; comes back when the claim is
    /// lost, and has told the run to stop then.
    ///
    /// The lease tells of the time at which the claim was asked for: were this worker cut off for
    /// long, another may take over, and before that the runner must have ended the run.
    pub(crate) async fn keep(
        &self,
        executor: &dyn Executor,
        run: impl Fn(Attempt) -> RunName,
    ) -> Gone {
        loop {
            let asked = Instant::now();
            let renewed = self.renew().await;
            let run = run(self.attempt().await);
            match renewed {
                Ok(()) => {
                    if let Err(error) = executor.renew(run, asked).await {
                        tracing::warn!(%error, "the lease is renewed later");
                    }
                }
                Err(Gone::TakenOver) => {
                    // What runs here must end and counts for nothing.
                    if let Err(error) = executor.stop(run, "the claim was taken over").await {
                        tracing::warn!(%error, "the run cannot be stopped; its lease will");
                    }
                    return Gone::TakenOver;
                }
                Err(Gone::Broker(error)) => tracing::warn!(%error, "the claim is renewed later"),
            }
            tokio::time::sleep(self.claims.renewal()).await;
        }
    }
}
