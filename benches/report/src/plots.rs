//! The plots: bars for the cases of a section, a curve for cases that end in a number.
//!
//! The background is transparent. Text and lines take a colour from the SVG's style, which knows
//! what the reader prefers, light or dark; the marks have colours that can be seen on both.

use std::error::Error;

use plotters::{
    coord::{Shift, ranged1d::ValueFormatter},
    element::{Circle, PathElement, Rectangle, Text},
    prelude::{
        Cartesian2d, ChartBuilder, ChartContext, Color, DrawingArea, IntoDrawingArea, IntoLogRange,
        LineSeries, RGBColor, Ranged, SVGBackend, TextStyle,
    },
    style::{
        IntoTextStyle, RGBAColor,
        text_anchor::{HPos, Pos, VPos},
    },
};

use crate::{
    page::number,
    results::{Results, distinct, point},
    sections::{colour_of, more_is_better, name_of, opponents, sections},
    stats::Summary,
};

/// A file with a picture.
pub struct Plot {
    pub section: String,
    pub file: String,
    pub title: String,
    pub svg: String,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const WIDTH: u32 = 900;
const HEADER: u32 = 58;
const BAR: u32 = 15;
/// Stands for the colour of text until the style is there.
const INK: RGBColor = RGBColor(1, 2, 3);
const STYLE: &str = "<style>svg{color:#7a828e}\
    @media(prefers-color-scheme:light){svg{color:#4d5560}}\
    @media(prefers-color-scheme:dark){svg{color:#adb5c0}}</style>\n";

/// All plots of what was measured.
pub fn draw(results: &Results) -> Result<Vec<Plot>> {
    let mut plots = Vec::new();
    for section in sections(results) {
        let units = distinct(results.of(&section.key).map(|of| of.unit.as_str()));
        for unit in &units {
            let cases = distinct(
                results
                    .of(&section.key)
                    .filter(|of| of.unit == *unit)
                    .map(|of| of.case.as_str()),
            );
            let picture = |name: &str, svg| {
                let mut file = slug(&section.key);
                let mut title = section.title.clone();
                if !name.is_empty() {
                    file = format!("{file}-{}", slug(name));
                    title = format!("{title}: {name}");
                }
                if units.len() > 1 {
                    file = format!("{file}-{}", slug(unit));
                    title = format!("{title}, {unit}");
                }
                Plot {
                    section: section.key.clone(),
                    file: format!("{file}.svg"),
                    title,
                    svg,
                }
            };
            let group = Group {
                results,
                section: &section.key,
                title: &section.title,
                unit,
            };
            let names = distinct(
                cases
                    .iter()
                    .filter_map(|case| point(case))
                    .map(|(name, _)| name),
            );
            for name in &names {
                if let Some(svg) = group.curve(name)? {
                    plots.push(picture(name, svg));
                }
            }
            let bars: Vec<&str> = cases
                .iter()
                .copied()
                .filter(|case| point(case).is_none())
                .collect();
            if !bars.is_empty() {
                plots.push(picture("", group.bars(&bars)?));
            }
        }
    }
    Ok(plots)
}

/// What a plot shows a part of.
struct Group<'a> {
    results: &'a Results,
    section: &'a str,
    title: &'a str,
    unit: &'a str,
}

impl Group<'_> {
    fn summary(&self, case: &str, opponent: &str) -> Option<Summary> {
        Summary::of(self.results.values(self.section, case, opponent, self.unit))
    }

    fn opponents_of(&self, cases: &[&str]) -> Vec<&str> {
        opponents(
            self.results
                .of(self.section)
                .filter(|of| of.unit == self.unit && cases.contains(&of.case.as_str()))
                .map(|of| of.opponent.as_str()),
        )
    }

    /// One bar for each opponent of each case. Where all cases were also written by hand, that is 1
    /// and the others are relative to it: the cases differ by far more than the opponents do.
    fn bars(&self, cases: &[&str]) -> Result<String> {
        let columns = self.opponents_of(cases);
        let base_of = |case: &str| {
            self.summary(case, "raw")
                .map(|all| all.median)
                .filter(|base| *base > 0.0)
        };
        let relative = columns.len() > 1 && cases.iter().all(|case| base_of(case).is_some());
        struct Bar<'a> {
            row: u32,
            opponent: &'a str,
            length: f64,
            label: String,
        }
        let (mut bars, mut labels, mut row) = (Vec::new(), Vec::new(), 0);
        for case in cases {
            let first = row;
            for &opponent in &columns {
                let Some(all) = self.summary(case, opponent) else {
                    continue;
                };
                let base = if relative { base_of(case) } else { None };
                bars.push(Bar {
                    row,
                    opponent,
                    length: all.median / base.unwrap_or(1.0),
                    label: number(all.median),
                });
                row += 1;
            }
            labels.push((*case, f64::from(first + row) / 2.0));
            row += 1;
        }
        let longest = bars
            .iter()
            .map(|bar| bar.length)
            .fold(0.0, f64::max)
            .max(1e-9);

        let mut svg = String::new();
        {
            let height = HEADER + row * BAR + 52;
            let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
            header(&root, self.title, &columns)?;
            let mut chart = ChartBuilder::on(&root)
                .margin_top(HEADER)
                .margin_right(16)
                .margin_left(300)
                .x_label_area_size(44)
                .build_cartesian_2d(0.0..longest * 1.1, f64::from(row)..0.0)?;
            let what = if relative {
                format!(
                    "{}, by hand in C = 1 (at the bars: {})",
                    better(self.unit),
                    self.unit
                )
            } else {
                format!("{}, {}", self.unit, better(self.unit))
            };
            chart
                .configure_mesh()
                .disable_y_mesh()
                .disable_y_axis()
                .light_line_style(faint(0.0))
                .bold_line_style(faint(0.2))
                .axis_style(faint(0.4))
                .x_labels(8)
                .x_desc(what)
                .x_label_formatter(&|value| number(*value))
                .label_style(ink(15))
                .axis_desc_style(ink(15))
                .draw()?;
            for bar in &bars {
                let y = f64::from(bar.row);
                let corners = [(0.0, y + 0.1), (bar.length, y + 0.95)];
                chart.draw_series([Rectangle::new(corners, paint(bar.opponent).filled())])?;
                let (x, y) = chart.backend_coord(&(bar.length, y + 0.5));
                root.draw(&Text::new(
                    bar.label.clone(),
                    (x + 4, y),
                    anchored(14, HPos::Left),
                ))?;
            }
            for (case, y) in labels {
                let (x, y) = chart.backend_coord(&(0.0, y));
                root.draw(&Text::new(case, (x - 8, y), anchored(14, HPos::Right)))?;
            }
            root.present()?;
        }
        Ok(styled(svg))
    }

    /// A line for each opponent over the number that the cases end in; `None` where there is but
    /// one number, or where nothing differs.
    fn curve(&self, name: &str) -> Result<Option<String>> {
        let cases = distinct(
            self.results
                .of(self.section)
                .filter(|of| {
                    of.unit == self.unit && point(&of.case).is_some_and(|(of, _)| of == name)
                })
                .map(|of| of.case.as_str()),
        );
        let columns = self.opponents_of(&cases);
        let mut points = Vec::new();
        for case in &cases {
            for &opponent in &columns {
                if let (Some((_, x)), Some(all)) = (point(case), self.summary(case, opponent)) {
                    points.push((opponent, x as f64, all));
                }
            }
        }
        points.sort_by(|one, other| one.1.total_cmp(&other.1));
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Ok(None);
        };
        let (left, right) = (first.1, last.1);
        if left == right || left <= 0.0 {
            return Ok(None);
        }
        if points.iter().all(|of| of.2.median == first.2.median) {
            return Ok(None);
        }
        let low = points
            .iter()
            .map(|of| of.2.q1)
            .fold(f64::INFINITY, f64::min);
        let high = points
            .iter()
            .map(|of| of.2.q3)
            .fold(0.0, f64::max)
            .max(1e-9);

        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH, 400)).into_drawing_area();
            header(&root, &format!("{}: {name}", self.title), &columns)?;
            let mut builder = ChartBuilder::on(&root);
            builder
                .margin_top(HEADER)
                .margin_left(12)
                .margin_right(24)
                .x_label_area_size(30)
                .y_label_area_size(84);
            let x = (left..right).log_scale().base(2.0);
            let what = format!("{}, {}", self.unit, better(self.unit));
            // Over more than one power of ten the small ones could not be told apart.
            if low > 0.0 && high / low > 10.0 {
                let chart = builder.build_cartesian_2d(x, (low * 0.8..high * 1.25).log_scale())?;
                lines(chart, &what, &columns, &points)?;
            } else {
                let chart = builder.build_cartesian_2d(x, 0.0..high * 1.1)?;
                lines(chart, &what, &columns, &points)?;
            }
            root.present()?;
        }
        Ok(Some(styled(svg)))
    }
}

fn lines<'a, X, Y>(
    mut chart: ChartContext<'_, SVGBackend<'a>, Cartesian2d<X, Y>>,
    what: &str,
    columns: &[&str],
    points: &[(&str, f64, Summary)],
) -> Result<()>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .light_line_style(faint(0.0))
        .bold_line_style(faint(0.2))
        .axis_style(faint(0.4))
        .y_desc(what)
        .x_label_formatter(&|value| number(value.round()))
        .y_label_formatter(&|value| number(*value))
        .label_style(ink(15))
        .axis_desc_style(ink(15))
        .draw()?;
    for column in columns {
        let own = || points.iter().filter(|of| of.0 == *column);
        let style = paint(column).stroke_width(2);
        chart.draw_series(LineSeries::new(
            own().map(|(_, x, all)| (*x, all.median)),
            style,
        ))?;
        chart.draw_series(
            own().map(|(_, x, all)| Circle::new((*x, all.median), 3, paint(column).filled())),
        )?;
        chart.draw_series(
            own().map(|(_, x, all)| PathElement::new([(*x, all.q1), (*x, all.q3)], style)),
        )?;
    }
    Ok(())
}

/// The title, and below it whose colour is whose.
fn header(root: &Area, title: &str, columns: &[&str]) -> Result<()> {
    root.draw(&Text::new(
        title.to_owned(),
        (16, 16),
        anchored(20, HPos::Left),
    ))?;
    let mut x = 16;
    for column in columns {
        root.draw(&Rectangle::new(
            [(x, 34), (x + 12, 46)],
            paint(column).filled(),
        ))?;
        let name = name_of(column);
        root.draw(&Text::new(
            name.to_owned(),
            (x + 17, 40),
            anchored(15, HPos::Left),
        ))?;
        x += 36 + 8 * i32::try_from(name.len()).unwrap_or(0);
    }
    Ok(())
}

fn better(unit: &str) -> &'static str {
    if more_is_better(unit) {
        "more is better"
    } else {
        "less is better"
    }
}

fn paint(opponent: &str) -> RGBColor {
    let (r, g, b) = colour_of(opponent);
    RGBColor(r, g, b)
}

fn faint(share: f64) -> RGBAColor {
    INK.mix(share)
}

fn ink(size: u32) -> TextStyle<'static> {
    ("sans-serif", size)
        .with_color(INK)
        .into_text_style(&(WIDTH, WIDTH))
}

fn anchored(size: u32, side: HPos) -> TextStyle<'static> {
    ink(size).pos(Pos::new(side, VPos::Center))
}

/// Lets text and lines follow what the reader prefers.
fn styled(svg: String) -> String {
    let svg = svg.replace("\"#010203\"", "\"currentColor\"");
    match svg.split_once(">\n") {
        Some((head, rest)) => format!("{head}>\n{STYLE}{rest}"),
        None => svg,
    }
}

/// A name as a part of a file's name.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for part in name
        .replace('/', " per ")
        .to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
    {
        if !part.is_empty() {
            if !slug.is_empty() {
                slug.push('-');
            }
            slug.push_str(part);
        }
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> Vec<Plot> {
        let mut results = Results::default();
        results.read(text).unwrap();
        draw(&results).unwrap()
    }

    const BARS: &str = "RESULT\tinstructions\twrite\trpma\tinstructions\t30\n\
        RESULT\tinstructions\twrite\tlibrpma\tinstructions\t95\n";

    #[test]
    fn bars_are_labelled_and_named() {
        let plots = drawn(BARS);
        assert_eq!(plots.len(), 1);
        assert_eq!(plots[0].file, "instructions.svg");
        for text in ["write", "rpma", "librpma 1.3", "95", "30"] {
            assert!(plots[0].svg.contains(&format!("\n{text}\n")), "{text}");
        }
    }

    #[test]
    fn a_bar_is_as_long_as_its_value() {
        let svg = &drawn(BARS)[0].svg;
        let width = |opponent| {
            let (r, g, b) = colour_of(opponent);
            let colour = format!("fill=\"#{r:02X}{g:02X}{b:02X}\"");
            // The first of a colour is the header's square.
            let bar = svg
                .lines()
                .filter(|line| line.contains(&colour))
                .nth(1)
                .unwrap();
            let width = bar.split_once(" width=\"").unwrap().1;
            width.split_once('"').unwrap().0.parse::<f64>().unwrap()
        };
        let ratio = width("librpma") / width("rpma");
        assert!((ratio - 95.0 / 30.0).abs() < 0.05, "{ratio}");
    }

    #[test]
    fn numbers_make_a_curve_each_and_one_alone_none() {
        let mut text = String::new();
        for size in [8, 64, 4096] {
            for value in [1.0, 2.0, 3.0] {
                text += &format!(
                    "RESULT\tclock-rxe\twrite p50 {size}\trpma\tus\t{}\n",
                    value + f64::from(size)
                );
                text += &format!(
                    "RESULT\tclock-rxe\twrite {size}\trpma\tMiB/s\t{}\n",
                    value * f64::from(size)
                );
            }
        }
        text += "RESULT\tclock-rxe\tread 8\trpma\tus\t1\n";
        let files: Vec<_> = drawn(&text).into_iter().map(|plot| plot.file).collect();
        assert_eq!(
            files,
            [
                "clock-rxe-write-p50-us.svg",
                "clock-rxe-write-mib-per-s.svg"
            ]
        );
    }

    #[test]
    fn text_and_lines_follow_the_readers_preference_and_nothing_hides_the_page() {
        let text =
            format!("{BARS}RESULT\tscale\tx 1\trpma\tus\t1\nRESULT\tscale\tx 2\trpma\tus\t1000\n");
        let plots = drawn(&text);
        assert_eq!(plots.len(), 2);
        for plot in plots {
            assert!(plot.svg.contains(STYLE), "{}", plot.svg);
            assert!(plot.svg.contains("fill=\"currentColor\""), "{}", plot.svg);
            for colour in ["#010203", "#FFFFFF", "#000000"] {
                assert!(!plot.svg.contains(colour), "{colour} in {}", plot.svg);
            }
        }
    }

    #[test]
    fn zeros_can_be_drawn_and_what_never_differs_is_not() {
        let plots = drawn(
            "RESULT\ts\ta\trpma\tcalls\t0\nRESULT\ts\tb 1\trpma\tcalls\t0\nRESULT\ts\tb 2\trpma\tcalls\t3\n\
             RESULT\ts\tc 0\trpma\tcalls\t5\nRESULT\ts\tc 2\trpma\tcalls\t6\n\
             RESULT\ts\td 1\trpma\tcalls\t4\nRESULT\ts\td 2\trpma\tcalls\t4\n",
        );
        // A curve cannot begin at 0 on an axis of powers.
        let files: Vec<_> = plots.iter().map(|plot| plot.file.as_str()).collect();
        assert_eq!(files, ["s-b.svg", "s.svg"]);
    }

    #[test]
    fn slugs() {
        assert_eq!(slug("write p50, 1/s"), "write-p50-1-per-s");
    }
}
