//! Lists: which page, in which order, and how many there are in all.
//!
//! A page is asked for by its number, or by the cursor that an earlier page ended with. Numbers
//! shift when records are made or removed meanwhile, cursors do not: what follows one is what
//! stands behind the last record of its page, in the order of (sort key, id).

mod cursor;

pub use cursor::Cursor;

use super::filter::Condition;

/// What a list is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// Which page; behind a cursor, how many items from there.
    pub page: Page,
    /// In which order.
    pub sort: Sort,
    /// Behind which record.
    pub after: Option<Cursor>,
    /// What must hold of the records.
    pub condition: Option<Condition>,
}

impl Select {
    /// A page of everything.
    pub const fn page(page: Page, sort: Sort) -> Self {
        Self { page, sort, after: None, condition: None }
    }

    /// A cursor says by itself where to begin.
    pub(super) fn offset(&self) -> i64 {
        self.after.as_ref().map_or_else(|| self.page.offset(), |_| 0)
    }
}

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Which, from 1.
    pub page: u32,
    /// How many items it has.
    pub page_size: u32,
}

impl Page {
    pub(super) fn limit(self) -> i64 {
        i64::from(self.page_size)
    }

    pub(super) fn offset(self) -> i64 {
        i64::from(self.page.saturating_sub(1)).saturating_mul(i64::from(self.page_size))
    }
}

/// A page's items, and how many the whole list has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: u64,
    /// Where the next page begins, when there is more.
    pub next: Option<Cursor>,
}

/// What a list is sorted by. Items that agree in it are sorted by their id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// The key.
    pub key: SortKey,
    /// Up or down.
    pub direction: Direction,
}

/// A sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// When it was made.
    CreatedAt,
    /// When it was changed last.
    UpdatedAt,
    /// Its name.
    Name,
    /// What a job came from. Only jobs have a source: elsewhere this is [`Self::CreatedAt`].
    Source,
}

/// Up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

impl Sort {
    /// What lists are sorted by when nobody says otherwise.
    pub const NEWEST_FIRST: Self =
        Self { key: SortKey::CreatedAt, direction: Direction::Descending };

    /// The order of a word, as `-created_at`.
    pub fn read(word: &str) -> Option<Self> {
        let (direction, name) = match word.strip_prefix('-') {
            Some(name) => (Direction::Descending, name),
            None => (Direction::Ascending, word),
        };
        Some(Self { key: SortKey::find(name)?, direction })
    }

    /// The same, for a table without a source.
    pub(super) const fn without_source(self) -> Self {
        match self.key {
            SortKey::Source => Self { key: SortKey::CreatedAt, ..self },
            _ => self,
        }
    }
}

impl SortKey {
    /// Its name, which is also its column's.
    pub const fn word(self) -> &'static str {
        match self {
            Self::CreatedAt => "created_at",
            Self::UpdatedAt => "updated_at",
            Self::Name => "name",
            Self::Source => "source",
        }
    }

    /// The key of a name.
    pub fn find(word: &str) -> Option<Self> {
        let all = [Self::CreatedAt, Self::UpdatedAt, Self::Name, Self::Source];
        all.into_iter().find(|key| key.word() == word)
    }
}

impl Direction {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        }
    }

    /// What stands between a record and one before it.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Ascending => ">",
            Self::Descending => "<",
        }
    }
}

impl std::fmt::Display for Sort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = match self.direction {
            Direction::Ascending => "",
            Direction::Descending => "-",
        };
        write!(f, "{sign}{}", self.key.word())
    }
}
