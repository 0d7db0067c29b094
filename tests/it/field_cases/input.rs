//! FC-H: input, quoting, standard input.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::conformance::adapter::{Adapter, returns};
use crate::harness::{Platform, script_agent};

const SOON: Duration = Duration::from_secs(60);

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

/// Fabric hands the prompt to adapters, those of claude and codex too, as a line of the protocol on
/// standard input; nothing of it is in an argument.
#[tokio::test]
async fn case_h3_a_large_prompt_reaches_a_fabric_adapter_on_standard_input() {
    let done = json!({"status": "succeeded", "output": {"response": "COUNTED"}});
    let count = "count=$(printf %s \"$invoke\" | grep -o aaaaaaaa | wc -l | tr -d ' ')\n\
                 argv=$(cat /proc/[0-9]*/cmdline 2>/dev/null | grep -c '[a]\\{64\\}')\n";
    let answer = returns(&done).replace("COUNTED", "'\"$count $argv\"'");
    let adapter = Adapter::start(&format!("{count}{answer}")).await;
    let mut spec = adapter.spec();
    spec["input"] = json!("a".repeat(200_000));
    spec["context"] = json!({"blob": "b".repeat(200_000)});
    let job = adapter.platform.api().submit(spec).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    assert_eq!(job.json("fabric_run_result").await["response"], "25000 0");
}

/// Values of all kinds: nothing on the way is a shell or an env-file.
fn odd_values() -> BTreeMap<&'static str, String> {
    let pem =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", "Ab+/".repeat(16));
    BTreeMap::from([
        ("V_PEM", pem),
        ("V_EQUALS", "a=b=c".to_owned()),
        ("V_SPACES", "  around  ".to_owned()),
        ("V_QUOTES", r#""q" 'q'"#.to_owned()),
        ("V_SHELL", "$HOME $(id) `id`".to_owned()),
        ("V_HASH", "#hash".to_owned()),
        ("V_EMOJI", "👩‍🔬 é".to_owned()),
        ("V_LARGE", "x".repeat(100_000)),
        ("V_CRLF", "a\r\nb\r\n".to_owned()),
    ])
}

/// The variables of the agent as it saw them.
async fn seen_with(platform: &Platform, environment: Value) -> BTreeMap<String, String> {
    let more = json!({"environment": {"environment_spec": environment}});
    let job = platform.api().script("env -0 > got", more).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    let got = fs::read_to_string(job.directory("output_workdir").await.path().join("got"));
    let got = got.expect("the agent wrote it");
    let pairs = got.split('\0').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[tokio::test]
async fn case_h1_variables_and_secrets_reach_the_agent_byte_for_byte() {
    let platform = Platform::start().await;
    let api = platform.api();
    let mut plain = odd_values();
    plain.insert("V_EMPTY", String::new());
    let seen = seen_with(&platform, json!({"env": plain})).await;
    for (name, value) in &plain {
        assert!(seen.get(*name) == Some(value), "{name}");
    }

    let secrets = odd_values();
    let mut bound = BTreeMap::new();
    for (name, value) in &secrets {
        let secret = name.to_lowercase().replace('_', "-");
        api.secret(&secret, value).await;
        bound.insert(*name, secret);
    }
    let seen = seen_with(&platform, json!({"secrets": bound})).await;
    for (name, value) in &secrets {
        assert!(seen.get(*name) == Some(value), "{name}");
    }

    let environment = json!({"environment_spec": {"env": {"A": "a\0b"}}});
    let spec = json!({"agent": script_agent(), "input": "", "environment": environment});
    let path = "/apis/agents/v2/workspaces/default/jobs/execute";
    let (status, body) = api.ask(Method::POST, path, Some(json!({"spec": spec}))).await;
    assert_eq!(status.as_u16(), 422, "{body}");
    assert!(body.to_string().contains("env var 'A' contains a NUL"), "{body}");
}

#[tokio::test]
async fn case_h2_a_value_of_a_shells_signs_passes_unchanged() {
    let platform = Platform::start().await;
    let value = r#"pa$$w'rd"${X}"#;
    platform.api().secret("mixed", value).await;
    let environment = json!({"env": {"PLAIN": value}, "secrets": {"SECRET": "mixed"}});
    let seen = seen_with(&platform, environment).await;
    for name in ["PLAIN", "SECRET"] {
        assert_eq!(seen.get(name).map(String::as_str), Some(value), "{name}");
    }
}
