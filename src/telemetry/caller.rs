//! The trace that a caller's request is a part of. It is not handed from function to function: what
//! a job is made of does not hang on it.

use streams::trace::TraceParent;

tokio::task_local! {
    static CALLER: TraceParent;
}

/// Does something for a caller that is in the middle of a trace.
pub async fn of<F: Future>(caller: TraceParent, work: F) -> F::Output {
    CALLER.scope(caller, work).await
}

/// Where the caller is whom this task works for.
pub fn traceparent() -> Option<String> {
    CALLER.try_with(ToString::to_string).ok()
}
