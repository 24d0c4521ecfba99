//! The places of `fields`: values in JSON, fields of forms, query parameters and headers.

use std::fmt;

use crate::normalize_header_name;
use crate::place::Place;
use crate::request_head::is_alike;

/// The part of a request that a field is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
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

    /// Returns true if a server could read `part` as this token, although it is written in another way.
    pub(super) fn is_variant(&self, part: &str) -> bool {
        matches!(self, Token::Is(text) if text != part && is_alike(text, part))
    }

    /// Returns true if a server could read `part` as this token.
    fn may_be(&self, part: &str) -> bool {
        self.matches(part) || self.is_variant(part)
    }

    /// Returns true if this is a key of an object, and not the number of a list element.
    pub(super) fn is_key(&self) -> bool {
        matches!(self, Token::Is(text) if !text.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Returns true if this is the number of a list element.
    pub(super) fn is_index(&self) -> bool {
        matches!(self, Token::Is(_)) && !self.is_key()
    }

    /// Returns true if a server could read a key as this token, or as a name that begins with it.
    pub(super) fn may_begin(&self, key: &str) -> bool {
        let first = key.split(['.', '/', '[', ']']).find(|part| !part.is_empty()).unwrap_or(key);
        self.may_be(key) || self.may_be(first)
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

    /// Returns true if a server could read `part` as a part of the place's name.
    pub(super) fn names(&self, part: &str) -> bool {
        self.tokens.iter().any(|token| matches!(token, Token::Is(text) if is_alike(text, part)))
    }

    /// Returns true if a server that reads a key with separators as several keys finds this place there, a part of the
    /// way to it, or, if it is limited, what is below it: `a.b` for `b` below `a`, and for `a`. Parts that only meet a
    /// `*` on the way prove nothing, as those of `22/tcp`.
    pub(super) fn is_reached_by_joined<T: AsRef<str>>(&self, path: &[T], key: &str, is_limited: bool) -> bool {
        let below = self.tokens_after(path).unwrap_or_default();
        let parts: Vec<&str> = key.split(['.', '/', '[', ']']).filter(|part| !part.is_empty()).collect();
        let is_joined =
            parts.len() > 1 && !below.first().is_some_and(|token| *token != Token::Any && token.matches(key));
        let pairs = || below.iter().zip(&parts);
        let is_named = pairs().any(|(token, _)| matches!(token, Token::Is(_)));
        let is_end = below.len() > 1 && below.len() <= parts.len();
        is_joined
            && (below.len() > 1 || is_limited)
            && pairs().all(|(token, part)| token.may_be(part))
            && (is_named || is_end)
    }

    /// Returns true if a server that reads other separators between the parts of a name could read this one as the
    /// place, although it is written in another way.
    pub(super) fn is_variant_of_name(&self, name: &str) -> bool {
        let words = |text: &str| -> Vec<String> {
            text.split(|c: char| !c.is_ascii_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let parts: Vec<&str> = name.split('.').collect();
        let given = words(name);
        let of_token = |token: &Token| match token {
            Token::Is(text) => words(text).into_iter().map(Some).collect(),
            Token::Any => vec![None],
        };
        let place: Vec<Option<String>> = self.tokens.iter().flat_map(of_token).collect();
        let same = |(place, given): (&Option<String>, &String)| {
            place.as_ref().is_none_or(|word| word.eq_ignore_ascii_case(given))
        };
        let by_words = place.len() == given.len() && place.iter().zip(&given).all(same);
        let by_letters = !self.has_star() && is_alike(&self.parts().concat(), name);
        !self.is_at(&parts) && (by_words || by_letters)
    }

    /// Returns true if a server that splits names at other separators than dots, or takes one element for a list,
    /// reads a name as the place, or as something below it.
    pub(super) fn is_reached_by_words(&self, name: &str) -> bool {
        let words: Vec<&str> =
            name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        is_reached(&self.tokens, &words)
    }

    /// Returns the parts as they are written, with `*` for any.
    pub(super) fn parts(&self) -> Vec<&str> {
        self.tokens.iter().map(|token| if let Token::Is(text) = token { text } else { "*" }).collect()
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
        self.tokens_after(path)?.first()
    }

    /// Returns the token that follows a path which leads to this place, and the one after it.
    pub(super) fn next_two_after<T: AsRef<str>>(&self, path: &[T]) -> Option<(&Token, Option<&Token>)> {
        let (first, rest) = self.tokens_after(path)?.split_first()?;
        Some((first, rest.first()))
    }

    /// Returns the tokens that follow a path which leads to this place.
    fn tokens_after<T: AsRef<str>>(&self, path: &[T]) -> Option<&[Token]> {
        let leads = self.tokens.iter().zip(path).all(|(token, part)| token.matches(part.as_ref()));
        if leads { self.tokens.get(path.len()..) } else { None }
    }
}

/// Returns true if words begin with what the tokens say. One token may be several words, and the number of an element
/// may be missing.
fn is_reached(tokens: &[Token], words: &[&str]) -> bool {
    let Some((token, rest)) = tokens.split_first() else { return true };
    let is_optional = *token == Token::Any || (token.is_index() && !rest.is_empty());
    let is_first = match token {
        Token::Any => !words.is_empty() && is_reached(rest, &words[1..]),
        Token::Is(text) => {
            let joined = (1..=words.len()).map(|count| (count, words[..count].concat()));
            let mut joined = joined.take_while(|(_, joined)| joined.len() <= text.len());
            joined.any(|(count, joined)| is_alike(text, &joined) && is_reached(rest, &words[count..]))
        }
    };
    is_first || (is_optional && is_reached(rest, words))
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
        f.write_str(&written(self.kind, &self.parts()))
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
