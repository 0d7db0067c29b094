//! W3C trace context: what a submitter's `traceparent` says
//! (<https://www.w3.org/TR/trace-context/#traceparent-header>). What is none is ignored, as the
//! specification asks; nothing is ever refused for it.

use std::fmt;
use std::str::FromStr;

/// A place in somebody's trace: `00-<32 hex>-<16 hex>-<2 hex>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: [u8; 16],
    /// The span that what follows belongs to.
    pub span: [u8; 8],
    /// Whether the trace is kept.
    pub sampled: bool,
}

/// A text that is no trace context of a version that we know.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is no traceparent of version 00")]
pub struct NoTraceParent(String);

impl FromStr for TraceParent {
    type Err = NoTraceParent;

    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        let parse = || {
            let mut parts = text.split('-');
            let ("00", trace, span, flags, None) =
                (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next())
            else {
                return None;
            };
            let (trace, span, [flags]) = (bytes(trace)?, bytes(span)?, bytes(flags)?);
            let is_valid = trace != [0; 16] && span != [0; 8];
            is_valid.then_some(Self { trace, span, sampled: flags & 1 == 1 })
        };
        parse().ok_or_else(|| NoTraceParent(text.chars().take(80).collect()))
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (Hex(&self.trace), Hex(&self.span));
        write!(f, "00-{trace}-{span}-{:02x}", u8::from(self.sampled))
    }
}

/// Bytes as lower-case hexadecimal digits.
pub struct Hex<'b>(pub &'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// So many bytes of lower-case hexadecimal digits, and nothing else.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let mut read = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in read.iter_mut().zip(digits.chunks(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(read)
}

const fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
