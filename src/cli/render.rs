//! Output: the only file that prints to stdout. Data goes there and all else to stderr.

use std::io::{IsTerminal as _, Write as _};

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

use crate::exit::Exit;

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One document
    Json,
    /// One document
    Yaml,
}

/// Characters of a value in the table of one thing.
const LONGEST_CELL: usize = 160;

/// A column of a table: its heading and the JSON pointer of its value.
pub(super) type Column = (&'static str, &'static str);

/// Where a command's output goes, and in which form.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    asked: Option<Format>,
}

impl Output {
    /// `asked` is what the user named.
    pub const fn new(asked: Option<Format>) -> Self {
        Self { asked }
    }

    /// Prints a thing.
    pub(super) fn one(&self, value: &Value) {
        match self.format() {
            Format::Table => put(&pairs(value)),
            Format::Json | Format::Yaml => self.document(value),
        }
    }

    /// Prints what a list answered: the whole document, or a table of its `data`.
    pub(super) fn list(&self, answer: &Value, columns: &[Column]) {
        if self.format() != Format::Table {
            return self.document(answer);
        }
        let rows = answer["data"].as_array().or(answer.as_array());
        let mut table = new_table();
        table.set_header(columns.iter().map(|(heading, _)| *heading));
        for row in rows.into_iter().flatten() {
            table.add_row(columns.iter().map(|(_, at)| cell(row.pointer(at))));
        }
        put(&table.trim_fmt());
        let shown = rows.map_or(0, Vec::len) as u64;
        if let Some(total) = answer.pointer("/pagination/total_results").and_then(Value::as_u64)
            && total > shown
        {
            self.note(&format!("{shown} of {total} shown; see --page and --page-size"));
        }
    }

    /// Prints a line as it comes; not when one JSON or YAML document was asked for, then it goes
    /// to stderr.
    pub(super) fn stream(&self, line: &str) {
        if self.wants_document() {
            self.note(line);
        } else {
            put(line);
        }
    }

    /// Prints text that is data in itself.
    pub(super) fn text(&self, text: &str) {
        put(text);
    }

    /// Says something to a person.
    pub(super) fn note(&self, line: &str) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// Shows how far something is, on a terminal only; the next one takes its place.
    pub(super) fn progress(&self, line: &str) {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            let _ = write!(stderr, "\r\x1b[K{line}");
            let _ = stderr.flush();
        }
    }

    /// Whether exactly one document must stand on stdout because the user said so.
    pub(super) const fn wants_document(&self) -> bool {
        matches!(self.asked, Some(Format::Json | Format::Yaml))
    }

    fn format(&self) -> Format {
        self.asked.unwrap_or_else(|| {
            if std::io::stdout().is_terminal() { Format::Table } else { Format::Json }
        })
    }

    fn document(&self, value: &Value) {
        if self.format() == Format::Yaml
            && let Ok(text) = serde_saphyr::to_string(value)
        {
            return put(text.trim_end());
        }
        put(&format!("{value:#}"));
    }
}

/// Writes to stdout. A reader that has gone away (`… | head`) ends the program quietly.
fn put(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if writeln!(stdout, "{text}").and_then(|()| stdout.flush()).is_err() {
        std::process::exit(Exit::Failed.code().into());
    }
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// One line for each key; what is empty is left out.
fn pairs(value: &Value) -> String {
    let Value::Object(fields) = value else { return cell(Some(value)) };
    let mut table = new_table();
    for (key, value) in fields.iter().filter(|(_, value)| !is_empty(value)) {
        table.add_row([key.clone(), shortened(cell(Some(value)))]);
    }
    table.trim_fmt()
}

/// A table is for a look; the whole value is in the JSON.
fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST_CELL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    // A control character in somebody's data must not steer the terminal.
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;
