//! Makes `docs/benchmarks.md` and its plots from the results that `ci/bench` collects.
//!
//! `report [--out DIR] [--notes FILE] RESULTS…` writes `DIR/benchmarks.md` and
//! `DIR/benchmarks/*.svg`. The format of the results is in [`results`]. FILE
//! (`DIR/benchmarks/notes.md` unless told) is written by hand and becomes a part of the page.

mod page;
mod plots;
mod results;
mod sections;
mod stats;
mod targets;

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use results::Results;

struct Args {
    out: PathBuf,
    notes: Option<PathBuf>,
    results: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let Some(args) = parse_args(std::env::args().skip(1)) else {
        eprintln!("usage: report [--out DIR] [--notes FILE] RESULTS...");
        return ExitCode::from(2);
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("report: {err}");
            ExitCode::FAILURE
        }
    }
}

fn parse_args(mut args: impl Iterator<Item = String>) -> Option<Args> {
    let mut parsed = Args {
        out: "docs".into(),
        notes: None,
        results: Vec::new(),
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--out" => parsed.out = args.next()?.into(),
            "--notes" => parsed.notes = Some(args.next()?.into()),
            _ if arg.starts_with('-') => return None,
            _ => parsed.results.push(arg.into()),
        }
    }
    (!parsed.results.is_empty()).then_some(parsed)
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut results = Results::default();
    for path in &args.results {
        results
            .read(&text_of(path)?)
            .map_err(|err| format!("{}: {err}", path.display()))?;
    }
    let folder = args.out.join("benchmarks");
    let notes = args
        .notes
        .clone()
        .unwrap_or_else(|| folder.join("notes.md"));
    let notes = text_of(&notes)?;
    fs::create_dir_all(&folder)?;
    // Plots of an earlier run that this one does not make would be stale.
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "svg") {
            fs::remove_file(path)?;
        }
    }
    let plots = plots::draw(&results)?;
    for plot in &plots {
        fs::write(folder.join(&plot.file), &plot.svg)?;
    }
    fs::write(
        args.out.join("benchmarks.md"),
        page::page(&results, &plots, &notes),
    )?;
    println!(
        "{}: {} results, {} plots",
        args.out.join("benchmarks.md").display(),
        results.series.len(),
        plots.len()
    );
    Ok(())
}

fn text_of(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Option<Args> {
        parse_args(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments() {
        let parsed = args("--out here --notes n.md a.tsv b.tsv").unwrap();
        assert_eq!(parsed.out, PathBuf::from("here"));
        assert_eq!(parsed.notes, Some("n.md".into()));
        assert_eq!(
            parsed.results,
            [PathBuf::from("a.tsv"), PathBuf::from("b.tsv")]
        );
        assert_eq!(args("a.tsv").unwrap().out, PathBuf::from("docs"));
        assert!(args("").is_none());
        assert!(args("--out").is_none());
        assert!(args("--what a.tsv").is_none());
    }

    #[test]
    fn a_run_writes_the_page_and_takes_away_old_plots() {
        let dir = std::env::temp_dir().join(format!("rpma-report-{}", std::process::id()));
        let folder = dir.join("benchmarks");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("old.svg"), "").unwrap();
        fs::write(folder.join("notes.md"), "By hand.\n").unwrap();
        let results = dir.join("results.tsv");
        fs::write(
            &results,
            "RESULT\tinstructions\twrite\trpma\tinstructions\t30\n",
        )
        .unwrap();
        let args = Args {
            out: dir.clone(),
            notes: None,
            results: vec![results.clone()],
        };
        run(&args).unwrap();
        let page = fs::read_to_string(dir.join("benchmarks.md")).unwrap();
        assert!(page.contains("By hand."), "{page}");
        assert!(!folder.join("old.svg").exists());
        assert!(folder.join("instructions.svg").exists());

        fs::write(&results, "nonsense\n").unwrap();
        let err = run(&args).unwrap_err().to_string();
        assert!(err.contains("results.tsv: line 1"), "{err}");
        fs::remove_dir_all(&dir).unwrap();
    }
}
