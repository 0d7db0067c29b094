use super::*;

#[test]
fn counters_gauges_and_histograms_are_shown_as_prometheus_reads_them() {
    ended(Status::Error, Some(Code::Timeout));
    ended(Status::Completed, None);
    advanced(Phase::Staged);
    answered("GET", "/status", "2xx");
    OfSteps.delivered(StepName::Invoke, true);
    OfSteps.ended(StepName::Invoke, Ended::Done, Duration::from_millis(300));
    OfSteps.slots(4, &Arc::new(Semaphore::new(3)));
    let text = of_this_process();
    for line in [
        "errand_jobs_ended_total{status=\"error\",code=\"timeout\"} 1",
        "errand_jobs_ended_total{status=\"completed\",code=\"none\"} 1",
        "errand_facts_total{phase=\"staged\"} 1",
        "errand_http_requests_total{method=\"GET\",route=\"/status\",status=\"2xx\"} 1",
        "errand_deliveries_total{step=\"invoke\",delivery=\"again\"} 1",
        "errand_step_seconds_count{step=\"invoke\",ended=\"done\"} 1",
        "errand_slots 4",
        "errand_slots_free 3",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
    }
    let figures = Installation { waiting: 7, oldest: Duration::from_secs(2), ..Default::default() };
    let text = figures.text();
    assert!(text.contains("errand_queue_jobs{state=\"waiting\"} 7\n"), "{text}");
    assert!(text.contains("errand_queue_oldest_seconds 2"), "{text}");
}
