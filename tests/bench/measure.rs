//! Figures, and the table that they are shown in.

use std::fmt;
use std::time::Duration;

/// Times of the same thing, sorted.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// A line for them.
    pub(crate) fn row(&self, what: String, limit: Option<f64>) -> Row {
        let (ours, p95) = (self.percentile(50), Some(self.percentile(95)));
        Row { what, unit: "ms", better: Better::Less, ours, p95, limit, reference: None }
    }

    /// The time that so many of a hundred do not exceed, in milliseconds.
    fn percentile(&self, percent: usize) -> f64 {
        let index = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
    }
}

/// What is better: less or more.
#[derive(Clone, Copy)]
pub(crate) enum Better {
    Less,
    More,
}

/// A line of the table.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    /// The median of several, or the only figure.
    pub(crate) ours: f64,
    /// What one in twenty exceeds.
    pub(crate) p95: Option<f64>,
    /// For the median.
    pub(crate) limit: Option<f64>,
    /// The reference as it comes, and tuned.
    pub(crate) reference: Option<(f64, f64)>,
}

/// All lines.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Row {
    fn is_missed(&self) -> bool {
        self.limit.is_some_and(|limit| match self.better {
            Better::Less => self.ours > limit,
            Better::More => self.ours < limit,
        })
    }

    /// How many times better than a figure ours is.
    fn ratio(&self, figure: f64) -> f64 {
        match self.better {
            Better::Less => figure / self.ours,
            Better::More => self.ours / figure,
        }
    }
}

impl Table {
    pub(crate) fn push(&mut self, row: Row) {
        // A run takes minutes: each figure is shown as soon as it is known.
        eprintln!("bench: {}: {:.2} {}", row.what, row.ours, row.unit);
        self.0.push(row);
    }

    /// How many limits were missed.
    pub(crate) fn missed(&self) -> usize {
        self.0.iter().filter(|row| row.is_missed()).count()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = |figure: Option<f64>| figure.map_or(String::new(), |it| format!("{it:.1}"));
        let times = |ratio: Option<f64>| ratio.map_or(String::new(), |it| format!("{it:.0}×"));
        writeln!(
            f,
            "{:<62} {:>8} {:>8} {:<6} {:>6} {:>9} {:>6} {:>8} {:>6}",
            "measure", "median", "p95", "unit", "limit", "reference", "", "tuned", ""
        )?;
        for row in &self.0 {
            let (plain, tuned) = row.reference.unzip();
            writeln!(
                f,
                "{:<62} {:>8.1} {:>8} {:<6} {:>6} {:>9} {:>6} {:>8} {:>6}{}",
                row.what,
                row.ours,
                cell(row.p95),
                row.unit,
                row.limit.map_or(String::new(), |limit| limit.to_string()),
                cell(plain),
                times(plain.map(|figure| row.ratio(figure))),
                cell(tuned),
                times(tuned.map(|figure| row.ratio(figure))),
                if row.is_missed() { "  MISSED" } else { "" },
            )?;
        }
        Ok(())
    }
}
