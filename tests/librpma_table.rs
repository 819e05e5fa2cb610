//! docs/librpma.md says what takes the place of each C function: is it complete, and is it true?
//!
//! That the list of functions is that of Debian's library, `ci/test.d` checks where that library
//! is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

#[path = "librpma_table/items.rs"]
mod items;

/// The functions of librpma 0.9 to 0.13 that 1.0 no longer has.
const OLDER: [&str; 5] = [
    "rpma_conn_completion_get",
    "rpma_conn_completion_wait",
    "rpma_conn_get_completion_fd",
    "rpma_cq_get_completion",
    "rpma_write_atomic",
];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

/// The names in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The rows of all tables, without their heads: their cells.
fn rows(text: &str) -> Vec<[&str; 3]> {
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", c, rust, why, ""] = cells[..] else {
            panic!("not three cells: {line}");
        };
        if !c.starts_with("---") && !c.starts_with("C ") {
            rows.push([c, rust, why]);
        }
    }
    rows
}

/// Every C function in the table, with its row.
fn functions(text: &str) -> BTreeMap<&str, [&str; 3]> {
    let mut functions = BTreeMap::new();
    for row in rows(text) {
        for name in quoted(row[0]) {
            if name.starts_with("rpma_") {
                assert!(
                    functions.insert(name, row).is_none(),
                    "{name} is there twice"
                );
            }
        }
    }
    functions
}

#[test]
fn every_function_of_librpma_is_in_the_table() {
    let text = read("docs/librpma.md");
    let symbols = read("tests/data/librpma-1.3-symbols.txt");
    let mut expected: BTreeSet<&str> = symbols.lines().collect();
    assert_eq!(expected.len(), 84);
    expected.extend(OLDER);
    let found: BTreeSet<&str> = functions(&text).into_keys().collect();
    assert_eq!(found, expected);
}

#[test]
fn no_cell_is_empty() {
    let text = read("docs/librpma.md");
    let rows = rows(&text);
    assert!(rows.len() > 84 + OLDER.len());
    for row in rows {
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        assert!(
            quoted(row[1]).iter().any(|name| is_item(name)),
            "no Rust item: {row:?}"
        );
    }
}

/// Whether a name in backticks is the path of an item, of this crate or of the logging facade.
fn is_item(name: &str) -> bool {
    name.starts_with("rpma::") || name.starts_with("log::")
}

/// `items.rs` compiles, so what it names exists.
#[test]
fn every_rust_item_exists() {
    let text = read("docs/librpma.md");
    let source = read("tests/librpma_table/items.rs");
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line + "\n");
    let mut found = 0;
    for name in text.lines().flat_map(quoted) {
        // In passing, an item is named without its crate.
        let path = match name.split_once("::") {
            Some(_) if is_item(name) => name.to_owned(),
            Some((kind, _)) if kind.starts_with(char::is_uppercase) => format!("rpma::{name}"),
            _ => continue,
        };
        assert!(names(&code, &path), "{path} is not in items.rs");
        found += 1;
    }
    assert!(found > 84);
}

/// Whether the code has the whole of this path.
fn names(code: &str, path: &str) -> bool {
    code.match_indices(path).any(|(at, _)| {
        let next = code[at + path.len()..].chars().next();
        !next.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[test]
fn the_search_for_a_path_can_fail() {
    assert!(names("let _ = rpma::Cq::poll;", "rpma::Cq::poll"));
    assert!(names("has_fd::<rpma::Cq>()", "rpma::Cq"));
    assert!(!names("let _ = rpma::Cq::poll_one;", "rpma::Cq::poll"));
}

/// Who looks for a C function in the documentation finds the Rust item: it has the C name as an
/// alias.
#[test]
fn every_function_is_an_alias_in_the_documentation() {
    let text = read("docs/librpma.md");
    let mut sources = String::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of src") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                sources += &fs::read_to_string(&path).expect("a source");
            }
        }
    }
    for name in functions(&text).into_keys() {
        // These are the log crate's.
        if !name.starts_with("rpma_log_") {
            let alias = format!("#[doc(alias = \"{name}\")]");
            assert!(sources.contains(&alias), "nothing has {alias}");
        }
    }
}
