//! Moments that every process of a machine tells alike: on the clock since its start, which nobody
//! sets and which goes on while the machine sleeps.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment, as the time since the machine was started (`CLOCK_BOOTTIME`). Its text is that in
/// milliseconds, always of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        Self(Duration::try_from(now).unwrap_or_default())
    }

    /// The moment so long before this one.
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }

    /// How long ago it was; no time for one that is yet to come.
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}", self.0.as_millis())
    }
}

impl FromStr for Moment {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        Ok(Self(Duration::from_millis(text.trim().parse()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_it_was_written() {
        let now = Moment::now();
        let text = now.to_string();
        let read: Moment = text.parse().expect("it was written so");
        assert_eq!(text.len(), 20);
        assert!(read <= now && now.before(Duration::from_millis(1)) <= read);
        assert!(now.before(Duration::from_secs(5)).elapsed() >= Duration::from_secs(5));
        assert_eq!(Moment(Duration::MAX).elapsed(), Duration::ZERO);
    }
}
