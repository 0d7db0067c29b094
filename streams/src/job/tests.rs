use super::*;
use crate::code::Code;

/// Anything that may reach the projector about a job, in the order in which it happens.
#[derive(Clone, Debug)]
enum News {
    Fact(Step),
    Started(Attempt),
    CancelRequested,
}

fn tell(job: &mut Job, news: &News) -> Transition {
    match news {
        News::Fact(step) => job.apply(step),
        News::Started(attempt) => job.started(*attempt),
        News::CancelRequested => {
            let known = std::mem::replace(&mut job.cancel_requested, true);
            if known { Transition::Repeated } else { Transition::Advanced }
        }
    }
}

/// The six facts of a job that is decided in a phase, passed on from there.
fn chain(decided: Phase, outcome: &Outcome) -> Vec<News> {
    let outcome_in = |phase| (phase >= decided).then(|| outcome.clone());
    let fact = |phase| News::Fact(Step { phase, outcome: outcome_in(phase) });
    Phase::CHAIN.into_iter().map(fact).collect()
}

fn failed(code: Code) -> Outcome {
    Outcome::Failed { code, message: "it failed".to_owned() }
}

fn cancelled() -> Outcome {
    Outcome::Cancelled { message: "alice cancelled it".to_owned() }
}

fn succeeds() -> Vec<News> {
    let mut news = chain(Phase::Invoked, &Outcome::Succeeded);
    news.insert(3, News::Started(Attempt::FIRST));
    news
}

fn fails() -> Vec<News> {
    let mut news = chain(Phase::Invoked, &failed(Code::AgentFailed));
    news.insert(3, News::Started(Attempt::FIRST));
    news.insert(4, News::Started(Attempt(2)));
    news
}

fn action_fails() -> Vec<News> {
    let mut news = chain(Phase::Acted, &failed(Code::ActionFailed));
    news[3] = News::Fact(Step { phase: Phase::Invoked, outcome: Some(Outcome::Succeeded) });
    news.insert(3, News::Started(Attempt::FIRST));
    news
}

fn is_cancelled() -> Vec<News> {
    let mut news = chain(Phase::Invoked, &cancelled());
    news.insert(3, News::Started(Attempt::FIRST));
    news.insert(4, News::CancelRequested);
    news
}

fn is_cancelled_early() -> Vec<News> {
    let mut news = chain(Phase::Resolved, &cancelled());
    news.insert(0, News::CancelRequested);
    news
}

fn is_not_run() -> Vec<News> {
    let message = "no such agent".to_owned();
    chain(Phase::Resolved, &Outcome::NotRun { code: Code::Rejected, message })
}

fn lives() -> [(&'static str, Vec<News>); 6] {
    [
        ("succeeds", succeeds()),
        ("fails", fails()),
        ("action fails", action_fails()),
        ("is cancelled", is_cancelled()),
        ("is cancelled early", is_cancelled_early()),
        ("is not run", is_not_run()),
    ]
}

/// How far a status is; users never see it go back.
fn rank(status: Status) -> u8 {
    match status {
        Status::Created => 0,
        Status::Pending => 1,
        Status::Active => 2,
        Status::Cancelling => 3,
        Status::Completed | Status::Cancelled | Status::Error => 4,
        Status::Pausing | Status::Paused | Status::Resuming => panic!("{status} is no job's own"),
    }
}

/// Visits every state that any order of the news can lead to, with any number of repetitions:
/// from each pair of a job and the set of what it has heard, each piece of news is told.
fn visit_every_order(news: &[News], mut visit: impl FnMut(&Job, u32, &News, Transition, &Job)) {
    let mut states = vec![(Job::admitted(), 0)];
    let mut next = 0;
    while next < states.len() {
        let (before, heard) = states[next].clone();
        next += 1;
        for (index, piece) in news.iter().enumerate() {
            let mut after = before.clone();
            let transition = tell(&mut after, piece);
            let heard_now = heard | 1 << index;
            visit(&before, heard_now, piece, transition, &after);
            if !states.contains(&(after.clone(), heard_now)) {
                states.push((after, heard_now));
            }
        }
    }
}

#[test]
fn every_order_with_repetitions_ends_the_same() {
    for (name, news) in lives() {
        let mut in_order = Job::admitted();
        for piece in &news {
            tell(&mut in_order, piece);
        }
        let everything = (1 << news.len()) - 1;
        let mut ends = 0;
        visit_every_order(&news, |_, heard, piece, _, after| {
            if heard == everything {
                ends += 1;
                assert_eq!(after, &in_order, "a job that {name}, {piece:?} last");
            }
        });
        assert!(ends >= news.len(), "each piece of news comes last in some order");
    }
}

#[test]
fn no_order_moves_a_job_or_its_status_back() {
    for (name, news) in lives() {
        visit_every_order(&news, |before, _, piece, transition, after| {
            let told = format!("a job that {name}: {before:?} was told {piece:?}");
            assert!(after.phase >= before.phase, "{told}");
            assert!(rank(after.status()) >= rank(before.status()), "{told}");
            let changed = after != before;
            assert_eq!(changed, transition == Transition::Advanced, "{told}: {transition:?}");
        });
    }
}

#[test]
fn users_see_the_references_words() {
    use Status::{Active, Cancelled, Cancelling, Completed, Created, Error, Pending};
    let expected: [&[Status]; 6] = [
        &[Created, Pending, Pending, Active, Active, Active, Completed],
        &[Created, Pending, Pending, Active, Active, Active, Active, Error],
        &[Created, Pending, Pending, Active, Active, Active, Error],
        &[Created, Pending, Pending, Active, Cancelling, Cancelling, Cancelling, Cancelled],
        &[Cancelling, Cancelling, Cancelling, Cancelling, Cancelling, Cancelling, Cancelled],
        &[Created, Pending, Pending, Active, Active, Error],
    ];
    for ((name, news), expected) in lives().into_iter().zip(expected) {
        let mut job = Job::admitted();
        let seen = news.iter().map(|piece| {
            tell(&mut job, piece);
            job.status()
        });
        assert_eq!(seen.collect::<Vec<_>>(), expected, "a job that {name}");
    }
}

#[test]
fn news_of_a_start_is_stale_once_the_agent_has_ended() {
    let mut job = Job::admitted();
    assert_eq!(job.started(Attempt(2)), Transition::Advanced);
    assert_eq!(job.started(Attempt(2)), Transition::Repeated);
    assert_eq!(job.started(Attempt::FIRST), Transition::Stale);
    assert_eq!(job.running, Some(Attempt(2)));

    job.apply(&Step { phase: Phase::Invoked, outcome: Some(Outcome::Succeeded) });
    assert_eq!(job.started(Attempt(3)), Transition::Stale);
    assert_eq!(job.running, None);
}

#[test]
fn the_last_fact_alone_is_enough() {
    let mut job = Job::admitted();
    let archived = Step { phase: Phase::Archived, outcome: Some(failed(Code::Timeout)) };
    assert_eq!(job.apply(&archived), Transition::Advanced);
    assert_eq!(job.status(), Status::Error);
    assert_eq!(job.apply(&archived), Transition::Repeated);
}

#[test]
fn a_held_job_waits_until_it_runs_or_ends() {
    use Status::{Active, Cancelling, Completed, Created, Paused, Pausing, Pending, Resuming};
    let expected: [(Hold, [Status; 6]); 3] = [
        (Hold::Never, [Created, Pending, Pending, Active, Active, Completed]),
        (Hold::Held, [Pausing, Pausing, Paused, Active, Active, Completed]),
        (Hold::Released, [Resuming, Resuming, Resuming, Active, Active, Completed]),
    ];
    for (hold, expected) in expected {
        assert_eq!(hold.as_str().parse::<Hold>().ok(), Some(hold));
        let mut job = Job { hold, ..Job::admitted() };
        let seen = chain(Phase::Invoked, &Outcome::Succeeded).into_iter().map(|fact| {
            tell(&mut job, &fact);
            job.status()
        });
        assert_eq!(seen.collect::<Vec<_>>(), expected, "{hold:?}");
    }
    let staged = Step { phase: Phase::Staged, outcome: None };
    let mut job = Job { hold: Hold::Held, cancel_requested: true, ..Job::admitted() };
    job.apply(&staged);
    assert_eq!(job.status(), Cancelling);
    let mut job = Job { hold: Hold::Held, ..Job::admitted() };
    job.apply(&staged);
    job.started(Attempt::FIRST);
    assert_eq!(job.status(), Active, "a hold that came too late means nothing");
}
