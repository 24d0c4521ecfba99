//! Rust text without what the compiler does not run: comments, the contents of
//! strings, and a test module at the end.

/// The code of a file. What is left out is blank, so that lines keep their numbers.
pub(super) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match hidden(rest, code.chars().next_back()) {
            Some(length) => {
                code.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
                length
            }
            None => {
                code.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    if let Some(tests) = code.find("#[cfg(test)]\nmod tests {") {
        code.truncate(tests);
    }
    code
}

/// How long the comment or literal is that the text begins with, if it does.
fn hidden(text: &str, before: Option<char>) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    if text.starts_with('"') {
        return Some(quoted(text, '"'));
    }
    let in_a_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !in_a_name && let Some(length) = raw_string(text) {
        return Some(length);
    }
    // A lifetime has no quote behind its first letter.
    let mut letters = text.strip_prefix('\'')?.chars();
    let is_character = letters.next()? == '\\' || letters.next()? == '\'';
    is_character.then(|| quoted(text, '\''))
}

fn quoted(text: &str, quote: char) -> usize {
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

fn raw_string(text: &str) -> Option<usize> {
    let hashes_and_rest = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = hashes_and_rest.bytes().take_while(|byte| *byte == b'#').count();
    let content = hashes_and_rest[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - content.len();
    Some(content.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

fn block_comment(text: &str) -> usize {
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
    fn what_the_compiler_does_not_run_is_blank() {
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
}
