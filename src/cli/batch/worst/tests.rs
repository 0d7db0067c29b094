use serde_json::json;

use super::{ORDER, of_counts, of_line, worse};
use crate::exit::Exit;

#[test]
fn the_order_has_every_end_of_a_line_and_is_one() {
    for (at, one) in ORDER.into_iter().enumerate() {
        for other in &ORDER[at..] {
            assert_eq!((worse(one, *other), worse(*other, one)), (one, one));
        }
    }
    for exit in Exit::ALL {
        let of_a_call = [Exit::Usage, Exit::Interrupted].contains(exit);
        assert_eq!(ORDER.contains(exit), !of_a_call, "{exit:?}");
    }
}

#[test]
fn each_line_has_the_exit_code_of_its_end() {
    let check = |status: &str, code: Option<&str>, wanted| {
        assert_eq!(of_line(&json!({"status": status, "code": code})), wanted, "{status}");
    };
    check("completed", None, Some(Exit::Done));
    check("cancelled", None, Some(Exit::Cancelled));
    check("error", Some("timeout"), Some(Exit::TimedOut));
    check("error", Some("agent_failed"), Some(Exit::AgentFailed));
    check("error", Some("worker_lost"), Some(Exit::PlatformFailed));
    check("error", None, Some(Exit::PlatformFailed));
    check("refused", None, Some(Exit::Refused));
    check("deleted", None, Some(Exit::NotFound));
    for goes_on in ["created", "pending", "active", "cancelling", "paused"] {
        check(goes_on, None, None);
    }
    for failed in [
        json!({"status": "refused", "http_status": 500}),
        json!({"status": "completed", "results": [{"name": "a"}, {"name": "b", "error": "no"}]}),
    ] {
        assert_eq!(of_line(&failed), Some(Exit::Unreachable));
    }
}

#[test]
fn a_batch_has_that_of_the_worst() {
    let check = |counts, wanted| assert_eq!(of_counts(&counts), wanted, "{counts}");
    check(json!({"state": "complete", "completed": 3, "failed": 0, "codes": {}}), Exit::Done);
    let timed_out = json!({"failed": 2, "codes": {"timeout": 2}, "cancelled": 1});
    check(timed_out, Exit::TimedOut);
    check(json!({"failed": 2, "codes": {"timeout": 1, "agent_failed": 1}}), Exit::AgentFailed);
    check(json!({"failed": 2, "codes": {"timeout": 1}}), Exit::PlatformFailed);
    check(json!({"failed": 1, "codes": {"worker_lost": 1}, "refused": 1}), Exit::Refused);
    check(json!({"state": "incomplete", "refused": 1}), Exit::Failed);
}
