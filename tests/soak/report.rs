//! The table at the end.

use crate::{
    board::{Board, Count},
    sample::Sample,
};

/// Rows of a name and a value, always the same and in the same order, so that tables of two runs
/// can be put side by side.
pub fn rows(
    head: &[(&str, String)],
    board: &Board,
    before: &Sample,
    after: &Sample,
) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = head
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    for (count, name) in Count::ALL {
        rows.push(((*name).to_owned(), board.get(*count).to_string()));
    }
    let list = |kinds: Vec<(String, u64)>| match kinds.is_empty() {
        true => "none".to_owned(),
        false => kinds
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut row = |name: &str, value: String| rows.push((name.to_owned(), value));
    row("completions with an error, by kind", list(board.statuses()));
    row(
        "connections that failed or ended, by reason",
        list(board.reasons()),
    );
    row(
        "longest time that a process gave no sign of life (ms)",
        board.longest_gap().as_millis().to_string(),
    );
    let pair = |a: u64, b: u64| format!("{a} / {b}");
    row(
        "server: resident memory after warm-up / at the end (KiB)",
        pair(before.rss, after.rss),
    );
    row("server: of it heap (KiB)", pair(before.anon, after.anon));
    row("server: fds", pair(before.fds, after.fds));
    row("server: mappings", pair(before.mappings, after.mappings));
    row("devices: resources after warm-up", before.held());
    row("devices: resources at the end", after.held());
    rows
}

/// In columns, for people.
pub fn print(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    rows.iter()
        .map(|(name, value)| format!("{name:<width$}  {value}\n"))
        .collect()
}

/// One row a line with a tab between, for `ci/soak`.
pub fn tabs(rows: &[(String, String)]) -> String {
    rows.iter()
        .map(|(name, value)| format!("{name}\t{value}\n"))
        .collect()
}
