//! Output: the only file that prints to stdout. Data goes there and all else to stderr.

use std::borrow::Cow;
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

/// Characters of a value in the table of one thing, and in a list's.
const LONGEST_VALUE: usize = 160;
const LONGEST_CELL: usize = 80;

/// A column of a table: its heading and the JSON pointer of its value.
pub(super) type Column = (&'static str, &'static str);

/// Where a command's output goes, and in which form.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    asked: Option<Format>,
    cells: Cells,
}

/// How much of a value a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Its beginning; the whole is in the JSON.
    Short,
    /// All of it.
    Whole,
}

impl Output {
    /// `asked` is what the user named.
    pub const fn new(asked: Option<Format>, cells: Cells) -> Self {
        Self { asked, cells }
    }

    /// Prints a thing.
    pub(super) fn one(&self, value: &Value) {
        match self.format() {
            Format::Table => self.put_table(&pairs(value), LONGEST_VALUE),
            Format::Json | Format::Yaml => self.document(value),
        }
    }

    /// Prints what a list answered: the whole document, or a table of its `data`.
    pub(super) fn list(&self, answer: &Value, columns: &[Column]) {
        if self.format() != Format::Table {
            return self.document(answer);
        }
        let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        let entries = answer["data"].as_array().or(answer.as_array()).into_iter().flatten();
        let rows =
            entries.map(|entry| columns.iter().map(|(_, at)| cell(entry.pointer(at))).collect());
        let rows: Vec<_> = std::iter::once(headings).chain(rows).collect();
        self.put_table(&rows, LONGEST_CELL);
    }

    /// Prints rows of cells, the long ones shortened unless the user wants them whole.
    fn put_table(&self, rows: &[Vec<String>], longest: usize) {
        let longest = if self.cells == Cells::Whole { usize::MAX } else { longest };
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.add_rows(rows.iter().map(|row| row.iter().map(|text| shortened(text, longest))));
        put(&table.trim_fmt());
        if rows.iter().flatten().any(|text| shortened(text, longest).len() < text.len()) {
            self.note("Use --no-truncate to see full values.");
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

    /// Whether [`Self::progress`] shows anything.
    pub(super) fn is_watched(&self) -> bool {
        std::io::stderr().is_terminal()
    }

    /// Whether exactly one document must stand on stdout because the user said so.
    pub(super) const fn wants_document(&self) -> bool {
        matches!(self.asked, Some(Format::Json | Format::Yaml))
    }

    /// Whether people read it.
    pub(super) fn is_table(&self) -> bool {
        self.format() == Format::Table
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

/// A row for each key; what is empty is left out.
fn pairs(value: &Value) -> Vec<Vec<String>> {
    let Value::Object(fields) = value else { return vec![vec![cell(Some(value))]] };
    let full = fields.iter().filter(|(_, value)| !is_empty(value));
    full.map(|(key, value)| vec![key.clone(), cell(Some(value))]).collect()
}

/// The beginning of a text that is too long.
fn shortened(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
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
        Some(Value::Array(items)) if items.is_empty() => return String::new(),
        Some(other) => other.to_string(),
    };
    // A control character in somebody's data must not steer the terminal.
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;
