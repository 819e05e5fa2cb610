//! The format of the results: one line per repetition, with tabs between its fields.
//!
//! ```text
//! RESULT  SECTION  CASE  OPPONENT  UNIT  VALUE
//! META    KEY      VALUE
//! ```
//!
//! Repeated RESULT lines are repetitions. Where two opponents have equally many, the nth belongs to
//! the nth. A META line whose key is `note.SECTION` is a remark on that section. Empty lines and
//! lines that start with `#` say nothing.

use std::fmt;

/// The repetitions of one case by one opponent in one unit.
#[derive(Debug, PartialEq)]
pub struct Series {
    pub section: String,
    pub case: String,
    pub opponent: String,
    pub unit: String,
    pub values: Vec<f64>,
}

/// All that was read, in the order of its first mention.
#[derive(Debug, Default)]
pub struct Results {
    pub meta: Vec<(String, String)>,
    pub series: Vec<Series>,
}

/// A line that is none of the format.
#[derive(Debug, PartialEq)]
pub struct BadLine {
    number: usize,
    reason: &'static str,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.number, self.reason)
    }
}

impl Results {
    /// Adds what `text` says to what is there.
    pub fn read(&mut self, text: &str) -> Result<(), BadLine> {
        for (at, line) in text.lines().enumerate() {
            self.line(line).map_err(|reason| BadLine {
                number: at + 1,
                reason,
            })?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
        if fields.iter().any(|field| field.is_empty()) {
            return Err("an empty field");
        }
        match fields[..] {
            ["RESULT", section, case, opponent, unit, value] => {
                let value: f64 = value.parse().map_err(|_| "the value is no number")?;
                if !value.is_finite() || value < 0.0 {
                    return Err("the value is negative or not finite");
                }
                self.add(section, case, opponent, unit, value);
            }
            ["META", key, value] => self.note(key, value),
            ["RESULT", ..] => return Err("RESULT takes 5 fields"),
            ["META", ..] => return Err("META takes 2 fields"),
            _ => return Err("neither RESULT nor META"),
        }
        Ok(())
    }

    fn add(&mut self, section: &str, case: &str, opponent: &str, unit: &str, value: f64) {
        match self.series.iter_mut().find(|of| {
            of.section == section && of.case == case && of.opponent == opponent && of.unit == unit
        }) {
            Some(series) => series.values.push(value),
            None => self.series.push(Series {
                section: section.to_owned(),
                case: case.to_owned(),
                opponent: opponent.to_owned(),
                unit: unit.to_owned(),
                values: vec![value],
            }),
        }
    }

    /// Of a key that is said twice the last value counts; of remarks, each.
    fn note(&mut self, key: &str, value: &str) {
        match self.meta.iter_mut().find(|(old, _)| old == key) {
            Some((_, old)) if !key.starts_with("note.") => value.clone_into(old),
            _ => self.meta.push((key.to_owned(), value.to_owned())),
        }
    }

    /// The remarks on a section.
    pub fn remarks(&self, section: &str) -> impl Iterator<Item = &str> {
        self.meta
            .iter()
            .filter(move |(key, _)| key.strip_prefix("note.") == Some(section))
            .map(|(_, text)| text.as_str())
    }

    /// The series of a section.
    pub fn of(&self, section: &str) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(move |of| of.section == section)
    }

    /// The repetitions of one case, or none.
    pub fn values(&self, section: &str, case: &str, opponent: &str, unit: &str) -> &[f64] {
        self.of(section)
            .find(|of| of.case == case && of.opponent == opponent && of.unit == unit)
            .map_or(&[], |of| &of.values)
    }
}

/// A case that ends in a number is a point on a curve: its name and the number.
pub fn point(case: &str) -> Option<(&str, u64)> {
    let (name, number) = case.rsplit_once(' ')?;
    Some((name, number.parse().ok()?))
}

/// Each distinct item, in the order of its first mention.
pub fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Results, BadLine> {
        let mut results = Results::default();
        results.read(text).map(|()| results)
    }

    #[test]
    fn repetitions_are_gathered_in_order() {
        let results = read(
            "# a remark\n\nMETA\tcommit\tabc\n\
             RESULT\tscale\tsetup 4\trpma\t1/s\t7\n\
             RESULT\tscale\tsetup 4\tlibrpma\t1/s\t5.5\n\
             RESULT\tscale\tsetup 4\trpma\t1/s\t6e1\n",
        )
        .unwrap();
        assert_eq!(results.series.len(), 2);
        assert_eq!(results.series[0].values, [7.0, 60.0]);
        assert_eq!(results.values("scale", "setup 4", "librpma", "1/s"), [5.5]);
        assert_eq!(
            results.values("scale", "setup 4", "rpma", "us"),
            [0.0f64; 0]
        );
        assert_eq!(results.meta, [("commit".to_owned(), "abc".to_owned())]);
    }

    #[test]
    fn the_unit_is_a_part_of_the_key() {
        let results = read("RESULT\ts\tc\to\tns\t1\nRESULT\ts\tc\to\tus\t2\n").unwrap();
        assert_eq!(results.series.len(), 2);
    }

    #[test]
    fn the_last_value_of_a_key_counts_and_every_remark() {
        let results =
            read("META\tk\t1\nMETA\tk\t2\nMETA\tnote.s\tone\nMETA\tnote.s\ttwo\n").unwrap();
        assert_eq!(results.meta[0].1, "2");
        assert_eq!(results.remarks("s").collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(results.remarks("k").count(), 0);
    }

    #[test]
    fn bad_lines_are_named() {
        for (line, reason) in [
            ("RESULT\ts\tc\to\tns", "RESULT takes 5 fields"),
            ("RESULT\ts\tc\to\tns\t1\t2", "RESULT takes 5 fields"),
            ("RESULT\ts\tc\to\tns\tfast", "the value is no number"),
            (
                "RESULT\ts\tc\to\tns\t-1",
                "the value is negative or not finite",
            ),
            (
                "RESULT\ts\tc\to\tns\tNaN",
                "the value is negative or not finite",
            ),
            (
                "RESULT\ts\tc\to\tns\tinf",
                "the value is negative or not finite",
            ),
            ("RESULT\ts\t\to\tns\t1", "an empty field"),
            ("META\tkey", "META takes 2 fields"),
            ("RESULT s c o ns 1", "neither RESULT nor META"),
        ] {
            let text = format!("META\ta\tb\n{line}\n");
            assert_eq!(
                read(&text).unwrap_err(),
                BadLine { number: 2, reason },
                "{line}"
            );
        }
    }

    #[test]
    fn points() {
        assert_eq!(point("write p50 4096"), Some(("write p50", 4096)));
        assert_eq!(point("write"), None);
        assert_eq!(point("write p50"), None);
        assert_eq!(point("64"), None);
    }

    #[test]
    fn distinct_keeps_the_first() {
        assert_eq!(distinct(["b", "a", "b"].into_iter()), ["b", "a"]);
    }
}
