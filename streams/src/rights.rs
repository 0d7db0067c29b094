//! Rights: what each kind of user of the queue may publish and subscribe to, derived from the
//! chain. Who is a user and how a server is told is not known here.
//!
//! A workspace's users are strangers. They get no right to make consumers: whoever may reads every
//! workspace's messages. The server also sends its answers wherever a request says, without asking
//! whether who asked may publish there: with an account of its own for each workspace, an answer
//! cannot leave the account, and no user forges what belongs to another by it.

use crate::jetstream::inbox;
use crate::phase::{Phase, Share, StepName};
use crate::subject;
use crate::topology::{Bucket, ConsumerSpec, StreamName, shared_consumers};

/// What a user may do; everything else is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Subjects that it may publish to.
    pub publish: Vec<String>,
    /// Subjects that it may subscribe to.
    pub subscribe: Vec<String>,
}

/// Of a workspace's user: what it asks of the platform, with an answer.
pub fn services(workspace: &str) -> Vec<String> {
    let token = subject::escape(workspace);
    vec![
        format!("jobs.{}.{token}.*", Phase::Submitted),
        subject::submit(workspace),
        format!("$JS.API.DIRECT.GET.{}.status.{token}.*", StreamName::Status.as_str()),
    ]
}

/// Of a workspace's user: what it is told.
pub fn news(workspace: &str) -> Vec<String> {
    let token = subject::escape(workspace);
    vec![format!("changes.{token}.*"), format!("status.{token}.*")]
}

/// Of the user of a workspace, in an account of its own.
pub fn of_workspace(workspace: &str) -> Rights {
    let mut subscribe = vec!["_INBOX.>".to_owned()];
    subscribe.extend(news(workspace));
    Rights { publish: services(workspace), subscribe }
}

/// Of a worker: it makes every fact but the first, reads the streams and the state of claims, and
/// removes nothing but holds. `further` are subjects for post-run actions that publish.
pub fn of_worker(user: &str, further: &[String]) -> Rights {
    let api = |call: &str, of: &str| format!("$JS.API.{call}.{of}");
    let later = Phase::CHAIN.into_iter().filter(|phase| *phase != Phase::Submitted);
    let mut publish: Vec<String> = later.map(subject::facts).collect();
    publish.extend([subject::REFUSED, "status.>", "logs.>"].map(str::to_owned));
    publish.extend(further.iter().cloned());
    // Who holds a job back, or lets it go, is asked of the API; a worker drops holds of the ended.
    for bucket in Bucket::ALL.into_iter().filter(|bucket| *bucket != Bucket::Holds) {
        let name = bucket.as_str();
        publish.push(format!("$KV.{name}.>"));
        publish.push(api("DIRECT.GET", &format!("KV_{name}.>")));
    }
    publish.push(api("STREAM.PURGE", &format!("KV_{}", Bucket::Holds.as_str())));
    publish.extend([api("STREAM.INFO", "*"), api("STREAM.MSG.GET", "*")]);
    publish.push(api("CONSUMER.INFO", "*.*"));
    for ConsumerSpec { stream, name, .. } in shared_consumers() {
        if StepName::ALL.iter().any(|step| step.token() == name) {
            publish.extend(reading(stream, &name));
        }
    }
    let mut subscribe = vec![format!("{}.>", inbox(user))];
    // A workspace's consumer is made with its first job, found by its name, and hinted at.
    let is_shared_out =
        |phase: &Phase| phase.spec().next.is_some_and(|next| next.share == Share::PerWorkspace);
    for phase in Phase::CHAIN.into_iter().filter(is_shared_out) {
        let stream = StreamName::of(phase);
        publish.extend(reading(stream, "*"));
        let of = stream.as_str();
        publish.extend([api("CONSUMER.LIST", of), api("CONSUMER.NAMES", of)]);
        publish.push(api("CONSUMER.CREATE", &format!("{of}.*.{}", subject::facts(phase))));
        subscribe.push(subject::facts(phase));
        // Who waits for a seat is hinted at each run that is over.
        subscribe.extend(phase.next().map(subject::facts));
    }
    Rights { publish, subscribe }
}

/// Taking messages of a consumer, and saying what became of them.
fn reading(stream: StreamName, consumer: &str) -> [String; 2] {
    let stream = stream.as_str();
    [
        format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"),
        format!("$JS.ACK.{stream}.{consumer}.>"),
    ]
}

#[cfg(test)]
mod tests;
