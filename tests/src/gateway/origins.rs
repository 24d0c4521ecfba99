//! Replaces the origins of URLs.

/// Replaces origins in a text, each pair from the first to the second. Works in one
/// pass, so that nothing is replaced twice. Only whole origins match: `:5000` does not
/// match `:50001`.
pub(crate) fn rewrite_origins(text: &str, pairs: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("http") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let ends =
            |from: &str| !rest[from.len()..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '.');
        let known = pairs.iter().find(|(from, _)| rest.starts_with(from.as_str()) && ends(from));
        let (to, length) = known.map_or((&rest[..4], 4), |(from, to)| (to.as_str(), from.len()));
        out.push_str(to);
        rest = &rest[length..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::rewrite_origins;

    #[test]
    fn origins_are_replaced_whole_and_once() {
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let pairs = [
            pair("http://a:5000", "http://a:50001"),
            pair("http://a:50001", "http://b"),
            pair("http://c.sim", "https://d"),
        ];
        for (text, expected) in [
            ("http://a:5000/v3", "http://a:50001/v3"),
            ("http://a:50001/v3 http://a:5000", "http://b/v3 http://a:50001"),
            ("\"http://c.sim\"", "\"https://d\""),
            ("http://c.simple http https:// ü", "http://c.simple http https:// ü"),
        ] {
            assert_eq!(rewrite_origins(text, &pairs), expected);
        }
    }
}
