//! Submits a spec, follows its job to the end, downloads a result: `submit < spec.json`
use futures_util::StreamExt;
#[tokio::main]
async fn main() -> Result<(), async_nats::Error> {
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let (workspace, id) = (env("ERRAND_WORKSPACE"), uuid::Uuid::now_v7());
    let job = format!("{}.{id}", workspace.replace('.', "%2E"));
    let login = (env("NATS_USER"), env("NATS_PASSWORD"));
    let nats = async_nats::ConnectOptions::with_user_and_password(login.0, login.1);
    let nc = nats.connect(env("NATS_URL")).await?;
    let mut changes = nc.subscribe(format!("changes.{job}")).await?;
    let fact = format!(r#"{{"spec": {}}}"#, std::io::read_to_string(std::io::stdin())?);
    let receipt = nc.request(format!("jobs.submitted.{job}"), fact.into()).await?;
    let mut told: serde_json::Value = serde_json::from_slice(&receipt.payload)?;
    println!("{told}");
    told["error"].is_null().then_some(()).ok_or(told.to_string())?;
    while !["completed", "cancelled", "error"].iter().any(|end| told["status"] == *end) {
        // A change says when to look; after a while without one, one may have been missed.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(5), changes.next()).await;
        let last = nc.request(format!("$JS.API.DIRECT.GET.STATUS.status.{job}"), "".into()).await?;
        told = serde_json::from_slice(&last.payload).unwrap_or_default();
        println!("{told}");
    }
    let (api, name) = (env("ERRAND_BASE_URL"), told["name"].as_str().unwrap_or_default());
    let job = format!("{api}/apis/jobs/v2/workspaces/{workspace}/jobs/{name}");
    let answer = reqwest::Client::new().get(format!("{job}/results/output_workdir/download"));
    let answer = answer.bearer_auth(env("ERRAND_TOKEN")).send().await?.error_for_status()?;
    Ok(std::fs::write("output_workdir.tar.gz", answer.bytes().await?)?)
}
