use jiff::Timestamp;
use streams::envelope::Envelope;
use streams::fact::{Fact, Invoked, Produced, Staged};
use streams::memory::Memory;
use streams::outcome::Outcome;

use super::*;

const WORKSPACE: &str = "team.a";

struct Scene {
    broker: Arc<dyn Broker>,
    seats: Seats,
}

fn scene(limit: u64) -> Scene {
    let broker: Arc<dyn Broker> = Arc::new(Memory::new(streams::topology::Limits::default()));
    let limits = Limits { each: 0, own: [(WORKSPACE.to_owned(), limit)].into() };
    Scene { seats: Seats::new(Arc::clone(&broker), limits), broker }
}

impl Scene {
    /// The same seats as another worker sees them.
    fn elsewhere(&self) -> Seats {
        Seats::new(Arc::clone(&self.broker), self.seats.limits.clone())
    }

    async fn staged(&self) -> JobId {
        let job = JobId::new();
        self.stands(job, Staged::passed_on(Outcome::Succeeded)).await;
        job
    }

    async fn stands<F: Fact>(&self, job: JobId, fact: F) {
        let (workspace, at) = (WORKSPACE.to_owned(), Timestamp::now());
        let envelope = Envelope { job, workspace, at, traceparent: None, fact };
        let publication = envelope.publication().expect("it has a form");
        self.broker.publish(publication).await.expect("it is stored");
    }

    async fn begun(&self, job: JobId) {
        self.claimed(job, true).await;
    }

    async fn claimed(&self, job: JobId, started: bool) {
        let claim = Claim { started, ..Claim::new("here", "me") };
        let value = serde_json::to_vec(&claim).expect("it has a form");
        let key = claim::agent_key(job);
        self.broker.create(Bucket::Claims, &key, value.into()).await.expect("it is written");
    }

    async fn take(&self, job: JobId) -> bool {
        self.seats.take(WORKSPACE, job).await.expect("the broker answers")
    }
}

#[tokio::test]
async fn there_are_as_many_seats_as_the_limit_says() {
    let scene = scene(2);
    let [one, two, three] = [scene.staged().await, scene.staged().await, scene.staged().await];
    assert!(scene.take(one).await && scene.take(two).await);
    assert!(scene.take(one).await, "who has one keeps it");
    assert!(!scene.take(three).await);
    assert!(!scene.elsewhere().is_free(WORKSPACE).await.expect("it answers"), "for nobody");
    scene.seats.give_back(WORKSPACE, two).await.expect("it is written");
    assert!(scene.take(three).await);
}

#[tokio::test]
async fn the_limit_holds_whoever_asks_at_once() {
    let scene = scene(3);
    let workers: Vec<_> = (0..12).map(|_| scene.elsewhere()).collect();
    let asked = workers.iter().map(|seats| seats.take(WORKSPACE, JobId::new()));
    let answers = futures_util::future::join_all(asked).await;
    let given = answers.into_iter().filter(|answer| *answer.as_ref().expect("it answers"));
    assert_eq!(given.count(), 3);
}

#[tokio::test]
async fn workspaces_without_a_limit_have_no_seats() {
    let scene = scene(1);
    for _ in 0..3 {
        assert!(scene.seats.take("other", JobId::new()).await.expect("it answers"));
    }
    assert!(scene.seats.is_free("other").await.expect("it answers"));
    let kept = scene.broker.get(Bucket::Seats, &seats::key("other")).await;
    assert_eq!(kept.expect("it answers"), None);
}

#[tokio::test]
async fn an_agent_that_runs_keeps_its_seat_and_gets_one_beyond_a_new_limit() {
    let scene = scene(1);
    let [first, runs, waits] = [JobId::new(), JobId::new(), JobId::new()];
    assert!(scene.take(first).await);
    scene.begun(first).await;
    scene.seats.give_back(WORKSPACE, first).await.expect("it answers");
    assert!(!scene.take(waits).await, "the seat was kept");
    scene.begun(runs).await;
    assert!(scene.take(runs).await, "it runs, whatever the limit says");
    scene.seats.leave(WORKSPACE, first).await.expect("it is written");
    assert!(!scene.take(waits).await, "that one counts");
}

#[tokio::test(start_paused = true)]
async fn the_seats_of_dead_workers_are_taken_once_their_jobs_are_past_their_run() {
    let scene = scene(2);
    let [dead, removed, next] = [scene.staged().await, JobId::new(), scene.staged().await];
    assert!(scene.take(dead).await);
    let seats = scene.elsewhere();
    assert!(scene.take(removed).await);
    assert!(seats.is_free(WORKSPACE).await.expect("it answers"), "of one nothing is there");
    assert!(scene.take(next).await);
    assert!(!seats.is_free(WORKSPACE).await.expect("it answers"), "the other may run");
    scene.stands(dead, Invoked::passed_on(Outcome::Succeeded)).await;
    assert!(!seats.is_free(WORKSPACE).await.expect("it answers"), "not looked for at each look");
    tokio::time::advance(CLEAR).await;
    assert!(seats.is_free(WORKSPACE).await.expect("it answers"));
}

#[tokio::test]
async fn whoever_lost_a_job_gives_its_seat_to_nobody() {
    let scene = scene(1);
    let [taken_over, next] = [JobId::new(), JobId::new()];
    assert!(scene.take(taken_over).await);
    scene.claimed(taken_over, false).await;
    scene.seats.give_back(WORKSPACE, taken_over).await.expect("it answers");
    assert!(!scene.take(next).await, "the one who took it over is about to start");
}
