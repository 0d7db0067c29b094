//! Paths with wildcards: `*` and `?` within a name, `**` for any number of directories.

use std::fmt;

/// A path below the working directory. It means the files that it matches, and all files below a
/// directory that it matches.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    written: String,
    names: Vec<Name>,
}

#[derive(Clone, Debug)]
enum Name {
    AnyDirectories,
    Like(Vec<char>),
}

impl Pattern {
    /// Reads one; the failure names it.
    pub(crate) fn parse(written: &str) -> Result<Self, String> {
        let mut names: Vec<_> =
            written.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        if written.starts_with('/') || names.contains(&"..") {
            return Err(format!("'{written}' must be relative and stay in the working directory"));
        }
        // At the end it stands for whatever is there; below that, everything is meant anyway.
        if let Some(last) = names.last_mut()
            && *last == "**"
        {
            *last = "*";
        }
        let name = |name: &str| match name {
            "**" => Name::AnyDirectories,
            name => Name::Like(name.chars().collect()),
        };
        let names = names.into_iter().map(name).collect();
        Ok(Self { written: written.to_owned(), names })
    }

    /// Whether a file is meant.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let path: Vec<Vec<char>> = path.split('/').map(|name| name.chars().collect()).collect();
        let is_any = |name: &Name| matches!(name, Name::AnyDirectories);
        let is_like = |name: &Name, there: &Vec<char>| match name {
            Name::AnyDirectories => false,
            Name::Like(name) => is_like(name, there),
        };
        // What is left of the path lies in a directory that was matched.
        matched(&self.names, &path, is_any, is_like, Rest::Left)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

fn is_like(name: &[char], there: &[char]) -> bool {
    let one = |wanted: &char, there: &char| *wanted == '?' || wanted == there;
    matched(name, there, |wanted| *wanted == '*', one, Rest::Matched)
}

/// What may become of the end of what is matched.
#[derive(Clone, Copy, PartialEq)]
enum Rest {
    Left,
    Matched,
}

/// Matches with wildcards that stand for any number of items. Going back to the last of them is
/// always enough, so no pattern takes long.
fn matched<P, T>(
    pattern: &[P],
    items: &[T],
    is_any: impl Fn(&P) -> bool,
    is_like: impl Fn(&P, &T) -> bool,
    rest: Rest,
) -> bool {
    let (mut at, mut item) = (0, 0);
    let mut last_any = None;
    loop {
        match pattern.get(at) {
            None if rest == Rest::Left || item == items.len() => return true,
            Some(wanted) if is_any(wanted) => {
                at += 1;
                last_any = Some((at, item));
                continue;
            }
            Some(wanted) if items.get(item).is_some_and(|there| is_like(wanted, there)) => {
                (at, item) = (at + 1, item + 1);
                continue;
            }
            _ => {}
        }
        match last_any {
            Some((behind, from)) if from < items.len() => {
                last_any = Some((behind, from + 1));
                (at, item) = (behind, from + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests;
