//! Compares two versions of a guest: what the newer one needs in addition, and what it no
//! longer needs.
//!
//! An operator reads this before changing a pin. A version that needs more is not an error, and
//! has its own exit code.

use super::{Guest, plain_json};
use crate::commands::report::Report;
use serde_json::{Value, json};
use std::fmt::Write as _;
use wasm_cpi_policy::added_needs;

/// Something that only one of the versions needs, as JSON and as text.
struct Change {
    json: Value,
    text: String,
}

pub(super) fn report(old: &Guest, new: &Guest, as_json: bool) -> Report {
    let (more, less) = (changes(new, old), changes(old, new));
    let text = if as_json {
        let list = |changes: &[Change]| changes.iter().map(|change| change.json.clone()).collect::<Vec<_>>();
        let wants_more = !more.is_empty();
        plain_json(&json!({
            "old": identity(old), "new": identity(new), "wants_more": wants_more, "more": list(&more), "less": list(&less),
        }))
    } else {
        to_text(old, new, &more, &less)
    };
    Report { text, good: more.is_empty() }
}

/// Returns what `one` needs and `other` does not.
fn changes(one: &Guest, other: &Guest) -> Vec<Change> {
    let mut found = Vec::new();
    for import in one.imports.iter().filter(|import| other.imports.iter().all(|known| name(known) != name(import))) {
        let interface = name(import);
        found.push(Change { json: json!({"kind": "import", "name": interface}), text: format!("imports {interface}") });
    }
    let methods = &other.description.methods;
    for method in one.description.methods.iter().filter(|method| !methods.contains(method)) {
        let text = format!("implements the method {method}");
        found.push(Change { json: json!({"kind": "method", "name": method}), text });
    }
    let needs = added_needs(one.needs.as_ref(), other.needs.as_ref());
    found.extend(needs.iter().map(|want| Change { json: want.to_json(), text: want.to_string() }));
    found
}

/// Returns the name of an interface without its version, because all versions that the runtime
/// offers are equal.
fn name(import: &str) -> &str {
    import.split_once('@').map_or(import, |(name, _)| name)
}

fn identity(guest: &Guest) -> Value {
    let Guest { file, sha256, description, .. } = guest;
    json!({"file": file, "sha256": sha256, "name": description.name, "version": description.version})
}

fn to_text(old: &Guest, new: &Guest, more: &[Change], less: &[Change]) -> String {
    let mut text = String::new();
    for (word, guest) in [("old", old), ("new", new)] {
        let Guest { file, bytes, sha256, description, .. } = guest;
        let _ = writeln!(
            text,
            "{word:<9} {} {}, {} KiB, {file}, sha256 {sha256}",
            description.name,
            description.version,
            bytes / 1024
        );
    }
    for (word, changes) in [("more", more), ("less", less)] {
        for change in changes {
            let _ = writeln!(text, "{word:<9} {}", change.text);
        }
    }
    let verdict = match more.len() {
        _ if old.sha256 == new.sha256 => "the files are the same".to_owned(),
        0 => "the new version needs nothing more than the old one".to_owned(),
        _ => {
            "the new version needs more than the old one; review the lines `more` before you change the pin".to_owned()
        }
    };
    let _ = writeln!(text, "{verdict}");
    text
}
