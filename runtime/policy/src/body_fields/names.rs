//! The names of form fields and query parameters that all servers read alike.

use std::collections::HashMap;

use super::field_place::{FieldKind, is_name, written};
use wasm_cpi_checks::{Check, RefusedBy};

/// The name of a field is one that servers read in different ways. The message is a phrase that begins
/// with the field.
#[derive(Debug, thiserror::Error)]
#[error("{} {what}", shown(.place))]
pub(crate) struct NameError {
    /// The field as policies write it.
    pub(crate) place: String,
    /// What is wrong with it, as a phrase that follows the field.
    pub(crate) what: &'static str,
    /// The check that refuses it.
    pub(crate) check: Option<Check>,
}

impl NameError {
    pub(super) fn new<T: AsRef<str>>(kind: FieldKind, path: &[T], what: &'static str) -> NameError {
        NameError { place: written(kind, path), what, check: None }
    }
}

impl RefusedBy for NameError {
    fn refused_by(self, check: Check) -> NameError {
        NameError { check: self.check.or(Some(check)), ..self }
    }
}

/// What a name is if servers could read it as another one.
pub(super) const IN_OTHER_SPELLING: &str = "is another name in another spelling";

/// Rejects names that are not in canonical form, that occur twice, or that differ only in case: decoders fold
/// case and leading zeros, and take the first or the last field of a name.
pub(crate) fn check_names(kind: FieldKind, pairs: &[(String, String)]) -> Result<(), NameError> {
    let mut names: HashMap<String, &str> = HashMap::new();
    for (name, _) in pairs {
        let refused = |what| move || NameError::new(kind, &name.split('.').collect::<Vec<_>>(), what);
        Check::FieldName.ensure(is_name(kind, name), refused("is not a name in canonical form"))?;
        let earlier = names.insert(name.to_ascii_lowercase(), name);
        Check::FieldTwice.ensure(earlier != Some(name), refused("occurs twice"))?;
        let is_alone = earlier.is_none_or(|earlier| earlier == name);
        Check::FieldAlike.ensure(is_alone, refused(IN_OTHER_SPELLING))?;
    }
    Ok(())
}

/// Quotes a place only if it looks like one: the guest may have put a seal there.
pub(super) fn shown(place: &str) -> String {
    if is_showable(place) { format!("`{place}`") } else { "a field of the request".to_owned() }
}

pub(super) fn is_showable(place: &str) -> bool {
    let part = |part: &str| part.len() <= 32 && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-:~".contains(&b));
    place.len() <= 200 && place.split(['/', '.']).all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(kind: FieldKind, names: &[&str]) -> Option<Check> {
        let pairs: Vec<(String, String)> = names.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        check_names(kind, &pairs).err().and_then(|error| error.check)
    }

    #[test]
    fn names_of_forms_have_one_form() {
        for name in [
            "Action",
            "a",
            "A_1",
            "Filter.1",
            "Filter.10.Value.2",
            "Tag.member.1",
            "a._b",
            "NetworkInterface.1.SubnetId",
        ] {
            assert_eq!(checked(FieldKind::Form, &[name]), None, "{name}");
        }
        for name in [
            "",
            ".",
            "Filter.",
            ".Filter",
            "Filter..1",
            "Filter.01",
            "Filter.00",
            "Filter.0",
            "Filter.1a",
            "1Filter",
            "_Action",
            "Filter.-1",
            "Filter.+1",
            "Filter[1]",
            "Filter.1 ",
            " Action",
            "Action\u{0}",
            "Filter.\u{661}",
            "\u{410}ction",
            "Ac-tion",
            "a/b",
            "a:b",
            "\u{ff21}ction",
        ] {
            assert_eq!(checked(FieldKind::Form, &[name]), Some(Check::FieldName), "{name:?}");
        }
        assert_eq!(checked(FieldKind::Query, &["max-keys"]), None);
    }

    #[test]
    fn names_differ_in_more_than_case() {
        assert_eq!(checked(FieldKind::Form, &["Action", "Filter.1", "Filter.2"]), None);
        assert_eq!(checked(FieldKind::Form, &["Action", "Filter.1", "Filter.1"]), Some(Check::FieldTwice));
        for other in ["action", "ACTION", "aCTION"] {
            assert_eq!(checked(FieldKind::Form, &["Action", other]), Some(Check::FieldAlike), "{other}");
            assert_eq!(checked(FieldKind::Form, &[other, "Action"]), Some(Check::FieldAlike), "{other}");
        }
        assert_eq!(checked(FieldKind::Form, &["Filter.1.Name", "filter.1.name"]), Some(Check::FieldAlike));
    }

    #[test]
    fn an_error_shows_only_what_looks_like_a_name() {
        let error =
            |name: &str| check_names(FieldKind::Form, &[(name.to_owned(), String::new())]).unwrap_err().to_string();
        assert_eq!(error("Filter.01"), "`form:Filter.01` is not a name in canonical form");
        assert_eq!(error("x\u{1b}[31m"), "a field of the request is not a name in canonical form");
        assert_eq!(error(&"0".repeat(40)), "a field of the request is not a name in canonical form");
    }
}
