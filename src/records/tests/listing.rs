//! Lists: pages that neither repeat nor skip, by number and by cursor, and totals.

use std::collections::BTreeSet;

use streams::outcome::Status;

use super::job::{listed, new_job, second};
use crate::records::filter::{Condition, Field, JOBS, SOURCE, STATUS, Scalar, Test};
use crate::records::*;

const JOBS_MADE: usize = 25;

pub(super) async fn exercise(records: &Records) {
    for n in 0..JOBS_MADE {
        let (source, agent) = if n % 5 == 0 { ("other", "a/one") } else { ("mine", "a/two") };
        // All were made at the same time: the id must keep the pages apart.
        let new = NewJob {
            workspace: "listed".to_owned(),
            source: source.to_owned(),
            agent_ref: (n != 7).then(|| agent.to_owned()),
            created_at: second(500),
            ..new_job(&format!("job-{n:02}"))
        };
        records.jobs().admit(new).await.expect("it is admitted");
    }
    pages(records).await;
    cursors(records).await;
    totals(records).await;
    case_j1_cursors_miss_and_repeat_nothing(records).await;
}

async fn list(records: &Records, workspace: Option<&str>, asked: &Select) -> Listed<Job> {
    listed(records, workspace, asked).await
}

fn names(listed: &Listed<Job>) -> Vec<String> {
    listed.items.iter().map(|job| job.name.clone()).collect()
}

fn sorts() -> impl Iterator<Item = Sort> {
    [SortKey::CreatedAt, SortKey::UpdatedAt, SortKey::Name, SortKey::Source].into_iter().flat_map(
        |key| {
            [Direction::Ascending, Direction::Descending].map(|direction| Sort { key, direction })
        },
    )
}

async fn pages(records: &Records) {
    let all: Vec<String> = (0..JOBS_MADE).map(|n| format!("job-{n:02}")).collect();
    for sort in sorts() {
        let mut seen = Vec::new();
        for page in 1..=4 {
            let asked = Select::page(Page { page, page_size: 10 }, sort);
            let found = list(records, Some("listed"), &asked).await;
            assert_eq!((found.total, found.next.is_some()), (25, page < 3), "{sort:?} {page}");
            seen.extend(names(&found));
        }
        if sort.key == SortKey::Name {
            let mut expected = all.clone();
            if sort.direction == Direction::Descending {
                expected.reverse();
            }
            assert_eq!(seen, expected);
        }
        seen.sort();
        assert_eq!(seen, all, "{sort:?}");
    }
}

/// Cursors lead through the same records in the same order as numbers do.
async fn cursors(records: &Records) {
    for sort in sorts() {
        let whole = Select::page(Page { page: 1, page_size: 100 }, sort);
        let expected = names(&list(records, Some("listed"), &whole).await);
        let mut asked = Select::page(Page { page: 1, page_size: 7 }, sort);
        let mut seen = Vec::new();
        loop {
            let found = list(records, Some("listed"), &asked).await;
            assert_eq!(found.total, 25);
            seen.extend(names(&found));
            let Some(next) = found.next else { break };
            asked.after = Cursor::decode(&next.encode());
            assert_eq!(asked.after, Some(next));
        }
        assert_eq!(seen, expected, "{sort:?}");
    }
}

async fn totals(records: &Records) {
    let total = async |workspace: Option<&str>, condition: Option<Condition>| {
        let page = Page { page: 1, page_size: 100 };
        let asked = Select { condition, ..Select::page(page, Sort::NEWEST_FIRST) };
        let found = list(records, workspace, &asked).await;
        assert_eq!(found.items.len() as u64, found.total);
        found.total
    };
    let here = Some("listed");
    let agents = |refs: &[&str]| {
        let refs = refs.iter().map(|it| Scalar::Text((*it).to_owned())).collect();
        let field = Field::find(&JOBS, "spec.agent_ref").expect("it is a field");
        Condition::Test(field, Test::OneOf(refs))
    };
    let other = Condition::one_of(&SOURCE, ["other"]);
    let created = Condition::one_of(&STATUS, [Status::Created.as_str(), Status::Error.as_str()]);
    assert_eq!(total(here, Some(other.clone())).await, 5);
    assert_eq!(total(here, Some(created.clone())).await, 25);
    assert_eq!(total(here, Some(Condition::one_of(&STATUS, ["error"]))).await, 0);
    assert_eq!(total(here, Some(agents(&["a/one", "a/none"]))).await, 5);
    assert_eq!(total(here, Some(agents(&["a/one", "a/two"]))).await, 24);
    assert_eq!(total(here, Some(agents(&[]))).await, 0);
    assert_eq!(total(here, Some(created.and(Some(agents(&["a/two"]))))).await, 19);
    assert_eq!(total(here, Some(other.and(Some(agents(&["a/two"]))))).await, 0);
    assert_eq!(total(None, Some(agents(&["a/one", "a/two"]))).await, 24);
    assert!(total(None, None).await > 25, "no workspace stands for all");
}

/// FC-J1: 50 jobs of the same time and 15 within the same second, paged while 20 more are made.
async fn case_j1_cursors_miss_and_repeat_nothing(records: &Records) {
    let workspace = "crowded";
    let make = async |name: String, micros: i32| {
        let created_at = second(600) + jiff::SignedDuration::from_micros(micros.into());
        let new = NewJob { workspace: workspace.to_owned(), created_at, ..new_job(&name) };
        records.jobs().admit(new).await.expect("it is admitted");
    };
    for n in 0..50 {
        make(format!("same-{n}"), 0).await;
    }
    for n in 0..15 {
        make(format!("late-{n}"), 123_456 + n / 5).await;
    }
    let originals: BTreeSet<String> =
        (0..50).map(|n| format!("same-{n}")).chain((0..15).map(|n| format!("late-{n}"))).collect();
    for direction in [Direction::Ascending, Direction::Descending] {
        let sort = Sort { key: SortKey::CreatedAt, direction };
        let mut asked = Select::page(Page { page: 1, page_size: 10 }, sort);
        let mut seen = Vec::new();
        let mut more = 0;
        loop {
            let found = list(records, Some(workspace), &asked).await;
            seen.extend(names(&found));
            for _ in 0..4 {
                // At the times that there are, and at newer ones.
                make(format!("{direction:?}-{more}").to_lowercase(), more % 2 * 200_000).await;
                more += 1;
            }
            let Some(next) = found.next.filter(|_| more < 200) else { break };
            asked.after = Some(next);
        }
        assert!(more >= 20, "jobs were made while it was paged");
        let repeated = seen.len() - seen.iter().collect::<BTreeSet<_>>().len();
        assert_eq!(repeated, 0, "{direction:?}");
        let missed = originals.iter().filter(|name| !seen.contains(name)).count();
        assert_eq!(missed, 0, "{direction:?}");
    }
}
