//! The status of a job as server-sent events.

pub(crate) mod reader;

use serde_json::json;
use streams::broker::{Expect, Publication, Published};
use streams::id::JobId;
use streams::outcome::{Outcome, Status};
use streams::phase::Phase;
use streams::status::StatusMessage;
use streams::subject;
use streams::topology::StreamName;

use super::harness::{Harness, Setup};
use crate::auth::{Role, Token};
use crate::records::NewToken;
use crate::records::tests::job::{admit, second, story};
use crate::removal;
use reader::Reader;

/// Where its events are, in the two collections.
fn at(api: &Harness) -> [String; 2] {
    ["/apis/jobs/v2/workspaces/default/jobs", "/apis/agents/v2/workspaces/default/jobs/execute"]
        .map(|jobs| format!("{}{jobs}/counted/events", api.url))
}

/// Tells the world; the id of the event that this becomes.
async fn tell(api: &Harness, job: JobId, status: Status, phase: Phase) -> String {
    let message = StatusMessage {
        v: 1,
        job,
        workspace: "default".to_owned(),
        name: "counted".to_owned(),
        at: second(1),
        status,
        phase,
        attempt: None,
        code: None,
        message: "two\nlines\r".to_owned(),
        details: serde_json::Map::new(),
    };
    publish(api, job, serde_json::to_vec(&message).expect("it is JSON")).await
}

async fn publish(api: &Harness, job: JobId, payload: Vec<u8>) -> String {
    let publication = Publication {
        subject: subject::status("default", job),
        payload: payload.into(),
        message_id: None,
        expect: Expect::Any,
        traceparent: None,
    };
    match api.broker.publish(publication).await.expect("it is stored") {
        Published::Stored(sequence) => sequence.to_string(),
        Published::Exists => panic!("it was there already"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_comes_first_and_then_what_happens() {
    for api in Harness::start_both().await {
        let job = admit(&api.records, "counted").await.id;
        let created = tell(&api, job, Status::Created, Phase::Submitted).await;
        let pending = tell(&api, job, Status::Pending, Phase::Staged).await;
        publish(&api, job, b"no status".to_vec()).await;
        let mut readers = Vec::new();
        for url in at(&api) {
            let mut reader = Reader::open(&url, None, None).await.expect("it is a stream");
            for (id, status) in [(&created, "created"), (&pending, "pending")] {
                let event = reader.next().await.expect("it comes");
                let (told, kind) = (&event.data["status"], event.kind.as_str());
                assert_eq!((&event.id, told, kind), (id, &json!(status), "status"));
                assert_eq!(event.data["message"], "two\nlines\r");
                assert_eq!(event.data["job"], json!(job));
            }
            readers.push(reader);
        }
        let active = tell(&api, job, Status::Active, Phase::Staged).await;
        for reader in &mut readers {
            assert_eq!(reader.next().await.expect("it comes").id, active);
        }
        let completed = tell(&api, job, Status::Completed, Phase::Archived).await;
        for reader in &mut readers {
            let rest = reader.rest().await;
            assert_eq!(rest.iter().map(|event| &event.id).collect::<Vec<_>>(), [&completed]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_comes_back_goes_on_behind_what_it_has_seen() {
    for api in Harness::start_both().await {
        let job = admit(&api.records, "counted").await.id;
        let created = tell(&api, job, Status::Created, Phase::Submitted).await;
        let pending = tell(&api, job, Status::Pending, Phase::Staged).await;
        let completed = tell(&api, job, Status::Completed, Phase::Archived).await;
        let [url, _] = at(&api);
        for (last, expected) in [
            (None, vec![&created, &pending, &completed]),
            (Some(""), vec![&created, &pending, &completed]),
            (Some(&*created), vec![&pending, &completed]),
            (Some(&*pending), vec![&completed]),
            // Of a stream that was made anew, whose numbers begin anew.
            (Some("4711"), vec![&created, &pending, &completed]),
        ] {
            let rest = Reader::open(&url, None, last).await.expect("it is a stream").rest().await;
            assert_eq!(rest.iter().map(|event| &event.id).collect::<Vec<_>>(), expected);
        }
        // Browsers come back until they are told that there is no more.
        assert_eq!(Reader::open(&url, None, Some(&completed)).await.err(), Some(204));
        for wrong in ["-1", "x", "1.5", "99999999999999999999"] {
            assert_eq!(Reader::open(&url, None, Some(wrong)).await.err(), Some(400), "{wrong}");
        }
        let nobody = url.replace("counted", "nobody");
        assert_eq!(Reader::open(&nobody, None, None).await.err(), Some(404));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_says_the_end_when_the_messages_are_gone() {
    for api in Harness::start_both().await {
        let job = admit(&api.records, "counted").await.id;
        let pending = tell(&api, job, Status::Pending, Phase::Staged).await;
        let end = Outcome::Succeeded;
        api.records.project(&story(job, &end)).await.expect("it is taken in");
        let subject = subject::status("default", job);
        api.broker.purge(StreamName::Status, &subject).await.expect("they are removed");
        let [url, _] = at(&api);
        for last in [None, Some(&*pending)] {
            let rest = Reader::open(&url, None, last).await.expect("it is a stream").rest().await;
            let [event] = rest.as_slice() else { panic!("{rest:?}") };
            assert_eq!((event.id.as_str(), &event.data["status"]), ("end", &json!("completed")));
            assert_eq!(event.data["details"]["exit_code"], 0, "{event:?}");
            let message = serde_json::from_value::<StatusMessage>(event.data.clone());
            assert_eq!(message.expect("it is a status message").job, job);
        }
        assert_eq!(Reader::open(&url, None, Some("end")).await.err(), Some(204));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_the_server_and_with_the_job() {
    for api in Harness::start_both().await {
        let job = admit(&api.records, "counted").await;
        tell(&api, job.id, Status::Created, Phase::Submitted).await;
        let [url, _] = at(&api);
        let mut reader = Reader::open(&url, None, None).await.expect("it is a stream");
        reader.next().await.expect("what is known");
        removal::remove(&api.records, &api.store, &*api.broker, &job.workspace, job.id)
            .await
            .expect("it is removed");
        // A message of a job that is no more is a hint like any other.
        publish(&api, job.id, b"{}".to_vec()).await;
        assert_eq!(reader.next().await, None);

        admit(&api.records, "counted").await;
        let mut reader = Reader::open(&url, None, None).await.expect("it is a stream");
        api.stop.cancel();
        assert_eq!(reader.next().await, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_gets_what_the_stream_still_holds() {
    let api = Harness::start().await;
    let job = admit(&api.records, "counted").await.id;
    let [url, _] = at(&api);
    let mut reader = Reader::open(&url, None, None).await.expect("it is a stream");
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(tell(&api, job, Status::Active, Phase::Staged).await);
    }
    ids.push(tell(&api, job, Status::Completed, Phase::Archived).await);
    let rest = reader.rest().await;
    let seen: Vec<_> = rest.iter().map(|event| event.id.clone()).collect();
    assert!(seen.len() >= 16, "{seen:?}");
    assert!(seen.is_sorted_by_key(|id| id.parse::<u64>().expect("a number")), "{seen:?}");
    assert_eq!(seen.last(), ids.last());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_a_revoked_token_says_no_more() {
    for api in Harness::both(|| Setup { authenticated: true, ..Setup::default() }).await {
        let job = admit(&api.records, "counted").await.id;
        let token = Token::generate();
        let new = NewToken {
            name: "ci".to_owned(),
            public_part: token.public_part().to_owned(),
            digest: token.digest().hex(),
            roles: [("default".to_owned(), Role::Viewer)].into(),
            expires_at: None,
        };
        api.records.tokens().insert(new).await.expect("it is kept");
        let [url, _] = at(&api);
        assert_eq!(Reader::open(&url, None, None).await.err(), Some(401));
        tell(&api, job, Status::Created, Phase::Submitted).await;
        let reader = Reader::open(&url, Some(token.reveal()), None).await;
        let mut reader = reader.expect("it is a stream");
        reader.next().await.expect("what is known");
        api.records.tokens().revoke("ci").await.expect("it is revoked");
        tell(&api, job, Status::Pending, Phase::Staged).await;
        assert_eq!(reader.next().await, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_do_not_answer_end_no_stream() {
    let api = Harness::start().await;
    let job = admit(&api.records, "counted").await.id;
    tell(&api, job, Status::Created, Phase::Submitted).await;
    let [url, _] = at(&api);
    let mut reader = Reader::open(&url, None, None).await.expect("it is a stream");
    reader.next().await.expect("what is known");
    api.records.close().await;
    tell(&api, job, Status::Completed, Phase::Archived).await;
    assert_eq!(reader.next().await.expect("it comes").data["status"], "completed");
}
