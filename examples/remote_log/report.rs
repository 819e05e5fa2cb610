//! What people get to read.

use std::{
    fmt::Display,
    io::{self, Write},
    time::Duration,
};

use hdrhistogram::Histogram;

use crate::{Outcome, format::Contents};

/// Prints a line. That nobody reads it is no reason to stop.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// One line about a valid log; it starts with "valid:".
pub fn valid(contents: &Contents) -> String {
    let Contents {
        tail,
        records,
        beyond,
        ..
    } = contents;
    format!("valid: {records} records, whole and in sequence; tail at byte {tail}, {beyond}")
}

/// How long the commits of one kind took.
pub struct Times {
    name: &'static str,
    nanoseconds: Histogram<u64>,
    total: Duration,
}

impl Times {
    pub fn new(name: &'static str) -> Outcome<Times> {
        Ok(Times {
            name,
            nanoseconds: Histogram::new_with_bounds(1, 600_000_000_000, 3)?,
            total: Duration::ZERO,
        })
    }

    pub fn add(&mut self, time: Duration) {
        self.total += time;
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.saturating_record(nanoseconds);
    }
}

/// Prints the table of those that have any.
pub fn table(times: &[Times]) {
    say(format_args!(
        "{:<16}{:>8}{:>11}{:>14}{:>14}{:>14}{:>14}",
        "commit", "records", "records/s", "p50", "p99", "p99.9", "max"
    ));
    for times in times.iter().filter(|times| !times.nanoseconds.is_empty()) {
        let count = times.nanoseconds.len();
        let rate = count as f64 / times.total.as_secs_f64();
        let at = |quantile| microseconds(times.nanoseconds.value_at_quantile(quantile));
        say(format_args!(
            "{:<16}{count:>8}{rate:>11.0}{:>14}{:>14}{:>14}{:>14}",
            times.name,
            at(0.5),
            at(0.99),
            at(0.999),
            microseconds(times.nanoseconds.max())
        ));
    }
}

fn microseconds(nanoseconds: u64) -> String {
    format!("{:.1} us", nanoseconds as f64 / 1000.0)
}
