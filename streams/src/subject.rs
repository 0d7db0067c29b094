//! Subjects of facts, status and logs: the only file in which one of a job is formatted or split.
//!
//! A workspace may contain characters that mean something to NATS (above all `.`); they are
//! written as `%` and two hexadecimal digits, so that a workspace is always one token.

use crate::id::JobId;
use crate::phase::Phase;

/// Where input that is no fact at all goes, with the reason.
pub const REFUSED: &str = "jobs.refused";

/// The subject of one fact.
pub fn fact(phase: Phase, workspace: &str, job: JobId) -> String {
    format!("jobs.{phase}.{}.{job}", escape(workspace))
}

/// All facts of a phase.
pub fn facts(phase: Phase) -> String {
    format!("jobs.{phase}.>")
}

/// All facts of a phase in one workspace.
pub fn facts_in(phase: Phase, workspace: &str) -> String {
    format!("jobs.{phase}.{}.>", escape(workspace))
}

/// One job's fact of a phase, whatever its workspace.
pub fn fact_of(phase: Phase, job: JobId) -> String {
    format!("jobs.{phase}.*.{job}")
}

/// One job's visible changes.
pub fn status(workspace: &str, job: JobId) -> String {
    format!("status.{}.{job}", escape(workspace))
}

/// The status messages that the stream has kept, as the server sends them on: everything after the
/// first word is that of [`status`].
pub const CHANGES: (&str, &str) = ("status.>", "changes.>");

/// One job's visible changes, each once and in their order, with their sequence in a header.
pub fn changes(workspace: &str, job: JobId) -> String {
    format!("changes.{}.{job}", escape(workspace))
}

/// Where whoever wants an answer asks for jobs, in any workspace.
pub const SUBMITS: &str = "submit.*";

/// The same in one workspace.
pub fn submit(workspace: &str) -> String {
    format!("submit.{}", escape(workspace))
}

/// The workspace of such a subject, which has one spelling.
pub fn parse_submit(subject: &str) -> Option<String> {
    let workspace = unescape(subject.strip_prefix("submit.")?)?;
    (submit(&workspace) == subject).then_some(workspace)
}

/// The first words of subjects that mean something to the platform.
const WORDS: [&str; 5] = ["jobs", "status", "changes", "logs", "submit"];

/// Whether only the platform may say what is published there: the subject is one of its own or of
/// the server's.
pub fn is_reserved(subject: &str) -> bool {
    let first = subject.split('.').next().unwrap_or_default();
    WORDS.contains(&first) || first.starts_with('$')
}

/// One job's log batches.
pub fn logs(workspace: &str, job: JobId) -> String {
    format!("logs.{}.{job}", escape(workspace))
}

/// What a fact's subject says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactSubject {
    /// Its phase.
    pub phase: Phase,
    /// Its workspace, unescaped.
    pub workspace: String,
    /// Its job.
    pub job: JobId,
}

/// A subject that names no fact.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("subject '{0}' is not jobs.<phase>.<workspace>.<job uuid>")]
pub struct NoFactSubject(String);

/// Splits a fact's subject.
pub fn parse_fact(subject: &str) -> Result<FactSubject, NoFactSubject> {
    let parse = || {
        let mut tokens = subject.split('.');
        let ("jobs", phase, workspace, job, None) =
            (tokens.next()?, tokens.next()?, tokens.next()?, tokens.next()?, tokens.next())
        else {
            return None;
        };
        let workspace = unescape(workspace)?;
        let found = FactSubject { phase: phase.parse().ok()?, workspace, job: job.parse().ok()? };
        // One spelling only: `%41` for `A` would give the same job a second subject.
        (fact(found.phase, &found.workspace, found.job) == subject).then_some(found)
    };
    parse().ok_or_else(|| NoFactSubject(subject.to_owned()))
}

/// Writes a workspace as one token. Also good for names of consumers.
pub fn escape(workspace: &str) -> String {
    let mut token = String::with_capacity(workspace.len());
    for byte in workspace.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'@' | b'+' => {
                token.push(char::from(byte));
            }
            other => token.push_str(&format!("%{other:02X}")),
        }
    }
    token
}

/// Reads a token back; `None` when it is empty or escaped badly.
pub fn unescape(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            other => other,
        });
    }
    String::from_utf8(bytes).ok().filter(|workspace| !workspace.is_empty())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests;
