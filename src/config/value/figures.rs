//! Numbers by name.

use std::collections::BTreeMap;

use super::Value;

impl Value for BTreeMap<String, u64> {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        let toml::Value::Table(table) = value else {
            return Err(format!("expected a table of whole numbers, got {value}"));
        };
        let figure = |(name, value)| match u64::from_toml(value) {
            Ok(number) => Ok((name, number)),
            Err(reason) => Err(format!("{name}: {reason}")),
        };
        table.into_iter().map(figure).collect()
    }

    /// `name=number`, separated by commas.
    fn from_text(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let figure = |part: &str| match part.split_once('=') {
            Some((name, number)) => Ok((name.trim().to_owned(), u64::from_text(number.trim())?)),
            None => Err(format!("expected NAME=NUMBER,…, got '{part}'")),
        };
        parts.map(figure).collect()
    }

    fn show(&self) -> Option<String> {
        let table: toml::Table = self
            .iter()
            .map(|(name, number)| {
                (name.clone(), toml::Value::Integer(i64::try_from(*number).unwrap_or(i64::MAX)))
            })
            .collect();
        Some(toml::Value::Table(table).to_string())
    }
}
