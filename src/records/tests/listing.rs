//! Lists: pages that neither repeat nor skip, totals, filters.

use streams::outcome::Status;

use super::job::{new_job, second};
use crate::records::*;

const JOBS: usize = 25;

pub(super) async fn exercise(records: &Records) {
    let jobs = records.jobs();
    for n in 0..JOBS {
        let (source, agent) = if n % 5 == 0 { ("other", "a/one") } else { ("mine", "a/two") };
        // All were made at the same time: the id must keep the pages apart.
        let new = NewJob {
            workspace: "listed".to_owned(),
            source: source.to_owned(),
            agent_ref: (n != 7).then(|| agent.to_owned()),
            created_at: second(500),
            ..new_job(&format!("job-{n:02}"))
        };
        jobs.admit(new).await.expect("it is admitted");
    }
    pages(records).await;
    filters(records).await;
}

fn listed() -> JobFilter {
    JobFilter { workspace: Some("listed".to_owned()), ..JobFilter::default() }
}

async fn names(
    records: &Records,
    filter: &JobFilter,
    page: Page,
    sort: Sort,
) -> (Vec<String>, u64) {
    let found = records.jobs().list(filter, page, sort).await.expect("they are listed");
    (found.items.into_iter().map(|job| job.name).collect(), found.total)
}

async fn pages(records: &Records) {
    let all: Vec<String> = (0..JOBS).map(|n| format!("job-{n:02}")).collect();
    for key in [SortKey::CreatedAt, SortKey::UpdatedAt, SortKey::Name, SortKey::Source] {
        for direction in [Direction::Ascending, Direction::Descending] {
            let sort = Sort { key, direction };
            let mut seen = Vec::new();
            for page in 1..=4 {
                let page = Page { page, page_size: 10 };
                let (names, total) = names(records, &listed(), page, sort).await;
                assert_eq!(total, 25);
                seen.extend(names);
            }
            if key == SortKey::Name {
                let mut expected = all.clone();
                if direction == Direction::Descending {
                    expected.reverse();
                }
                assert_eq!(seen, expected);
            }
            seen.sort();
            assert_eq!(seen, all, "{sort:?}");
        }
    }
}

async fn filters(records: &Records) {
    let page = Page { page: 1, page_size: 100 };
    let total = async |filter: JobFilter| names(records, &filter, page, Sort::NEWEST_FIRST).await.1;
    let refs = |refs: &[&str]| Some(refs.iter().map(|it| (*it).to_owned()).collect());
    assert_eq!(total(JobFilter { source: Some("other".to_owned()), ..listed() }).await, 5);
    assert_eq!(
        total(JobFilter { statuses: vec![Status::Created, Status::Error], ..listed() }).await,
        25
    );
    assert_eq!(total(JobFilter { statuses: vec![Status::Error], ..listed() }).await, 0);
    assert_eq!(total(JobFilter { agent_refs: refs(&["a/one", "a/none"]), ..listed() }).await, 5);
    assert_eq!(total(JobFilter { agent_refs: refs(&["a/one", "a/two"]), ..listed() }).await, 24);
    assert_eq!(total(JobFilter { agent_refs: refs(&[]), ..listed() }).await, 0);
    let both = JobFilter {
        source: Some("mine".to_owned()),
        agent_refs: refs(&["a/two"]),
        statuses: vec![Status::Created],
        ..listed()
    };
    assert_eq!(total(both).await, 19);
    assert!(total(JobFilter::default()).await > 25, "no workspace stands for all");
}
