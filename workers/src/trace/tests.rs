use super::*;

const SUBMITTER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_job_has_the_trace_of_its_submitter_or_its_own() {
    let job = JobId::new();
    let joined = JobTrace::of(job, Some(SUBMITTER));
    assert_eq!(joined.id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert!(joined.submitter.is_some());
    for nobody in [None, Some("nonsense")] {
        let own = JobTrace::of(job, nobody);
        assert_eq!(own.id(), job.uuid().simple().to_string());
        assert_eq!(own.submitter, None);
    }
}

#[test]
fn every_process_makes_the_same_ids_and_no_two_spans_have_the_same() {
    let job = JobId::new();
    let (here, there) = (JobTrace::of(job, None), JobTrace::of(job, None));
    let mut seen = std::collections::HashSet::new();
    let names = ["job", "submit", "queue", "agent", "save"];
    for name in names.into_iter().chain(StepName::ALL.map(StepName::token)) {
        for n in 0..3 {
            assert_eq!(here.span(name, n), there.span(name, n));
            assert!(seen.insert(here.span(name, n)), "{name} {n}");
        }
    }
}

#[test]
fn what_is_done_again_is_linked_to_what_was_before() {
    let (trace, now) = (JobTrace::of(JobId::new(), None), Timestamp::now());
    assert_eq!(trace.part("agent", 1, now, now).again, None);
    assert_eq!(trace.part("agent", 2, now, now).again, Some(trace.span("agent", 1)));
    let told = trace.of_agent(Attempt(2));
    assert_eq!(told.span, trace.part("agent", 2, now, now).id);
}

#[test]
fn no_span_ends_before_it_begins() {
    let (trace, now) = (JobTrace::of(JobId::new(), None), Timestamp::now());
    let span = trace.part("queue", 0, now, now - jiff::SignedDuration::from_secs(1));
    assert_eq!(span.to, now);
}
