//! How long ago an agent said something, in words for a person.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// `last output 12 s ago`, of the answer to a status request; `None` when it says nothing of it.
pub(super) fn words(answer: &Value) -> Option<String> {
    let at = answer.pointer("/status_details/last_output_at")?.as_str()?.parse().ok()?;
    Some(format!("last output {} ago", span(Timestamp::now().duration_since(at))))
}

/// The server's clock may be ahead of ours.
fn span(ago: SignedDuration) -> String {
    match ago.as_secs().max(0) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_silence_is_told_in_the_unit_that_fits() {
        let cases = [(-5, "0 s"), (12, "12 s"), (119, "119 s"), (130, "2 min"), (9000, "2 h")];
        for (seconds, text) in cases {
            assert_eq!(span(SignedDuration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn what_the_server_does_not_say_is_not_told() {
        assert_eq!(words(&json!({"status_details": {"message": "Job is running"}})), None);
        let now = Timestamp::now().to_string();
        let words = words(&json!({"status_details": {"last_output_at": now}}));
        assert!(words.is_some_and(|words| words.starts_with("last output ")));
    }
}
