//! Who may do what in the queue, with the rights that `errand nats config` gives. Whatever is not
//! said to be allowed is refused by the server itself.

use std::fs;

use serde_json::{Value, json};
use streams::broker::{Broker, Error};
use streams::id::JobId;
use streams::jetstream::JetStream;
use streams::phase::{Phase, StepName};
use streams::subject;
use streams::topology::{Bucket, Limits, StreamName, step_consumer};

use crate::harness::{Came, Database, Plain, Team};

/// The workspaces; one that needs escaping is among them.
const WORKSPACES: [&str; 2] = ["default", "team.a"];

/// Who tries.
const USERS: [(char, &str); 4] = [
    ('a', "workspace-default"),
    ('b', "workspace-team%2Ea"),
    ('w', "errand-worker"),
    ('p', "errand"),
];

/// What is tried. `?` stands for the id of a job, another one each time.
enum Act {
    /// Publishing, whoever listens.
    Publish(&'static str),
    /// Asking something that is answered.
    Ask(&'static str, &'static str),
    /// Subscribing.
    Subscribe(&'static str),
}

use Act::{Ask, Publish, Subscribe};

/// Each act, and those who may do it.
const MATRIX: &[(Act, &str)] = &[
    // Submissions.
    (Ask("jobs.submitted.default.?", r#"{"spec": {}}"#), "ap"),
    (Ask("jobs.submitted.team%2Ea.?", r#"{"spec": {}}"#), "bp"),
    (Publish("jobs.submitted.default"), "p"),
    (Publish("jobs.submitted.default.?.more"), "p"),
    (Ask("submit.default", "{}"), "ap"),
    (Ask("submit.team%2Ea", "{}"), "bp"),
    // What is said of jobs.
    (Publish("jobs.resolved.default.?"), "wp"),
    (Publish("jobs.archived.team%2Ea.?"), "wp"),
    (Publish("jobs.refused"), "wp"),
    (Publish("status.default.?"), "wp"),
    (Publish("status.team%2Ea.?"), "wp"),
    (Publish("changes.default.?"), "p"),
    (Publish("logs.default.?"), "wp"),
    (Publish("$KV.claims.?"), "wp"),
    (Publish("$KV.ends.?"), "wp"),
    (Publish("$KV.holds.?"), "p"),
    (Publish("events.done"), "wp"),
    (Publish("other"), "p"),
    // What is read of them.
    (Ask("$JS.API.DIRECT.GET.STATUS.status.default.?", ""), "ap"),
    (Ask("$JS.API.DIRECT.GET.STATUS.status.team%2Ea.?", ""), "bp"),
    (Ask("$JS.API.DIRECT.GET.STATUS.status.*.?", ""), "p"),
    (Ask("$JS.API.DIRECT.GET.STATUS", r#"{"last_by_subj": "status.team%2Ea.x"}"#), "p"),
    (Ask("$JS.API.DIRECT.GET.JOBS.jobs.archived.default.?", ""), "p"),
    (Ask("$JS.API.STREAM.MSG.GET.STATUS", r#"{"last_by_subj": "status.default.x"}"#), "wp"),
    (Ask("$JS.API.STREAM.MSG.GET.KV_claims", r#"{"last_by_subj": "$KV.claims.x"}"#), "wp"),
    (Ask("$JS.API.STREAM.INFO.JOBS", ""), "wp"),
    (Ask("$JS.API.STREAM.NAMES", ""), "p"),
    (Subscribe("changes.default.*"), "ap"),
    (Subscribe("changes.team%2Ea.*"), "bp"),
    (Subscribe("status.default.*"), "ap"),
    (Subscribe("status.team%2Ea.*"), "bp"),
    (Subscribe("status.*.*"), "p"),
    (Subscribe("logs.default.*"), "p"),
    (Subscribe("jobs.submitted.default.*"), "p"),
    (Subscribe("jobs.staged.>"), "wp"),
    (Subscribe("submit.default"), "p"),
    (Subscribe("$KV.claims.>"), "p"),
    (Subscribe("_INBOX_errand.>"), "p"),
    (Subscribe(">"), "p"),
    // Consumers: whoever may make one reads all of its stream.
    (Ask("$JS.API.CONSUMER.CREATE.STATUS.mine", r#"{"stream_name": "STATUS", "config": {}}"#), "p"),
    (Ask("$JS.API.CONSUMER.CREATE.INTAKE.mine.jobs.submitted.>", "{}"), "p"),
    (Ask("$JS.API.CONSUMER.CREATE.JOBS.mine.jobs.staged.default.>", "{}"), "wp"),
    (Ask("$JS.API.CONSUMER.DURABLE.CREATE.STATUS.mine", "{}"), "p"),
    (Ask("$JS.API.CONSUMER.DELETE.JOBS.stage_", ""), "p"),
    (Publish("$JS.API.CONSUMER.MSG.NEXT.STATUS.projector"), "p"),
    (Publish("$JS.ACK.STATUS.projector.1.1.1.1.0"), "p"),
    // What cannot be brought back.
    (Ask("$JS.API.STREAM.PURGE.KV_holds", r#"{"filter": "$KV.holds.x"}"#), "wp"),
    (Ask("$JS.API.STREAM.PURGE.KV_claims", r#"{"filter": "$KV.claims.x"}"#), "p"),
    (Ask("$JS.API.STREAM.PURGE.INTAKE", r#"{"filter": "jobs.submitted.x"}"#), "p"),
    (Ask("$JS.API.STREAM.PURGE.STATUS", r#"{"filter": "status.x"}"#), "p"),
    (Ask("$JS.API.STREAM.MSG.DELETE.JOBS", r#"{"seq": 1000000}"#), "p"),
    (Ask("$JS.API.STREAM.UPDATE.STATUS", "{}"), "p"),
    (Ask("$JS.API.STREAM.CREATE.MINE", "{}"), "p"),
    (Ask("$JS.API.STREAM.DELETE.MINE", ""), "p"),
    (Ask("$JS.API.STREAM.PURGE.JOBS", ""), "p"),
    (Ask("$JS.API.STREAM.DELETE.JOBS", ""), "p"),
];

#[tokio::test]
async fn each_user_may_do_what_it_is_for_and_nothing_else() {
    let team = Team::of(&WORKSPACES, Database::Sqlite).await;
    let _server = team.parts.server();
    let mut clients = Vec::new();
    for (letter, user) in USERS {
        clients.push((letter, inbox(user), team.client(user).await));
    }
    let mut wrong = Vec::new();
    for (act, allowed) in MATRIX {
        for (letter, inbox, client) in &mut clients {
            let (shown, came) = act.done_by(client, inbox);
            let is_allowed = matches!(came, Came::Allowed(_));
            if is_allowed != allowed.contains(*letter) {
                wrong.push(format!("{letter}: {shown}: {came:?}"));
            }
            if let Came::Refused(words) = &came {
                assert!(words.to_lowercase().contains("permissions violation"), "{shown}: {words}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn nobody_is_let_in_without_a_password() {
    let team = Team::of(&["default"], Database::Sqlite).await;
    let url = team.nats.url().await;
    let worker = team.password("errand-worker");
    for login in [None, Some(("errand", "x")), Some(("errand", &*worker)), Some(("nobody", "x"))] {
        let refused = Plain::connect(&url, login).err().expect("it is not let in");
        assert_eq!(refused, "'Authorization Violation'", "{login:?}");
    }
}

/// The server sends answers wherever a request says. In an account of its own that leads nowhere.
#[tokio::test]
async fn an_answer_does_not_become_a_fact_of_another() {
    let team = Team::of(&WORKSPACES, Database::Sqlite).await;
    let _server = team.parts.server();
    let broker = team.broker("errand").await;
    let victim = JobId::new();
    let forged = subject::fact(Phase::Resolved, "team.a", victim);
    let mut client = team.client("workspace-default").await;
    let submission = subject::fact(Phase::Submitted, "default", JobId::new());
    let direct = format!("$JS.API.DIRECT.GET.STATUS.{}", subject::status("default", JobId::new()));
    for (ask, reply) in [
        (submission.as_str(), forged.as_str()),
        (&direct, &forged),
        ("submit.default", &forged),
        ("submit.default", "$JS.API.STREAM.DELETE.JOBS"),
    ] {
        let came = client.publish_with_reply(ask, reply, r#"{"spec": {}}"#);
        assert_eq!(came, Came::Allowed(Vec::new()), "{ask}: it may be asked");
    }
    // Each was dealt with before this one is answered.
    assert!(matches!(client.ask("submit.default", "{}"), Came::Allowed(_)));
    let last = broker.last(StreamName::Jobs, &forged).await.expect("the stream is there");
    assert_eq!(last, None);
    let sent = broker.last(StreamName::Intake, &submission).await.expect("the stream is there");
    assert!(sent.is_some(), "the submission itself was taken");
}

fn is_refused<T>(done: Result<T, Error>, user: &str, subject: &str) {
    let error = done.err().unwrap_or_else(|| panic!("{user} may {subject}"));
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    let text = error.to_string();
    for word in [user, subject, "has no permission to publish to", "errand nats config"] {
        assert!(text.contains(word), "{text} does not say {word}");
    }
}

#[tokio::test]
async fn what_the_platform_may_not_do_is_an_error_at_once() {
    let team = Team::of(&["default"], Database::Sqlite).await;
    // Before the streams are made.
    let worker = "errand-worker";
    let early = JetStream::connect(&team.login(worker).await, Limits::default()).await;
    let text = early.as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(text.contains("streams are made by errand serve"), "{text}");
    is_refused(early, worker, "$JS.API.STREAM.CREATE.INTAKE");
    let _server = team.parts.server();

    let broker = team.broker(worker).await;
    let job = JobId::new();
    let submission = subject::fact(Phase::Submitted, "default", job);
    let fact = streams::broker::Publication {
        subject: submission.clone(),
        payload: "{}".into(),
        message_id: None,
        expect: streams::broker::Expect::Empty,
        traceparent: None,
    };
    is_refused(broker.publish(fact).await, worker, &submission);
    is_refused(broker.send("other.subject", "id", "x".into()).await, worker, "other.subject");
    broker.send("events.done", "id", "x".into()).await.expect("it may");
    let purged = broker.purge(StreamName::Jobs, "jobs.archived.default.x").await;
    is_refused(purged, worker, "$JS.API.STREAM.PURGE.JOBS");
    let held = broker.create(Bucket::Holds, "x", "{}".into()).await;
    is_refused(held, worker, "$KV.holds.x");
    broker.remove(Bucket::Holds, "x").await.expect("it may");
    let mut projector = streams::topology::projector_consumers().remove(2);
    is_refused(broker.fetch(&projector, 1).await, worker, "$JS.API.CONSUMER.MSG.NEXT.STATUS");
    "other".clone_into(&mut projector.name);
    let made = broker.ensure_consumer(&projector).await;
    is_refused(made, worker, "$JS.API.CONSUMER.CREATE.STATUS.other");
    let own = step_consumer(StepName::Invoke, "new");
    broker.ensure_consumer(&own).await.expect("it may");

    // A user that is no part of the platform.
    let stranger = team.login("workspace-default").await;
    let stranger = JetStream::connect(&stranger, Limits::default()).await;
    let text = stranger.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("user 'workspace-default' has no permission to"), "{text}");
    let doctor = team
        .parts
        .run(&["doctor", "--output-format", "json"], &[("ERRAND__NATS__PASSWORD", "wrong")]);
    let found: Value = serde_json::from_slice(&doctor.stdout).expect("it is JSON");
    let nats = found["data"].as_array().into_iter().flatten().find(|row| row["check"] == "nats");
    let nats = nats.expect("it looks at the queue");
    assert_eq!(nats["ok"], "NO");
    let said = nats["found"].as_str().unwrap_or_default();
    assert!(
        said.contains("user 'errand' at") && said.contains("authorization violation"),
        "{said}"
    );
    let started = team
        .parts
        .run(&["serve", "--listen", "127.0.0.1:0"], &[("ERRAND__NATS__PASSWORD", "wrong")]);
    assert_eq!(started.status.code(), Some(1));
    let said = String::from_utf8_lossy(&started.stderr);
    assert!(said.contains("mend nats.user and nats.password"), "{said}");
    assert_eq!(json!(doctor.status.code()), json!(1));
}

#[tokio::test]
async fn users_are_those_of_the_records_and_a_second_run_changes_nothing() {
    let team = Team::of(&["default"], Database::Sqlite).await;
    let _server = team.parts.server();
    let config = |more: &[&str]| {
        let said = team.parts.run(&[&["nats", "config"], more].concat(), &[]);
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).expect("it is text")
    };
    let first = config(&[]);
    for user in ["errand", "errand-worker", "workspace-default", "workspace-system"] {
        assert!(first.contains(&format!("user: \"{user}\"")), "no {user}: {first}");
    }
    assert_eq!(config(&[]), first);
    assert_ne!(config(&["--rotate", "default"]), first);

    let folder = team.parts.data().join("queue");
    let output = ["--output", folder.to_str().expect("a path of letters")];
    assert_eq!(config(&output), "", "it is in the files");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("it is written");
    let accounts = read("accounts.conf");
    assert!(read("nats-server.conf").contains("include \"accounts.conf\""));
    fs::write(folder.join("nats-server.conf"), "# mine\n").expect("it is written");
    config(&output);
    assert_eq!((read("nats-server.conf").as_str(), read("accounts.conf")), ("# mine\n", accounts));
}

/// Where answers to a user come in.
fn inbox(user: &str) -> String {
    match user {
        "errand-worker" => "_INBOX_errand-worker".to_owned(),
        _ => "_INBOX".to_owned(),
    }
}

impl Act {
    fn done_by(&self, client: &mut Plain, inbox: &str) -> (String, Came) {
        let job = JobId::new().to_string();
        let named = |subject: &str| subject.replace('?', &job);
        match self {
            Publish(subject) => {
                let subject = named(subject);
                (format!("publish {subject}"), client.publish(&subject, "{}"))
            }
            Ask(subject, payload) => {
                let (subject, inbox) = (named(subject), format!("{inbox}.{job}"));
                (format!("ask {subject}"), client.ask_by(&inbox, &subject, payload))
            }
            Subscribe(subject) => (format!("subscribe {subject}"), client.subscribe(subject)),
        }
    }
}
