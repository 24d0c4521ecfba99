//! `explain`: prints what the code of a refusal, or a limit, means, and what to do.

use crate::commands::report::Report;
use crate::failure::Failure;
use crate::limits;
use clap::Args;
use std::fmt::Write as _;
use wasm_cpi_checks::{Check, Explanation};

#[derive(Args)]
pub struct ExplainOptions {
    /// Code, which messages show in brackets, or limit, for example grant-host or wall_seconds
    code: Option<String>,
    /// Print all codes as Markdown, like docs/codes.md
    #[arg(long, conflicts_with = "code")]
    markdown: bool,
}

/// The number of similar names that the error for an unknown one lists.
const MAX_SIMILAR: usize = 5;

/// Returns the refusals with their meanings and remedies, ordered by area.
fn refusals() -> impl Iterator<Item = (Check, &'static str, &'static str)> {
    Check::ALL.iter().filter_map(|check| match check.explanation() {
        Explanation::Refusal { meaning, remedy } => Some((*check, meaning, remedy)),
        Explanation::Safeguard { .. } => None,
    })
}

pub fn explain(options: &ExplainOptions) -> Result<Report, Failure> {
    match &options.code {
        Some(code) => explain_code(code).map(Report::good),
        None if options.markdown => Ok(Report::good(markdown())),
        None => Ok(Report::good(table())),
    }
}

fn explain_code(code: &str) -> Result<String, Failure> {
    let wanted = code.trim_matches(['[', ']', '`']).to_lowercase();
    if let Some((check, meaning, remedy)) = refusals().find(|(check, ..)| check.code() == wanted) {
        return Ok(format!("{check} ({})\nmeaning: {meaning}\nremedy:  {remedy}\n", check.area()));
    }
    let name = wanted.strip_prefix("limits.").unwrap_or(&wanted);
    if let Some(limit) = limits::ALL.iter().find(|limit| limit.name == name) {
        return Ok(format!(
            "{} (limit, default {}, at most {})\nlimits:  {}\nremedy:  If the guest needs more, the operator raises \
             `limits.{}` in the CPI's config.\n",
            limit.name,
            limit.default,
            limit.max,
            limit.meaning.trim_start(),
            limit.name
        ));
    }
    let similar = match similar(&wanted).join(", ") {
        none if none.is_empty() => none,
        names => format!("similar names are: {names}; "),
    };
    Err(Failure::request(format!("{code:?} is neither a code nor a limit; {similar}`wasm-cpi explain` lists all")))
}

/// Returns the codes and limits that are like a text, the most similar one first.
fn similar(text: &str) -> Vec<&'static str> {
    let limits = limits::ALL.iter().map(|limit| limit.name);
    let mut names: Vec<&str> = refusals().map(|(check, ..)| check.code()).chain(limits).collect();
    names.retain(|name| distance(text, name) <= name.len() / 2);
    names.sort_by_key(|name| distance(text, name));
    names.truncate(MAX_SIMILAR);
    names
}

/// Returns how many letters have to be added, removed or replaced to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (at, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *candidate);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// Returns one line for each code, ordered by area, and one for each limit.
fn table() -> String {
    let width = refusals().map(|(check, ..)| check.code().len()).max().unwrap_or_default();
    let line = |name: &str, meaning: &str| format!("  {name:width$}  {}\n", meaning.trim_start());
    let codes = by_area(|area| format!("{area}\n"), |check, meaning, _| line(check.code(), meaning));
    let limits: String = limits::ALL.iter().map(|limit| line(limit.name, limit.meaning)).collect();
    format!("{codes}\nLimits\n{limits}")
}

/// Returns the page `docs/codes.md`.
fn markdown() -> String {
    let head = |area: &str| format!("## {area}\n\n| code | meaning | remedy |\n|---|---|---|\n");
    let row = |check: Check, meaning: &str, remedy: &str| format!("| `{check}` | {meaning} | {remedy} |\n");
    format!("{INTRODUCTION}\n{}", by_area(head, row))
}

/// Writes the refusals under the heads of their areas, with an empty line between areas.
fn by_area(head: impl Fn(&str) -> String, row: impl Fn(Check, &str, &str) -> String) -> String {
    let (mut text, mut area) = (String::new(), "");
    for (check, meaning, remedy) in refusals() {
        if check.area() != area {
            let gap = if area.is_empty() { "" } else { "\n" };
            area = check.area();
            let _ = write!(text, "{gap}{}", head(area));
        }
        text.push_str(&row(check, meaning, remedy));
    }
    text
}

const INTRODUCTION: &str = "\
# Codes

Each refusal of wasm-cpi has a code. If the runtime itself ends the call, the code is in brackets at the end of the error that the
Director gets. If a guest reports the denial of an HTTP request, the code is in the CPI log (`bosh task N --cpi`), after the kind of
the denial: `denied(header) [header-override]`. If the registry, the image or the agent settings are refused to a guest, the code
is only in the audit log and in the output of `wasm-cpi call`. The audit log has it in the field `code` in all cases.

`wasm-cpi explain CODE` prints the line of this page. A guest does not see codes, and brackets in an error of the guest are the
guest's own text. If the remedy is for the guest's author, you cannot fix it in the configuration: go back to the version of the
guest that worked, and send the author the code and the log.

A *guarded* request sends secrets or goes to a *cleaned* origin, one with slots, captures or `drop`:
[policy.md](policy.md#what-a-guest-sees-of-responses) defines both.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_explained_with_or_without_its_brackets() {
        for code in ["grant-host", "[grant-host]", "Grant-Host"] {
            let text = explain_code(code).unwrap();
            assert!(text.starts_with("grant-host (Grants and needs)\nmeaning: No grant "), "{text}");
            assert!(text.contains("\nremedy:  The operator adds a grant"), "{text}");
        }
    }

    #[test]
    fn a_limit_is_explained_by_its_name_in_messages_or_configs() {
        for name in ["tables", "limits.tables", "`limits.tables`"] {
            let text = explain_code(name).unwrap();
            let head =
                "tables (limit, default 100000, at most 10000000)\nlimits:  The number of elements in all tables";
            assert!(text.starts_with(head) && text.contains("raises `limits.tables`"), "{text}");
        }
        assert!(table().contains("\n  wall_seconds "));
    }

    #[test]
    fn an_unknown_code_lists_similar_ones() {
        for (code, similar) in [
            ("grant-hots", "grant-host"),
            ("url-schema", "url-scheme"),
            ("pins", "pin"),
            ("wall_second", "wall_seconds"),
        ] {
            let failure = explain_code(code).unwrap_err();
            assert!(failure.message.contains(similar), "{failure}");
        }
        assert!(!explain_code("nothing like it").unwrap_err().message.contains("similar"));
        // A safeguard has no code.
        assert!(explain_code("redirects").is_err());
        assert!(explain_code("").is_err());
    }

    #[test]
    fn distances_count_edits() {
        for (one, other, edits) in [("", "abc", 3), ("abc", "abc", 0), ("abc", "axc", 1), ("abcd", "abd", 1)] {
            assert_eq!((distance(one, other), distance(other, one)), (edits, edits), "{one} {other}");
        }
    }

    #[test]
    fn every_refusal_is_listed_once() {
        for text in [table(), markdown()] {
            for (check, meaning, _) in refusals() {
                assert_eq!(text.matches(meaning).count(), 1, "{check}");
            }
            assert!(!text.contains("form-base64"), "a safeguard has no code");
        }
    }

    #[test]
    fn the_page_of_codes_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/codes.md");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, markdown()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(written, markdown(), "run `UPDATE_EXPECT=1 cargo test` and look at the difference");
    }
}
