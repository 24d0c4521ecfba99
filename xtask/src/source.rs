//! Splits Rust text into code, comments and literals.
//!
//! `tidy` looks only at code, and `messages` looks for literals, so both read sources
//! through this module.

/// What a piece of Rust text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Code,
    Comment,
    /// A string or a character. The `b` of a byte string is code, except in `br"…"`.
    Literal,
}

/// Consecutive characters of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'t> {
    pub(crate) kind: Kind,
    pub(crate) text: &'t str,
}

/// Splits the text of a file. The pieces, one after the other, are the text.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(first) = text[at..].chars().next() {
        let Some((kind, length)) = hidden(&text[at..], text[start..at].chars().next_back()) else {
            at += first.len_utf8();
            continue;
        };
        pieces.push(Piece { kind: Kind::Code, text: &text[start..at] });
        pieces.push(Piece { kind, text: &text[at..at + length] });
        at += length;
        start = at;
    }
    pieces.push(Piece { kind: Kind::Code, text: &text[start..] });
    pieces.retain(|piece| !piece.text.is_empty());
    pieces
}

/// Returns the code of a file, without a test module at its end. Comments and literals become blanks, so that lines
/// keep their numbers.
pub(crate) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece.kind {
            Kind::Code => code.push_str(piece.text),
            _ => code.extend(piece.text.chars().map(|c| if c == '\n' { '\n' } else { ' ' })),
        }
    }
    if let Some(tests) = code.find("#[cfg(test)]\nmod tests {") {
        code.truncate(tests);
    }
    code
}

/// Returns the kind and the length of the comment or literal at the start of the text, if there is one.
fn hidden(text: &str, before: Option<char>) -> Option<(Kind, usize)> {
    if text.starts_with("//") {
        return Some((Kind::Comment, text.find('\n').unwrap_or(text.len())));
    }
    if text.starts_with("/*") {
        return Some((Kind::Comment, block_comment_length(text)));
    }
    if text.starts_with('"') {
        return Some((Kind::Literal, quoted_length(text, '"')));
    }
    let in_a_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !in_a_name && let Some(length) = raw_string_length(text) {
        return Some((Kind::Literal, length));
    }
    // A lifetime has no quote after its first letter.
    let mut letters = text.strip_prefix('\'')?.chars();
    let is_character = letters.next()? == '\\' || letters.next()? == '\'';
    is_character.then(|| (Kind::Literal, quoted_length(text, '\'')))
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_string_length(text: &str) -> Option<usize> {
    let hashes_and_rest = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = hashes_and_rest.bytes().take_while(|byte| *byte == b'#').count();
    let content = hashes_and_rest[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - content.len();
    Some(content.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

fn block_comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_literals_and_tests_are_blank() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d\n */ e", "a               \n    e"),
            (r#"a("b\"c") d"#, "a(      ) d"),
            (r##"a(r#"b"c"#) d"##, "a(        ) d"),
            ("a(\"https://b\") c", "a(           ) c"),
            ("a('\"') b(\"c\") d", "a(   ) b(   ) d"),
            (r"a('\'') b", "a(    ) b"),
            ("a<'b>(c: &'b str) d", "a<'b>(c: &'b str) d"),
            ("for\"b\"", "for   "),
            ("a\n#[cfg(test)]\nmod tests {\n    b\n}\n", "a\n"),
            ("#[cfg(test)]\nmod tests;\na", "#[cfg(test)]\nmod tests;\na"),
            ("\"ä\" ö", "    ö"),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn the_pieces_have_kinds_and_are_the_text() {
        let text = "a(\"b c\"); // d\n/* e */ r#\"f\"# 'g' &'h i";
        let found = pieces(text);
        let kinds: Vec<(Kind, &str)> = found.iter().map(|piece| (piece.kind, piece.text)).collect();
        let expected = [
            (Kind::Code, "a("),
            (Kind::Literal, "\"b c\""),
            (Kind::Code, "); "),
            (Kind::Comment, "// d"),
            (Kind::Code, "\n"),
            (Kind::Comment, "/* e */"),
            (Kind::Code, " "),
            (Kind::Literal, "r#\"f\"#"),
            (Kind::Code, " "),
            (Kind::Literal, "'g'"),
            (Kind::Code, " &'h i"),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(found.iter().map(|piece| piece.text).collect::<String>(), text);
    }
}
