//! The modules of the crate, what their names stand for, and which room uses which.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Token, tokens};

type Path = Vec<String>;

/// One use of a room by another; rooms are numbered from the bottom up.
#[derive(Debug)]
pub struct Arrow {
    pub file: String,
    pub line: usize,
    pub from: usize,
    pub to: usize,
    pub path: String,
}

impl Arrow {
    pub fn new(file: &str, from: usize, to: usize) -> Self {
        let (file, path) = (file.to_owned(), String::new());
        Arrow {
            file,
            line: 1,
            from,
            to,
            path,
        }
    }
}

/// The rooms by their module paths, from the bottom up.
pub struct Rooms {
    pub order: &'static [&'static str],
    /// Modules, and the rooms that they belong to.
    pub elsewhere: &'static [(&'static str, &'static str)],
}

impl Rooms {
    pub fn name(&self, number: usize) -> &'static str {
        match self.order[number] {
            "" => "lib",
            name => name,
        }
    }

    /// The number of the room that a module lies in: the longest path that the module's starts
    /// with. The root is the room of the root itself only.
    fn of(&self, module: &[String]) -> Option<usize> {
        let mut path = module.join("::");
        for (moved, room) in self.elsewhere {
            if path == *moved {
                path = room.to_string();
            }
        }
        loop {
            if let Some(number) = self.order.iter().position(|room| *room == path) {
                return Some(number);
            }
            path.truncate(path.rfind("::")?);
        }
    }
}

/// A path as it stands in a file, from the crate's root on.
#[derive(Debug)]
struct Use {
    file: String,
    line: usize,
    module: Path,
    path: Path,
}

#[derive(Debug, Default)]
struct Module {
    /// What the names that it imports stand for: paths from the root on, `None` for another
    /// crate's.
    imports: BTreeMap<String, Option<Path>>,
    globs: Vec<Path>,
    /// The names of its items.
    items: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub struct Tree {
    modules: BTreeMap<Path, Module>,
    uses: Vec<Use>,
}

impl Tree {
    /// From files by their paths in src/, and their text.
    pub fn new(files: &[(String, String)]) -> Self {
        let mut tree = Tree::default();
        let mut read = Vec::new();
        for (file, text) in files {
            let (own, tokens) = (module_of(file), tokens(text));
            let module = tree.modules.entry(own.clone()).or_default();
            module.items = items(&tokens);
            read.push((file, own, tokens));
        }
        for (file, own, tokens) in read {
            let (tree, inline) = (&mut tree, Vec::new());
            let mut reader = Reader {
                tree,
                file,
                own,
                tokens,
                at: 0,
                inline,
            };
            reader.file();
        }
        tree
    }

    /// A message for each file that no room holds.
    pub fn unplaced(&self, rooms: &Rooms) -> Vec<String> {
        let all = self.modules.keys();
        let unplaced = all.filter(|module| rooms.of(module).is_none());
        unplaced
            .map(|module| format!("{} lies in no room\n", module.join("::")))
            .collect()
    }

    /// The uses of one room by another.
    pub fn arrows(&self, rooms: &Rooms) -> Vec<Arrow> {
        let arrow = |used: &Use| {
            let from = rooms.of(&used.module)?;
            let to = rooms.of(&self.definition(&used.path, 0)?)?;
            (from != to).then(|| Arrow {
                file: used.file.clone(),
                line: used.line,
                from,
                to,
                path: format!("crate::{}", used.path.join("::")),
            })
        };
        self.uses.iter().filter_map(arrow).collect()
    }

    /// The module that defines what `path` names; `None` where that is another crate's.
    fn definition(&self, path: &[String], depth: usize) -> Option<Path> {
        let mut module = Path::new();
        for (n, name) in path.iter().enumerate() {
            let mut child = module.clone();
            child.push(name.clone());
            if self.modules.contains_key(&child) {
                module = child;
                continue;
            }
            let here = &self.modules[&module];
            let glob = || {
                let has = |glob: &&Path| {
                    let module = self.modules.get(*glob);
                    module.is_some_and(|m| m.items.contains(name) || m.imports.contains_key(name))
                };
                let glob = here.globs.iter().find(has)?;
                Some(Some(glob.iter().chain([name]).cloned().collect()))
            };
            let target: Option<Option<Path>> = here.imports.get(name).cloned().or_else(glob);
            return match target {
                None => Some(module),
                Some(target) => {
                    let target = target?;
                    // A macro is imported from where it is defined.
                    if target == child || depth > 16 {
                        return Some(module);
                    }
                    let whole: Path = target.iter().chain(&path[n + 1..]).cloned().collect();
                    self.definition(&whole, depth + 1)
                }
            };
        }
        Some(module)
    }
}

/// `a/b.rs` and `a/b/mod.rs` are the module `a::b`.
fn module_of(file: &str) -> Path {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let mut path: Path = stem.split('/').map(str::to_owned).collect();
    if matches!(path.last().map(String::as_str), Some("mod" | "lib")) {
        path.pop();
    }
    path
}

/// The names of the items that are not within others.
fn items(tokens: &[Token]) -> BTreeSet<String> {
    const KINDS: &[&str] = &[
        "struct", "enum", "union", "trait", "fn", "type", "const", "static", "mod",
    ];
    let (mut depth, mut found) = (0, BTreeSet::new());
    for (n, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "macro_rules" if depth == 0 => found.extend(tokens.get(n + 2).map(|t| t.text.clone())),
            kind if depth == 0 && KINDS.contains(&kind) => {
                found.extend(tokens.get(n + 1).map(|t| t.text.clone()));
            }
            _ => {}
        }
    }
    found
}

/// Reads the paths of one file.
struct Reader<'r> {
    tree: &'r mut Tree,
    file: &'r str,
    own: Path,
    tokens: Vec<Token>,
    at: usize,
    /// The modules that the file itself contains, around `at`, with the depth of their braces.
    inline: Vec<(String, usize)>,
}

impl Reader<'_> {
    fn text(&self, ahead: usize) -> &str {
        self.tokens
            .get(self.at + ahead)
            .map_or("", |token| &token.text)
    }

    fn file(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.text(0) {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    self.inline.retain(|(_, around)| *around < depth);
                }
                "mod" if self.text(2) == "{" => {
                    self.inline.push((self.text(1).to_owned(), depth));
                }
                "use" if self.text(1) != "<" => {
                    self.at += 1;
                    self.imports(&[]);
                    continue;
                }
                _ if self.starts_path() => {
                    self.path();
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Does a path start here that leads to a module of this crate?
    fn starts_path(&self) -> bool {
        let before = self.at.checked_sub(1).map_or("", |n| &self.tokens[n].text);
        if self.text(1) != "::" || matches!(before, "::" | ".") {
            return false;
        }
        let mut child = self.own.clone();
        child.push(self.text(0).to_owned());
        matches!(self.text(0), "crate" | "super" | "self") || self.tree.modules.contains_key(&child)
    }

    fn path(&mut self) {
        let mut names = vec![self.text(0).to_owned()];
        while self.text(1) == "::" && self.tokens.get(self.at + 2).is_some_and(Token::is_name) {
            self.at += 2;
            names.push(self.text(0).to_owned());
        }
        self.used(&names, self.tokens[self.at].line);
        self.at += 1;
    }

    /// The names that a `use` lists behind `prefix`.
    fn imports(&mut self, prefix: &[String]) {
        let mut names = prefix.to_vec();
        while let Some(token) = self.tokens.get(self.at).cloned() {
            self.at += 1;
            match token.text.as_str() {
                "{" => {
                    while !matches!(self.text(0), "}" | "") {
                        self.imports(&names);
                        self.at += usize::from(self.text(0) == ",");
                    }
                    self.at += 1;
                    return;
                }
                "::" | "$" => continue,
                "*" => {
                    let glob = self.absolute(&names);
                    names.push(token.text);
                    self.used(&names, token.line);
                    self.module().globs.extend(glob);
                    return;
                }
                "self" if !names.is_empty() => {}
                _ => names.push(token.text),
            }
            if self.text(0) == "::" {
                continue;
            }
            self.used(&names, token.line);
            let mut bound = names.last().cloned().unwrap_or_default();
            if self.text(0) == "as" {
                bound = self.text(1).to_owned();
                self.at += 2;
            }
            if self.inline.is_empty() {
                let target = self.absolute(&names);
                self.module().imports.insert(bound, target);
            }
            return;
        }
    }

    fn module(&mut self) -> &mut Module {
        self.tree.modules.entry(self.own.clone()).or_default()
    }

    fn used(&mut self, names: &[String], line: usize) {
        if let Some(path) = self.absolute(names) {
            self.tree.uses.push(Use {
                file: self.file.to_owned(),
                line,
                module: self.own.clone(),
                path,
            });
        }
    }

    /// A path from the root on; `None` for another crate's.
    fn absolute(&self, names: &[String]) -> Option<Path> {
        let mut base = self.own.clone();
        base.extend(self.inline.iter().map(|(name, _)| name.clone()));
        let mut names = names;
        match names.first()?.as_str() {
            "crate" => {
                base.clear();
                names = &names[1..];
            }
            "self" => names = &names[1..],
            "super" => {
                while names.first().is_some_and(|name| name == "super") {
                    base.pop();
                    names = &names[1..];
                }
            }
            first if self.inline.is_empty() => {
                let mut child = base.clone();
                child.push(first.to_owned());
                let known = self.tree.modules.contains_key(&child)
                    || self.tree.modules[&base].items.contains(first);
                known.then_some(())?;
            }
            _ => return None,
        }
        base.extend(names.iter().cloned());
        Some(base)
    }
}
