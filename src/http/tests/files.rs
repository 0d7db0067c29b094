//! Files: forms, and the fileset that a job has of itself.

use serde_json::{Value, json};
use streams::id::Attempt;
use streams::outcome::Outcome;

use super::FILESETS;
use super::harness::Harness;
use crate::records::tests::job as story;

const FORM: &str = "multipart/form-data; boundary=x";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_may_carry_a_file() {
    let api = Harness::start().await;
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    let file = format!("{FILESETS}/src/-/a.txt");
    let large = "0123456789".repeat(300_000);
    for content in ["hello\r\nworld", "", &large] {
        let body = format!(
            "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b.txt\"\r\n\
             Content-Type: text/plain\r\n\r\n{content}\r\n\
             --x\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nlater\r\n--x--\r\n"
        );
        let made = api.raw("PUT", &file, FORM, &body).await;
        assert_eq!(
            (made.status, &made.body["size"]),
            (200, &json!(content.len())),
            "{}",
            made.body
        );
        let read = api.bytes(&file, None).await;
        assert!(read.bytes == content.as_bytes(), "{} bytes came back", read.bytes.len());
    }
    let other = "--x\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n--x--\r\n";
    let refused = api.raw("PUT", &file, FORM, other).await;
    assert_eq!(
        (refused.status, &refused.body["detail"][0]["loc"]),
        (422, &json!(["body", "file"]))
    );
    for (kind, body) in [(FORM, "--x\r\nbroken"), ("multipart/form-data", "--x--"), (FORM, "")] {
        let refused = api.raw("PUT", &file, kind, body).await;
        assert_eq!(refused.status, 400, "{kind} {body}: {}", refused.body);
    }
    let kept = api.bytes(&file, None).await;
    assert!(kept.bytes == large.as_bytes(), "what is refused changes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_lists_are_whole() {
    let api = Harness::start().await;
    for count in [0, 1, 1001] {
        let name = format!("many-{count}");
        api.post(FILESETS, json!({"name": name})).await.status_is(200);
        for index in 0..count {
            api.put(&format!("{FILESETS}/{name}/-/f{index:04}"), "644", vec![1])
                .await
                .status_is(200);
        }
        let listed = api.get(&format!("{FILESETS}/{name}/files")).await;
        assert_eq!(listed.headers["content-type"], "application/json");
        let files = listed.body["data"].as_array().expect("a list").iter();
        let paths: Vec<_> = files.map(|file| file["path"].as_str().expect("text")).collect();
        let wanted: Vec<_> = (0..count).map(|index| format!("f{index:04}")).collect();
        assert_eq!(paths, wanted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_of_wrong_bytes_breaks_off() {
    let api = Harness::start().await;
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    let at = format!("{FILESETS}/src/-/a");
    let put = api.put(&at, "644", b"right".to_vec()).await;
    let blob = put.body["sha256"].as_str().expect("it has a digest");
    let changed = api.store.put(&workers::store::key::blob(blob), "wrong".into()).await;
    changed.expect("it is stored");
    // Of a small file nothing was sent yet when it is found out, of a large one a part.
    let whole = match reqwest::get(format!("{}{at}", api.url)).await {
        Ok(answer) => answer.bytes().await,
        Err(broken) => Err(broken),
    };
    whole.expect_err("the end is not reached");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_results_of_a_job_are_a_fileset() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    let told = api.records.project(&story::story(job.id, &Outcome::Succeeded)).await;
    told.expect("the story is projected");
    api.store.put("jobs/report", "a report".into()).await.expect("it is stored");

    let at = format!("{FILESETS}/job-fileset-run-1");
    let keys = |body: &Value| -> Vec<String> {
        body.as_object().expect("an object").keys().cloned().collect()
    };
    let other = api.post(FILESETS, json!({"name": "src"})).await;
    let (mut ours, mut others) = (keys(&api.get(&at).await.body), keys(&other.body));
    ours.sort();
    others.sort();
    assert_eq!(ours, others, "it looks like any fileset");

    let attempt = job.id.attempt_id(Attempt::FIRST);
    let all = ["input_workdir", "output_workdir", "report", "summary"];
    let check = async |query: &str, expected: &[&str]| {
        let listed = api.get(&format!("{at}/files{query}")).await.body;
        let files = listed["data"].as_array().expect("a list").iter();
        let paths: Vec<_> = files.map(|file| file["path"].as_str().expect("text")).collect();
        let expected: Vec<_> =
            expected.iter().map(|name| format!("results/{attempt}/{name}")).collect();
        assert_eq!(paths, expected, "{query}");
    };
    check("", &all).await;
    check("?path=results/", &all).await;
    check(&format!("?path=results/{attempt}/report"), &["report"]).await;
    check(&format!("?path=results/{attempt}/report/"), &[]).await;
    check(&format!("?path=results/{attempt}/rep"), &[]).await;
    check("?path=other", &[]).await;

    let report = format!("{at}/-/results/{attempt}/report");
    let part = api.bytes(&report, Some("bytes=2-3")).await;
    assert_eq!((part.status, part.bytes.as_slice()), (206, &b"re"[..]));
    assert_eq!(part.headers["content-range"], "bytes 2-3/7");
    assert_eq!(api.send("HEAD", &report, None).await.headers["content-length"], "7");
    let missing = "File 'results/nope' not found in fileset 'default/job-fileset-run-1'";
    api.get(&format!("{at}/-/results/nope")).await.answers(404, json!({"detail": missing}));

    let detail = "Fileset 'default/job-fileset-run-1' holds the results of job 'run-1', which only \
                  the platform writes";
    let refusal = json!({"detail": detail});
    api.put(&report, "644", vec![1]).await.answers(403, refusal.clone());
    api.send("DELETE", &report, None).await.answers(403, refusal.clone());
    api.send("DELETE", &at, None).await.answers(403, refusal.clone());
    api.send("PATCH", &at, Some(json!({"description": "x"}))).await.answers(403, refusal);
    assert_eq!(api.post(FILESETS, json!({"name": "job-fileset-run-2"})).await.status, 403);
    let none = json!({"detail": "Fileset 'job-fileset-run-2' not found in workspace 'default'"});
    api.get(&format!("{FILESETS}/job-fileset-run-2")).await.answers(404, none);
}
