//! A3: what a job is compiled to, which image it gets, and what it asks of the machine.

use streams::snapshot::Resources;

use super::*;
use crate::catalog::{Profile, Settings};

/// An installation whose executor runs images and holds agents to limits.
async fn with_images(default_image: Option<&str>) -> Harness {
    let standard = Settings::default();
    let api = Harness::with(Settings {
        default_image: default_image.map(str::to_owned),
        profile: Profile { images: true, no_limits: [].into(), gpus: 2, ..standard.profile },
        ..standard
    });
    let api = api.await;
    register(&api, "default", agent("calc")).await;
    api
}

async fn image(api: &Harness, given: Value) -> Option<String> {
    snapshot(api, given).await.image
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compile_produces_single_cpu_step_with_canonical_config() {
    let api = furnished().await;
    let made = submit(&api, json!({})).await;
    let id = made.body["id"].as_str().expect("text");
    let job = api.get(&format!("{}/{id}", crate::http::tests::JOBS)).await;
    let steps = job.body["platform_spec"]["steps"].as_array().expect("a list");
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0]["name"], "execute-agent");
    // Without containers the reference translates the step like this, too.
    assert_eq!(steps[0]["executor"]["provider"], "subprocess");
    assert!(steps[0]["executor"]["command"].is_array());
    assert_eq!(steps[0]["config"], made.body["spec"]);
    assert_eq!(steps[0]["environment"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_image_wins_over_config_default() {
    let api = with_images(Some("platform/default:1")).await;
    let image = image(&api, json!({"image": "mine:2"})).await;
    assert_eq!(image.as_deref(), Some("mine:2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn config_default_used_when_request_image_omitted() {
    let api = with_images(Some("platform/default:1")).await;
    for given in [json!({}), json!({"image": ""}), json!({"image": null})] {
        assert_eq!(image(&api, given).await.as_deref(), Some("platform/default:1"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compile_omits_image_to_inherit_substrate_chain() {
    assert_eq!(image(&with_images(None).await, json!({})).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blank_config_default_is_treated_as_unset() {
    assert_eq!(image(&with_images(Some("  ")).await, json!({})).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blank_image_rejected() {
    let api = with_images(None).await;
    for image in [" ", "\t\n"] {
        refused(&api, json!({"image": image}), "Image must not be blank").await;
    }
    let text = "Image '!!' is not a valid image reference.";
    refused(&api, json!({"image": "!!"}), text).await;
    let text = "image 'mine:2': the execution profile 'default' runs no images";
    refused(&furnished().await, json!({"image": "mine:2"}), text).await;
}

#[test]
fn a_default_image_that_nobody_could_have_is_refused_at_start() {
    let image = |image: &str| Some(image.to_owned());
    let standard = Settings { default_image: image("mine:2"), ..Settings::default() };
    let text = "agents.jobs.default_image is 'mine:2', but the execution profile 'default' runs \
                no images; leave the key out";
    assert_eq!(standard.check(), Err(text.to_owned()));
    let images = Profile { images: true, ..standard.profile.clone() };
    let good = Settings { profile: images.clone(), ..standard.clone() };
    assert_eq!(good.check(), Ok(()));
    let bad = Settings { default_image: image("!!"), profile: images, ..standard };
    assert!(bad.check().is_err_and(|text| text.contains("not a valid image reference")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compile_injects_secret_env_and_compute_resources() {
    let api = with_images(None).await;
    secret(&api, "tavily").await;
    let resources = json!({
        "limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "2"},
        "requests": {"cpu": "500m", "memory": "1Gi"},
    });
    let environment = json!({"environment": {
        "environment_spec": {"secrets": {"TAVILY_API_KEY": "tavily"}},
        "compute_spec": {"resources": resources},
    }});
    let made = submit(&api, environment.clone()).await;
    let id = made.body["id"].as_str().expect("text");
    let job = api.get(&format!("{}/{id}", crate::http::tests::JOBS)).await;
    let step = &job.body["platform_spec"]["steps"][0];
    let from = json!({"name": "tavily"});
    let env = json!([{"name": "TAVILY_API_KEY", "value": null, "from_secret": from}]);
    assert_eq!(step["environment"], env);
    let env = json!([{"name": "TAVILY_API_KEY", "from_secret": from}]);
    let jobs = api.get(crate::http::tests::JOBS).await;
    assert_eq!(jobs.body["data"][0]["platform_spec"]["steps"][0]["environment"], env);
    let steps = api.get(&format!("{}/-/steps", crate::http::tests::JOBS)).await;
    assert_eq!(steps.body["data"][0]["step_spec"]["environment"], env);
    assert_eq!(made.body["spec"]["compute"]["resources"], resources);
    let asked = snapshot(&api, environment).await.resources;
    assert_eq!((asked.limits.cpu_millis, asked.limits.gpus), (Some(2000), Some(2)));
    assert_eq!(asked.limits.memory_bytes, Some(4 << 30));
    assert_eq!(
        (asked.requests.cpu_millis, asked.requests.memory_bytes),
        (Some(500), Some(1 << 30))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compile_without_compute_omits_executor_resources() {
    let snapshot = snapshot(&with_images(None).await, json!({})).await;
    assert_eq!((snapshot.resources, snapshot.spec.compute), (Resources::default(), None));
    assert!(snapshot.spec.secrets.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compile_rejects_unsupported_compute_resource_key() {
    let api = with_images(None).await;
    for (part, key) in [("limits", "ephemeral-storage"), ("requests", "amd.com/gpu")] {
        let compute = json!({"compute_spec": {"resources": {part: {key: "1"}}}});
        let text = format!("Unsupported compute resource key(s) in {part}: {key}.");
        refused(&api, json!({"environment": compute}), &text).await;
    }
    let compute = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}});
    let compute = json!({"environment": {"compute_spec": {"resources": compute}}});
    refused(&api, compute, "requests.cpu '1500m' is above limits.cpu '1'.").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compile_rejects_secret_env_colliding_with_reserved_name() {
    let secrets = json!({"environment_spec": {"secrets": {"NHX_BASE_URL": "default/tok"}}});
    let text = "reserved job env var name";
    refused(&furnished().await, json!({"environment": secrets}), text).await;
}
