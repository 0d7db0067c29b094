//! Two race for what only one may have, 1,000 times, while leaders step down and are killed: one
//! gets it, always, and the other one is told so.

use std::time::Duration;

use bytes::Bytes;
use streams::broker::{Broker, Error, Expect, Publication, Published};
use streams::id::JobId;
use streams::jetstream::JetStream;
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Bucket, StreamName};
use tokio::time::{Instant, sleep};

use super::LATER;
use crate::harness::{Cluster, answered};

const ROUNDS: usize = 1_000;

/// How long one server leads, and after how many that stepped down one is killed.
const REIGN: Duration = Duration::from_millis(400);
const STEP_DOWN: usize = 12;

/// What they race for.
#[derive(Clone, Copy)]
enum Prize {
    /// The subject of a fact.
    Fact,
    /// The key that decides a job's end.
    End,
}

/// What a racer was told.
struct Told {
    won: bool,
    /// How often it was told nothing and had to ask again.
    unsure: usize,
}

/// A racer: its name, which it writes, and its own connection.
type Racer = (&'static str, JetStream);

impl Prize {
    const fn stream(self) -> &'static str {
        match self {
            Self::Fact => "JOBS",
            Self::End => "KV_ends",
        }
    }

    /// Whether this racer has it. Facts have a message id, the same for both; the subject alone is
    /// to be fence enough, so in every other round they go without.
    async fn grasp(self, (name, broker): &Racer, job: JobId, round: usize) -> Result<bool, Error> {
        match self {
            Self::Fact => {
                let id = round.is_multiple_of(2).then(|| job.message_id(Phase::Resolved));
                let publication = Publication {
                    subject: subject::fact(Phase::Resolved, "race", job),
                    payload: (*name).into(),
                    message_id: id,
                    expect: Expect::Empty,
                    traceparent: None,
                };
                Ok(matches!(broker.publish(publication).await?, Published::Stored(_)))
            }
            Self::End => {
                let created = broker.create(Bucket::Ends, &job.to_string(), (*name).into()).await?;
                Ok(created.is_some())
            }
        }
    }

    /// What stands there.
    async fn stands(self, broker: &JetStream, job: JobId) -> Option<Bytes> {
        match self {
            Self::Fact => {
                let subject = subject::fact(Phase::Resolved, "race", job);
                let last = answered(|| broker.last(StreamName::Jobs, &subject)).await;
                last.map(|last| last.payload)
            }
            Self::End => {
                let key = job.to_string();
                let entry = answered(|| broker.get(Bucket::Ends, &key)).await;
                entry.map(|entry| entry.value)
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_publishers_of_a_fact_one_stores_it() {
    let cluster = contest(Prize::Fact).await;
    let broker = cluster.broker(&cluster.url()).await;
    let (mut from, mut stand) = (0, 0);
    let all = "jobs.resolved.race.>";
    let next = async |from: u64| answered(|| broker.next(StreamName::Jobs, all, from)).await;
    while let Some(fact) = next(from).await {
        (from, stand) = (fact.sequence + 1, stand + 1);
    }
    assert_eq!(stand, ROUNDS, "one message on each subject");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_who_decide_a_jobs_end_one_does() {
    contest(Prize::End).await;
}

/// Lets them race, and checks what they were told against what stands.
async fn contest(prize: Prize) -> Cluster {
    let mut cluster = Cluster::start().await;
    let [a, b, c] = [0, 1, 2].map(|n| cluster.url_of(n));
    let racers = [
        ("first", cluster.broker(&format!("{a},{b},{c}")).await),
        ("second", cluster.broker(&format!("{c},{b},{a}")).await),
    ];
    let (mut stepped, mut killed) = (0, 0);
    let raced = tokio::select! {
        raced = race(prize, &racers) => raced,
        () = change_leaders(&mut cluster, prize, &mut stepped, &mut killed) => unreachable!(),
    };
    // The last change may have been broken off halfway.
    cluster.mend().await;
    let broker = cluster.broker(&cluster.url()).await;
    let (mut unsure, mut late) = (0, 0);
    for (job, told) in raced {
        let stands = prize.stands(&broker, job).await.expect("somebody has it");
        let winners: Vec<_> = racers
            .iter()
            .zip(&told)
            .filter(|(_, told)| told.won)
            .map(|((name, _), _)| *name)
            .collect();
        let times = told.iter().map(|told| told.unsure).sum::<usize>();
        match winners[..] {
            [winner] => assert_eq!(stands, winner, "what stands of {job} is the winner's"),
            // The winner's confirmation was lost, and when it asked again its own stood already.
            [] => assert!(times > 0, "nobody is told of {job}, though nobody was unsure"),
            _ => panic!("both are told that they have {job}"),
        }
        unsure += times;
        late += usize::from(winners.is_empty());
    }
    println!(
        "{ROUNDS} races: {stepped} leaders stepped down, {killed} were killed, {unsure} times \
         there was no telling, {late} winners only heard that theirs stands"
    );
    assert!(stepped >= STEP_DOWN && killed > 0, "the leaders hardly changed");
    cluster
}

async fn race(prize: Prize, [first, second]: &[Racer; 2]) -> Vec<(JobId, [Told; 2])> {
    let mut raced = Vec::new();
    for round in 0..ROUNDS {
        let job = JobId::new();
        let told = tokio::join!(told(prize, first, job, round), told(prize, second, job, round));
        raced.push((job, told.into()));
    }
    raced
}

/// Asks until there is an answer.
async fn told(prize: Prize, racer: &Racer, job: JobId, round: usize) -> Told {
    let (began, mut unsure) = (Instant::now(), 0);
    loop {
        match prize.grasp(racer, job, round).await {
            Ok(won) => return Told { won, unsure },
            Err(error @ (Error::Unavailable(_) | Error::Missing(_))) => {
                assert!(began.elapsed() < LATER, "{job}: {error}");
                unsure += 1;
                sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{job}: {error}"),
        }
    }
}

/// Goes on for as long as it is let.
async fn change_leaders(
    cluster: &mut Cluster,
    prize: Prize,
    stepped: &mut usize,
    killed: &mut usize,
) {
    let stream = prize.stream();
    loop {
        for _ in 0..STEP_DOWN {
            sleep(REIGN).await;
            cluster.step_down(stream);
            *stepped += 1;
        }
        let leader = cluster.leader(Some(stream)).await;
        cluster.kill(leader);
        *killed += 1;
        cluster.leader(Some(stream)).await;
        cluster.start_again(leader).await;
    }
}
