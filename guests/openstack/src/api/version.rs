//! Microversions: the best that a service and this guest both know.

use std::fmt;

use serde::Deserialize;

/// Major and minor, ordered as numbers: 2.9 is before 2.15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32);

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self(major.parse().ok()?, minor.parse().ok()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// What a service says at its root.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    version: Range,
}

/// Empty texts where it knows no microversions.
#[derive(Debug, Deserialize)]
struct Range {
    #[serde(default)]
    min_version: String,
    #[serde(default)]
    version: String,
}

/// The newest within `known` that the service has, or a sentence on why none is.
pub(super) fn best(document: &Document, known: (Version, Version)) -> Result<Version, String> {
    let Range { min_version, version } = &document.version;
    let (Some(first), Some(last)) = (Version::parse(min_version), Version::parse(version)) else {
        return Err(format!("it has no microversions, and {} is needed", known.0));
    };
    match last.min(known.1) {
        best if best < known.0 => Err(format!("its newest version is {last}, and {} is needed", known.0)),
        best if best < first => Err(format!("its oldest version is {first}, and {} is the newest known", known.1)),
        best => Ok(best),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_both_is_chosen_and_none_is_told() {
        let known = (Version(2, 15), Version(2, 64));
        for (first, last, best) in [
            ("2.1", "2.100", Ok("2.64")),
            ("2.1", "2.64", Ok("2.64")),
            ("2.1", "2.38", Ok("2.38")),
            ("2.1", "2.15", Ok("2.15")),
            ("2.1", "2.9", Err("its newest version is 2.9, and 2.15 is needed")),
            ("2.70", "2.100", Err("its oldest version is 2.70, and 2.64 is the newest known")),
            ("", "", Err("it has no microversions, and 2.15 is needed")),
            ("2.1", "new", Err("it has no microversions, and 2.15 is needed")),
        ] {
            let range = Range { min_version: first.to_owned(), version: last.to_owned() };
            let found = super::best(&Document { version: range }, known).map(|version| version.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), best, "{first} to {last}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_version_or_none(text in r"[0-9.\-a]{0,12}") {
            if let Some(version) = Version::parse(&text) {
                assert_eq!(Version::parse(&version.to_string()), Some(version));
            }
        }
    }
}
