//! FC-H: input, quoting, standard input.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Platform;

const SOON: Duration = Duration::from_secs(20);

/// For the script harness; the model harnesses get theirs through Fabric, never by argv.
#[tokio::test]
async fn case_h3_a_large_prompt_and_context_reach_the_agent() {
    let platform = Platform::start().await;
    let input = "a".repeat(200_000);
    let more = json!({"input": input, "context": {"blob": "b".repeat(200_000)}});
    let script = "wc -c | tr -d ' '; wc -c < $ERRAND_INPUT | tr -d ' '; \
                  grep -o 'bbbb' $ERRAND_CONTEXT | wc -l | tr -d ' '";
    let job = platform.api().script(script, more).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    let response = job.json("fabric_run_result").await["response"].clone();
    assert_eq!(response, "200000\n200000\n50000");
}

#[tokio::test]
async fn case_h4_standard_input_ends_after_the_prompt() {
    let platform = Platform::start().await;
    let began = Instant::now();
    let job = platform.api().script("cat > got.txt; echo done", json!({})).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
}
