//! The page of tables.

use std::fmt::Write;

use crate::{
    plots::Plot,
    results::{Results, distinct, point},
    sections::{Section, name_of, opponents, sections, title_of},
    stats::Summary,
    targets::{Rule, TARGETS, Target, Verdict, times_as_good},
};

const HEAD: &str = "# Benchmarks

`benches/report` made this page and its plots from measured results; what it says of causes comes from [notes.md](benchmarks/notes.md), which is
written by hand. A figure is the median of its repetitions, behind it in brackets are the quartiles where they differ. `×` says how many times as good
rpma is as another: above 1 it is better, be it a cost or a rate; repetitions are compared one by one where both sides have equally many.
";

/// All of `docs/benchmarks.md`.
pub fn page(results: &Results, plots: &[Plot], notes: &str) -> String {
    let mut page = HEAD.to_owned();
    page += &targets(results);
    for section in sections(results) {
        page += &one(results, plots, &section);
    }
    // The notes lie one folder deeper than the page.
    let notes = notes.trim().replace("](../", "](");
    let _ = write!(page, "\n## Notes\n\n{notes}\n");
    page += &what_was_run(results);
    page
}

fn targets(results: &Results) -> String {
    let mut rows = String::new();
    let (mut reached, mut missed, mut unknown) = (0, 0, 0);
    for target in TARGETS {
        let (found, word) = match target.verdict(results) {
            Verdict::Reached(found) => {
                reached += 1;
                (measured(target, found), "reached")
            }
            Verdict::Missed(found) => {
                missed += 1;
                (measured(target, found), "**missed**")
            }
            Verdict::NotMeasured => {
                unknown += 1;
                (String::new(), "not measured")
            }
        };
        let _ = writeln!(
            rows,
            "| {} | {} | {} | {} | {found} | {word} |",
            title_of(target.section),
            target.case,
            name_of(target.opponent),
            aim(target)
        );
    }
    format!(
        "\n## Targets\n\n{reached} reached, {missed} missed, {unknown} not measured.\n\n\
         | section | case | of | target | measured | |\n|---|---|---|---:|---:|---|\n{rows}"
    )
}

fn aim(target: &Target) -> String {
    match target.rule {
        Rule::AtMost(limit) => format!("≤ {}", number(limit)),
        Rule::TimesAsGoodAs(other, least) => {
            format!("≥ {least:.3} × {}", name_of(other))
        }
    }
}

fn measured(target: &Target, found: f64) -> String {
    match target.rule {
        Rule::AtMost(_) => number(found),
        // A target of 0.990 can be missed by little.
        Rule::TimesAsGoodAs(..) => format!("{found:.3} ×"),
    }
}

fn one(results: &Results, plots: &[Plot], section: &Section) -> String {
    let mut text = format!("\n## {}\n\n", section.title);
    if !section.about.is_empty() {
        let _ = writeln!(text, "{}\n", section.about);
    }
    for remark in results.remarks(&section.key) {
        let _ = writeln!(text, "{remark}\n");
    }
    for plot in plots.iter().filter(|plot| plot.section == section.key) {
        let _ = writeln!(text, "![{}](benchmarks/{})\n", plot.title, plot.file);
    }
    text += &table(results, &section.key);
    text
}

/// The columns of comparison: with librpma, and with the best that was written by hand.
const RIVALS: &[(&str, &str)] = &[
    ("librpma", "× librpma"),
    ("raw", "× by hand"),
    ("raw-chained", "× by hand, one list"),
];

fn table(results: &Results, section: &str) -> String {
    let columns = opponents(results.of(section).map(|of| of.opponent.as_str()));
    let mut rows = distinct(
        results
            .of(section)
            .map(|of| (of.case.as_str(), of.unit.as_str())),
    );
    // Points of a curve together, in the order of their numbers.
    let curves = distinct(rows.iter().map(|&(case, unit)| curve(case, unit)));
    rows.sort_by_key(|&(case, unit)| {
        let place = curves.iter().position(|of| *of == curve(case, unit));
        (place, point(case).map(|(_, number)| number))
    });
    let units = distinct(rows.iter().map(|(_, unit)| *unit));
    let rivals: Vec<_> = RIVALS
        .iter()
        .filter(|(rival, _)| columns.contains(rival) && columns.contains(&"rpma"))
        .collect();
    let aims = TARGETS.iter().any(|target| target.section == section);

    let mut text = match units[..] {
        [unit] => format!("In {unit}.\n\n| |"),
        _ => "| | unit |".to_owned(),
    };
    let mut rule = if units.len() == 1 {
        "\n|---|"
    } else {
        "\n|---|---|"
    }
    .to_owned();
    for name in columns
        .iter()
        .map(|name| name_of(name))
        .chain(rivals.iter().map(|(_, name)| *name))
    {
        let _ = write!(text, " {name} |");
        rule += "---:|";
    }
    if aims {
        text += " target |";
        rule += "---|";
    }
    text += &rule;
    text.push('\n');
    for (case, unit) in rows {
        let values = |opponent| results.values(section, case, opponent, unit);
        let _ = write!(text, "| {case} |");
        if units.len() > 1 {
            let _ = write!(text, " {unit} |");
        }
        for column in &columns {
            let cell = Summary::of(values(column))
                .map_or_else(String::new, |all| with_quartiles(&all, number));
            let _ = write!(text, " {cell} |");
        }
        for (rival, _) in &rivals {
            let cell = times_as_good(unit, values("rpma"), values(rival))
                .map_or_else(String::new, |all| {
                    with_quartiles(&all, |ratio| format!("{ratio:.2}"))
                });
            let _ = write!(text, " {cell} |");
        }
        if aims {
            let _ = write!(text, " {} |", aims_of(results, section, case, unit));
        }
        text.push('\n');
    }
    text
}

/// What a case is a point of; a case that is none stands alone.
fn curve<'a>(case: &'a str, unit: &'a str) -> (&'a str, &'a str) {
    match point(case) {
        Some((name, _)) => (name, unit),
        None => (case, ""),
    }
}

fn aims_of(results: &Results, section: &str, case: &str, unit: &str) -> String {
    let cells: Vec<String> = TARGETS
        .iter()
        .filter(|of| of.section == section && of.case == case && of.unit == unit)
        .map(|target| {
            let word = match target.verdict(results) {
                Verdict::Reached(_) => "reached",
                Verdict::Missed(_) => "**missed**",
                Verdict::NotMeasured => "not measured",
            };
            let whose = match target.opponent {
                "rpma" => String::new(),
                other => format!("{}: ", name_of(other)),
            };
            format!("{whose}{}: {word}", aim(target))
        })
        .collect();
    cells.join("<br>")
}

fn with_quartiles(all: &Summary, print: impl Fn(f64) -> String) -> String {
    let (q1, median, q3) = (print(all.q1), print(all.median), print(all.q3));
    if all.spreads() && (q1 != median || q3 != median) {
        format!("{median} ({q1}–{q3})")
    } else {
        median
    }
}

/// Three digits, or all that stand before the point.
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 100.0 {
        let digits = format!("{value:.0}");
        let mut grouped = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at) % 3 == 0 && digits.len() > 4 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        return grouped;
    }
    let decimals = match value {
        _ if value >= 10.0 => 1,
        _ if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

fn what_was_run(results: &Results) -> String {
    let mut text = String::from("\n## What was run\n\n| | |\n|---|---|\n");
    for (key, value) in &results.meta {
        if !key.starts_with("note.") {
            let _ = writeln!(text, "| {key} | {value} |");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(text: &str) -> Results {
        let mut results = Results::default();
        results.read(text).unwrap();
        results
    }

    fn line<'a>(page: &'a str, start: &str) -> &'a str {
        page.lines()
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("no {start} in {page}"))
    }

    #[test]
    fn numbers() {
        for (value, text) in [
            (0.0, "0"),
            (30.0, "30"),
            (0.0853, "0.085"),
            (2.257, "2.26"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1319.0, "1319"),
            (27000.4, "27,000"),
            (1234567.0, "1,234,567"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_row_has_medians_quartiles_ratios_and_the_target() {
        let results = results(
            "RESULT\tinstructions\twrite\tlibrpma\tinstructions\t95\n\
             RESULT\tinstructions\twrite\trpma\tinstructions\t38\n\
             RESULT\tinstructions\twrite\traw\tinstructions\t19\n\
             RESULT\tclock-rxe\twrite+flush\trpma\tus p50\t10\n\
             RESULT\tclock-rxe\twrite+flush\trpma\tus p50\t20\n\
             RESULT\tclock-rxe\twrite+flush\tlibrpma\tus p50\t30\n\
             RESULT\tclock-rxe\twrite+flush\tlibrpma\tus p50\t40\n",
        );
        let text = table(&results, "instructions");
        assert_eq!(
            line(&text, "| write"),
            "| write | 38 | 95 | 19 | 2.50 | 0.50 | ≤ 30: **missed**<br>librpma.so.0 of rpma: ≤ 60: not measured<br>\
             librpma.so.0 of rpma: ≥ 1.000 × librpma 1.3: not measured |"
        );
        let text = table(&results, "clock-rxe");
        assert_eq!(
            line(&text, "| write+flush"),
            "| write+flush | 15 (12.5–17.5) | 35 (32.5–37.5) | 2.50 (2.25–2.75) | ≥ 0.950 × librpma 1.3: reached |"
        );
    }

    #[test]
    fn every_row_has_as_many_cells_as_the_head() {
        let results = results(
            "RESULT\ts\ta 16\trpma\tus\t1\nRESULT\ts\ta 16\trpma\tops/s\t1\nRESULT\ts\tb\tother\tus\t1\n\
             RESULT\ts\ta 2\trpma\tus\t1\nRESULT\ts\tb\tlibrpma\tus\t1\n",
        );
        let text = table(&results, "s");
        let cells: Vec<usize> = text.lines().map(|line| line.matches('|').count()).collect();
        assert!(cells.windows(2).all(|two| two[0] == two[1]), "{text}");
        // The points of a curve are in order, whatever the results' was.
        let (two, sixteen) = (text.find("| a 2 ").unwrap(), text.find("| a 16 ").unwrap());
        assert!(two < sixteen, "{text}");
    }

    #[test]
    fn the_page_counts_the_targets_and_has_notes_remarks_plots_and_versions() {
        let results = results(
            "META\tcommit\tabc\nMETA\tnote.instructions\tA remark.\n\
             RESULT\tinstructions\twrite\trpma\tinstructions\t30\n\
             RESULT\tinstructions\tread\trpma\tinstructions\t31\n",
        );
        let plots = [Plot {
            section: "instructions".into(),
            file: "a.svg".into(),
            title: "A".into(),
            svg: String::new(),
        }];
        let page = page(&results, &plots, "\nBy [hand](../../a).\n\n");
        let rest = TARGETS.len() - 2;
        assert!(
            page.contains(&format!("1 reached, 1 missed, {rest} not measured.")),
            "{page}"
        );
        assert!(page.contains("\nA remark.\n"), "{page}");
        assert!(page.contains("\n![A](benchmarks/a.svg)\n"), "{page}");
        assert!(page.contains("\n## Notes\n\nBy [hand](../a).\n"), "{page}");
        assert!(page.contains("\n| commit | abc |\n"), "{page}");
        assert!(!page.contains("note.instructions"), "{page}");
    }
}
