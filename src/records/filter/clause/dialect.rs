//! What SQLite and PostgreSQL say differently of documents and texts.
//!
//! SQLite looks a place up with a path, `$."spec"."agent"`, which is bound; a key that has a
//! quote cannot be written in one. PostgreSQL takes a step for each bound key. On both a key of
//! digits is a key and no index.

use sqlx::AnyPool;

use super::{Compared, Place};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::records) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// The one that the pool's database speaks.
    pub(in crate::records) fn of(pool: &AnyPool) -> Self {
        match pool.connect_options().database_url.scheme() {
            "sqlite" => Self::Sqlite,
            _ => Self::Postgres,
        }
    }

    /// Tables whose records have a document that is kept as text, ready to be looked into.
    ///
    /// PostgreSQL would read the text again for every place in it; behind `OFFSET 0` it does so
    /// once a record. Its `jsonb` cannot hold a NUL character, not even escaped, and one such
    /// document would fail the whole list. No filter can ask for one, so it becomes a replacement
    /// character. A backslash that is itself escaped is none of an escape.
    pub(in crate::records) fn with_document(self, tables: &str, text: &str) -> String {
        match self {
            Self::Sqlite => tables.to_owned(),
            Self::Postgres => format!(
                r"{tables} CROSS JOIN LATERAL (SELECT (
                   CASE WHEN strpos({text}, '\u0000') = 0 THEN {text} ELSE
                   regexp_replace({text}, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END
                   )::jsonb AS parsed OFFSET 0) AS document"
            ),
        }
    }

    /// The document in such a table.
    pub(super) fn document(self, text: &str) -> String {
        match self {
            Self::Sqlite => text.to_owned(),
            Self::Postgres => "document.parsed".to_owned(),
        }
    }

    /// The place at the end of a path.
    pub(super) fn place(
        self,
        document: &str,
        path: &[String],
        bind: &mut dyn FnMut(&str) -> String,
    ) -> Place {
        match self {
            Self::Sqlite => {
                let steps: String = path.iter().map(|key| format!(".\"{key}\"")).collect();
                let path = bind(&format!("${steps}"));
                Place {
                    kind: format!("json_type({document}, {path})"),
                    value: format!("json_extract({document}, {path})"),
                }
            }
            Self::Postgres => {
                let steps: Vec<_> = path.iter().map(|key| format!(" -> {}", bind(key))).collect();
                let value = format!("({document}{})", steps.concat());
                Place { kind: format!("jsonb_typeof({value})"), value }
            }
        }
    }

    pub(super) fn missing(self, Place { value, .. }: &Place) -> String {
        match self {
            Self::Sqlite => format!("{value} IS NULL"),
            // This is NULL of what is missing and of a null.
            Self::Postgres => format!("({value} #>> '{{}}') IS NULL"),
        }
    }

    /// The text at a place; NULL when there is none.
    pub(super) fn text(self, Place { kind, value }: &Place) -> String {
        match self {
            Self::Sqlite => format!("(CASE {kind} WHEN 'text' THEN {value} END)"),
            Self::Postgres => format!("(CASE {kind} WHEN 'string' THEN {value} #>> '{{}}' END)"),
        }
    }

    /// The number at a place; NULL when there is none.
    pub(super) fn number_at(self, Place { kind, value }: &Place) -> String {
        match self {
            Self::Sqlite => format!("(CASE WHEN {kind} IN ('integer', 'real') THEN {value} END)"),
            Self::Postgres => {
                format!("(CASE {kind} WHEN 'number' THEN ({value} #>> '{{}}')::numeric END)")
            }
        }
    }

    /// `true` or `false` at a place; NULL when there is neither.
    pub(super) fn flag(self, Place { kind, value }: &Place) -> String {
        match self {
            Self::Sqlite => format!("(CASE WHEN {kind} IN ('true', 'false') THEN {kind} END)"),
            Self::Postgres => format!("(CASE {kind} WHEN 'boolean' THEN {value} #>> '{{}}' END)"),
        }
    }

    /// A number, from the place of its digits.
    pub(super) fn number(self, digits: &str) -> String {
        match self {
            // Read by the same code as the documents: no digit more or less.
            Self::Sqlite => format!("json_extract({digits}, '$')"),
            Self::Postgres => format!("{digits}::numeric"),
        }
    }

    /// The elements of a bound list, as rows.
    pub(super) fn elements(self, compared: Compared, list: &str) -> String {
        let cast = match compared {
            Compared::Text => "",
            Compared::Int => "::bigint",
            Compared::Number => "::numeric",
        };
        match self {
            Self::Sqlite => format!("SELECT value FROM json_each({list})"),
            Self::Postgres => format!("SELECT jsonb_array_elements_text({list}::jsonb){cast}"),
        }
    }

    /// A text that is compared by its bytes, whatever the collation of the database.
    pub(super) fn bytewise(self, text: &str) -> String {
        match self {
            Self::Sqlite => text.to_owned(),
            Self::Postgres => format!("{text} COLLATE \"C\""),
        }
    }

    /// Whether a text holds another that is in lower case.
    pub(super) fn holds_ignoring_case(self, text: &str, part: &str) -> String {
        let find = match self {
            Self::Sqlite => "instr",
            Self::Postgres => "strpos",
        };
        // In these orders of bytes both databases know the letters of ASCII only.
        format!("{find}(lower({}), {part}) > 0", self.bytewise(text))
    }

    /// Whether a place holds this list or object, in whatever order of keys.
    pub(super) fn same(self, Place { kind, value }: &Place, wanted: &str) -> String {
        match self {
            Self::Sqlite => {
                let leaves = |document: &str| {
                    format!(
                        "SELECT fullkey, CASE type WHEN 'real' THEN 'integer' ELSE type END, atom
                         FROM json_tree({document})"
                    )
                };
                let there =
                    leaves(&format!("CASE WHEN {kind} IN ('array', 'object') THEN {value} END"));
                let wanted = leaves(wanted);
                format!(
                    "(NOT EXISTS ({there} EXCEPT {wanted}) AND NOT EXISTS ({wanted} EXCEPT {there}))"
                )
            }
            Self::Postgres => format!("{value} = {wanted}::jsonb"),
        }
    }

    /// Whether a place holds an object with a key.
    pub(super) fn has_key(self, Place { kind, value }: &Place, key: &str) -> String {
        match self {
            Self::Sqlite => format!(
                "EXISTS (SELECT 1 FROM json_each(CASE {kind} WHEN 'object' THEN {value} END)
                 AS member WHERE member.key = {key})"
            ),
            Self::Postgres => format!("({kind} = 'object' AND {value} ? {key})"),
        }
    }

    /// The elements of the list at a place, as a table.
    pub(super) fn list(self, Place { kind, value }: &Place) -> String {
        let list = format!("CASE {kind} WHEN 'array' THEN {value} END");
        match self {
            Self::Sqlite => format!("json_each({list}) AS element"),
            Self::Postgres => format!("jsonb_array_elements({list}) AS element(value)"),
        }
    }

    /// A row of that table.
    pub(super) fn element(self) -> Place {
        let kind = match self {
            Self::Sqlite => "element.type",
            Self::Postgres => "jsonb_typeof(element.value)",
        };
        Place { kind: kind.to_owned(), value: "element.value".to_owned() }
    }

    /// The document of an element that is an object. SQLite fails on what is no JSON.
    pub(super) fn object(self, Place { kind, value }: &Place) -> String {
        match self {
            Self::Sqlite => format!("CASE {kind} WHEN 'object' THEN {value} END"),
            Self::Postgres => value.clone(),
        }
    }
}
