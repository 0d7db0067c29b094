//! Admission: idempotent by id, unique by name, closed to what was deleted.

use futures_util::future::join_all;
use streams::id::JobId;
use streams::outcome::Status;
use streams::phase::Phase;

use super::job::{admit, new_job, snapshot};
use crate::records::*;

pub(super) async fn exercise(records: &Records) {
    once(records).await;
    one_of_many(records).await;
    not_again(records).await;
}

async fn once(records: &Records) {
    let jobs = records.jobs();
    let new = new_job("first");
    let Ok(Admitted::Fresh(job)) = jobs.admit(new.clone()).await else { panic!("it is fresh") };
    assert_eq!(job.snapshot, Some(snapshot("first")));
    assert_eq!(job.spec, job.snapshot.as_ref().map(|it| it.spec.clone()));
    assert_eq!((job.status, job.phase), (Status::Created, Phase::Submitted));
    assert_eq!(job.created_at, new.created_at);
    assert!(job.status_details.is_empty() && job.error_details.is_none());

    let changed =
        NewJob { name: "other".to_owned(), snapshot: Ok(snapshot("other")), ..new.clone() };
    let known = jobs.admit(changed).await.expect("the database answers");
    assert_eq!(known, Admitted::Known(job.clone()), "the first word stands");

    let same_name = NewJob { id: JobId::new(), ..new.clone() };
    let taken = jobs.admit(same_name.clone()).await.expect("the database answers");
    assert_eq!(taken, Admitted::NameTaken);
    let elsewhere = NewJob { workspace: "system".to_owned(), ..same_name };
    let fresh = jobs.admit(elsewhere).await.expect("the database answers");
    assert!(matches!(fresh, Admitted::Fresh(_)), "names belong to workspaces: {fresh:?}");
    let foreign = NewJob { workspace: "system".to_owned(), name: "mine".to_owned(), ..new };
    let refused = jobs.admit(foreign).await.expect("the database answers");
    assert_eq!(refused, Admitted::NameTaken, "an id gives nothing of another workspace away");

    assert_eq!(jobs.get("default", "first").await.expect("by name"), job);
    assert_eq!(jobs.get("default", &job.id.http()).await.expect("by its HTTP id"), job);
    assert!(matches!(jobs.get("system", &job.id.http()).await, Err(Error::NotFound)));
    assert_eq!(jobs.by_id(job.id).await.expect("the database answers"), Some(job));
    assert_eq!(jobs.by_id(JobId::new()).await.expect("the database answers"), None);
}

async fn one_of_many(records: &Records) {
    let jobs = records.jobs();
    let new = new_job("raced");
    let same_id = (0..20).map(|_| jobs.admit(new.clone()));
    let answers = join_all(same_id).await;
    let fresh = answers.iter().filter(|it| matches!(it, Ok(Admitted::Fresh(_)))).count();
    let known = answers.iter().filter(|it| matches!(it, Ok(Admitted::Known(_)))).count();
    assert_eq!((fresh, known), (1, 19), "{answers:?}");

    let same_name = (0..20).map(|_| jobs.admit(new_job("named")));
    let answers = join_all(same_name).await;
    let fresh = answers.iter().filter(|it| matches!(it, Ok(Admitted::Fresh(_)))).count();
    let taken = answers.iter().filter(|it| matches!(it, Ok(Admitted::NameTaken))).count();
    assert_eq!((fresh, taken), (1, 19), "{answers:?}");
}

async fn not_again(records: &Records) {
    let jobs = records.jobs();
    let job = admit(records, "deleted").await;
    let again = NewJob { id: job.id, ..new_job("deleted") };
    for _ in 0..2 {
        jobs.tombstone(job.id).await.expect("it may be repeated");
    }
    assert_eq!(jobs.by_id(job.id).await.expect("the database answers"), None);
    assert!(matches!(jobs.get("default", "deleted").await, Err(Error::NotFound)));
    assert_eq!(jobs.admit(again.clone()).await.expect("it is answered"), Admitted::Deleted);
    let waiting = async || {
        let found = jobs.due(Duty::Delete, jiff::Timestamp::MAX, None, 10).await;
        found.expect("they are listed").into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(waiting().await, [job.id]);

    admit(records, "deleted").await;
    for _ in 0..2 {
        jobs.forget(job.id).await.expect("it may be repeated");
    }
    assert_eq!(waiting().await, []);
    assert_eq!(jobs.admit(again).await.expect("it is answered"), Admitted::Deleted);
    let nobody = jobs.tombstone(JobId::new()).await;
    assert!(matches!(nobody, Err(Error::NotFound)), "{nobody:?}");
}
