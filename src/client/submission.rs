//! Submissions: requests that make a job, sent again when the answer is lost. The key that each
//! carries makes that harmless: the server makes one job of it.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use super::{Client, Error};

const KEY_HEADER: &str = "idempotency-key";

/// A server that was restarted over an answer is back within this, as a rule: about ten seconds.
const AGAIN: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(200))
    .with_max_delay(Duration::from_secs(3))
    .with_max_times(6);

impl Client {
    /// Makes a job of each line, and gives what became of each. Lines under a key are the same
    /// jobs however often they are sent; when to send them again is the caller's to know.
    pub async fn submit_lines(
        &self,
        path: &str,
        key: &str,
        lines: Vec<u8>,
    ) -> Result<Vec<Value>, Error> {
        let request = self.request(&self.http, Method::POST, path);
        let request = request.header(KEY_HEADER, key).header(CONTENT_TYPE, "application/x-ndjson");
        let (response, request) = self.answer(request.body(lines)).await?;
        let text = response.text().await.map_err(|error| self.unreachable(&request, &error))?;
        let outcomes = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        outcomes.map_err(|error| Error::Answer { reason: error.to_string(), request })
    }

    /// Makes one job, under a key of the call's own when none is given.
    pub async fn submit(
        &self,
        path: &str,
        body: &Value,
        key: Option<String>,
    ) -> Result<Value, Error> {
        let key = key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let submit = || async {
            let request = self.request(&self.http, Method::POST, path);
            self.json(request.header(KEY_HEADER, &key).json(body)).await
        };
        // A server that was never reached is not waited for, one that went away meanwhile is.
        let mut may_be_made = false;
        submit
            .retry(AGAIN)
            .when(|error| {
                may_be_made |= error.is_lost_answer();
                may_be_made && error.is_transient()
            })
            .await
    }
}
