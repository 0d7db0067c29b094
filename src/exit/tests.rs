use super::Exit;
use streams::code::Code;
use streams::outcome::Status;

#[track_caller]
fn check(status: Status, code: Option<Code>, expected: u8) {
    assert_eq!(Exit::of_job(status, code).code(), expected, "{status} {code:?}");
}

#[test]
fn ends_of_jobs_have_the_documented_codes() {
    check(Status::Completed, None, 0);
    check(Status::Error, Some(Code::AgentFailed), 10);
    check(Status::Error, Some(Code::NoResult), 10);
    check(Status::Error, Some(Code::Timeout), 11);
    check(Status::Error, Some(Code::QueueTimeout), 11);
    check(Status::Cancelled, Some(Code::Cancelled), 12);
    check(Status::Cancelled, None, 12);
    check(Status::Error, Some(Code::WorkerLost), 13);
    check(Status::Error, Some(Code::SaveFailed), 13);
    check(Status::Error, None, 13);
}

#[test]
fn every_code_stands_once() {
    let mut codes: Vec<_> = Exit::ALL.iter().map(|exit| exit.code()).collect();
    codes.dedup();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 130]);
}
