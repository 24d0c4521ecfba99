//! Patterns of values: a small part of regular expressions, always for the whole value.
//!
//! A pattern is a sequence of characters and classes like `[a-z0-9_]`, each of which may be
//! followed by `*`, `+`, `?`, `{n}` or `{n,m}`. There are no alternatives, groups, dots, anchors
//! or negated classes, so a pattern means the same to every reader. The time to match is bounded
//! by the product of the two lengths: all positions are followed at once, and none is tried again.

use std::fmt;

use crate::invisible::is_invisible;

/// A parsed pattern. `Display` writes it as it was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    atoms: Vec<Atom>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Atom {
    /// The first and last character of each range.
    ranges: Vec<(char, char)>,
    repeat: Repeat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    Once,
    AtMostOnce,
    Any,
}

/// The largest number of atoms of a pattern, with repetitions written out.
const MAX_ATOMS: usize = 512;
/// The characters that must be written with a `\`.
const SPECIAL: &str = r"\[]{}*+?.^$|()";

/// The reason why a text is not a pattern. The messages follow the key of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// A special character has no meaning here.
    #[error("has a `{0}` that must be written as `\\{0}`")]
    Special(char),
    /// A `\` is not followed by a special character.
    #[error("has a `\\` that is not followed by a special character")]
    Escape,
    /// A class is empty, negated, not closed or has a range that goes backwards.
    #[error("has a class that is not like `[a-z0-9_-]`")]
    Class,
    /// A number of repetitions is malformed or too large.
    #[error("has a number of repetitions that is not like `{{8}}` or `{{1,16}}`, or is too long")]
    Repeat,
    /// People cannot see all characters of the pattern.
    #[error("has control or invisible characters")]
    Invisible,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// ```
    /// use wasm_cpi_policy::Pattern;
    ///
    /// let pattern = Pattern::parse(r"vm-[0-9a-f]{2,4}\.x*").unwrap();
    /// assert!(pattern.matches("vm-0a7.xx") && !pattern.matches("vm-0.") && !pattern.matches("a vm-0a7."));
    /// assert!(Pattern::parse("a|b").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        if text.contains(|c: char| c.is_control() || is_invisible(c)) {
            return Err(PatternError::Invisible);
        }
        let mut chars = text.chars().peekable();
        let mut atoms: Vec<Atom> = Vec::new();
        while let Some(c) = chars.next() {
            let ranges = match c {
                '\\' => {
                    let literal = escaped(chars.next())?;
                    vec![(literal, literal)]
                }
                '[' => class(&mut chars)?,
                special if SPECIAL.contains(special) => return Err(PatternError::Special(special)),
                literal => vec![(literal, literal)],
            };
            let (least, most) = repetition(&mut chars)?;
            let atom = |repeat| Atom { ranges: ranges.clone(), repeat };
            atoms.extend(std::iter::repeat_n(atom(Repeat::Once), least));
            match most {
                Some(most) => atoms.extend(std::iter::repeat_n(atom(Repeat::AtMostOnce), most - least)),
                None => atoms.push(atom(Repeat::Any)),
            }
            if atoms.len() > MAX_ATOMS {
                return Err(PatternError::Repeat);
            }
        }
        Ok(Pattern { text: text.to_owned(), atoms })
    }

    /// Returns true if the pattern describes the whole value.
    pub fn matches(&self, value: &str) -> bool {
        let mut active = vec![false; self.atoms.len() + 1];
        active[0] = true;
        self.skip_optional(&mut active);
        for c in value.chars() {
            let mut next = vec![false; active.len()];
            for (at, atom) in self.atoms.iter().enumerate().filter(|(at, _)| active[*at]) {
                if atom.ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) {
                    next[if atom.repeat == Repeat::Any { at } else { at + 1 }] = true;
                }
            }
            self.skip_optional(&mut next);
            if !next.contains(&true) {
                return false;
            }
            active = next;
        }
        active[self.atoms.len()]
    }

    /// Marks the positions that are reached without a further character.
    fn skip_optional(&self, active: &mut [bool]) {
        for (at, atom) in self.atoms.iter().enumerate() {
            if active[at] && atom.repeat != Repeat::Once {
                active[at + 1] = true;
            }
        }
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn escaped(c: Option<char>) -> Result<char, PatternError> {
    c.filter(|c| SPECIAL.contains(*c) || *c == '-').ok_or(PatternError::Escape)
}

/// Parses a class after its `[`. A `-` at its beginning or end stands for itself.
fn class(chars: &mut Chars<'_>) -> Result<Vec<(char, char)>, PatternError> {
    let mut ranges: Vec<(char, char)> = Vec::new();
    loop {
        let first = match chars.next().ok_or(PatternError::Class)? {
            ']' if ranges.is_empty() => return Err(PatternError::Class),
            ']' => return Ok(ranges),
            '^' if ranges.is_empty() => return Err(PatternError::Class),
            '[' => return Err(PatternError::Class),
            '\\' => escaped(chars.next())?,
            c => c,
        };
        let mut rest = chars.clone();
        let last = match (rest.next(), rest.next()) {
            (Some('-'), Some(last)) if last != ']' => {
                *chars = rest;
                if last == '\\' { escaped(chars.next())? } else { last }
            }
            _ => first,
        };
        if last < first || last == '[' {
            return Err(PatternError::Class);
        }
        ranges.push((first, last));
    }
}

/// Parses what follows an atom: the least and the largest number of repetitions.
fn repetition(chars: &mut Chars<'_>) -> Result<(usize, Option<usize>), PatternError> {
    let counts = match chars.peek() {
        Some('*') => (0, None),
        Some('+') => (1, None),
        Some('?') => (0, Some(1)),
        Some('{') => {
            chars.next();
            let mut text = String::new();
            loop {
                match chars.next() {
                    Some('}') => return counted(&text).ok_or(PatternError::Repeat),
                    Some(c) => text.push(c),
                    None => return Err(PatternError::Repeat),
                }
            }
        }
        _ => return Ok((1, Some(1))),
    };
    chars.next();
    Ok(counts)
}

fn counted(text: &str) -> Option<(usize, Option<usize>)> {
    let number = |text: &str| {
        let digits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<usize>().ok()).flatten()
    };
    let (least, most) = match text.split_once(',') {
        Some((least, most)) => (number(least)?, number(most)?),
        None => (number(text)?, number(text)?),
    };
    (least <= most && most > 0).then_some((least, Some(most)))
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
