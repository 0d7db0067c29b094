//! Kubernetes quantities: `500m`, `2`, `1.5Gi`, `1e3`, in whole base units. A part of a unit counts
//! as a whole one, as it does there.

/// Digits that are read without loss: more of them fit into no unit anyway.
const MAX_DIGITS: usize = 30;

/// The largest amount that Kubernetes knows.
const MOST: u128 = i64::MAX as u128;

/// Suffix, power of ten, power of two.
const SUFFIXES: [(&str, i32, u32); 15] = [
    ("Ki", 0, 10),
    ("Mi", 0, 20),
    ("Gi", 0, 30),
    ("Ti", 0, 40),
    ("Pi", 0, 50),
    ("Ei", 0, 60),
    ("n", -9, 0),
    ("u", -6, 0),
    ("m", -3, 0),
    ("k", 3, 0),
    ("M", 6, 0),
    ("G", 9, 0),
    ("T", 12, 0),
    ("P", 15, 0),
    ("E", 18, 0),
];

/// Thousandths of a processor.
pub(super) fn cpu_millis(text: &str) -> Option<u64> {
    read(text, 3)
}

/// Bytes.
pub(super) fn memory_bytes(text: &str) -> Option<u64> {
    read(text, 0)
}

/// Reads a quantity in units of 10^-`scale`; `None` when it is none, or below zero, or too much.
fn read(text: &str, scale: i32) -> Option<u64> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let (ten, two) = powers(suffix)?;
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let ten = ten.checked_add(scale)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let amount = digits.parse::<u128>().ok()?.checked_mul(1 << two)?;
    let power = 10_u128.checked_pow(ten.unsigned_abs());
    let amount = match (power, ten < 0) {
        (Some(power), false) => amount.checked_mul(power)?,
        (Some(power), true) => amount.div_ceil(power),
        (None, false) => return None,
        // Less than any unit, but something.
        (None, true) => 1,
    };
    u64::try_from(amount).ok().filter(|_| amount <= MOST)
}

/// The powers of ten and of two that a suffix stands for; `e3` and `E3` are powers of ten, too.
fn powers(suffix: &str) -> Option<(i32, u32)> {
    if suffix.is_empty() {
        return Some((0, 0));
    }
    if let Some((_, ten, two)) = SUFFIXES.iter().find(|(known, ..)| *known == suffix) {
        return Some((*ten, *two));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((exponent.parse().ok()?, 0))
}

#[cfg(test)]
mod tests;
