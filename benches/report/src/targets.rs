//! What rpma is to reach, and whether it does.

use crate::{results::Results, sections::more_is_better, stats::Summary};

/// One aim for one figure.
pub struct Target {
    pub section: &'static str,
    pub case: &'static str,
    pub opponent: &'static str,
    pub unit: &'static str,
    pub rule: Rule,
}

pub enum Rule {
    /// The median is no more than this.
    AtMost(f64),
    /// At least so many times as good as that opponent, by the median of the ratios.
    TimesAsGoodAs(&'static str, f64),
}

pub enum Verdict {
    Reached(f64),
    Missed(f64),
    NotMeasured,
}

impl Target {
    pub fn verdict(&self, results: &Results) -> Verdict {
        let of = |opponent| results.values(self.section, self.case, opponent, self.unit);
        let (found, good) = match self.rule {
            Rule::AtMost(limit) => {
                let found = Summary::of(of(self.opponent)).map(|all| all.median);
                (found, found.is_some_and(|found| found <= limit))
            }
            Rule::TimesAsGoodAs(other, least) => {
                let found =
                    times_as_good(self.unit, of(self.opponent), of(other)).map(|all| all.median);
                (found, found.is_some_and(|found| found >= least))
            }
        };
        match found {
            None => Verdict::NotMeasured,
            Some(found) if good => Verdict::Reached(found),
            Some(found) => Verdict::Missed(found),
        }
    }
}

/// How many times as good `values` are as those of another: above 1 they are better, be they costs
/// or rates.
pub fn times_as_good(unit: &str, values: &[f64], other: &[f64]) -> Option<Summary> {
    if more_is_better(unit) {
        Summary::of_ratio(values, other)
    } else {
        Summary::of_ratio(other, values)
    }
}

const fn at_most(
    section: &'static str,
    case: &'static str,
    unit: &'static str,
    limit: f64,
) -> Target {
    Target {
        section,
        case,
        opponent: "rpma",
        unit,
        rule: Rule::AtMost(limit),
    }
}

const fn as_good_as(
    section: &'static str,
    case: &'static str,
    unit: &'static str,
    other: &'static str,
    least: f64,
) -> Target {
    Target {
        section,
        case,
        opponent: "rpma",
        unit,
        rule: Rule::TimesAsGoodAs(other, least),
    }
}

/// The same aim for the C interface.
const fn in_c(target: Target) -> Target {
    Target {
        opponent: "rpma-c",
        ..target
    }
}

const fn calls(case: &'static str, limit: f64) -> Target {
    at_most("instructions", case, "instructions", limit)
}

const fn never_above_librpma(case: &'static str) -> Target {
    in_c(as_good_as(
        "instructions",
        case,
        "instructions",
        "librpma",
        1.0,
    ))
}

/// All of them, in the order of the page.
pub const TARGETS: &[Target] = &[
    calls("write", 30.0),
    calls("read", 30.0),
    calls("flush by reading", 32.0),
    calls("flush, native", 24.0),
    calls("take a completion", 10.0),
    calls("write and flush by reading, one batch", 50.0),
    calls("write and native flush, one batch", 50.0),
    in_c(calls("write", 60.0)),
    in_c(calls("take a completion", 20.0)),
    never_above_librpma("write"),
    never_above_librpma("read"),
    never_above_librpma("flush, native"),
    never_above_librpma("flush by reading"),
    never_above_librpma("atomic write, native"),
    never_above_librpma("atomic write by an inline write"),
    never_above_librpma("send"),
    never_above_librpma("receive"),
    never_above_librpma("take a completion"),
    at_most("syscalls", "write+flush", "calls", 1.0),
    at_most("syscalls", "16 writes+flush", "calls", 1.0),
    at_most("syscalls", "event driven", "calls", 3.0),
    at_most("syscalls", "event driven, already there", "calls", 1.0),
    as_good_as("guest-rxe", "write+flush", "instructions", "librpma", 1.38),
    as_good_as(
        "guest-rxe",
        "16 writes+flush",
        "instructions",
        "librpma",
        1.55,
    ),
    as_good_as(
        "guest-rxe",
        "16 pairs in flight",
        "instructions",
        "librpma",
        1.38,
    ),
    as_good_as("guest-rxe", "event driven", "instructions", "librpma", 1.18),
    as_good_as(
        "guest-rxe",
        "write+flush",
        "instructions",
        "raw-chained",
        1.0 / 1.01,
    ),
    as_good_as(
        "guest-rxe",
        "16 writes+flush",
        "instructions",
        "raw-chained",
        1.0 / 1.01,
    ),
    as_good_as(
        "guest-rxe",
        "16 pairs in flight",
        "instructions",
        "raw-chained",
        1.0 / 1.01,
    ),
    as_good_as(
        "guest-rxe",
        "event driven",
        "instructions",
        "raw-chained",
        1.0 / 1.01,
    ),
    as_good_as("waits", "spin, then block", "us p50", "librpma", 3.0),
    as_good_as("clock-rxe", "write+flush", "us p50", "librpma", 0.95),
    as_good_as("clock-rxe", "write+flush", "ops/s", "librpma", 0.95),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn results(lines: &[(&str, &str, f64)]) -> Results {
        let mut results = Results::default();
        for (opponent, unit, value) in lines {
            results
                .read(&format!("RESULT\ts\tc\t{opponent}\t{unit}\t{value}\n"))
                .unwrap();
        }
        results
    }

    #[test]
    fn limits() {
        let target = at_most("s", "c", "n", 30.0);
        let reached = |value| target.verdict(&results(&[("rpma", "n", value)]));
        assert!(matches!(reached(30.0), Verdict::Reached(30.0)));
        assert!(matches!(reached(31.0), Verdict::Missed(31.0)));
        // Another opponent's and another unit's figures are not rpma's.
        let other = results(&[("librpma", "n", 1.0), ("rpma", "m", 1.0)]);
        assert!(matches!(target.verdict(&other), Verdict::NotMeasured));
    }

    #[test]
    fn ratios_of_costs_and_of_rates() {
        let cost = as_good_as("s", "c", "us", "librpma", 1.5);
        let of = |ours, theirs| results(&[("rpma", "us", ours), ("librpma", "us", theirs)]);
        assert!(matches!(cost.verdict(&of(10.0, 15.0)), Verdict::Reached(_)));
        assert!(matches!(cost.verdict(&of(15.0, 10.0)), Verdict::Missed(_)));
        let rate = as_good_as("s", "c", "ops/s", "librpma", 1.5);
        let of = |ours, theirs| results(&[("rpma", "ops/s", ours), ("librpma", "ops/s", theirs)]);
        assert!(matches!(rate.verdict(&of(15.0, 10.0)), Verdict::Reached(_)));
        assert!(matches!(rate.verdict(&of(10.0, 15.0)), Verdict::Missed(_)));
        let alone = results(&[("rpma", "us", 1.0)]);
        assert!(matches!(cost.verdict(&alone), Verdict::NotMeasured));
    }

    #[test]
    fn the_c_interface_has_its_own() {
        let target = in_c(calls("write", 60.0));
        assert_eq!((target.opponent, target.case), ("rpma-c", "write"));
    }
}
