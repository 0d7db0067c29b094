mod server;

use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::broker::Settle;
use crate::broker::conformance::{self, Rig, SMALL_INTAKE_BYTES};
use crate::id::JobId;
use crate::phase::Phase;
use crate::subject;
use server::Server;

struct OnServer {
    broker: Arc<JetStream>,
    small_intake: Arc<JetStream>,
    plain: jetstream::Context,
}

#[async_trait]
impl Rig for OnServer {
    fn broker(&self) -> Arc<dyn Broker> {
        self.broker.clone()
    }

    fn small_intake(&self) -> Arc<dyn Broker> {
        self.small_intake.clone()
    }

    async fn delete_consumer(&self, consumer: &ConsumerSpec) {
        self.plain
            .delete_consumer_from_stream(&consumer.name, consumer.stream.as_str())
            .await
            .expect("the consumer can be removed");
    }
}

#[tokio::test]
async fn it_does_what_every_broker_must() {
    let (server, small) = (Server::start().await, Server::start().await);
    let limits = Limits { intake_max_bytes: SMALL_INTAKE_BYTES, ..Limits::default() };
    let rig = OnServer {
        broker: Arc::new(server.connect(Limits::default()).await.0),
        small_intake: Arc::new(small.connect(limits).await.0),
        plain: jetstream::new(server.plain_client().await),
    };
    conformance::exercise(&rig).await;
}

fn submission(job: JobId) -> Publication {
    Publication {
        subject: subject::fact(Phase::Submitted, "default", job),
        payload: Bytes::from_static(b"{}"),
        message_id: None,
        expect: Expect::Empty,
        traceparent: None,
    }
}

#[tokio::test]
async fn the_server_refuses_a_second_fact_from_a_client_that_sends_no_header() {
    let server = Server::start().await;
    let (broker, _) = server.connect(Limits::default()).await;
    let submission = submission(JobId::new());
    let subject = submission.subject.clone();
    broker.publish(submission).await.expect("the first is stored");

    let client = server.plain_client().await;
    let answer = client.request(subject.clone(), "{\"spec\":{}}".into()).await;
    let answer: serde_json::Value =
        serde_json::from_slice(&answer.expect("the server answers").payload).expect("in JSON");
    assert_eq!(answer["error"]["err_code"], STORE_REFUSES, "{answer}");
    assert_eq!(answer["error"]["description"], MAX_PER_SUBJECT, "{answer}");

    let last = broker.last(StreamName::Intake, &subject).await.expect("the stream answers");
    assert_eq!(last.map(|last| last.payload), Some(Bytes::from_static(b"{}")));
}

#[tokio::test]
async fn what_is_there_already_is_no_drift() {
    let server = Server::start().await;
    for _ in 0..2 {
        let (_, drift) = server.connect(Limits::default()).await;
        assert_eq!(drift, []);
    }
}

#[tokio::test]
async fn what_somebody_changed_is_reported_and_left_alone() {
    let server = Server::start().await;
    server.connect(Limits::default()).await;
    let plain = jetstream::new(server.plain_client().await);
    let mut jobs = plain.get_stream("JOBS").await.expect("it exists");
    let mut config = jobs.cached_info().config.clone();
    config.max_bytes = 1_000_000;
    plain.update_stream(&config).await.expect("it can be changed");
    let stage: consumer::PullConsumer = jobs.get_consumer("stage").await.expect("it exists");
    let mut stage = stage.cached_info().config.clone();
    stage.ack_wait = Duration::from_secs(5);
    let stage = consumer::pull::Config {
        durable_name: stage.durable_name,
        ack_policy: stage.ack_policy,
        ack_wait: stage.ack_wait,
        filter_subject: stage.filter_subject,
        max_ack_pending: stage.max_ack_pending,
        ..Default::default()
    };
    jobs.update_consumer(stage).await.expect("it can be changed");
    let mut claims = plain.get_stream("KV_claims").await.expect("it exists");
    let mut bucket = claims.cached_info().config.clone();
    bucket.max_messages_per_subject = 5;
    plain.update_stream(&bucket).await.expect("it can be changed");

    let (_, drift) = server.connect(Limits::default()).await;

    let drift: Vec<_> = drift.iter().map(ToString::to_string).collect();
    assert_eq!(
        drift,
        [
            "stream JOBS has max_bytes = 1000000, expected -1",
            "consumer stage of JOBS has ack_wait = 5s, expected 30s",
            "bucket claims has history = 5, expected 1",
        ]
    );
    let jobs = jobs.info().await.expect("it exists").config.clone();
    assert_eq!(jobs.max_bytes, 1_000_000);
    let claims = claims.info().await.expect("it exists").config.clone();
    assert_eq!(claims.max_messages_per_subject, 5);
}

/// What facts hang on is not the owner's to choose.
#[tokio::test]
async fn a_stream_that_could_lose_a_fact_or_take_a_second_one_is_grave() {
    let server = Server::start().await;
    server.connect(Limits::default()).await;
    let plain = jetstream::new(server.plain_client().await);
    for (name, grave) in [("JOBS", true), ("STATUS", false)] {
        let stream = plain.get_stream(name).await.expect("it exists");
        let mut config = stream.cached_info().config.clone();
        (config.max_messages_per_subject, config.discard_new_per_subject) = (3, false);
        config.max_age = Duration::from_secs(3600);
        plain.update_stream(&config).await.expect("it can be changed");
        let (_, drift) = server.connect(Limits::default()).await;
        let of_it = drift.iter().filter(|drift| drift.what == format!("stream {name}"));
        let of_it: Vec<_> = of_it.map(|drift| (drift.setting, drift.is_grave)).collect();
        assert!(of_it.contains(&("max_msgs_per_subject", grave)), "{of_it:?}");
        assert!(of_it.contains(&("max_age", grave)), "{of_it:?}");
    }
}

/// A message that a consumer has given up comes again from the one in its place.
#[tokio::test]
async fn a_consumer_with_other_settings_is_reported_and_made_anew_by_its_reader() {
    let server = Server::start().await;
    let (first, _) = server.connect(Limits::default()).await;
    let spec = crate::topology::step_consumer(crate::phase::StepName::Invoke, "default");
    let impatient = consumer::pull::Config {
        durable_name: Some(spec.name.clone()),
        filter_subject: spec.filter.clone(),
        max_deliver: 2,
        backoff: vec![Duration::from_millis(100), Duration::from_millis(200)],
        ..Default::default()
    };
    let plain = jetstream::new(server.plain_client().await);
    let made = plain.create_consumer_on_stream(impatient, "JOBS").await.expect("it can be made");
    let fact = subject::fact(Phase::Staged, "default", JobId::new());
    first.publish(Publication { subject: fact, ..submission(JobId::new()) }).await.expect("stored");
    for _ in 0..2 {
        let batch = made.fetch().max_messages(1).expires(Duration::from_secs(10)).messages().await;
        let got: Vec<_> = batch.expect("it answers").collect().await;
        assert_eq!(got.len(), 1, "it is given, and nobody settles it");
    }
    let given_up = async || {
        let more = made.fetch().max_messages(1).expires(Duration::from_secs(1)).messages().await;
        more.expect("it answers").collect::<Vec<_>>().await.is_empty()
    };
    assert!(given_up().await);

    let (broker, drift) = server.connect(Limits::default()).await;
    let drift: Vec<_> = drift.iter().map(ToString::to_string).collect();
    let told = "consumer invoke_default of JOBS has ";
    assert_eq!(
        drift,
        [
            format!("{told}ack_wait = 100ms, expected 30s"),
            format!("{told}max_deliver = 2, expected -1"),
            format!("{told}max_ack_pending = 1000, expected 10000"),
            format!("{told}backoff = [100ms, 200ms], expected []"),
        ]
    );
    let delivery = broker.fetch(&spec, 1).await.expect("it answers").pop().expect("it is given");
    delivery.ack().await.expect("the server confirms");
    assert_eq!(server.connect(Limits::default()).await.1, []);
}

#[tokio::test]
async fn everything_survives_the_server() {
    let mut server = Server::start().await;
    let (broker, _) = server.connect(Limits::default()).await;
    let (settled, open) = (submission(JobId::new()), submission(JobId::new()));
    for submission in [&settled, &open] {
        broker.publish(submission.clone()).await.expect("it is stored");
    }
    let resolve = crate::topology::step_consumer(crate::phase::StepName::Resolve, "");
    let mut deliveries = broker.deliveries(&resolve, 2).await.expect("the consumer answers");
    let mut next = async || deliveries.next().await.expect("it goes on").expect("it came");
    next().await.ack().await.expect("the server confirms");
    let unsettled = next().await;
    let revision = broker.create(Bucket::Ends, "job", "end".into()).await.expect("it answers");

    server.restart().await;
    let (again, drift) = server.connect(Limits::default()).await;

    assert_eq!(drift, []);
    for submission in [&settled, &open] {
        let last = again.last(StreamName::Intake, &submission.subject).await;
        assert!(last.expect("the stream answers").is_some());
        let second = again.publish(submission.clone()).await.expect("the stream answers");
        assert_eq!(second, Published::Exists);
    }
    let end = again.get(Bucket::Ends, "job").await.expect("it answers").expect("it is there");
    assert_eq!(Some(end.revision), revision);
    // The first connection finds back by itself and gives the other delivery back.
    unsettled.nak(Duration::ZERO).await.expect("the word is sent");
    let mut deliveries = again.deliveries(&resolve, 2).await.expect("the consumer exists");
    loop {
        let delivery = deliveries.next().await.expect("it goes on").expect("it came");
        let subject = delivery.message.subject.clone();
        delivery.ack().await.expect("the server confirms");
        if subject == open.subject {
            break;
        }
        // A server that is killed may forget an acknowledgement, even a confirmed one: it writes
        // what its consumers know a little later. It never forgets what is still to be done.
        assert_eq!(subject, settled.subject);
    }
}

#[tokio::test]
async fn progress_starts_the_servers_wait_again() {
    let server = Server::start().await;
    let (broker, _) = server.connect(Limits::default()).await;
    let spec = ConsumerSpec {
        stream: StreamName::Intake,
        name: "impatient".to_owned(),
        filter: String::new(),
    };
    let wait = Duration::from_secs(4);
    let config = consumer::pull::Config {
        durable_name: Some(spec.name.clone()),
        ack_wait: wait,
        ..Default::default()
    };
    let made = broker.context.create_consumer_on_stream(config, "INTAKE").await;
    // The broker has to know it: it would make one with a longer wait in its place.
    broker.consumers.lock().await.insert(spec.clone(), made.expect("it can be made"));
    broker.publish(submission(JobId::new())).await.expect("it is stored");

    let fetch = async || broker.fetch(&spec, 1).await.expect("the consumer answers").pop();
    let arrival = async || {
        let asked = Instant::now();
        loop {
            if let Some(delivery) = fetch().await {
                break delivery;
            }
            assert!(asked.elapsed() < wait * 5, "it does not come");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let delivery = arrival().await;
    let settler = delivery.settler().expect("not settled yet");
    let came = Instant::now();
    let mut said = came;
    while came.elapsed() < wait * 2 {
        tokio::time::sleep(wait / 8).await;
        let nothing = fetch().await;
        assert!(nothing.is_none(), "it came again {:?} after the last word", said.elapsed());
        said = Instant::now();
        settler.settle(Settle::Progress).await.expect("the word is sent");
    }
    // Nobody says anything now: the message is given to whoever asks, when the wait is over.
    let again = arrival().await;
    assert_eq!(again.times, 2);
    // The server's clock may round a little.
    assert!(said.elapsed() > wait - wait / 10, "it came again after {:?}", said.elapsed());
    again.ack().await.expect("the server confirms");
}

#[tokio::test]
async fn nothing_hangs_when_the_server_is_gone() {
    let mut server = Server::start().await;
    let (broker, _) = server.connect(Limits::default()).await;
    let resolve = crate::topology::step_consumer(crate::phase::StepName::Resolve, "");
    broker.ensure_consumer(&resolve).await.expect("the consumer answers");
    server.kill();

    let (fetched, published, last, got) = tokio::time::timeout(Duration::from_secs(20), async {
        tokio::join!(
            broker.fetch(&resolve, 1),
            broker.publish(submission(JobId::new())),
            broker.last(StreamName::Intake, "jobs.submitted.default.x"),
            broker.get(Bucket::Claims, "job"),
        )
    })
    .await
    .expect("each gives up");
    assert!(matches!(fetched, Err(Error::Unavailable(_))), "{fetched:?}");
    assert!(matches!(published, Err(Error::Unavailable(_))), "{published:?}");
    assert!(matches!(last, Err(Error::Unavailable(_))), "{last:?}");
    assert!(matches!(got, Err(Error::Unavailable(_))), "{got:?}");
}
