//! Patterns of paths: `*` stands for one segment, and a trailing `/**` for the path before it
//! and everything below.
//!
//! A pattern is compared with the canonical path of a [`Destination`] and must be written in
//! the same form. `*` never matches an empty segment.

mod resemblance;

pub(super) use resemblance::has_parameter;

use std::fmt;

use crate::destination::{Destination, InvalidUrl};
use wasm_cpi_checks::Check;

/// A pattern of paths, such as `/v2.1/*/servers/**`. `Display` writes it as it was parsed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    segments: Vec<Segment>,
    /// True if the pattern ends in `/**`.
    below: bool,
}

/// The path of the URL in `to`, which is put before patterns; empty for an origin alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Base(Vec<String>);

impl Base {
    pub(super) fn of(destination: &Destination) -> Base {
        let path = destination.path().trim_matches('/');
        let segments = path.split('/').map(str::to_owned);
        if path.is_empty() { Base::default() } else { Base(segments.collect()) }
    }

    /// Returns the rest of a path that begins with this base.
    pub(super) fn strip<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(self.to_string().as_str()).filter(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| write!(f, "/{segment}"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Segment {
    Is(String),
    Any,
}

const MAX_BYTES: u64 = 8192;

/// The reason why a text is not a pattern of paths. The messages follow the key of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text does not begin with `/`.
    #[error("does not begin with `/`")]
    Relative,
    /// The text has a `?` or `#`.
    #[error("holds a query or fragment")]
    Query,
    /// No URL has such a path.
    #[error("is not a valid path: {0}")]
    Url(#[from] InvalidUrl),
    /// The path has another canonical form.
    #[error("is not in canonical form")]
    NotCanonical {
        /// The form in which the path must be written.
        canonical: String,
    },
    /// A `*` is not a whole segment, or a `**` is not the last one.
    #[error("has a `*` within a segment or a `**` before the end")]
    Wildcard,
}

impl PathError {
    /// Returns what the author of the text should do.
    pub fn remedy(&self) -> String {
        match self {
            PathError::Relative => "write it like `/v1/**`".into(),
            PathError::Query => "write the path alone; query parameters go into `query` of the grant".into(),
            PathError::Url(_) => "write plain segments, like `/v1/*/servers`".into(),
            PathError::NotCanonical { canonical } => format!("write it as `{canonical}`"),
            PathError::Wildcard => "use `*` as a whole segment, and `/**` only at the end".into(),
        }
    }

    /// Returns the check that refuses the pattern, if it is a named one.
    pub fn check(&self) -> Option<Check> {
        match self {
            PathError::NotCanonical { .. } | PathError::Wildcard => Some(Check::PatternForm),
            PathError::Url(invalid) => invalid.check(),
            PathError::Relative | PathError::Query => None,
        }
    }
}

impl PathPattern {
    /// Parses a pattern. Rejects queries, fragments, paths that are not in canonical form, and a
    /// `*` that is not a whole segment.
    ///
    /// ```
    /// use wasm_cpi_policy::PathPattern;
    ///
    /// let pattern = PathPattern::parse("/v2/*/servers/**").unwrap();
    /// assert!(pattern.matches("/v2/project/servers/7/volumes"));
    /// assert!(!pattern.matches("/v2/servers"));
    /// ```
    pub fn parse(text: &str) -> Result<PathPattern, PathError> {
        let path = text.strip_prefix('/').ok_or(PathError::Relative)?;
        if text.contains(['?', '#']) {
            return Err(PathError::Query);
        }
        if !is_plain(text) {
            check_form(text)?;
        }
        let (path, below) = match path.strip_suffix("**") {
            Some("") => return Ok(PathPattern { segments: Vec::new(), below: true }),
            Some(before) if before.ends_with('/') => (&before[..before.len() - 1], true),
            _ => (path, false),
        };
        let segments = path
            .split('/')
            .map(|segment| match segment {
                "*" => Ok(Segment::Any),
                literal if Check::PatternForm.refuses(literal.contains('*')) => Err(PathError::Wildcard),
                literal => Ok(Segment::Is(literal.to_owned())),
            })
            .collect::<Result<_, _>>()?;
        Ok(PathPattern { segments, below })
    }

    /// Returns the pattern with `base` put before it.
    pub(super) fn below(&self, base: &Base) -> PathPattern {
        let base = base.0.iter().map(|segment| Segment::Is(segment.clone()));
        PathPattern { segments: base.chain(self.segments.iter().cloned()).collect(), below: self.below }
    }

    /// Returns `/**`, which matches every path.
    pub fn any() -> PathPattern {
        PathPattern { segments: Vec::new(), below: true }
    }

    /// Returns true if the pattern matches `path`, which must be the path of a [`Destination`].
    pub fn matches(&self, path: &str) -> bool {
        let mut rest = path.strip_prefix('/').unwrap_or(path).split('/');
        let prefix = self.segments.iter().all(|segment| match (segment, rest.next()) {
            (Segment::Is(literal), Some(text)) => literal == text,
            (Segment::Any, Some(text)) => !text.is_empty(),
            (_, None) => false,
        });
        prefix && (self.below || rest.next().is_none())
    }

    /// Returns the pattern of the paths that both match, or `None` if there is no such path.
    pub fn intersect(&self, other: &PathPattern) -> Option<PathPattern> {
        let mut segments = Vec::new();
        for at in 0..self.segments.len().max(other.segments.len()) {
            segments.push(match (self.segments.get(at), other.segments.get(at)) {
                (Some(Segment::Is(a)), Some(Segment::Is(b))) if a != b => return None,
                (Some(Segment::Is(a)), Some(Segment::Any)) | (Some(Segment::Any), Some(Segment::Is(a)))
                    if a.is_empty() =>
                {
                    return None;
                }
                (Some(Segment::Any), Some(b)) => b.clone(),
                (Some(a), Some(_)) => a.clone(),
                (Some(a), None) if other.below => a.clone(),
                (None, Some(b)) if self.below => b.clone(),
                _ => return None,
            });
        }
        Some(PathPattern { segments, below: self.below && other.below })
    }

    /// Returns true if this pattern matches every path that `other` matches.
    pub fn covers(&self, other: &PathPattern) -> bool {
        self.intersect(other).as_ref() == Some(other)
    }

    /// Orders patterns that match the same path; the most specific one is the greatest.
    pub(super) fn specificity(&self) -> (usize, usize, bool) {
        let literals = self.segments.iter().filter(|segment| **segment != Segment::Any).count();
        (literals, self.segments.len(), !self.below)
    }
}

/// Returns true if the text is certainly canonical, so that it need not be parsed as a URL.
fn is_plain(text: &str) -> bool {
    text.len() < 1024
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/*._-".contains(&b))
        && !(text.contains("//") || text.contains("/."))
}

/// Rejects a pattern that is not the canonical path of a URL.
fn check_form(text: &str) -> Result<(), PathError> {
    let canonical = Destination::parse(&format!("https://host.test{text}"), MAX_BYTES)?;
    if Check::PatternForm.refuses(canonical.path() != text) {
        return Err(PathError::NotCanonical { canonical: canonical.path().to_owned() });
    }
    Ok(())
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Is(literal) => write!(f, "/{literal}")?,
                Segment::Any => f.write_str("/*")?,
            }
        }
        f.write_str(if self.below { "/**" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> PathPattern {
        PathPattern::parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"))
    }

    #[test]
    fn patterns_match_whole_segments() {
        for (text, yes, no) in [
            ("/", &["/"][..], &["/a", "//"][..]),
            ("/**", &["/", "/a", "/a/b/", "//"], &[]),
            ("/v1/**", &["/v1", "/v1/", "/v1/x", "/v1/x/y/"], &["/", "/v11", "/v2", "/V1/x", "/a/v1/x"]),
            ("/v1", &["/v1"], &["/v1/", "/v1/x", "/"]),
            ("/v1/", &["/v1/"], &["/v1", "/v1/x"]),
            (
                "/v2.1/*/servers",
                &["/v2.1/p/servers"],
                &["/v2.1/servers", "/v2.1//servers", "/v2.1/p/q/servers", "/v2x1/p/servers"],
            ),
            ("/*", &["/a"], &["/", "/a/b", "/a/"]),
            ("/*/**", &["/a", "/a/", "/a/b"], &["/"]),
            ("/a%20b", &["/a%20b"], &["/a b", "/a+b"]),
        ] {
            for path in yes {
                assert!(pattern(text).matches(path), "{text} should match {path}");
            }
            for path in no {
                assert!(!pattern(text).matches(path), "{text} should not match {path}");
            }
        }
    }

    #[test]
    fn an_invalid_pattern_is_refused_with_a_remedy() {
        for (text, remedy) in [
            ("", "/v1/**"),
            ("v1", "/v1/**"),
            ("*", "/v1/**"),
            ("https://a.test/v1", "/v1/**"),
            ("/v1/../x", "`/x`"),
            ("/v1/./x", "`/v1/x`"),
            ("/v1/%41", "`/v1/A`"),
            ("/v1/%c3%a9", "`/v1/%C3%A9`"),
            ("/v1/é", "`/v1/%C3%A9`"),
            ("/v1/a b", "plain segments"),
            ("/v1/%2f", "plain segments"),
            ("/v1/..;/x", "plain segments"),
            ("/v1/x?y=1", "the path alone"),
            ("/v1/x#y", "the path alone"),
            ("/v1/x*", "whole segment"),
            ("/v1/**/x", "whole segment"),
            ("/v1/x**", "whole segment"),
            ("/v1***", "whole segment"),
        ] {
            let error = PathPattern::parse(text).unwrap_err();
            assert!(error.remedy().contains(remedy), "{text}: {error}; {}", error.remedy());
        }
    }

    #[test]
    fn patterns_cover_and_intersect_by_segments() {
        for (a, b, both) in [
            ("/v1/**", "/v1/x", Some("/v1/x")),
            ("/v1/*/x", "/v1/a/*", Some("/v1/a/x")),
            ("/v1/*/**", "/v1/**", Some("/v1/*/**")),
            ("/**", "/**", Some("/**")),
            ("/v1/*", "/v1/", None),
            ("/v1", "/v1/x", None),
            ("/v1/x", "/v2/x", None),
            ("/v1/*", "/v1/a/**", Some("/v1/a")),
        ] {
            let both = both.map(pattern);
            assert_eq!(pattern(a).intersect(&pattern(b)), both, "{a} and {b}");
            assert_eq!(pattern(b).intersect(&pattern(a)), both, "{b} and {a}");
        }
        assert!(pattern("/v1/**").covers(&pattern("/v1/*/servers")));
        assert!(!pattern("/v1/*/servers").covers(&pattern("/v1/**")));
        assert!(!pattern("/v1/*").covers(&pattern("/v1/**")));
    }

    proptest! {
        #[test]
        fn plain_paths_are_canonical(text in r"(/(\*|\*\*|[a-cX-Z0-3._-]{0,4})){1,4}") {
            prop_assert!(!is_plain(&text) || check_form(&text).is_ok(), "{}", text);
        }

        #[test]
        fn parsing_never_panics_and_what_it_accepts_prints_as_it_was_written(text in r"(/(\*|\*\*|[a-c.%;é]{0,3})){0,4}[*?]?") {
            if let Ok(parsed) = PathPattern::parse(&text) {
                prop_assert_eq!(parsed.to_string(), text);
            }
        }

        #[test]
        fn an_intersection_matches_the_paths_that_both_patterns_match(
            a in r"(/(\*|a|b)){1,3}(/\*\*)?", b in r"(/(\*|a|b)){1,3}(/\*\*)?", path in r"(/(a|b|)){1,4}"
        ) {
            let (a, b) = (pattern(&a), pattern(&b));
            let both = a.intersect(&b).is_some_and(|both| both.matches(&path));
            prop_assert_eq!(both, a.matches(&path) && b.matches(&path));
        }
    }
}
