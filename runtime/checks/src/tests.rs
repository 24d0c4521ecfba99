use std::collections::HashSet;

use super::*;

/// Returns the name of a variant in kebab-case.
fn kebab(variant: &str) -> String {
    variant.chars().fold(String::new(), |mut kebab, c| {
        if c.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(c.to_ascii_lowercase());
        kebab
    })
}

#[test]
fn a_code_is_the_name_of_the_variant_and_unique() {
    let codes: HashSet<&str> = Check::ALL.iter().map(|check| check.code()).collect();
    assert_eq!(codes.len(), Check::ALL.len());
    for check in Check::ALL {
        assert_eq!(check.code(), kebab(&format!("{check:?}")));
        assert_eq!(Check::find(check.code()), Some(*check));
    }
    assert_eq!(Check::find("no-such-check"), None);
}

#[test]
fn every_text_is_one_short_sentence() {
    for check in Check::ALL {
        let texts = match check.explanation() {
            Explanation::Refusal { meaning, remedy } => vec![meaning, remedy],
            Explanation::Safeguard { purpose } => vec![purpose],
        };
        for text in texts {
            let starts = text.starts_with(|c: char| c.is_uppercase() || c == '`');
            assert!(starts && text.ends_with('.') && !text.contains(". "), "{check}: {text}");
            assert!(text.len() < 140 && !text.contains(['|', '\t', '\n']), "{check}: {text}");
        }
    }
}

#[derive(Debug, PartialEq)]
struct Error(Option<Check>);

impl RefusedBy for Error {
    fn refused_by(self, check: Check) -> Error {
        Error(Some(check))
    }
}

#[test]
fn an_error_holds_the_check_that_refused() {
    let refused = Err(Error(Some(Check::GrantPort)));
    assert_eq!(Check::GrantPort.ensure(false, || Error(None)), refused);
    assert_eq!(Check::GrantPort.refuse(|| Error(None)), refused);
    assert_eq!(Check::GrantPort.ensure(true, || Error(None)), Ok(()));
    assert_eq!(Check::GrantPort.reject(Some("found"), |_| Error(None)), refused);
    assert_eq!(Check::GrantPort.reject(None::<&str>, |_| Error(None)), Ok(()));
}

#[test]
fn a_program_that_ships_makes_every_check() {
    for check in Check::ALL {
        assert!(check.refuses(true) && !check.refuses(false));
        assert!(check.accepts(true) && !check.accepts(false));
        assert_eq!((check.choose("strict", "lax"), check.perform(|| 1)), ("strict", Some(1)));
    }
}

#[test]
fn a_code_follows_the_text_in_brackets() {
    assert_eq!(with_code("config: no", Some(Check::Pin)), "config: no [pin]");
    assert_eq!(with_code("config: no", None), "config: no");
}
