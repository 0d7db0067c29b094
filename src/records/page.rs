//! Lists: which page, in which order, and how many there are in all.

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
        i64::from(self.page.saturating_sub(1)) * i64::from(self.page_size)
    }
}

/// A page's items, and how many the whole list has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: u64,
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

    /// The `ORDER BY` of a table without a source.
    pub(super) fn order_by(self) -> String {
        let key = match self.key {
            SortKey::Source => SortKey::CreatedAt,
            key => key,
        };
        Self { key, ..self }.job_order_by()
    }

    /// The `ORDER BY` of jobs.
    pub(super) fn job_order_by(self) -> String {
        let column = match self.key {
            SortKey::CreatedAt => "created_at",
            SortKey::UpdatedAt => "updated_at",
            SortKey::Name => "name",
            SortKey::Source => "source",
        };
        let direction = match self.direction {
            Direction::Ascending => "ASC",
            Direction::Descending => "DESC",
        };
        format!("ORDER BY {column} {direction}, id {direction}")
    }
}
