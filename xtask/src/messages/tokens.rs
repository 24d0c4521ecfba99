//! Splits Rust text into the tokens that the search for messages needs.

use crate::source::{self, Kind, Piece};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// One line of a doc comment of the next item.
    Doc(&'t str),
    /// The value of a string literal.
    Text(String),
    /// An identifier, a keyword or a number.
    Name(&'t str),
    Mark(char),
}

/// Returns the tokens without comments, lifetimes, characters and byte strings.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut before = "";
    for Piece { kind, text } in source::pieces(text) {
        match kind {
            Kind::Code => add_code(text, &mut tokens),
            Kind::Comment => tokens.extend(doc(text).map(Token::Doc)),
            Kind::Literal if is_byte_prefix(before) || text.starts_with(['\'', 'b']) => {}
            Kind::Literal => tokens.push(Token::Text(value(text))),
        }
        before = text;
    }
    tokens
}

fn add_code<'t>(mut code: &'t str, tokens: &mut Vec<Token<'t>>) {
    while let Some(first) = code.chars().next() {
        let name_end = |text: &str| text.find(|c: char| !is_part_of_a_name(c)).unwrap_or(text.len());
        let length = match first {
            '\'' => 1 + name_end(&code[1..]),
            first if is_part_of_a_name(first) => {
                let length = name_end(code);
                tokens.push(Token::Name(&code[..length]));
                length
            }
            first => {
                tokens.extend((!first.is_whitespace()).then_some(Token::Mark(first)));
                first.len_utf8()
            }
        };
        code = &code[length..];
    }
}

/// Returns true if a literal after this code is a byte string.
fn is_byte_prefix(code: &str) -> bool {
    code.strip_suffix('b').is_some_and(|rest| !rest.ends_with(is_part_of_a_name))
}

fn is_part_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the text of a `///` comment.
fn doc(comment: &str) -> Option<&str> {
    comment.strip_prefix("///").filter(|rest| !rest.starts_with('/')).map(str::trim)
}

/// Returns the value of a string literal.
fn value(literal: &str) -> String {
    if let Some(raw) = literal.strip_prefix('r') {
        let hashes = raw.bytes().take_while(|byte| *byte == b'#').count();
        return raw.get(hashes + 1..raw.len().saturating_sub(hashes + 1)).unwrap_or_default().to_owned();
    }
    decoded(literal.get(1..literal.len() - 1).unwrap_or_default())
}

/// Replaces the escapes of characters that a page can show. Others, such as `\0` and `\u{200b}`, stay as they are
/// written, because they would be invisible.
fn decoded(literal: &str) -> String {
    let mut text = String::new();
    let mut rest = literal;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let Some(letter) = escape.chars().next() else { break };
        rest = &escape[letter.len_utf8()..];
        match letter {
            'n' => text.push('\n'),
            '"' | '\'' | '\\' => text.push(letter),
            '\n' => rest = rest.trim_start(),
            other => text.extend(['\\', other]),
        }
    }
    text.push_str(rest);
    text
}
