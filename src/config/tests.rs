use std::path::Path;

use super::layers::{self, Overrides};
use super::{Config, Secret};

/// Loads a file's text and variables; gives the configuration or the error's text.
fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("errand.toml");
    std::fs::write(&file, text).expect("the file is written");
    let overrides = Overrides { file: Some(file), ..Default::default() };
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let config = layers::load(&overrides, &|_| None, variables).and_then(|config| {
        config.check()?;
        Ok(config)
    });
    config.map_err(|error| error.to_string().replace(&dir.path().display().to_string(), "DIR"))
}

#[track_caller]
fn refused(text: &str, variables: &[(&str, &str)], expected: &str) {
    let error = load(text, variables).expect_err("it must be refused");
    assert!(error.contains(expected), "{error}\nlacks\n{expected}");
}

#[test]
fn later_layers_win() {
    let text = "listen = \"127.0.0.1:1\"\n[worker]\nslots = 1\n[nats]\nurl = \"nats://file\"\n";
    let variables = [("ERRAND__WORKER__SLOTS", "2"), ("ERRAND_BASE_URL", "http://not-ours")];
    let config = load(text, &variables).expect("it is valid");
    assert_eq!(config.nats.url.as_deref(), Some("nats://file"));
    assert_eq!(config.worker.slots, 2);
    assert_eq!(config.general.listen.port(), 1);

    let overrides = Overrides { slots: Some(3), ..Default::default() };
    let variables = [("ERRAND__WORKER__SLOTS".to_owned(), "2".to_owned())];
    let config = layers::load(&overrides, &|_| None, variables.into_iter()).expect("it is valid");
    assert_eq!(config.worker.slots, 3);
}

#[test]
fn nested_sections_are_read_from_both() {
    let text = "[agents.jobs]\ndefault_image = \"a\"\nadapter_dirs = [\"/x\"]\n";
    let variables = [("ERRAND__AGENTS__JOBS__DEFAULT_IMAGE", "b")];
    let config = load(text, &variables).expect("it is valid");
    assert_eq!(config.agents_jobs.default_image.as_deref(), Some("b"));
    assert_eq!(config.agents_jobs.adapter_dirs, [Path::new("/x")]);
}

#[test]
fn unknown_keys_name_file_and_key() {
    refused(
        "[nats]\nulr = 1\n",
        &[],
        "DIR/errand.toml: unknown key 'nats.ulr', expected one of url, token",
    );
    refused("[natz]\nurl = \"x\"\n", &[], "DIR/errand.toml: unknown key 'natz'");
    refused("listn = 1\n", &[], "unknown key 'listn', expected one of listen, allow_any_origin");
    refused("[agents]\njob = 1\n", &[], "unknown key 'agents.job'");
    refused("", &[("ERRAND__NATS__ULR", "x")], "ERRAND__NATS__ULR: unknown key 'nats.ulr'");
}

#[test]
fn wrong_values_name_the_key_and_the_mend() {
    refused("listen = \"localhost\"\n", &[], "listen: 'localhost' is not ADDRESS:PORT");
    refused("[worker]\nslots = \"4\"\n", &[], "worker.slots: expected a whole number, got \"4\"");
    refused("[nats]\nreplicas = 2\n", &[], "nats.replicas: expected 1, 3 or 5, got 2");
    refused("[nats]\nreplicas = 3\n", &[], "nats.replicas: 3 copies need a cluster, named by");
    for (keys, expected) in [
        ("user = \"a\"", "nats.user: needs nats.password beside it"),
        ("password = \"a\"", "nats.password: needs nats.user beside it"),
        (
            "user = \"a\"\npassword = \"b\"",
            "nats.user: the platform's own nats-server has no users",
        ),
        (
            "user = \"a\"\npassword = \"b\"\ntoken = \"c\"",
            "nats.token: a server has a token or users",
        ),
    ] {
        refused(&format!("[nats]\n{keys}\n"), &[], expected);
    }
    refused("[worker]\nslots = 0\n", &[], "worker.slots: expected 1 to 4096, got 0");
    refused("[worker]\nslots = 4097\n", &[], "worker.slots: expected 1 to 4096, got 4097");
    for most in ["31", "4194305"] {
        let text = format!(
            "worker.max_processes: expected 0 (no bound) or 32 to 4194304, got {most}; the runner \
             and the adapter count too"
        );
        refused(&format!("[worker]\nmax_processes = {most}\n"), &[], &text);
    }
    refused("[worker]\nslots = -1\n", &[], "worker.slots: expected 0 or more, got -1");
    let lost = "claims.lost_after_seconds: expected 10 or more, got 9";
    refused("[claims]\nlost_after_seconds = 9\n", &[], lost);
    let longest = "agents.jobs.max_timeout_seconds: expected 1 or more, got 0";
    refused("[agents.jobs]\nmax_timeout_seconds = 0\n", &[], longest);
    let largest = "agents.jobs.max_input_bytes: expected 1 to 16777216, got 16777217";
    refused("[agents.jobs]\nmax_input_bytes = 16777217\n", &[], largest);
    for budget in ["staging_seconds", "saving_seconds"] {
        let why = format!("worker.{budget}: expected 1 or more, got 0");
        refused(&format!("[worker]\n{budget} = 0\n"), &[], &why);
    }
    let slots = [("ERRAND__WORKER__SLOTS", "many")];
    refused("", &slots, "ERRAND__WORKER__SLOTS: worker.slots: expected a whole number, got 'many'");
    refused("[nats]\nurl = \" \"\n", &[], "nats.url: expected text, got ' '; leave the key out");
    refused("listen = \"0.0.0.0:80\"\n", &[], "only loopback addresses are served");
    refused(
        "[store]\nendpoint = \"http://x\"\n",
        &[],
        "store.endpoint: 'http://x' needs store.access_key",
    );
    let sandbox = "worker.sandbox: expected one of auto, user, landlock, none, got 'docker'";
    refused("[worker]\nsandbox = \"docker\"\n", &[], sandbox);
    for ids in ["0:5", "5:0", "5", "4294967295:2", "a:b"] {
        let wanted = "worker.agent_ids: expected FIRST:COUNT, the first user's number (not 0) and \
                      how many there are, for example 2000000000:4096, got ";
        refused(&format!("[worker]\nagent_ids = \"{ids}\"\n"), &[], &format!("{wanted}'{ids}'"));
    }
    let outside = "[worker]\nmetrics_listen = \"0.0.0.0:9\"\n";
    refused(outside, &[], "worker.metrics_listen: 0.0.0.0:9 can be reached from outside");
    refused("[store\n", &[], "is not valid TOML");
    refused("[nats]\ntoken = 77123\n", &[], "expected a string, got a value of type integer");
}

#[test]
fn limits_of_workspaces_are_read_from_both() {
    let text = "[fairness]\nmax_running = 5\nworkspaces = {team-a = 2, \"team.b\" = 0}\n";
    let limits = load(text, &[]).expect("it is valid").running_limits();
    let of = ["team-a", "team.b", "other"].map(|workspace| limits.of(workspace));
    assert_eq!(of, [Some(2), None, Some(5)]);
    let variables = [("ERRAND__FAIRNESS__WORKSPACES", "team-a=3, team.b = 4")];
    let config = load("", &variables).expect("it is valid");
    assert_eq!(config.running_limits().of("team.b"), Some(4));
    assert_eq!(load(&config.show(), &[]).expect("it is valid"), config);
    refused("[fairness]\nworkspaces = {a = -1}\n", &[], "a: expected 0 or more, got -1");
    refused("[fairness]\nworkspaces = 3\n", &[], "expected a table of whole numbers, got 3");
    refused("[fairness]\nmax_running = 1001\n", &[], "expected 0 (no limit) to 1000, got 1001");
    let text = "expected NAME=NUMBER,…, got 'team-a'";
    refused("", &[("ERRAND__FAIRNESS__WORKSPACES", "team-a")], text);
}

#[test]
fn any_address_may_be_served_where_callers_need_tokens() {
    let config = load("listen = \"0.0.0.0:80\"\n[auth]\nrequired = true\n", &[]);
    assert!(!config.expect("it is valid").general.listen.ip().is_loopback());
}

#[test]
fn secrets_are_never_shown() {
    let text = "[nats]\ntoken = \"hunter2\"\n[database]\nurl = \"postgres://u:hunter2@h/d\"\n";
    let config = load(text, &[]).expect("it is valid");
    assert_eq!(config.nats.token, Some(Secret::new("hunter2".to_owned())));
    assert!(!config.show().contains("hunter2"), "{}", config.show());
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn shown_values_can_be_read_back() {
    let text = Config::default().show();
    assert_eq!(load(&text, &[]).expect("it is valid"), Config::default());
}

/// Run with `ERRAND_UPDATE=1` to write the file anew.
#[test]
fn the_example_file_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/config.example.toml");
    let wanted = Config::example();
    if std::env::var_os("ERRAND_UPDATE").is_some() {
        std::fs::write(&file, &wanted).expect("the example is written");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == wanted,
        "{} is stale: ERRAND_UPDATE=1 cargo nextest run config",
        file.display()
    );
    assert_eq!(load(&found, &[]).expect("it is valid"), Config::default());
}
