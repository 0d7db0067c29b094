//! Listing objects, page by page: a prefix may have any number of keys.

use super::{Error, Store, failed};

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// When it was written, in seconds since 1970, as far as the store says.
    pub written: Option<i64>,
}

/// Objects below a prefix, in the order of their keys.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The objects.
    pub objects: Vec<Listed>,
    /// What to ask for the next page with; `None` on the last.
    pub next: Option<String>,
}

impl Listed {
    /// Whether it was written before a time, in seconds since 1970. What has no time was not.
    pub fn is_older(&self, before: i64) -> bool {
        self.written.is_some_and(|written| written < before)
    }
}

impl Store {
    /// The objects below a prefix: the first of them, or those on another page.
    pub async fn list(&self, prefix: &str, page: Option<String>) -> Result<Page, Error> {
        let list = self.client.list_objects_v2().bucket(&self.bucket).prefix(prefix);
        let list = list.set_continuation_token(page).send().await;
        let list = list.map_err(|error| failed("list", prefix, &error))?;
        let objects = list.contents().iter().filter_map(|object| {
            let written = object.last_modified().map(|time| time.secs());
            Some(Listed { key: object.key()?.to_owned(), written })
        });
        let objects = objects.collect();
        Ok(Page { objects, next: list.next_continuation_token().map(str::to_owned) })
    }
}
