//! The exit code of a batch: that of its worst line, by one order.

use serde_json::Value;
use streams::code::Code;
use streams::outcome::Status;

use crate::exit::Exit;

/// The order, the worst first.
const ORDER: [Exit; 9] = [
    // Lines never came.
    Exit::Failed,
    Exit::Unreachable,
    Exit::Refused,
    // A job was deleted before its results were fetched.
    Exit::NotFound,
    Exit::PlatformFailed,
    Exit::AgentFailed,
    Exit::TimedOut,
    Exit::Cancelled,
    Exit::Done,
];

/// The same for people.
pub(super) const HELP: &str = "Exit code, the worst first: 1 lines never came, 5 the server failed \
                               for a line, 3 a line was refused, 4 a job was deleted, 13 the \
                               platform failed a job, 10 an agent failed, 11 a limit of time \
                               struck, 12 a job was cancelled, 0 all completed";

/// The worse of two.
pub(super) fn worse(one: Exit, other: Exit) -> Exit {
    let worst = ORDER.into_iter().find(|exit| [one, other].contains(exit));
    worst.unwrap_or(Exit::Failed)
}

/// That of a line of an index; none while its job goes on.
pub(super) fn of_line(line: &Value) -> Option<Exit> {
    match line["status"].as_str().unwrap_or_default() {
        "refused" if line["http_status"].as_u64() >= Some(500) => Some(Exit::Unreachable),
        "refused" => Some(Exit::Refused),
        "deleted" => Some(Exit::NotFound),
        word => {
            let status: Status =
                word.parse().ok().filter(|status: &Status| status.is_terminal())?;
            let mut results = line["results"].as_array().into_iter().flatten();
            match results.any(|result| !result["error"].is_null()) {
                true => Some(Exit::Unreachable),
                false => Some(Exit::of_job(status, code(&line["code"]))),
            }
        }
    }
}

/// That of a batch, by its counts.
pub(super) fn of_counts(counts: &Value) -> Exit {
    let some = |count: &Value| count.as_u64() > Some(0);
    let mut found = Vec::new();
    if counts["state"] == "incomplete" {
        found.push(Exit::Failed);
    }
    if some(&counts["refused"]) {
        found.push(Exit::Refused);
    }
    if some(&counts["cancelled"]) {
        found.push(Exit::Cancelled);
    }
    let codes = counts["codes"].as_object();
    let codes = || codes.into_iter().flatten();
    found.extend(codes().map(|(word, _)| Exit::of_job(Status::Error, word.parse().ok())));
    let told: u64 = codes().filter_map(|(_, count)| count.as_u64()).sum();
    if counts["failed"].as_u64() > Some(told) {
        found.push(Exit::of_job(Status::Error, None));
    }
    found.into_iter().fold(Exit::Done, worse)
}

fn code(word: &Value) -> Option<Code> {
    word.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
