use proptest::prelude::*;

use super::field_place::{FieldKind, FieldPlace, is_name};
use super::pattern::{Pattern, PatternError};

#[test]
fn patterns_describe_whole_values() {
    for (text, yes, no) in [
        ("", &[""][..], &["a", " "][..]),
        ("abc", &["abc"], &["ab", "abcd", "ABC", "", "abc\n"]),
        ("a*", &["", "a", "aaaa"], &["b", "ab", "aab"]),
        ("a+b?", &["a", "aab"], &["", "b", "abb"]),
        ("[0-9a-f]{4}", &["0a9f", "ffff"], &["0a9", "0a9f0", "0A9F", "0a9g"]),
        ("vm-[a-z0-9-]{1,3}", &["vm-a", "vm-a-1"], &["vm-", "vm-a-12", "vm-A"]),
        (r"10\.0\.[0-9]{1,3}\.[0-9]{1,3}", &["10.0.1.255"], &["10a0.1.2", "10.0.1"]),
        (r"[\]\\^x-]*", &[r"]\^x-"], &["y", "["]),
        ("[-a]", &["-", "a"], &["b", ""]),
        ("[a-]", &["-", "a"], &["b"]),
        ("[ä-ü]ß*", &["ö", "üßß"], &["o", "ß"]),
        ("x{0,2}y", &["y", "xy", "xxy"], &["xxxy", "x"]),
    ] {
        let pattern = Pattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(pattern.to_string(), text);
        yes.iter().for_each(|value| assert!(pattern.matches(value), "{text} and {value}"));
        no.iter().for_each(|value| assert!(!pattern.matches(value), "{text} and {value}"));
    }
}

#[test]
fn what_is_not_a_pattern_is_refused() {
    for (text, expected) in [
        ("a.b", PatternError::Special('.')),
        ("^a", PatternError::Special('^')),
        ("a$", PatternError::Special('$')),
        ("a|b", PatternError::Special('|')),
        ("(a)", PatternError::Special('(')),
        ("*a", PatternError::Special('*')),
        ("a**", PatternError::Special('*')),
        ("a+?", PatternError::Special('?')),
        ("a]", PatternError::Special(']')),
        ("{2}", PatternError::Special('{')),
        (r"\d", PatternError::Escape),
        ("a\\", PatternError::Escape),
        ("[]", PatternError::Class),
        ("[^a]", PatternError::Class),
        ("[a", PatternError::Class),
        ("[z-a]", PatternError::Class),
        ("[[:digit:]]", PatternError::Class),
        ("a{}", PatternError::Repeat),
        ("a{2", PatternError::Repeat),
        ("a{2,1}", PatternError::Repeat),
        ("a{0}", PatternError::Repeat),
        ("a{1,}", PatternError::Repeat),
        ("a{+1}", PatternError::Repeat),
        ("a{9999}", PatternError::Repeat),
        ("a{999}b{999}", PatternError::Repeat),
        ("a\u{202e}", PatternError::Invisible),
        ("a\n", PatternError::Invisible),
    ] {
        let refused = Pattern::parse(text);
        assert_eq!(refused.clone().err(), Some(expected), "{text}: {refused:?}");
    }
}

#[test]
fn a_pattern_takes_time_in_proportion_to_the_value() {
    let pattern = Pattern::parse(&"a*".repeat(200)).unwrap();
    let value = "a".repeat(20_000);
    assert!(pattern.matches(&value) && !pattern.matches(&format!("{value}b")));
}

#[test]
fn names_that_servers_fold_are_refused() {
    for name in ["Action", "a", "Filter.1.Value.2", "a_b.c_d", "Tag.12", "x._y", "F.v1"] {
        assert!(is_name(FieldKind::Form, name), "{name}");
    }
    for name in [
        "",
        ".",
        "1",
        "_a",
        "Filter.01",
        "Filter.0",
        "Filter.1x",
        "a..b",
        "a.",
        ".a",
        "a b",
        "a-b",
        "ä",
        "a[0]",
        "\u{feff}a",
        "a\0",
    ] {
        assert!(!is_name(FieldKind::Form, name), "{name}");
    }
    assert!(is_name(FieldKind::Query, "changes-since") && !is_name(FieldKind::Query, "Filter.01"));
}

#[test]
fn places_are_written_as_they_are_parsed() {
    for text in ["json:/a/*/b", "json:/a~1b", "form:Tag.*.Value", "query:changes-since", "header:x-op"] {
        assert_eq!(FieldPlace::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(FieldPlace::parse("header:X_Op").unwrap().to_string(), "header:x-op");
    for text in
        ["body", "part:x", "cookie:x", "xml:e", "json:/ä", "json:/a//b", "json:a", "form:01", "form:*", "query:", "x"]
    {
        assert!(FieldPlace::parse(text).is_err(), "{text}");
    }
}

/// One atom of a pattern: its text, its characters, and its least and largest number.
type Atom = (String, &'static str, usize, Option<usize>);

fn atom() -> impl Strategy<Value = Atom> {
    let one = prop_oneof![
        Just(("a", "a")),
        Just(("b", "b")),
        Just(("[ab]", "ab")),
        Just(("[a-c]", "abc")),
        Just((r"\.", "."))
    ];
    let count = prop_oneof![
        3 => Just(("", 1, Some(1))),
        1 => Just(("*", 0, None)),
        1 => Just(("+", 1, None)),
        1 => Just(("?", 0, Some(1))),
        1 => Just(("{2}", 2, Some(2))),
        1 => Just(("{0,2}", 0, Some(2))),
    ];
    (one, count).prop_map(|((text, chars), (count, least, most))| (format!("{text}{count}"), chars, least, most))
}

/// Returns true if the value matches. Tries every length of every atom.
fn tries(atoms: &[Atom], value: &[char]) -> bool {
    let Some(((_, chars, least, most), rest)) = atoms.split_first() else { return value.is_empty() };
    let fitting = value.iter().take_while(|c| chars.contains(**c)).count().min(most.unwrap_or(usize::MAX));
    (*least..=fitting).any(|taken| tries(rest, &value[taken..]))
}

proptest! {
    #[test]
    fn a_pattern_matches_what_a_search_finds(atoms in proptest::collection::vec(atom(), 0..6), value in "[abc.]{0,8}") {
        let text: String = atoms.iter().map(|(text, ..)| text.as_str()).collect();
        let chars: Vec<char> = value.chars().collect();
        prop_assert_eq!(Pattern::parse(&text).unwrap().matches(&value), tries(&atoms, &chars), "{} and {}", text, value);
    }

    #[test]
    fn parsing_a_pattern_never_panics(text in r"[\[\]{}*+?,0-9a-z\\^-]{0,20}") {
        if let Ok(pattern) = Pattern::parse(&text) {
            pattern.matches(&text);
        }
    }
}
