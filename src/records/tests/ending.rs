//! Cancelling, deleting, sweeping.

use streams::id::JobId;
use streams::outcome::{Outcome, Status};
use streams::phase::Phase;
use streams::snapshot::{Notify, QueueLimit};

use super::job::{admit, fact, new_job, running, saved, second, story};
use crate::records::filter::{Condition, STATUS};
use crate::records::*;

pub(super) async fn exercise(records: &Records) {
    cancelled(records).await;
    overdue(records).await;
    told(records).await;
    deleted(records).await;
    published(records).await;
    swept(records).await;
}

async fn project(records: &Records, changes: &[Change]) {
    records.project(changes).await.expect("they are taken in");
}

async fn overdue(records: &Records) {
    let jobs = records.jobs();
    let mut ids = Vec::new();
    for (name, strikes) in [("late-2", 20), ("late-1", 10), ("patient", 500), ("unresolved", 5)] {
        let mut new = new_job(name);
        if let Ok(snapshot) = &mut new.snapshot {
            snapshot.queue_limit = Some(QueueLimit { seconds: 1.0, at: second(strikes) });
        }
        ids.push(new.id);
        jobs.admit(new.clone()).await.expect("it is admitted");
        if name != "unresolved" {
            project(records, &[fact(new.id, Phase::Resolved, &Outcome::Succeeded)]).await;
        }
    }
    let due = async |after: Option<&Due>, limit| {
        jobs.due(Duty::Start, second(100), after, limit).await.expect("they are listed")
    };
    let listed = async |after: Option<&Due>, limit| {
        due(after, limit).await.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, 10).await, [ids[1], ids[0]]);
    let first = due(None, 1).await;
    assert_eq!(first, [Due { id: ids[1], workspace: "default".to_owned(), at: second(10) }]);
    assert_eq!(listed(first.first(), 10).await, [ids[0]]);
    // One was started, the other has ended.
    project(records, &[running(ids[1], 1, 2, 1)]).await;
    let end = Outcome::Cancelled { message: "cancelled by a user".to_owned() };
    project(records, &[fact(ids[0], Phase::Archived, &end)]).await;
    assert_eq!(listed(None, 10).await, []);
}

/// Ends that are to be told; a workspace that keeps all tellers busy hides no other.
async fn told(records: &Records) {
    let jobs = records.jobs();
    let other = "told-elsewhere";
    records.workspaces().insert(other, None).await.expect("it is made");
    let mut ids = Vec::new();
    for (name, workspace) in [("told-1", "default"), ("told-2", other)] {
        let mut new = NewJob { workspace: workspace.to_owned(), ..new_job(name) };
        if let Ok(snapshot) = &mut new.snapshot {
            snapshot.notify = Some(Notify { on: Vec::new(), webhook: Default::default() });
        }
        ids.push(new.id);
        jobs.admit(new.clone()).await.expect("it is admitted");
        let mut story = story(new.id, &Outcome::Succeeded);
        story.iter_mut().for_each(|change| change.workspace = workspace.to_owned());
        project(records, &story).await;
    }
    let due = async |busy: &[&str]| {
        let due = jobs.due_elsewhere(busy, Duty::Tell, jiff::Timestamp::MAX, None, 10).await;
        due.expect("they are listed").into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(due(&[]).await, ids);
    assert_eq!(due(&["default"]).await, ids[1..]);
    assert_eq!(due(&["default", other]).await, []);
}

async fn cancelled(records: &Records) {
    let jobs = records.jobs();
    let job = admit(records, "cancelled").await;
    for _ in 0..2 {
        let asked = jobs.request_cancel(job.id).await.expect("it is noted");
        assert_eq!((asked.status, asked.cancel_requested), (Status::Cancelling, true));
    }
    let younger = new_job("cancelled-too");
    let younger = NewJob { created_at: second(1), ..younger };
    // Its id is smaller than that of the older one: the age counts.
    let younger = NewJob { id: JobId::from_uuid(uuid::Uuid::nil()), ..younger };
    jobs.admit(younger.clone()).await.expect("it is admitted");
    jobs.request_cancel(younger.id).await.expect("it is noted");
    let listed = async |after: Option<&Due>, limit| {
        let found = jobs.due(Duty::Cancel, second(100), after, limit).await;
        found.expect("they are listed").iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, 10).await, [job.id, younger.id]);
    assert_eq!(listed(None, 1).await, [job.id]);
    let first = Due { id: job.id, workspace: job.workspace.clone(), at: job.created_at };
    assert_eq!(listed(Some(&first), 10).await, [younger.id]);
    let end = Outcome::Cancelled { message: "cancelled by a user".to_owned() };
    project(records, &[fact(younger.id, Phase::Archived, &end)]).await;
    assert_eq!(listed(Some(&first), 10).await, []);
    let condition = Condition::one_of(&STATUS, [Status::Cancelling.as_str()]);
    let page = Page { page: 1, page_size: 10 };
    let asked = Select { condition: Some(condition), ..Select::page(page, Sort::NEWEST_FIRST) };
    let found = jobs.list(None, &asked).await.expect("they are listed");
    assert_eq!(found.total, 1, "lists know the status too");

    let last = fact(job.id, Phase::Archived, &end);
    project(records, &[last]).await;
    let ended = jobs.request_cancel(job.id).await.expect("it is answered");
    assert_eq!(ended.status, Status::Cancelled);
    assert_eq!(listed(None, 10).await, []);

    let job = admit(records, "too-late").await;
    project(records, &story(job.id, &Outcome::Succeeded)).await;
    let late = jobs.request_cancel(job.id).await.expect("it is answered");
    assert_eq!((late.status, late.cancel_requested), (Status::Completed, false));
}

async fn deleted(records: &Records) {
    let jobs = records.jobs();
    let job = admit(records, "finished").await;
    project(records, &story(job.id, &Outcome::Succeeded)).await;
    assert_eq!(jobs.result(job.id, "summary").await.expect("it is found").saved, saved("summary"));
    jobs.tombstone(job.id).await.expect("it is hidden");
    assert!(jobs.results(job.id).await.expect("the database answers").is_empty());
    let late = fact(job.id, Phase::Archived, &Outcome::Succeeded);
    let projected = records.project(&[late]).await.expect("it is taken in");
    assert_eq!(projected.messages, [], "nothing more is said of it");
    jobs.forget(job.id).await.expect("it is gone");
    assert!(matches!(jobs.request_cancel(job.id).await, Err(Error::NotFound)));
    assert!(matches!(jobs.merge_details(job.id, Default::default()).await, Err(Error::NotFound)));
}

async fn published(records: &Records) {
    let jobs = records.jobs();
    let unseen = async |before| {
        let found = jobs.due(Duty::Publish, before, None, 1000).await.expect("they are listed");
        found.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    let new = NewJob { created_at: second(100), ..new_job("unpublished") };
    let id = new.id;
    jobs.admit(new).await.expect("it is admitted");
    assert!(!unseen(second(100)).await.contains(&id), "it is too young");
    assert!(unseen(second(101)).await.contains(&id));
    project(records, &[fact(id, Phase::Submitted, &Outcome::Succeeded)]).await;
    assert!(!unseen(second(101)).await.contains(&id));
}

async fn swept(records: &Records) {
    let jobs = records.jobs();
    let due = async |before| {
        let found = jobs.due(Duty::Purge, before, None, 1000).await.expect("they are listed");
        found.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    for old in due(second(1000)).await {
        assert!(jobs.set_purged(old).await.expect("it is noted"));
    }
    let mut ids = Vec::new();
    for n in 0..3 {
        let job = admit(records, &format!("swept-{n}")).await;
        let last = fact(job.id, Phase::Archived, &Outcome::Succeeded);
        project(records, &[Change { at: second(200 + n), ..last }]).await;
        ids.push(job.id);
    }
    assert_eq!(due(second(202)).await, ids[..2]);
    let beyond = async |keep| jobs.ended_beyond(keep).await.expect("the database answers");
    assert_eq!([beyond(0).await, beyond(2).await], [Some(second(202)), Some(second(200))]);
    assert_eq!(beyond(3).await, None);
    assert!(jobs.set_purged(ids[0]).await.expect("it is noted"));
    assert_eq!(due(second(202)).await, ids[1..2]);
    assert!(!jobs.set_purged(JobId::new()).await.expect("there is none"));
}
