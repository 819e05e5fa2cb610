//! The words of a source file, without comments, text and tests.

use std::{iter::Peekable, str::Chars};

#[derive(Debug, Clone)]
pub struct Token {
    /// A name, `::`, or one other sign.
    pub text: String,
    pub line: usize,
}

impl Token {
    pub fn is_name(&self) -> bool {
        self.text
            .starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// The words of the source, without what `#[cfg(test)]` stands before.
pub fn tokens(text: &str) -> Vec<Token> {
    let all = words(text);
    let mut kept = Vec::new();
    let mut at = 0;
    while at < all.len() {
        if starts(&all[at..], &["#", "[", "cfg", "(", "test", ")", "]"]) {
            at = item_end(&all, at);
        } else {
            kept.push(all[at].clone());
            at += 1;
        }
    }
    kept
}

fn starts(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() >= words.len()
        && tokens
            .iter()
            .zip(words)
            .all(|(token, word)| token.text == *word)
}

/// Behind the item that starts with attributes at `at`.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    while starts(&tokens[at..], &["#", "["]) {
        at = group_end(tokens, at + 1);
    }
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at + 1,
            "{" => {
                let end = group_end(tokens, at);
                // A group of names in a `use` ends with a semicolon.
                let more = tokens.get(end).is_some_and(|token| token.text == ";");
                return if more { end + 1 } else { end };
            }
            "(" | "[" => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// Behind the bracket that closes the one at `at`.
fn group_end(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

struct Reader<'t> {
    chars: Peekable<Chars<'t>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    fn second(&self) -> Option<char> {
        self.chars.clone().nth(1)
    }

    fn line_comment(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.next();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.next() {
            match (c, self.peek()) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => continue,
            }
            self.next();
            if depth == 0 {
                return;
            }
        }
    }

    /// The rest of a text that a quotation mark opened.
    fn quoted(&mut self, end: char) {
        while let Some(c) = self.next() {
            if c == '\\' {
                self.next();
            } else if c == end {
                return;
            }
        }
    }

    /// A raw text, from its first `#` or quotation mark on.
    fn raw(&mut self) {
        let mut hashes = 0;
        while self.peek() == Some('#') {
            self.next();
            hashes += 1;
        }
        self.next();
        while let Some(c) = self.next() {
            let mut found = 0;
            while c == '"' && found < hashes && self.peek() == Some('#') {
                self.next();
                found += 1;
            }
            if c == '"' && found == hashes {
                return;
            }
        }
    }

    fn name(&mut self, first: char) -> String {
        let mut name = String::from(first);
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || *c == '_') {
            name.push(c);
            self.next();
        }
        name
    }
}

fn words(text: &str) -> Vec<Token> {
    let mut reader = Reader {
        chars: text.chars().peekable(),
        line: 1,
    };
    let mut found = Vec::new();
    while let Some(c) = reader.peek() {
        let line = reader.line;
        let second = reader.second();
        match (c, second) {
            ('/', Some('/')) => reader.line_comment(),
            ('/', Some('*')) => reader.block_comment(),
            _ => {
                reader.next();
                let text = match c {
                    c if c.is_whitespace() => continue,
                    '"' => {
                        reader.quoted('"');
                        continue;
                    }
                    '\'' => {
                        // A character ends with the same mark; a lifetime does not.
                        let after = reader.second();
                        if second == Some('\\') || after == Some('\'') {
                            reader.quoted('\'');
                        } else {
                            reader.name(c);
                        }
                        continue;
                    }
                    ':' if second == Some(':') => {
                        reader.next();
                        "::".to_owned()
                    }
                    c if c.is_alphanumeric() || c == '_' => {
                        let name = reader.name(c);
                        let raw = matches!(name.as_str(), "r" | "br" | "cr");
                        if raw && matches!(reader.peek(), Some('"' | '#')) {
                            reader.raw();
                            continue;
                        }
                        name
                    }
                    c => c.to_string(),
                };
                found.push(Token { text, line });
            }
        }
    }
    found
}
