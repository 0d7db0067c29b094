//! The systemd units: what an installation starts, and how it is stopped without ending agents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The program as the units name it.
const PROGRAM: &str = "/usr/local/bin/errand";

/// Each unit and whether agents run below it.
const UNITS: [(&str, bool); 3] = [
    ("errand-up.service", true),
    ("errand-worker@.service", true),
    ("errand-server.service", false),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd")
}

/// The settings of a unit's section `[Service]`, in their order.
fn service(unit: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(folder().join(unit)).expect("the unit is there");
    let lines = text.lines().skip_while(|line| *line != "[Service]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let settings = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    let setting = |line: &str| {
        let (key, value) = line.split_once('=').expect("a setting");
        (key.to_owned(), value.to_owned())
    };
    settings.map(setting).collect()
}

#[track_caller]
fn has(unit: &str, settings: &[(String, String)], key: &str, value: &str) {
    let found: Vec<_> = settings.iter().filter(|(name, _)| name == key).collect();
    assert_eq!(found.iter().map(|(_, it)| &**it).collect::<Vec<_>>(), [value], "{unit}: {key}");
}

#[test]
fn every_unit_is_known_here() {
    let mut found: Vec<_> = fs::read_dir(folder())
        .expect("there are units")
        .map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    let mut known = UNITS.map(|(unit, _)| unit.to_owned()).to_vec();
    known.sort();
    assert_eq!(found, known);
}

/// Stopping a unit must reach the platform's own process alone, and a run needs its own group.
#[test]
fn stopping_a_unit_ends_no_agent() {
    for (unit, runs_agents) in UNITS {
        let settings = service(unit);
        has(unit, &settings, "KillMode", "process");
        has(unit, &settings, "Restart", "always");
        if !runs_agents {
            continue;
        }
        has(unit, &settings, "Delegate", "yes");
        has(unit, &settings, "DelegateSubgroup", "errand-platform");
        has(unit, &settings, "OOMPolicy", "continue");
        // Agents would inherit these, and keep what belongs to an instance that is gone.
        for (key, _) in &settings {
            let inherited =
                ["Private", "Protect", "Restrict", "NoNew", "SystemCall", "UMask", "User"];
            let is_policy = ["Restart", "RestartSec"].contains(&&**key);
            let bad = inherited.iter().any(|prefix| key.starts_with(prefix)) && !is_policy;
            assert!(!bad, "{unit}: {key}");
        }
    }
}

/// Verbs, flags and keys of the configuration are real.
#[test]
fn what_a_unit_starts_is_there() {
    let errand = || Command::new(env!("CARGO_BIN_EXE_errand"));
    for (unit, _) in UNITS {
        let settings = service(unit);
        let starts: Vec<_> = settings.iter().filter(|(key, _)| key == "ExecStart").collect();
        let [(_, line)] = starts.as_slice() else { panic!("{unit} starts {starts:?}") };
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(words[0], PROGRAM, "{unit}");
        let help = errand().args([words[1], "--help"]).output().expect("it runs");
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(&format!("{flag} <")), "{unit}: {flag} in {help}");
        }
        let variables = settings.iter().filter(|(key, _)| key == "Environment");
        let variables = variables.map(|(_, pair)| pair.split_once('=').expect("a variable"));
        let shown = errand().args(["config", "show", "--platform"]).envs(variables).output();
        let shown = shown.expect("it runs");
        assert!(shown.status.success(), "{unit}: {shown:?}");
    }
}

/// Where there is no systemd its word cannot be had, and is not needed.
#[test]
fn systemd_finds_nothing_wrong() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        println!("there is no systemd-analyze here; the other tests of the units have run");
        return;
    }
    let scratch = TempDir::new().expect("a temporary directory");
    for (unit, _) in UNITS {
        let text = fs::read_to_string(folder().join(unit)).expect("the unit is there");
        let text = text.replace(PROGRAM, env!("CARGO_BIN_EXE_errand"));
        // A template is looked at by way of an instance.
        let path = scratch.path().join(unit.replace("@.", "@here."));
        fs::write(&path, text).expect("it is written");
        let verified = Command::new("systemd-analyze").arg("verify").arg(&path).output();
        let verified = verified.expect("it runs");
        let words = String::from_utf8_lossy(&verified.stderr);
        // Systemd before 254 does not know it, and says that it goes on without.
        let is_new = |line: &&str| line.contains("'DelegateSubgroup'");
        let bad: Vec<_> = words.lines().filter(|line| !is_new(line)).collect();
        assert!(verified.status.success() && bad.is_empty(), "{unit}: {words}");
    }
}
