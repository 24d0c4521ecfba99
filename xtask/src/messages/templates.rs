//! Finds the messages in templates of the release: the strings in Ruby code between `<%`
//! and `%>`, and the strings of shell commands that write to stderr.

use super::is_message;

/// Returns the messages in the order of the text. A string ends on the line on which it starts.
pub(super) fn messages(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_ruby = false;
    for line in text.lines() {
        let is_ruby = in_ruby || line.trim_start().starts_with("<%");
        in_ruby = match (line.rfind("<%"), line.rfind("%>")) {
            (Some(start), Some(end)) => start > end,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => in_ruby,
        };
        if (is_ruby || line.contains(">&2")) && !line.trim_start().starts_with('#') {
            found.extend(strings(line));
        }
    }
    // A blank inside of `#{…}` belongs to code.
    found.retain(|text| is_message(text) && without_code(text).contains(' '));
    found
}

/// Returns the texts in double or single quotes.
fn strings(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(['"', '\'']) {
        let quote = if rest[start..].starts_with('"') { '"' } else { '\'' };
        let Some((text, after)) = rest[start + 1..].split_once(quote) else { break };
        found.push(text.to_owned());
        rest = after;
    }
    found
}

/// Removes what Ruby inserts into a string.
fn without_code(text: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}
