//! Filters: whatever is asked, both databases answer what a plain reading of the shown records
//! says.

mod any;
mod evaluate;

use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Map, Value, json};

use super::job::{listed, new_job, second, snapshot};
use crate::records::filter::{Condition, Field, JOBS, Scalar, Test};
use crate::records::*;

const WORKSPACE: &str = "filtered";

pub(super) async fn exercise(records: &Records) {
    for (n, request) in (0..).zip(requests()) {
        make(records, n, request).await;
    }
    let shown = shown(records).await;
    assert_eq!(shown.len(), requests().len());
    any_filter_agrees(records, &shown);
    long_lists(records).await;
    widest(records).await;
}

/// Requests with a bit of everything that JSON can be.
fn requests() -> Vec<Value> {
    let numbers = [json!(60), json!(60.0), json!(1.5), json!(-3), json!(0.1), json!("60")];
    let texts = ["", "a%b_c", "Straße", "ÄÖ", "äö", "true", "back\\u0000slash", "quo\"te", "A"];
    let lists = [
        json!([]),
        json!(["a", "b", 60]),
        json!([{"k": "a", "n": 1}, {"k": "b", "n": 60.0}, 7]),
        json!([null, [1], {"k": null}]),
        json!({"k": "a"}),
    ];
    let mut requests = vec![json!({}), Value::Null, json!({"n": null, "t": null, "l": null})];
    requests.extend(numbers.map(|n| json!({"n": n, "a b": n, "0": n, "o": {"k": n, "n": 60}})));
    requests
        .extend(texts.map(|t| json!({"t": t, "x'y); --": t, "ключ": t, "o": {"n": 60, "k": t}})));
    requests.extend(lists.map(|l| json!({"l": l, "t": true, "n": [60]})));
    // No database may stumble over what the other one cannot keep.
    requests.push(json!({"nul": "a\0b\\", "\0": "\0\0", "t": "\\\\", "n": 60}));
    requests
}

async fn make(records: &Records, n: i64, request: Value) {
    let name = format!("job-{n}");
    let mut kept = snapshot(&name);
    kept.spec.request = request.clone();
    kept.spec.agent_ref = (n % 3 != 0).then(|| format!("default/agent-{}", n % 2));
    kept.spec.context = (n % 4 == 0).then(|| Map::from_iter([("due".to_owned(), json!(n))]));
    // A job that was refused shows its request and nothing else.
    let refused = n % 5 == 4;
    let agent_ref = kept.spec.agent_ref.clone().filter(|_| !refused);
    let new = NewJob {
        workspace: WORKSPACE.to_owned(),
        project: (n % 2 == 0).then(|| "Project-Ä".to_owned()),
        snapshot: if refused { Err("no such agent".to_owned()) } else { Ok(kept) },
        request,
        agent_ref,
        created_at: second(n / 3),
        ..new_job(&name)
    };
    records.jobs().admit(new).await.expect("it is admitted");
}

async fn list(records: &Records, condition: Option<Condition>) -> Vec<Job> {
    let page = Page { page: 1, page_size: 1000 };
    let asked = Select { condition, ..Select::page(page, Sort::NEWEST_FIRST) };
    let found = listed(records, Some(WORKSPACE), &asked).await;
    assert_eq!(found.total, found.items.len() as u64, "{asked:?}");
    found.items
}

/// The records as callers see them, except that times are microseconds and ids UUIDs.
async fn shown(records: &Records) -> Vec<Value> {
    let show = |job: Job| {
        let spec = match &job.spec {
            Some(spec) => serde_json::to_value(spec).expect("it is JSON"),
            None => json!({"request": job.request}),
        };
        json!({
            "created_at": job.created_at.as_microsecond(),
            "entity_type": "platform_job",
            "id": job.id.to_string(),
            "name": job.name,
            "project": job.project,
            "source": job.source,
            "spec": spec,
            "status": job.status,
            "updated_at": job.updated_at.as_microsecond(),
            "workspace": job.workspace,
        })
    };
    list(records, None).await.into_iter().map(show).collect()
}

fn any_filter_agrees(records: &Records, shown: &[Value]) {
    let runtime = tokio::runtime::Handle::current();
    let mut runner = TestRunner::new(Config {
        cases: 400,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    });
    let agrees = |condition: Condition| {
        let expected: Vec<_> = shown
            .iter()
            .filter(|record| evaluate::holds(&condition, record))
            .map(|record| record["name"].as_str().unwrap_or_default())
            .collect();
        let found = tokio::task::block_in_place(|| {
            runtime.block_on(list(records, Some(condition.clone())))
        });
        let found: Vec<_> = found.iter().map(|job| job.name.as_str()).collect();
        match found == expected {
            true => Ok(()),
            false => {
                let text = format!("{condition:?}: found {found:?}, expected {expected:?}");
                Err(TestCaseError::fail(text))
            }
        }
    };
    let run = runner.run(&any::condition(), agrees);
    run.unwrap_or_else(|error| panic!("{error}"));
}

/// FC-J2: a list of 10,000 values is answered, whatever they are compared with.
async fn long_lists(records: &Records) {
    let everything = list(records, None).await.len();
    let texts = |more: &[&str]| -> Vec<Scalar> {
        let texts = (0..10_000).map(|n| format!("default/other-{n}"));
        let more = more.iter().map(|text| (*text).to_owned());
        texts.chain(more).map(Scalar::Text).collect()
    };
    let count = async |name: &str, test: Test| {
        let field = Field::find(&JOBS, name).expect("it is a field");
        list(records, Some(Condition::Test(field, test))).await.len()
    };
    let agents = ["default/agent-0", "default/agent-1"];
    let with_agent = count("spec.agent_ref", Test::OneOf(texts(&agents))).await;
    let of_two = agents.map(|agent| Scalar::Text(agent.to_owned())).to_vec();
    assert_eq!(with_agent, count("spec.agent_ref", Test::OneOf(of_two)).await);
    assert!(with_agent > 0);
    assert_eq!(count("spec.agent_ref", Test::OneOf(texts(&[]))).await, 0);
    assert_eq!(count("spec.agent_ref", Test::NoneOf(texts(&[]))).await, with_agent);
    assert_eq!(count("spec.agent.name", Test::OneOf(texts(&["counter"]))).await, everything - 4);
    let numbers = || (0..10_000).map(|n| Scalar::Number(n.into()));
    assert_eq!(count("spec.request.n", Test::OneOf(numbers().collect())).await, 3);
    let times = (0..2_000).map(|n| Scalar::Number(second(n).as_microsecond().into())).collect();
    assert_eq!(count("created_at", Test::OneOf(times)).await, everything);
}

/// The largest filter that the API lets through is one that both databases take.
async fn widest(records: &Records) {
    let everything = list(records, None).await.len();
    let path = format!("spec.request{}", ".a".repeat(30));
    let field = Field::find(&JOBS, &path).expect("it is a field");
    let values: Vec<_> = (0..60).map(|n| Scalar::Text(format!("x{n}"))).collect();
    let some = Condition::Test(field.clone(), Test::OneOf(values));
    let none = Condition::Not(Box::new(Condition::Any(vec![some; 99])));
    let deep = (0..15).fold(none, |inner, _| Condition::All(vec![inner]));
    let filter = Condition::All(vec![deep, Condition::Test(field, Test::Missing)]);
    assert_eq!(list(records, Some(filter)).await.len(), everything);
}
