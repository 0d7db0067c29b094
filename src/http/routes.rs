//! The whole surface on one page. What is not here, the API does not have. The first word of a
//! route says who may call it: the role in the workspace of the path, unless it is another word of
//! `Access`.

use std::sync::LazyLock;

use super::auth::Access::{Admin, Installation, Open, Submitter, Token, Viewer};
use super::route::{Answers, Route, Takes, delete, get, head, patch, post, put};
use super::{
    agents, batch, batches, environments, events, execute, files, filesets, holds, jobs, logs,
    members, metrics, new_job, notification, openapi, platform, queue, rerun, results, secrets,
    steps, workspaces,
};
use crate::catalog::{request, stored_body};
use crate::records::EnvironmentKind;

const ENTITIES: &str = "/apis/entities/v2";
const AGENTS: &str = "/apis/agents/v2";
const JOBS: &str = "/apis/jobs/v2";
const FILES: &str = "/apis/files/v2/workspaces/{workspace}/filesets";
const SECRETS: &str = "/apis/secrets/v2/workspaces/{workspace}/secrets";

/// Every route. The first method of a path is the one that a 405 names.
#[rustfmt::skip]
pub(super) fn all() -> Vec<Route> {
    use Answers::{Bytes, Made, Nothing, Page, Refusal, Text};

    let execute = format!("{AGENTS}/workspaces/{{workspace}}/jobs/execute");
    let jobs = format!("{JOBS}/workspaces/{{workspace}}/jobs");
    let mut routes = vec![
        get(Open, "/", platform::home, "Says that somebody is at home").answers(Text),
        head(Open, "/", platform::home, "Says so without a word"),
        get(Open, "/health/live", platform::live, "Whether the process answers"),
        get(Open, "/health/ready", platform::ready, "Whether a job would be accepted"),
        get(Token, "/health/projection", platform::projection, "How far the records are behind the queue"),
        get(Token, "/status", platform::status, "Which parts answer"),
        get(Open, "/cluster-info", platform::cluster_info, "The version"),
        get(Token, "/metrics", metrics::show, "Figures, as Prometheus reads them").answers(Text),
        get(Open, "/openapi.json", openapi::document, "This document"),
        get(Open, "/apis/auth/discovery", platform::discovery, "How to authenticate"),

        post(Installation, format!("{ENTITIES}/workspaces"), workspaces::create, "Makes a workspace").reads(&workspaces::NEW).answers(Made),
        get(Token, format!("{ENTITIES}/workspaces"), workspaces::list, "Lists workspaces").answers(Page),
        get(Viewer, format!("{ENTITIES}/workspaces/{{name}}"), workspaces::get, "A workspace"),
        put(Admin, format!("{ENTITIES}/workspaces/{{name}}"), workspaces::update, "Replaces what a workspace is for").reads(&workspaces::CHANGE),
        delete(Installation, format!("{ENTITIES}/workspaces/{{name}}"), workspaces::delete, "Removes an empty workspace"),
        get(Viewer, format!("{ENTITIES}/workspace-deletions/{{name}}"), workspaces::deletion, "How far a removal is").answers(Refusal),
        get(Viewer, format!("{ENTITIES}/workspaces/{{name}}/members"), members::list, "Who has a role in a workspace"),
        post(Admin, format!("{ENTITIES}/workspaces/{{name}}/members"), members::add, "Gives a role").reads(&members::NEW).answers(Refusal),
        put(Admin, format!("{ENTITIES}/workspaces/{{name}}/members/{{principal}}"), members::change, "Changes roles").reads(&members::CHANGE).answers(Refusal),
        delete(Admin, format!("{ENTITIES}/workspaces/{{name}}/members/{{principal}}"), members::remove, "Takes roles away").answers(Refusal),

        get(Token, format!("{AGENTS}/post-run-actions"), agents::post_run_actions, "The installed post-run actions"),
        post(Admin, format!("{AGENTS}/workspaces/{{workspace}}/agents"), agents::create, "Registers an agent").reads(&agents::NEW).answers(Made),
        get(Viewer, format!("{AGENTS}/workspaces/{{workspace}}/agents"), agents::list, "Lists agents").answers(Page),
        get(Viewer, format!("{AGENTS}/workspaces/{{workspace}}/agents/{{name}}"), agents::get, "An agent"),
        delete(Admin, format!("{AGENTS}/workspaces/{{workspace}}/agents/{{name}}"), agents::delete, "Forgets an agent").answers(Nothing),

        post(Submitter, &execute, execute::create, "Runs an agent as a job").reads(&request::BODY).answers(Made),
        get(Viewer, &execute, jobs::list, "Lists execute jobs").answers(Page),
        post(Submitter, format!("{execute}:batch"), batch::submit, "Runs an agent as a job for each line").takes(Takes::Lines(&request::BODY)).answers(Answers::Lines),
        get(Viewer, format!("{execute}:batch"), batches::list, "Lists batches").answers(Page),
        get(Viewer, format!("{execute}:batch/{{group}}"), batches::get, "How far a batch is"),
        get(Viewer, format!("{execute}:batch/{{group}}/jobs"), batches::jobs, "The jobs of some lines of a batch"),

        get(Token, format!("{JOBS}/queue"), queue::figures, "How jobs wait and run in each workspace"),
        get(Token, format!("{JOBS}/execution-profiles"), jobs::execution_profiles, "Where jobs can run"),
        post(Submitter, &jobs, new_job::create, "Says where jobs are made").reads(&new_job::BODY).answers(Refusal),
        get(Viewer, &jobs, jobs::list, "Lists jobs").answers(Page),

        post(Submitter, FILES, filesets::create, "Makes a fileset").reads(&filesets::NEW),
        get(Viewer, FILES, filesets::list, "Lists filesets").answers(Page),
        get(Viewer, format!("{FILES}/{{name}}"), filesets::get, "A fileset"),
        delete(Admin, format!("{FILES}/{{name}}"), filesets::delete, "Removes a fileset"),
        patch(Submitter, format!("{FILES}/{{name}}"), filesets::update, "Changes what is said about a fileset").reads(&filesets::CHANGE),
        post(Submitter, format!("{FILES}/{{name}}/refresh"), filesets::refresh, "Follows a source; no fileset here has one").answers(Refusal),
        get(Viewer, format!("{FILES}/{{name}}/files"), files::list, "Lists files"),
        put(Submitter, format!("{FILES}/{{name}}/-/"), files::put_root, "Says that a file needs a path").answers(Refusal),
        head(Viewer, format!("{FILES}/{{name}}/-/{{*path}}"), files::head, "The headers of a file"),
        get(Viewer, format!("{FILES}/{{name}}/-/{{*path}}"), files::get, "The bytes of a file").answers(Bytes),
        put(Submitter, format!("{FILES}/{{name}}/-/{{*path}}"), files::put, "Writes a file").takes(Takes::File),
        delete(Submitter, format!("{FILES}/{{name}}/-/{{*path}}"), files::delete, "Removes a file"),

        post(Admin, SECRETS, secrets::create, "Keeps a secret").reads(&secrets::NEW).answers(Made),
        get(Viewer, SECRETS, secrets::list, "Lists secrets, without values").answers(Page),
        get(Viewer, format!("{SECRETS}/{{name}}"), secrets::get, "A secret, without its value"),
        patch(Admin, format!("{SECRETS}/{{name}}"), secrets::update, "Changes a secret").reads(&secrets::CHANGE),
        delete(Admin, format!("{SECRETS}/{{name}}"), secrets::delete, "Removes a secret").answers(Nothing),
        get(Admin, format!("{SECRETS}/{{name}}/access"), secrets::access, "The value of a secret, where that is allowed"),
    ];
    for kind in EnvironmentKind::ALL {
        routes.extend(environments(&format!("{AGENTS}/workspaces/{{workspace}}/{}", kind.plural()), kind));
    }
    routes.extend(job(&format!("{execute}/{{name}}")));
    routes.extend(job(&format!("{jobs}/{{name}}")));
    routes.extend(generic_job(&format!("{jobs}/{{name}}")));
    routes
}

/// Environments and the two kinds of specs that they are made of.
#[rustfmt::skip]
fn environments(at: &str, kind: EnvironmentKind) -> Vec<Route> {
    let named = format!("{at}/{{name}}");
    vec![
        post(Admin, at, environments::create, "Makes one").reads(stored_body(kind)).answers(Answers::Made).knows(kind),
        get(Viewer, at, environments::list, "Lists them").answers(Answers::Page).knows(kind),
        get(Viewer, &named, environments::get, "One of them").knows(kind),
        delete(Admin, &named, environments::delete, "Forgets one").answers(Answers::Nothing).knows(kind),
    ]
}

/// What both collections have of a job.
#[rustfmt::skip]
fn job(at: &str) -> Vec<Route> {
    vec![
        get(Viewer, at, jobs::get, "A job"),
        delete(Submitter, at, jobs::delete, "Deletes a finished job with its results").answers(Answers::Nothing),
        get(Viewer, format!("{at}/status"), jobs::status, "Status, steps and tasks of a job"),
        post(Submitter, format!("{at}/cancel"), jobs::cancel, "Asks for a job's end"),
        post(Submitter, format!("{at}/rerun"), rerun::rerun, "Runs a job once more, as a new one").reads(&rerun::BODY).answers(Answers::Made),
        get(Viewer, format!("{at}/logs"), logs::list, "Pages through a job's log"),
        get(Viewer, format!("{at}/events"), events::stream, "Follows a job's status by server-sent events").answers(Answers::Events),
        get(Viewer, format!("{at}/notification"), notification::get, "Who was told of a job's end"),
        post(Submitter, format!("{at}/notification/send"), notification::send, "Tells of a job's end once more"),
        get(Viewer, format!("{at}/results"), results::list, "Lists a job's results"),
        get(Viewer, format!("{at}/results/{{result}}"), results::get, "A result"),
        get(Viewer, format!("{at}/results/{{result}}/changes"), results::changes, "What the agent changed in its working directory"),
        get(Viewer, format!("{at}/results/{{result}}/download"), results::download, "The bytes of a result").answers(Answers::Bytes),
    ]
}

/// What only the generic collection has.
#[rustfmt::skip]
fn generic_job(at: &str) -> Vec<Route> {
    vec![
        post(Submitter, format!("{at}/pause"), holds::pause, "Keeps a job from being started"),
        post(Submitter, format!("{at}/resume"), holds::resume, "Lets a paused job go"),
        patch(Submitter, format!("{at}/status-details"), jobs::patch_details, "Lays details over a job's own").takes(Takes::Object),
        post(Submitter, format!("{at}/results/{{result}}"), results::create, "Says who saves results").reads(&results::NEW).answers(Answers::Refusal),
        get(Viewer, format!("{at}/steps"), steps::list, "Lists steps").answers(Answers::Page),
        get(Viewer, format!("{at}/steps/{{step}}"), steps::get, "A step"),
        patch(Submitter, format!("{at}/steps/{{step}}/status"), steps::set_status, "Says who moves steps").reads(&steps::STATUS).answers(Answers::Refusal),
        get(Viewer, format!("{at}/steps/{{step}}/tasks"), steps::tasks, "Lists the tasks of a step"),
        put(Submitter, format!("{at}/steps/{{step}}/tasks/{{task}}"), steps::set_task, "Says who moves tasks").reads(&steps::TASK).answers(Answers::Refusal),
        get(Viewer, format!("{at}/steps/{{step}}/tasks/{{task}}"), steps::task, "A task"),
    ]
}

/// Whether a path is that of a route.
pub(super) fn is_one(path: &str) -> bool {
    pattern(path).is_some()
}

/// The pattern of the route that a path is for: the one that says most of it itself.
pub(super) fn pattern(path: &str) -> Option<&'static str> {
    static PATHS: LazyLock<Vec<String>> =
        LazyLock::new(|| all().into_iter().map(|route| route.path).collect());
    let fitting = PATHS.iter().filter(|pattern| fits(pattern, path));
    fitting.min_by_key(|pattern| pattern.matches('{').count()).map(String::as_str)
}

fn fits(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(part), Some(_)) if part.starts_with("{*") => return true,
            (Some(part), Some(name)) if part.starts_with('{') && !name.is_empty() => {}
            (Some(part), Some(name)) if part == name => {}
            _ => return false,
        }
    }
}
