//! A section of the configuration: its keys, their meanings and defaults, from one place.

/// One section, whatever its keys are.
pub(super) trait Section {
    /// Its name in the file; empty for the keys above all sections.
    fn name(&self) -> &'static str;
    /// What it is for.
    fn meaning(&self) -> &'static str;
    /// Its keys: name, meaning, value as TOML (`None`: not set).
    fn keys(&self) -> Vec<(&'static str, &'static str, Option<String>)>;
    /// Takes a value out of a TOML file; `None` when there is no such key.
    fn set_toml(&mut self, key: &str, value: toml::Value) -> Option<Result<(), String>>;
    /// Takes a value out of an environment variable; `None` when there is no such key.
    fn set_text(&mut self, key: &str, text: &str) -> Option<Result<(), String>>;

    /// Its keys with comments.
    fn write_example(&self, text: &mut String) {
        self.write_head(text, true);
        for (key, meaning, value) in self.keys() {
            comment(text, meaning);
            match value {
                Some(value) => text.push_str(&format!("{key} = {value}\n")),
                None => text.push_str(&format!("# {key} =\n")),
            }
        }
    }

    /// Its keys that have a value.
    fn write_values(&self, text: &mut String) {
        self.write_head(text, false);
        for (key, _, value) in self.keys() {
            if let Some(value) = value {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
    }

    /// The line that opens the section.
    fn write_head(&self, text: &mut String, commented: bool) {
        if !text.is_empty() {
            text.push('\n');
        }
        if self.name().is_empty() {
            return;
        }
        if commented {
            comment(text, self.meaning());
        }
        text.push_str(&format!("[{}]\n", self.name()));
    }
}

fn comment(text: &mut String, meaning: &str) {
    for line in meaning.lines() {
        text.push_str(&format!("# {}\n", line.trim()));
    }
}

/// Declares sections: each becomes a struct with its defaults and a [`Section`].
macro_rules! sections {
    ($(
        $(#[doc = $meaning:literal])*
        $name:ident $path:literal {
            $($(#[doc = $doc:literal])* $key:ident: $type:ty = $default:expr,)*
        }
    )*) => {$(
        $(#[doc = $meaning])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])* pub $key: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $crate::config::section::Section for $name {
            fn name(&self) -> &'static str {
                $path
            }

            fn meaning(&self) -> &'static str {
                concat!($($meaning, "\n"),*)
            }

            fn keys(&self) -> Vec<(&'static str, &'static str, Option<String>)> {
                use $crate::config::value::Value as _;
                vec![$((stringify!($key), concat!($($doc, "\n"),*), self.$key.show()),)*]
            }

            fn set_toml(&mut self, key: &str, value: toml::Value) -> Option<Result<(), String>> {
                match key {
                    $(stringify!($key) => {
                        Some($crate::config::value::Value::from_toml(value).map(|read| self.$key = read))
                    })*
                    _ => None,
                }
            }

            fn set_text(&mut self, key: &str, text: &str) -> Option<Result<(), String>> {
                match key {
                    $(stringify!($key) => {
                        Some($crate::config::value::Value::from_text(text).map(|read| self.$key = read))
                    })*
                    _ => None,
                }
            }
        }
    )*};
}

pub(super) use sections;
