//! What a key can hold, and how it is read from a file, from a variable, and shown.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

mod figures;
mod sandbox;

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub const fn new(value: String) -> Self {
        Self(value)
    }

    /// The value, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(removed)")
    }
}

/// The type of a key.
pub(super) trait Value: Sized {
    /// Reads it from a TOML file.
    fn from_toml(value: toml::Value) -> Result<Self, String>;
    /// Reads it from an environment variable.
    fn from_text(text: &str) -> Result<Self, String>;
    /// As TOML; `None` when it has no value.
    fn show(&self) -> Option<String>;
}

impl Value for String {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::String(text) => Self::from_text(&text),
            other => Err(format!("expected a string, got {other}")),
        }
    }

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err(format!("expected text, got '{text}'; leave the key out for its default"));
        }
        Ok(text.to_owned())
    }

    fn show(&self) -> Option<String> {
        Some(toml::Value::String(self.clone()).to_string())
    }
}

impl Value for Secret {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        // The value itself must not appear in the message.
        match value {
            toml::Value::String(text) => Self::from_text(&text),
            other => Err(format!("expected a string, got a value of type {}", other.type_str())),
        }
    }

    fn from_text(text: &str) -> Result<Self, String> {
        String::from_text(text).map(Self)
    }

    fn show(&self) -> Option<String> {
        Some("\"(removed)\"".to_owned())
    }
}

impl Value for PathBuf {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        String::from_toml(value).map(Self::from)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        String::from_text(text).map(Self::from)
    }

    fn show(&self) -> Option<String> {
        self.display().to_string().show()
    }
}

impl Value for SocketAddr {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        Self::from_text(&String::from_toml(value)?)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| format!("'{text}' is not ADDRESS:PORT, for example 127.0.0.1:7740"))
    }

    fn show(&self) -> Option<String> {
        self.to_string().show()
    }
}

impl Value for u64 {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::Integer(number) => {
                Self::try_from(number).map_err(|_| format!("expected 0 or more, got {number}"))
            }
            other => Err(format!("expected a whole number, got {other}")),
        }
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("expected a whole number, got '{text}'"))
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for bool {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::Boolean(truth) => Ok(truth),
            other => Err(format!("expected true or false, got {other}")),
        }
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("expected true or false, got '{text}'"))
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for Vec<PathBuf> {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::Array(items) => items.into_iter().map(PathBuf::from_toml).collect(),
            other => Err(format!("expected a list of strings, got {other}")),
        }
    }

    /// As in `PATH`: separated by colons.
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(std::env::split_paths(text).filter(|path| !path.as_os_str().is_empty()).collect())
    }

    fn show(&self) -> Option<String> {
        let items: Vec<_> = self.iter().filter_map(Value::show).collect();
        Some(format!("[{}]", items.join(", ")))
    }
}

impl<T: Value> Value for Option<T> {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        T::from_toml(value).map(Some)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        T::from_text(text).map(Some)
    }

    fn show(&self) -> Option<String> {
        self.as_ref().and_then(Value::show)
    }
}
