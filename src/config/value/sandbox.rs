//! How the keys are read that say how agents are kept apart.

use workers::executor::process::confinement::{IdRange, Network, Wanted};

use super::Value;

/// A key with a few words, each of which stands for a value.
trait Words: Copy + PartialEq + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

impl Words for Wanted {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("user", Self::User),
        ("landlock", Self::Landlock),
        ("none", Self::None),
    ];
}

impl Words for Network {
    const WORDS: &'static [(&'static str, Self)] = &[("host", Self::Host), ("none", Self::None)];
}

impl<T: Words> Value for T {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        Self::from_text(&String::from_toml(value)?)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let found = Self::WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<_> = Self::WORDS.iter().map(|(word, _)| *word).collect();
            format!("expected one of {}, got '{text}'", words.join(", "))
        })
    }

    fn show(&self) -> Option<String> {
        let (word, _) = Self::WORDS.iter().find(|(_, value)| value == self)?;
        (*word).to_owned().show()
    }
}

/// `FIRST:COUNT`, as in `/etc/subuid`.
impl Value for IdRange {
    fn from_toml(value: toml::Value) -> Result<Self, String> {
        Self::from_text(&String::from_toml(value)?)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let read = text.split_once(':').and_then(|(first, count)| {
            Some(Self { first: first.parse().ok()?, count: count.parse().ok()? })
        });
        // 0 is root, and the highest number means nobody at all.
        let fits = |range: &Self| {
            range.first > 0 && range.count > 0 && range.first.checked_add(range.count).is_some()
        };
        read.filter(fits).ok_or_else(|| {
            let example = Self::default();
            format!(
                "expected FIRST:COUNT, the first user's number (not 0) and how many there are, \
                 for example {}:{}, got '{text}'",
                example.first, example.count
            )
        })
    }

    fn show(&self) -> Option<String> {
        format!("{}:{}", self.first, self.count).show()
    }
}
