//! The rules: what each invariant says, and what speaks against it.

use streams::claim::Decision;
use streams::code::Code;
use streams::job::{Job, Step};
use streams::outcome::Outcome;
use streams::phase::Phase;

use crate::fixture::LOG_LINES;
use crate::invariants::Ended;
use crate::plan::{self, Agent, Event, Follows};

pub(crate) fn six_facts(ended: &Ended<'_>) -> Vec<String> {
    let jobs = ended.jobs.iter().enumerate();
    let counts = jobs.flat_map(|(job, facts)| {
        facts.counts().into_iter().map(move |(phase, count)| (job, phase, count))
    });
    let wrong = counts.filter(|(_, _, count)| *count != 1);
    wrong.map(|(job, phase, count)| format!("job {job} has {count} facts {phase}")).collect()
}

/// What is decided is passed on, except that an action may fail where the agent has not.
pub(crate) fn one_story(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (job, facts) in ended.jobs.iter().enumerate() {
        for pair in facts.all.windows(2) {
            let (before, after) = (pair[0].outcome(), pair[1].outcome());
            let follows = match (&before, &after) {
                (Some(Outcome::Succeeded), Some(Outcome::Failed { code, .. })) => {
                    pair[1].phase == Phase::Acted
                        && matches!(code, Code::ActionFailed | Code::ActionMissing)
                }
                (Some(_), _) => before == after,
                (None, _) => true,
            };
            if !follows || pair[0].phase > pair[1].phase {
                wrong.push(format!("job {job}: {before:?} is followed by {after:?}"));
            }
        }
    }
    wrong
}

pub(crate) fn one_start(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let history = ended.world.history();
    for (job, planned) in ended.world.plan.jobs.iter().enumerate() {
        let starts = || history.starts.iter().filter(|start| start.job == job);
        let mut attempts: Vec<_> =
            starts().filter(|start| !start.program).map(|start| start.attempt.0).collect();
        attempts.sort_unstable();
        let most = planned.max_attempts;
        let twice = attempts.windows(2).any(|pair| pair[0] == pair[1]);
        if twice || attempts.iter().any(|attempt| *attempt > most) {
            wrong.push(format!("job {job} may have {most} attempts, and started {attempts:?}"));
        }
        for start in starts() {
            let over = if start.program { Phase::Acted } else { Phase::Invoked };
            if ended.jobs[job].at(over).is_some_and(|told| told < start.from) {
                wrong.push(format!("after {over} was told: {start:?}"));
            }
        }
    }
    wrong
}

pub(crate) fn one_agent_at_a_time(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let history = ended.world.history();
    for (index, one) in history.starts.iter().enumerate() {
        for other in history.starts[index + 1..].iter().filter(|other| other.job == one.job) {
            // One that nobody has looked at since was lost with its supervisor, or has ended.
            if one.until.is_some_and(|until| until > other.from) {
                wrong.push(format!("{one:?} and {other:?}"));
            }
        }
    }
    wrong
}

/// A program is run once, and a message is the same each time; neither without a success.
pub(crate) fn one_action(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let history = ended.world.history();
    for (job, facts) in ended.jobs.iter().enumerate() {
        let follows = ended.world.plan.jobs[job].follows;
        let programs = history.starts.iter().filter(|start| start.job == job && start.program);
        let programs = programs.count();
        let sent: Vec<_> = history.sent.iter().filter(|(of, ..)| *of == job).collect();
        let succeeded = facts.invoked.as_ref().is_some_and(|fact| fact.outcome.succeeded());
        let completed = facts.acted.as_ref().is_some_and(|fact| fact.outcome.succeeded());
        let differ = sent.windows(2).any(|pair| pair[0] != pair[1]);
        let done = match follows {
            Follows::Nothing => 0,
            Follows::Message => usize::from(!sent.is_empty()),
            Follows::Program => programs,
        };
        let other = programs + sent.len() > 0 && done == 0;
        if done > usize::from(succeeded)
            || differ
            || other
            || (completed && done == 0 && follows != Follows::Nothing)
        {
            let sent: Vec<_> = sent.iter().map(|(_, id, _)| id).collect();
            wrong.push(format!(
                "job {job} follows {follows:?}: {programs} programs were run, {sent:?} was sent"
            ));
        }
    }
    wrong
}

pub(crate) fn status_goes_forward(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, facts) in ended.jobs.iter().enumerate() {
        let steps =
            facts.all.iter().map(|told| Step { phase: told.phase, outcome: told.outcome() });
        let steps: Vec<_> = steps.collect();
        let (mut job, mut terminal) = (Job::admitted(), false);
        for step in &steps {
            job.apply(step);
            if terminal && !job.status().is_terminal() {
                wrong.push(format!("job {number} was ended, and after {step:?} it is not"));
            }
            terminal = job.status().is_terminal();
        }
        // Any turn of the order, and the whole of it backwards.
        for turn in 0..=steps.len() {
            let mut other = Job::admitted();
            let turned = steps[turn..].iter().chain(&steps[..turn]);
            let mut order: Vec<_> = turned.collect();
            if turn % 2 == 0 {
                order.reverse();
            }
            for step in order {
                other.apply(step);
            }
            if other != job {
                wrong.push(format!("job {number} is {job:?}, and in another order {other:?}"));
            }
        }
    }
    wrong
}

pub(crate) fn listed_is_saved(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (job, facts) in ended.jobs.iter().enumerate() {
        let staged = facts.staged.iter().flat_map(|fact| &fact.input_workdir);
        let invoked = facts.invoked.iter().flat_map(|fact| &fact.results);
        let acted = facts.acted.iter().flat_map(|fact| &fact.results);
        let results = staged.chain(invoked).chain(acted).map(|result| &result.object);
        let archived = facts.archived.iter();
        let kept = archived.flat_map(|fact| [Some(&fact.manifest), fact.logs.as_ref()]).flatten();
        for object in results.chain(kept) {
            if let Some(why) = ended.world.objects.objection(object) {
                wrong.push(format!("job {job} lists {}: {why}", object.key));
            }
        }
    }
    wrong
}

/// Every line of a run that has told its end, numbered through, and no line twice.
pub(crate) fn log_is_whole(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (job, facts) in ended.jobs.iter().enumerate() {
        let Some(archived) = &facts.archived else { continue };
        let kept = archived.logs.as_ref().and_then(|logs| ended.world.objects.get(&logs.key));
        let packed = kept.map(|kept| kept.bytes).unwrap_or_default();
        let lines = if packed.is_empty() { Ok(Vec::new()) } else { zstd::decode_all(&packed[..]) };
        let lines = String::from_utf8(lines.expect("the log can be unpacked")).expect("text");
        let numbers = lines.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            line["n"].as_u64().unwrap_or_default()
        });
        let numbers: Vec<_> = numbers.collect();
        let run = facts.invoked.as_ref().and_then(|fact| fact.run.as_ref());
        let least = run.map_or(0, |run| run.log_lines);
        let starts = ended.world.history().starts.iter().filter(|start| start.job == job).count();
        let most = LOG_LINES * starts as u64;
        let count = numbers.len() as u64;
        if !(1..).zip(&numbers).all(|(n, number)| n == *number) || count < least || count > most {
            wrong.push(format!("job {job} has lines {numbers:?}, {starts} runs left {most}"));
        }
    }
    wrong
}

/// A cancelled job was cancelled, one that was cancelled never completes, and a failure has a
/// cause in the plan.
pub(crate) fn ends_have_reasons(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (job, facts) in ended.jobs.iter().enumerate() {
        let Some(archived) = &facts.archived else { continue };
        let (decided, outcome) = (ended.ends[job], &archived.outcome);
        let cancelled = matches!(outcome, Outcome::Cancelled { .. });
        let has_run = facts.invoked.as_ref().is_some_and(|fact| fact.run.is_some());
        let is_decided = match decided {
            // What is refused, or cannot be run, says so whoever wants its end.
            Some(Decision::Cancel) => cancelled || !(has_run || outcome.succeeded()),
            Some(Decision::Closed) | None => !cancelled,
        };
        let events = || ended.world.plan.events.iter().map(|(_, event)| event);
        let is_purged = events().any(|event| *event == Event::Purge(job));
        if !(is_decided || is_purged) || !has_cause(ended, job, outcome) {
            wrong.push(format!("job {job} ended as {outcome:?}, decided was {decided:?}"));
        }
    }
    wrong
}

fn has_cause(ended: &Ended<'_>, job: usize, outcome: &Outcome) -> bool {
    let world = ended.world;
    let plan::Job { agents, limit, follows, refused, overdue, .. } = &world.plan.jobs[job];
    let run = ended.jobs[job].invoked.as_ref().and_then(|fact| fact.run.as_ref());
    let agent = run.map(|run| agents[usize::from(run.attempt.0 > 1)]);
    let happened =
        |wanted: &dyn Fn(&Event) -> bool| world.plan.events.iter().any(|(_, e)| wanted(e));
    let is_trouble = |event: &Event| {
        matches!(event, Event::QueueAway { .. } | Event::Kill(_) | Event::LosePlace(_))
    };
    let trouble = !world.history().struck.is_empty() || happened(&is_trouble);
    match outcome {
        Outcome::Succeeded => agent.is_some_and(Agent::succeeds),
        Outcome::Cancelled { .. } => happened(&|event| *event == Event::Cancel(job)),
        Outcome::NotRun { code: Code::Rejected, .. } => *refused,
        Outcome::TimedOut { code: Code::QueueTimeout, .. } => {
            *overdue || happened(&|event| *event == Event::Overdue(job))
        }
        Outcome::TimedOut { code: Code::Timeout, .. } => {
            agent.is_some_and(|agent| agent.runs_for().is_none_or(|long| long >= *limit))
        }
        Outcome::Failed { code: Code::AgentFailed, .. } => {
            agent.is_some_and(|agent| matches!(agent, Agent::Fails(_)))
        }
        Outcome::Failed { code: Code::WorkerLost, .. } => {
            trouble || agents.iter().any(|agent| agent.supervisor_dies().is_some())
        }
        Outcome::Failed { code: Code::ActionFailed, .. } => *follows == Follows::Program && trouble,
        _ => false,
    }
}
