//! The table in ARCHITECTURE.md and the tests that kill: neither has a row that the other lacks.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The tests that the table names, in its second column.
fn named() -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let (_, table) = page.split_once("| dies after | test |").expect("the table");
    let (_, rows) = table.split_once("| --- |").expect("its rows");
    let rows = rows.lines().skip(1).take_while(|line| line.starts_with('|'));
    let test = |row: &str| row.split('|').nth(2)?.split('`').nth(1).map(str::to_owned);
    rows.map(|row| test(row).unwrap_or_else(|| panic!("no test: {row}"))).collect()
}

/// The text of all integration tests.
fn source() -> String {
    let mut text = String::new();
    let mut left = vec![root().join("tests/it")];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(path).expect("a folder").map(|it| it.expect("a file").path()));
        } else {
            text.push_str(&fs::read_to_string(path).expect("text"));
        }
    }
    text
}

/// Names of tests in a text: of functions, and of rows `name "step:point"`.
fn tests(source: &str) -> BTreeSet<&str> {
    source
        .lines()
        .map(str::trim)
        .filter_map(|line| match line.strip_prefix("async fn ") {
            Some(function) => function.split_once('(').map(|(name, _)| name),
            None => line.split_once(" \"").filter(|(_, point)| point.contains(':')).map(|it| it.0),
        })
        .collect()
}

#[test]
fn the_crash_table_and_the_tests_have_the_same_rows() {
    let (named, source) = (named(), source());
    let tests = tests(&source);
    assert!(named.len() > 20, "the table was not read: {named:?}");
    let untested: Vec<_> = named.iter().filter(|name| !tests.contains(name.as_str())).collect();
    assert!(untested.is_empty(), "rows of ARCHITECTURE.md without a test: {untested:?}");
    let kills = tests.iter().filter(|name| name.starts_with("killed_"));
    let untold: Vec<_> = kills.filter(|name| !named.contains(**name)).collect();
    assert!(untold.is_empty(), "tests without a row in ARCHITECTURE.md: {untold:?}");
}
