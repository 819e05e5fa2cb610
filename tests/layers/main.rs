//! The rooms of src/ lie in layers: each uses only those below it. Read from the paths in the
//! source.

mod source;
mod tree;

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    path::Path,
};

use tree::{Arrow, Rooms, Tree};

/// The rooms by their module paths, from the bottom up. The last one is the crate's root.
const ROOMS: &[&str] = &[
    "sync",
    "numbers",
    "error",
    "log_limit",
    "wait",
    "mr::memory",
    "verbs",
    "cm::raw",
    "mr",
    "peer_cfg",
    "peer",
    "ops",
    "cq",
    "srq",
    "cm",
    "efa",
    "capi_support",
    "",
];

/// Modules that belong to another room than their folder: the methods of regions that are unsafe.
const ELSEWHERE: &[(&str, &str)] = &[("mr::memory::region", "mr")];

const LAYERS: Rooms = Rooms {
    order: ROOMS,
    elsewhere: ELSEWHERE,
};

/// The only files that may allow `unsafe` in what they contain.
const UNSAFE: &[&str] = &[
    "mr/memory/mod.rs",
    "verbs/mod.rs",
    "cm/raw/mod.rs",
    "ops/mod.rs",
    "efa/mod.rs",
    "capi_support.rs",
];

#[test]
fn no_room_uses_one_above_it() {
    let tree = Tree::new(&sources());
    let mut faults = tree.unplaced(&LAYERS);
    let arrows = tree.arrows(&LAYERS);
    assert!(arrows.len() > 100, "the source was not read: {arrows:?}");
    faults.extend(upward(&arrows));
    faults.extend(circles(&arrows));
    assert!(faults.is_empty(), "\n{}", faults.concat());
}

#[test]
fn only_the_unsafe_rooms_allow_unsafe_code() {
    let faults = unsafe_faults(&sources());
    assert!(faults.is_empty(), "\n{}", faults.concat());
}

/// The files of src/ by their paths in it, without tests.
fn sources() -> Vec<(String, String)> {
    fn walk(dir: &Path, root: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                walk(&path, root, found);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let place = path.strip_prefix(root).unwrap().to_str().unwrap();
                found.push((place.to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort();
    found
}

fn upward(arrows: &[Arrow]) -> Vec<String> {
    let up = arrows.iter().filter(|arrow| arrow.to > arrow.from);
    up.map(|arrow| describe(" runs up", arrow)).collect()
}

/// For each arrow that others lead back from, one message with the way round.
fn circles(arrows: &[Arrow]) -> Vec<String> {
    let up = arrows.iter().filter(|arrow| arrow.to > arrow.from);
    up.filter_map(|arrow| {
        let back = way(arrows, arrow.to, arrow.from)?;
        let steps = back.iter().map(|step| describe("", step));
        Some(describe(" closes a circle:", arrow) + &steps.collect::<String>())
    })
    .collect()
}

/// The shortest way from one room to another.
fn way(arrows: &[Arrow], from: usize, to: usize) -> Option<Vec<&Arrow>> {
    let mut ways = BTreeMap::from([(from, Vec::new())]);
    let mut next = VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        for arrow in arrows.iter().filter(|arrow| arrow.from == at) {
            if !ways.contains_key(&arrow.to) {
                let way = [&ways[&at][..], &[arrow]].concat();
                ways.insert(arrow.to, way);
                next.push_back(arrow.to);
            }
        }
    }
    ways.remove(&to)
}

fn describe(what: &str, arrow: &Arrow) -> String {
    let (from, to) = (LAYERS.name(arrow.from), LAYERS.name(arrow.to));
    let Arrow {
        file, line, path, ..
    } = arrow;
    format!("src/{file}:{line}: {from} -> {to} ({path}){what}\n")
}

fn unsafe_faults(files: &[(String, String)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, text) in files {
        let tokens = source::tokens(text);
        let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        let inner = |level| ["#", "!", "[", level, "(", "unsafe_code", ")", "]"];
        let expected = match file.as_str() {
            "lib.rs" => Some(inner("deny")),
            file if UNSAFE.contains(&file) => Some(inner("allow")),
            _ => None,
        };
        let there = words
            .windows(8)
            .filter(|at| Some(*at) == expected.as_ref().map(|e| &e[..]));
        let named = tokens.iter().filter(|token| token.text == "unsafe_code");
        if named.clone().count() != there.clone().count() {
            let line = named
                .max_by_key(|token| token.line)
                .map_or(0, |token| token.line);
            faults.push(format!(
                "src/{file}:{line}: sets its own level of unsafe_code\n"
            ));
        }
        if expected.is_some() && there.count() != 1 {
            faults.push(format!("src/{file}: does not set it once\n"));
        }
    }
    let known = |wanted: &&&str| !files.iter().any(|(file, _)| file == **wanted);
    let absent = UNSAFE.iter().chain(&["lib.rs"]).filter(known);
    faults.extend(absent.map(|file| format!("src/{file}: is not there\n")));
    faults
}

/// The faults of a planted file beside a root that re-exports, and a few rooms.
fn planted(file: &str, text: &str) -> Vec<String> {
    let files = [
        (
            "lib.rs",
            "pub mod cq; mod error; mod mr; mod peer; mod verbs;
             pub use cq::Cq; pub use error::{Error, Result as Outcome}; pub use mr::*;",
        ),
        ("error/mod.rs", "pub struct Error;"),
        (
            "mr/mod.rs",
            "mod memory; pub use memory::{Memory}; pub struct Region;",
        ),
        ("mr/memory/mod.rs", "pub struct Memory;"),
        ("cq/mod.rs", "mod take; pub use take::Wait; pub struct Cq;"),
        ("cq/take.rs", "pub struct Wait;"),
        ("peer.rs", "mod inside { fn f() -> super::Peer {} }"),
        (
            "verbs/mod.rs",
            "mod qp; macro_rules! ret { () => {} } pub(crate) use ret;",
        ),
        (file, text),
    ];
    let owned = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
    let arrows = Tree::new(&owned).arrows(&LAYERS);
    upward(&arrows)
        .into_iter()
        .chain(circles(&arrows))
        .collect()
}

#[track_caller]
fn assert_fault(file: &str, text: &str, wanted: &str) {
    let found = planted(file, text);
    assert!(
        found.iter().any(|fault| fault.starts_with(wanted)),
        "{wanted} is not among {found:?}"
    );
}

#[test]
fn arrows_that_run_down_are_none() {
    let text = "use crate::{error::{self, Error as E}, Outcome, mr::Memory, verbs::ret};
                use super::*; // crate::cq::Cq
                /* crate::cq /* nested */ crate::Cq */
                const A: &str = \"crate::Cq\"; const B: &[u8] = br#\"crate::\"Cq\"#; const C: char = '\"';
                fn f<'a>(x: &'a u8) -> crate::Error { std::mem::drop(x) } #[doc = \"crate::Cq\"] struct S;
                #[cfg(test)] #[allow(unused)] mod tests { use crate::Cq; fn f() { crate::cq::g() } }
                #[cfg(test)] use crate::Cq;";
    assert_eq!(planted("verbs/qp.rs", text), [""; 0]);
}

#[test]
fn an_import_from_above_is_found() {
    let text = "\nuse crate::{\n    error::Error,\n    cq::Cq,\n};";
    assert_fault(
        "verbs/qp.rs",
        text,
        "src/verbs/qp.rs:4: verbs -> cq (crate::cq::Cq) runs up",
    );
}

#[test]
fn a_path_in_an_expression_is_found() {
    let text = "fn f() {\n    crate::peer::f(1)\n}";
    assert_fault("verbs/qp.rs", text, "src/verbs/qp.rs:2: verbs -> peer (");
    let text = "macro_rules! m { () => { $crate::peer::f(1) } }";
    assert_fault("verbs/qp.rs", text, "src/verbs/qp.rs:1: verbs -> peer (");
}

#[test]
fn a_name_of_the_root_is_found_where_it_is_defined() {
    let text = "impl crate::Cq {}";
    assert_fault(
        "error/mod.rs",
        text,
        "src/error/mod.rs:1: error -> cq (crate::Cq) runs up",
    );
    // What the root itself defines is the root's.
    assert_fault(
        "cq/mod.rs",
        "use crate::Unknown;",
        "src/cq/mod.rs:1: cq -> lib (",
    );
    assert_fault("cq/mod.rs", "use crate::*;", "src/cq/mod.rs:1: cq -> lib (");
}

#[test]
fn a_parent_is_above_its_own_lower_room() {
    let text = "use super::super::Region;";
    assert_fault(
        "mr/memory/file.rs",
        text,
        "src/mr/memory/file.rs:1: mr::memory -> mr (",
    );
    assert_eq!(planted("mr/memory/file.rs", "use super::Memory;"), [""; 0]);
    // The parent's own path to the child runs down, and so does another's through the parent.
    assert_eq!(planted("verbs/qp.rs", "use crate::mr::Memory;"), [""; 0]);
}

#[test]
fn a_path_that_leaves_an_inline_module_is_followed() {
    let text = "mod inner {\n use super::super::super::peer::f;\n}";
    assert_fault("verbs/qp.rs", text, "src/verbs/qp.rs:2: verbs -> peer (");
    assert_eq!(
        planted("verbs/qp.rs", "mod inner { use super::super::ret; }"),
        [""; 0]
    );
}

#[test]
fn a_circle_is_found() {
    assert_fault(
        "mr/quick.rs",
        "use crate::verbs::ret;\nuse crate::peer;\nuse crate::cq::Cq;",
        "src/mr/quick.rs:2: mr -> peer (crate::peer) runs up",
    );
    let circle = [
        ("cq.rs", 12, 3),
        ("mr.rs", 8, 6),
        ("peer.rs", 10, 8),
        ("verbs.rs", 6, 10),
    ];
    let arrows = circle.map(|(file, from, to)| Arrow::new(file, from, to));
    let found = circles(&arrows);
    let wanted = "src/verbs.rs:1: verbs -> peer () closes a circle:
src/peer.rs:1: peer -> mr ()
src/mr.rs:1: mr -> verbs ()
";
    assert_eq!(found, [wanted]);
    // What only runs up is no circle.
    assert!(circles(&[Arrow::new("verbs.rs", 6, 10)]).is_empty());
}

#[test]
fn a_level_of_unsafe_code_elsewhere_is_found() {
    let files = |extra: (&str, &str)| {
        let mut files: Vec<_> = UNSAFE
            .iter()
            .map(|file| (file.to_string(), "#![allow(unsafe_code)]".to_owned()))
            .collect();
        files.push(("lib.rs".to_owned(), "#![deny(unsafe_code)]".to_owned()));
        files.retain(|(file, _)| file != extra.0);
        files.push((extra.0.to_owned(), extra.1.to_owned()));
        unsafe_faults(&files)
    };
    assert_eq!(files(("cq/mod.rs", "// unsafe_code")), [""; 0]);
    for text in [
        "#[allow(unsafe_code)] mod x;",
        "\n#![allow(unsafe_code)]",
        "#![allow(dead_code, unsafe_code)]",
        "#[expect(unsafe_code, reason = \"\")] fn f() {}",
    ] {
        assert_eq!(files(("cq/mod.rs", text)).len(), 1, "{text}");
    }
    assert_eq!(files(("lib.rs", "")).len(), 1);
    assert!(
        !files((
            "verbs/mod.rs",
            "#![allow(unsafe_code)] #[deny(unsafe_code)] mod x;"
        ))
        .is_empty()
    );
}
