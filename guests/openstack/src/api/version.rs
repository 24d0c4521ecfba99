//! Microversions: finds the newest version that a service and this guest support.

use std::fmt;

use serde::Deserialize;

/// Major and minor version, ordered as numbers: 2.9 is before 2.15.
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

/// The document at the root of a service.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    version: Range,
}

/// The versions of a service. They are empty if it has no microversions.
#[derive(Debug, Deserialize)]
struct Range {
    #[serde(default)]
    min_version: String,
    #[serde(default)]
    version: String,
}

/// Returns the newest version in the range `supported` that the service has, or
/// the reason why there is none.
pub(super) fn newest_common(document: &Document, supported: (Version, Version)) -> Result<Version, String> {
    let Range { min_version, version } = &document.version;
    let (Some(first), Some(last)) = (Version::parse(min_version), Version::parse(version)) else {
        return Err(format!("the service has no microversions, but {} is needed", supported.0));
    };
    match last.min(supported.1) {
        best if best < supported.0 => {
            Err(format!("the newest version of the service is {last}, but {} is needed", supported.0))
        }
        best if best < first => {
            Err(format!("the oldest version of the service is {first}, but {} is the newest supported", supported.1))
        }
        best => Ok(best),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_is_chosen_or_the_reason_returned() {
        let supported = (Version(2, 15), Version(2, 64));
        for (first, last, best) in [
            ("2.1", "2.100", Ok("2.64")),
            ("2.1", "2.64", Ok("2.64")),
            ("2.1", "2.38", Ok("2.38")),
            ("2.1", "2.15", Ok("2.15")),
            ("2.1", "2.9", Err("the newest version of the service is 2.9, but 2.15 is needed")),
            ("2.70", "2.100", Err("the oldest version of the service is 2.70, but 2.64 is the newest supported")),
            ("", "", Err("the service has no microversions, but 2.15 is needed")),
            ("2.1", "new", Err("the service has no microversions, but 2.15 is needed")),
        ] {
            let range = Range { min_version: first.to_owned(), version: last.to_owned() };
            let found = newest_common(&Document { version: range }, supported).map(|version| version.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), best, "{first} to {last}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_parsed_version_is_written_as_it_was_read(text in r"[0-9.\-a]{0,12}") {
            if let Some(version) = Version::parse(&text) {
                assert_eq!(Version::parse(&version.to_string()), Some(version));
            }
        }
    }
}
