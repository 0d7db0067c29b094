//! Every route and every kind of caller. What is expected is said here once more, on purpose: the
//! table of routes must not be its own judge.

use std::collections::BTreeSet;

use super::*;
use crate::http::route::Route;
use crate::http::routes;

/// What a caller must have at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Least {
    Nothing,
    Token,
    In(Role),
    Everywhere,
}

/// Routes without what their paths have in common.
const EXPECTED: &[(Least, &[&str])] = &[
    (
        Least::Nothing,
        &[
            "GET /",
            "HEAD /",
            "GET /health/live",
            "GET /health/ready",
            "GET /cluster-info",
            "GET /openapi.json",
            "GET auth/discovery",
        ],
    ),
    (
        Least::Token,
        &[
            "GET /health/projection",
            "GET /status",
            "GET /metrics",
            "GET entities/v2/workspaces",
            "GET agents/v2/post-run-actions",
            "GET jobs/v2/execution-profiles",
            "GET jobs/v2/queue",
        ],
    ),
    (Least::Everywhere, &["POST entities/v2/workspaces", "DELETE entities/v2/workspaces/{name}"]),
    (
        Least::In(Role::Viewer),
        &[
            "GET entities/v2/workspaces/{name}",
            "GET entities/v2/workspace-deletions/{name}",
            "GET entities/v2/workspaces/{name}/members",
            "GET agents/agents",
            "GET agents/agents/{name}",
            "GET agents/environments",
            "GET agents/environments/{name}",
            "GET agents/environment-specs",
            "GET agents/environment-specs/{name}",
            "GET agents/compute-specs",
            "GET agents/compute-specs/{name}",
            "GET files/filesets",
            "GET files/filesets/{name}",
            "GET files/filesets/{name}/files",
            "GET files/filesets/{name}/-/{*path}",
            "HEAD files/filesets/{name}/-/{*path}",
            "GET secrets/secrets",
            "GET secrets/secrets/{name}",
            "GET agents/jobs/execute:batch",
            "GET agents/jobs/execute:batch/{group}",
            "GET agents/jobs/execute:batch/{group}/jobs",
            "GET JOBS",
            "GET JOBS/{name}",
            "GET JOBS/{name}/status",
            "GET JOBS/{name}/logs",
            "GET JOBS/{name}/events",
            "GET JOBS/{name}/notification",
            "GET JOBS/{name}/results",
            "GET JOBS/{name}/results/{result}",
            "GET JOBS/{name}/results/{result}/changes",
            "GET JOBS/{name}/results/{result}/download",
            "GET jobs/jobs/{name}/steps",
            "GET jobs/jobs/{name}/steps/{step}",
            "GET jobs/jobs/{name}/steps/{step}/tasks",
            "GET jobs/jobs/{name}/steps/{step}/tasks/{task}",
        ],
    ),
    (
        Least::In(Role::Submitter),
        &[
            "POST JOBS",
            "POST agents/jobs/execute:batch",
            "DELETE JOBS/{name}",
            "POST JOBS/{name}/cancel",
            "POST JOBS/{name}/notification/send",
            "POST JOBS/{name}/rerun",
            "POST jobs/jobs/{name}/pause",
            "POST jobs/jobs/{name}/resume",
            "PATCH jobs/jobs/{name}/status-details",
            "POST jobs/jobs/{name}/results/{result}",
            "PATCH jobs/jobs/{name}/steps/{step}/status",
            "PUT jobs/jobs/{name}/steps/{step}/tasks/{task}",
            "POST files/filesets",
            "PATCH files/filesets/{name}",
            "POST files/filesets/{name}/refresh",
            "PUT files/filesets/{name}/-/",
            "PUT files/filesets/{name}/-/{*path}",
            "DELETE files/filesets/{name}/-/{*path}",
        ],
    ),
    (
        Least::In(Role::Admin),
        &[
            "PUT entities/v2/workspaces/{name}",
            "POST entities/v2/workspaces/{name}/members",
            "PUT entities/v2/workspaces/{name}/members/{principal}",
            "DELETE entities/v2/workspaces/{name}/members/{principal}",
            "POST agents/agents",
            "DELETE agents/agents/{name}",
            "POST agents/environments",
            "DELETE agents/environments/{name}",
            "POST agents/environment-specs",
            "DELETE agents/environment-specs/{name}",
            "POST agents/compute-specs",
            "DELETE agents/compute-specs/{name}",
            "DELETE files/filesets/{name}",
            "POST secrets/secrets",
            "PATCH secrets/secrets/{name}",
            "DELETE secrets/secrets/{name}",
            "GET secrets/secrets/{name}/access",
        ],
    ),
];

/// What is expected of a route as it stands in the table.
fn expected(route: &Route) -> Least {
    let path = route.path.replace("/apis/", "").replace("/v2/workspaces/{workspace}", "");
    let name = format!("{} {path}", route.method);
    // Both collections have what one line says of JOBS.
    let of_both = name.replace("agents/jobs/execute", "JOBS").replace("jobs/jobs", "JOBS");
    let says = |lines: &&[&str]| lines.contains(&&*name) || lines.contains(&&*of_both);
    let found = EXPECTED.iter().find(|(_, lines)| says(lines));
    found.unwrap_or_else(|| panic!("nobody says who may call {name}")).0
}

/// The path with the workspace `team` and nothing that exists in its other places.
fn filled(route: &Route) -> String {
    let path = match route.path.starts_with("/apis/entities") {
        true => route.path.replace("{name}", "team"),
        false => route.path.replace("{workspace}", "team"),
    };
    let part = |part: &str| if part.starts_with('{') { "nothing" } else { part }.to_owned();
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// A caller: what it sends, its name, and the role that it has in `team` and everywhere.
struct Somebody {
    token: Option<String>,
    name: &'static str,
    role: Option<Role>,
    everywhere: Option<Role>,
}

impl Somebody {
    /// The answer that refuses it, if one does.
    fn refusal(&self, least: Least) -> Option<(u16, String)> {
        let lacks = |role: Role, place: &str, has: Option<Role>| {
            let has = has.map_or("no role".to_owned(), |role| format!("role '{role}'"));
            let (needed, name) = (format!("Role '{role}' in {place} is needed"), self.name);
            (403, format!("{needed}, token '{name}' has {has} there"))
        };
        match least {
            Least::Nothing => None,
            _ if self.name.is_empty() => {
                let text = "A valid token is needed, sent as 'Authorization: Bearer TOKEN'; \
                            `errand tokens create` on the platform's machine makes one";
                Some((401, text.to_owned()))
            }
            Least::Token => None,
            Least::In(role) => {
                (self.role < Some(role)).then(|| lacks(role, "workspace 'team'", self.role))
            }
            Least::Everywhere => {
                let (has, needed) = (self.everywhere, Role::Admin);
                (has < Some(needed)).then(|| lacks(needed, "all workspaces", has))
            }
        }
    }
}

async fn everybody(api: &Harness) -> Vec<Somebody> {
    let root = furnish(api).await;
    let mut all = vec![
        Somebody { token: None, name: "", role: None, everywhere: None },
        Somebody {
            token: Some(Token::generate().reveal().to_owned()),
            name: "",
            role: None,
            everywhere: None,
        },
        Somebody {
            token: Some(root),
            name: "root",
            role: Some(Role::Admin),
            everywhere: Some(Role::Admin),
        },
    ];
    for (name, workspace, role) in [
        ("viewer", "team", Role::Viewer),
        ("submitter", "team", Role::Submitter),
        ("admin", "team", Role::Admin),
        ("stranger", "other", Role::Admin),
        ("watchman", EVERYWHERE, Role::Viewer),
    ] {
        let token = Some(token(api, name, &[(workspace, role)]).await);
        let everywhere = (workspace == EVERYWHERE).then_some(role);
        let role = Some(role).filter(|_| workspace != "other");
        all.push(Somebody { token, name, role, everywhere });
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_lets_in_whom_it_should_and_nobody_else() {
    for api in both().await {
        let (everybody, routes) = (everybody(&api).await, routes::all());
        let mut asked = 0;
        for route in &routes {
            let (path, method, least) = (filled(route), route.method.as_str(), expected(route));
            for somebody in &everybody {
                let answer = match &somebody.token {
                    Some(token) => api.as_token(token, method, &path, None).await,
                    None => api.send(method, &path, None).await,
                };
                let whole = format!("{method} {path} by '{}': {}", somebody.name, answer.body);
                match somebody.refusal(least) {
                    None => {
                        assert!(!is_refused_for_its_role(&answer), "{whole}");
                        assert!(answer.status < 500, "{whole}");
                    }
                    Some((status, text)) => {
                        assert_eq!(answer.status, status, "{whole}");
                        let asks = answer.headers.get("www-authenticate");
                        assert_eq!(asks.is_some_and(|it| it == "Bearer"), status == 401, "{whole}");
                        if method != "HEAD" {
                            assert_eq!(answer.body, json!({"detail": text}), "{whole}");
                        }
                    }
                }
                asked += 1;
            }
        }
        eprintln!("{} routes, {} callers, {asked} requests", routes.len(), everybody.len());
    }
}

/// A role is one in the workspace of the path, so there must be one.
#[test]
fn every_route_that_needs_a_role_names_a_workspace() {
    for route in routes::all().iter().filter(|route| route.access.role().is_some()) {
        let of_entities = route.path.starts_with("/apis/entities/v2/workspace");
        let place = if of_entities { "{name}" } else { "{workspace}" };
        assert_eq!(route.path.matches(place).count(), 1, "{} {}", route.method, route.path);
    }
}

/// Expectations of routes that are no more are as wrong as missing ones.
#[test]
fn every_expectation_is_of_a_route() {
    let lines: Vec<_> = EXPECTED.iter().flat_map(|(_, lines)| lines.iter()).collect();
    assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len(), "each is said once");
    let of_both = lines.iter().filter(|line| line.contains("JOBS")).count();
    assert_eq!(routes::all().iter().map(expected).count(), lines.len() + of_both);
}
