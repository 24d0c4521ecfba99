//! Paths that lenient servers take for the same one.

use super::{PathPattern, Segment};
use percent_encoding::percent_decode_str;

/// The number of times that percent-encoding is undone: more than any chain of proxies and servers does.
const MAX_DECODED: usize = 4;

impl PathPattern {
    /// Returns true if a server could take `path` for one that the pattern matches: they differ at
    /// most in the case of letters, in empty segments and dots, in parameters after a `;`, in an
    /// extension of the last segment, in percent-encoding, or in what follows an encoded `?` or `#`.
    pub(in super::super) fn resembles(&self, path: &str) -> bool {
        let decoded = decoded(path);
        let before_query = decoded.split(['?', '#', '\0']).next().unwrap_or_default();
        self.fits(&segments(&decoded)) || self.fits(&segments(before_query))
    }

    fn fits(&self, segments: &[String]) -> bool {
        let wanted = self.segments.iter().map(|segment| match segment {
            Segment::Any => None,
            Segment::Is(literal) => Some(folded(&decoded(literal))),
        });
        let wanted: Vec<Option<String>> = wanted.filter(|literal| literal.as_deref() != Some("")).collect();
        let long_enough = if self.below { segments.len() >= wanted.len() } else { segments.len() == wanted.len() };
        let last = segments.len().saturating_sub(1);
        long_enough
            && wanted.iter().zip(segments).enumerate().all(|(at, (wanted, segment))| match wanted {
                None => true,
                Some(literal) => literal == segment || (at == last && differs_in_extension(literal, segment)),
            })
    }
}

/// Returns true if servers could find parameters in a path: behind a `;`, behind an encoded `?`, or in parentheses,
/// as in `/disks(size=9)`.
pub(in super::super) fn has_parameter(path: &str) -> bool {
    let decoded = decoded(path);
    let in_parentheses = decoded.split_once('(').is_some_and(|(_, rest)| rest.contains('='));
    decoded.contains([';', '?']) || in_parentheses
}

/// Undoes percent-encoding as often as there is some.
fn decoded(path: &str) -> String {
    let mut decoded = path.to_owned();
    for _ in 0..MAX_DECODED {
        let again = percent_decode_str(&decoded).decode_utf8_lossy().into_owned();
        if again == decoded {
            break;
        }
        decoded = again;
    }
    decoded
}

/// Returns the segments of a decoded path as lenient servers read them, without empty ones.
fn segments(path: &str) -> Vec<String> {
    let mut segments: Vec<String> = Vec::new();
    for segment in path.split(['/', '\\']) {
        let plain = segment.split([';', '?', '#', '\0']).next().unwrap_or_default().trim();
        if plain == ".." {
            segments.pop();
        } else {
            segments.extend(Some(folded(segment)).filter(|folded| !folded.is_empty()));
        }
    }
    segments
}

/// Returns a decoded segment as lenient servers read it: without regard to case, without parameters,
/// and without blanks around it and dots at its end.
fn folded(segment: &str) -> String {
    let plain = segment.split([';', '(', '?', '#', '\0']).next().unwrap_or_default();
    let plain = plain.trim_end_matches(|c: char| c == '.' || c.is_whitespace()).trim_start();
    // Some letters have the same upper case, and others the same lower case.
    plain.to_uppercase().to_lowercase()
}

/// Returns true if the second segment is the first one with an extension, or if they differ in the
/// extension of a format at most.
fn differs_in_extension(one: &str, other: &str) -> bool {
    const FORMATS: [&str; 9] = ["json", "xml", "yaml", "yml", "html", "htm", "txt", "csv", "js"];
    let plain = |segment: &str| match segment.rsplit_once('.') {
        Some((name, format)) if FORMATS.contains(&format) => name.to_owned(),
        _ => segment.to_owned(),
    };
    other.strip_prefix(one).is_some_and(|rest| rest.starts_with('.')) || plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> PathPattern {
        PathPattern::parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"))
    }

    #[test]
    fn a_pattern_resembles_the_paths_that_servers_may_take_for_its_own() {
        for (text, yes, no) in [
            (
                "/v1/keys",
                &[
                    "/v1/keys",
                    "/v1/keys/",
                    "/v1//keys",
                    "//v1/keys",
                    "/v1/Keys",
                    "/V1/KEYS",
                    "/v1/keys;a=b",
                    "/v1;x/keys",
                    "/v1/keys%3Ba",
                    "/v1/keys.json",
                    "/v1/keys.XML",
                    "/v1/keys.do",
                    "/v1/keys.",
                    "/v1/keys%20",
                    "/v1/keys/;x",
                    "/v1/%256beys",
                    "/v1/%25256beys",
                    "/v1%252Fkeys",
                    "/v1/x/%252e%252e/keys",
                    "/v1/x/%252e%252e%2520/keys",
                    "/v1/keys()",
                    "/v1/%252e/keys",
                    "/v1/%20keys",
                    "/v1/keys%3F",
                    "/v1/keys%3Fa/b/c",
                    "/v1/keys%23a/b",
                    "/v1/keys%2523",
                    "/v1/keys%09",
                    "/v1/%E2%84%AAeys",
                    "/v1/key%C5%BF",
                    "/v1%5Ckeys",
                ][..],
                &[
                    "/v1/key",
                    "/v1/keys2",
                    "/v1/keys/1",
                    "/v1",
                    "/v2/keys",
                    "/v1.json/keys",
                    "/keys",
                    "/",
                    "/v1/%25keys",
                    "/v1/x%3F/keys",
                ][..],
            ),
            ("/v1/keys.json", &["/v1/keys", "/v1/keys.xml", "/v1/KEYS.json/"], &["/v1/keys.old", "/v1/x.json"]),
            ("/v2.1/*/x/", &["/v2.1/a/x", "/v2.1/a//x"], &["/v2.2/a/x", "/v2.1//x"]),
            ("/v1/keys/**", &["/v1/Keys/7/b", "/v1//keys/", "/v1/keys.json"], &["/v1/key/7"]),
            ("/api.v2", &["/API.v2", "/api.v2.json"], &["/api.v3", "/api"]),
            ("/", &["/", "//", "/;x"], &["/a"]),
            ("/a%20b", &["/a%20b", "/A%20B/", "/a%2520b"], &["/ab"]),
            ("/**", &["/", "/a//b"], &[]),
        ] {
            for path in yes {
                assert!(pattern(text).resembles(path), "{text} should resemble {path}");
            }
            for path in no {
                assert!(!pattern(text).resembles(path), "{text} should not resemble {path}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_pattern_resembles_what_it_matches(text in r"(/(\*|a|b\.json|C|d;e|f%20|%C3%89|)){1,3}(/\*\*)?", path in r"(/(a|b\.json|C|d;e|f%20|%C3%89|a%3F|)){1,4}") {
            let parsed = pattern(&text);
            prop_assert!(!parsed.matches(&path) || parsed.resembles(&path), "{} and {}", text, path);
        }
    }
}
