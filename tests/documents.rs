//! The tests that the documents name are there.

use std::{fs, path::Path};

/// All text of a test target: one file or a folder.
fn text_of(target: &Path) -> Option<String> {
    if target.is_dir() {
        let files = fs::read_dir(target).ok()?.flatten();
        return Some(files.filter_map(|file| text_of(&file.path())).collect());
    }
    fs::read_to_string(target).ok()
}

#[test]
fn tests_that_the_documents_name_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut named, mut missing) = (0, Vec::new());
    for page in ["troubleshooting", "security", "reliability"] {
        let page = root.join(format!("docs/{page}.md"));
        let page = fs::read_to_string(&page).unwrap_or_else(|err| panic!("{page:?}: {err}"));
        for code in page.split('`').skip(1).step_by(2) {
            let Some((target, test)) = code.split_once("::") else {
                continue;
            };
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            // Methods are of types; `file::test` is how a page says what its names mean.
            if target.starts_with(char::is_uppercase)
                || !test.chars().all(is_name)
                || code == "file::test"
            {
                continue;
            }
            let places = [
                root.join(format!("tests/{target}.rs")),
                root.join("tests").join(target),
                root.join(format!("standin/tests/{target}.rs")),
                root.join(target),
            ];
            let text = places.iter().find_map(|place| text_of(place));
            named += 1;
            if !text.is_some_and(|text| text.contains(&format!("fn {test}("))) {
                missing.push(code.to_owned());
            }
        }
    }
    assert!(named > 20, "only {named} tests found in the documents");
    assert!(missing.is_empty(), "{missing:#?}");
}
