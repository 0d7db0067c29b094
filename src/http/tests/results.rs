//! Results: what is said of them, parts of their bytes, and what an agent changed.

use serde_json::json;
use streams::fact::OutputChanges;
use streams::outcome::Outcome;

use super::JOBS;
use super::harness::Harness;
use crate::records::News;
use crate::records::tests::job as story;

/// A finished job whose agent made these changes.
async fn finished(api: &Harness, name: &str, changes: OutputChanges) {
    let job = story::admit(&api.records, name).await;
    let mut told = story::story(job.id, &Outcome::Succeeded);
    for change in &mut told {
        let News::Fact(proof) = &mut change.news else { continue };
        for result in proof.results.iter_mut().filter(|it| it.name == "output_workdir") {
            result.output_changes = Some(changes.clone());
            result.changed_while_saved = vec!["torn".to_owned()];
            result.secret_detected = vec!["leak".to_owned()];
            result.unsearched = true;
        }
    }
    api.records.project(&told).await.expect("the story is projected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_changed_is_shown_and_can_be_had_whole() {
    for api in Harness::start_both().await {
        let added = vec!["a".to_owned(), "\\xff".to_owned()];
        let few = OutputChanges { added, totals: [2, 0, 0], ..OutputChanges::default() };
        finished(&api, "few", few.clone()).await;
        let shown = json!({
            "added": ["a", "\\xff"],
            "modified": [],
            "deleted": [],
            "totals": {"added": 2, "modified": 0, "deleted": 0},
        });
        let result = api.get(&format!("{JOBS}/few/results/output_workdir")).await.body;
        assert_eq!(result["output_changes"], shown);
        assert_eq!(result["changed_while_saved"], json!(["torn"]));
        assert_eq!(result["secret_detected"], json!(["leak"]));
        assert_eq!(result["secret_search_complete"], json!(false));
        let listed = api.get(&format!("{JOBS}/few/results")).await.body;
        let found = listed["data"].as_array().expect("a list").iter();
        let changes: Vec<_> = found.map(|it| &it["output_changes"]).collect();
        assert_eq!(changes.iter().filter(|it| ***it == shown).count(), 1);
        let at = format!("{JOBS}/few/results/output_workdir/changes");
        api.get(&at).await.answers(200, shown);

        let all = json!({"added": ["a", "b", "c"], "modified": [], "deleted": [], "totals": {}});
        let stored = api.store.put("changes.json", all.to_string().into()).await.expect("stored");
        let many = OutputChanges { totals: [3, 0, 0], all: Some(stored), ..few };
        finished(&api, "many", many).await;
        let at = format!("{JOBS}/many/results/output_workdir/changes");
        let answer = api.get(&at).await;
        assert_eq!(answer.headers["content-type"], "application/json");
        answer.answers(200, all);

        let none = api.get(&format!("{JOBS}/many/results/report/changes")).await;
        let detail = "Result 'report' of job 'many' has no list of changes: only the \
                      output_workdir of jobs that could be compared has one";
        none.answers(404, json!({"detail": detail}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_can_be_gone_on_with() {
    let api = Harness::start().await;
    finished(&api, "job", OutputChanges::default()).await;
    api.store.put("jobs/report", "archive".into()).await.expect("it is stored");
    let path = format!("{JOBS}/job/results/report/download");
    let whole = api.bytes(&path, None).await;
    assert_eq!((whole.status, &whole.bytes[..]), (200, &b"archive"[..]));
    assert_eq!(whole.headers["content-length"], "7");
    assert_eq!(whole.headers["accept-ranges"], "bytes");
    let header = |name: &str| whole.headers[name].to_str().expect("text").to_owned();
    let (etag, saved_at) = (header("etag"), header("last-modified"));

    let part = async |range: &str, condition: Option<&str>| {
        let mut headers = vec![("range", range)];
        headers.extend(condition.map(|condition| ("if-range", condition)));
        let answer = api.ask("GET", &path, &headers).await;
        (answer.status, String::from_utf8(answer.bytes).expect("text"))
    };
    let text = |status: u16, text: &str| (status, text.to_owned());
    assert_eq!(part("bytes=2-4", None).await, text(206, "chi"));
    assert_eq!(part("bytes=-3", None).await, text(206, "ive"));
    assert_eq!(part("bytes=5-", Some(&etag)).await, text(206, "ve"));
    assert_eq!(part("bytes=5-", Some(&saved_at)).await, text(206, "ve"));
    assert_eq!(part("bytes=5-", Some("\"another\"")).await, text(200, "archive"));
    let refused = api.ask("GET", &path, &[("range", "bytes=7-")]).await;
    assert_eq!(
        (refused.status, &refused.headers["content-range"]),
        (416, &"bytes */7".parse().expect("a header"))
    );
}
