//! Images: the grammar of their references, and which one a job runs in.
//!
//! The grammar is that of the OCI distribution project (`reference/reference.go` of
//! distribution/reference): `[domain[:port]/]path[/path…][:tag][@algorithm:hex]`. Nothing here
//! asks a registry whether an image exists.

use super::Settings;

/// Characters of a name, all of it before tag and digest.
const MAX_NAME: usize = 255;

/// Characters of a tag.
const MAX_TAG: usize = 128;

/// The image of a job, decided here and nowhere else: the request's, the platform's default for
/// jobs, the execution profile's default, or none, which leaves the choice to the executor.
pub(super) fn resolve(requested: &str, settings: &Settings) -> Option<String> {
    if !settings.profile.images {
        return None;
    }
    let defaults = [&settings.default_image, &settings.profile.default_task_image];
    let defaults = defaults.into_iter().filter_map(Option::as_deref);
    let mut candidates = std::iter::once(requested).chain(defaults);
    // A blank setting is as good as none.
    candidates.find(|image| !image.trim().is_empty()).map(|image| image.trim().to_owned())
}

/// Checks the image of a request; empty stands for the configured default.
pub(crate) fn check_requested(image: &str) -> Result<String, String> {
    if image.is_empty() {
        return Ok(String::new());
    }
    if image.trim().is_empty() {
        let text = "Image must not be blank; omit the field to inherit the configured default.";
        return Err(text.to_owned());
    }
    if is_reference(image) {
        return Ok(image.to_owned());
    }
    Err(format!("Image '{image}' is not a valid image reference."))
}

/// Whether a text names an image.
pub(super) fn is_reference(image: &str) -> bool {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    // A colon behind the last slash begins a tag; one before it, a port.
    let last = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest[last..].find(':') {
        Some(colon) => (&rest[..last + colon], Some(&rest[last + colon + 1..])),
        None => (rest, None),
    };
    is_name(name) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest)
}

fn is_name(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((domain, path)) if is_domain(domain) => path,
        _ => name,
    };
    name.len() <= MAX_NAME && path.split('/').all(is_component)
}

/// What makes a first component a domain and no path: a dot, a port, or `localhost`. Capitals,
/// which no path has, do too.
fn is_domain(word: &str) -> bool {
    let (host, port) = match word.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (word, None),
    };
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty()
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let ipv6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match ipv6 {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.split('.').all(label),
    };
    is_host && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// Lower-case letters and digits, in groups held together by `.`, `_`, `__` or any number of `-`.
fn is_component(component: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators = component.split(alphanumeric).filter(|between| !between.is_empty());
    let is_separator =
        |between: &str| matches!(between, "." | "_" | "__") || between.chars().all(|c| c == '-');
    component.starts_with(alphanumeric)
        && component.ends_with(alphanumeric)
        && separators.into_iter().all(is_separator)
}

fn is_tag(tag: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= MAX_TAG
        && tag.starts_with(first)
        && tag.chars().all(|c| first(c) || c == '.' || c == '-')
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let is_hex = hex.len() >= 32 && hex.chars().all(|c| c.is_ascii_hexdigit());
    let fits = match algorithm {
        "sha256" => hex.len() == 64,
        "sha512" => hex.len() == 128,
        _ => true,
    };
    algorithm.split(['-', '_', '+', '.']).all(part) && is_hex && fits
}

#[cfg(test)]
mod tests;
