//! The places of `fields`: values in JSON, fields of forms, query parameters and headers.

use std::fmt;

use crate::normalize_header_name;
use crate::place::Place;

/// The part of a request that a field is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Json,
    Form,
    Query,
    Header,
}

/// One place, or all places that a `*` stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldPlace {
    pub(super) kind: FieldKind,
    pub(super) tokens: Vec<Token>,
}

/// One part of a JSON pointer, or of a name with dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Is(String),
    /// `*`: every key of an object, every element of a list, or any one part of a name.
    Any,
}

pub(super) const REMEDY: &str =
    "write `json:/a/b`, `form:Name.1`, `query:name` or `header:X`; `*` stands for one key, element or part of a name";

impl Token {
    pub(super) fn matches(&self, part: &str) -> bool {
        match self {
            Token::Is(text) => text == part,
            Token::Any => true,
        }
    }

    /// Returns true if a server that ignores case reads `part` as this token.
    pub(super) fn is_variant(&self, part: &str) -> bool {
        matches!(self, Token::Is(text) if text != part && text.eq_ignore_ascii_case(part))
    }
}

impl FieldPlace {
    /// Parses a place. An error is a phrase that follows the key.
    pub(super) fn parse(text: &str) -> Result<FieldPlace, String> {
        if let Some(name) = text.strip_prefix("query:") {
            return names(FieldKind::Query, name);
        }
        match text.parse::<Place>() {
            Ok(Place::Json(tokens)) => {
                let ascii = tokens.iter().all(|token| token.is_ascii() && !token.is_empty());
                if !ascii {
                    return Err("has a key that is empty or not ASCII".to_owned());
                }
                Ok(FieldPlace { kind: FieldKind::Json, tokens: tokens.into_iter().map(token).collect() })
            }
            Ok(Place::Form(name)) => names(FieldKind::Form, &name),
            Ok(Place::Header(name)) => {
                let tokens = vec![Token::Is(normalize_header_name(&name))];
                Ok(FieldPlace { kind: FieldKind::Header, tokens })
            }
            Ok(_) => Err("is not a place that can be judged".to_owned()),
            Err(error) => Err(format!("is not a place: {error}")),
        }
    }

    pub(super) fn has_star(&self) -> bool {
        self.tokens.contains(&Token::Any)
    }

    /// Returns true if a server that ignores case reads `part` as a part of the place's name.
    pub(super) fn names(&self, part: &str) -> bool {
        self.tokens.iter().any(|token| matches!(token, Token::Is(text) if text.eq_ignore_ascii_case(part)))
    }

    /// Returns true if the place is exactly at this path.
    pub(super) fn is_at<T: AsRef<str>>(&self, path: &[T]) -> bool {
        self.tokens.len() == path.len() && self.is_above(path)
    }

    /// Returns true if this path is at the place or below it.
    pub(super) fn is_above<T: AsRef<str>>(&self, path: &[T]) -> bool {
        self.tokens.len() <= path.len()
            && self.tokens.iter().zip(path).all(|(token, part)| token.matches(part.as_ref()))
    }

    /// Returns the token that follows a path which leads to this place.
    pub(super) fn next_after<T: AsRef<str>>(&self, path: &[T]) -> Option<&Token> {
        let leads = self.tokens.iter().zip(path).all(|(token, part)| token.matches(part.as_ref()));
        if leads { self.tokens.get(path.len()) } else { None }
    }
}

fn names(kind: FieldKind, text: &str) -> Result<FieldPlace, String> {
    let parts: Vec<&str> = text.split('.').collect();
    // A star stands for one part, so any part that may be there shows whether the rest is valid.
    let filled: Vec<&str> =
        parts.iter().enumerate().map(|(at, part)| if at > 0 && *part == "*" { "1" } else { part }).collect();
    if !is_name(kind, &filled.join(".")) {
        return Err("is not a name of letters, digits and `_`, with parts that are separated by dots".to_owned());
    }
    Ok(FieldPlace { kind, tokens: parts.into_iter().map(|part| token(part.to_owned())).collect() })
}

fn token(text: String) -> Token {
    if text == "*" { Token::Any } else { Token::Is(text) }
}

/// Returns true for the names of form fields and query parameters that all servers read alike:
/// `[A-Za-z]\w*`, then parts after dots that are names or numbers without leading zeros. A query
/// parameter may also have hyphens.
pub(super) fn is_name(kind: FieldKind, name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || (byte == b'-' && kind == FieldKind::Query);
    name.split('.').enumerate().all(|(at, part)| {
        let Some(first) = part.bytes().next() else { return false };
        let number = at > 0 && first != b'0' && part.bytes().all(|byte| byte.is_ascii_digit());
        let named = first.is_ascii_alphabetic() || (at > 0 && first == b'_');
        number || (named && part.bytes().all(word))
    })
}

impl fmt::Display for FieldPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<&str> =
            self.tokens.iter().map(|token| if let Token::Is(text) = token { text } else { "*" }).collect();
        f.write_str(&written(self.kind, &parts))
    }
}

/// Returns a place as policies write it.
pub(super) fn written<T: AsRef<str>>(kind: FieldKind, path: &[T]) -> String {
    let parts: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
    match kind {
        FieldKind::Json => Place::Json(parts.into_iter().map(str::to_owned).collect()).to_string(),
        FieldKind::Form => format!("form:{}", parts.join(".")),
        FieldKind::Query => format!("query:{}", parts.join(".")),
        FieldKind::Header => format!("header:{}", parts.join(".")),
    }
}
