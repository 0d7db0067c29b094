//! Ends of texts that are too long. Where one is cut, half a line is left out: it might begin with
//! half a secret, which no mask knows.

/// The end of a text, `most` bytes at most, in whole lines.
pub(crate) fn tail(text: &[u8], most: usize) -> &[u8] {
    match text.len().checked_sub(most) {
        // A line that begins right there is whole.
        Some(cut @ 1..) if text[cut - 1] != b'\n' => whole_lines(&text[cut..]),
        Some(cut) => &text[cut..],
        None => text,
    }
}

/// What follows the first line end, in a text whose beginning was cut.
pub(crate) fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == b'\n');
    end.map_or(&[], |end| &text[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_half_line_begins_a_tail() {
        let text = b"first\nsecond\nthird";
        let check = |most, expected: &[u8]| assert_eq!(tail(text, most), expected, "{most}");
        check(100, text);
        check(text.len(), text);
        check(text.len() - 1, b"second\nthird");
        check(12, b"second\nthird");
        check(11, b"third");
        check(5, b"third");
        check(4, b"");
        check(0, b"");
    }
}
