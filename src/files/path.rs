//! Paths within a fileset: relative, `/` between segments, nothing outside the root.

/// Bytes of a segment, the most that file systems take.
pub(crate) const MAX_SEGMENT_BYTES: usize = 255;

/// A path that leaves the fileset.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Path '{0}' resolves outside of the storage root. This may indicate a path traversal attack. \
     Ensure that paths such as ../.. are not used in the path."
)]
pub(crate) struct Outside(pub String);

/// Resolves `.`, `..` and doubled slashes. The root is the empty path.
pub(crate) fn normalise(path: &str) -> Result<String, Outside> {
    let outside = || Outside(path.to_owned());
    if path.starts_with('/') || path.contains('\0') {
        return Err(outside());
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop().ok_or_else(outside)?),
            segment => segments.push(segment),
        }
    }
    Ok(segments.join("/"))
}

/// The first segment that is too long to be the name of a file.
pub(crate) fn too_long(path: &str) -> Option<&str> {
    path.split('/').find(|segment| segment.len() > MAX_SEGMENT_BYTES)
}

#[cfg(test)]
mod tests;
