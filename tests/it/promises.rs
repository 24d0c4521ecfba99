//! SECURITY.md names the tests that hold its promises, and the fields of the
//! audit log: they exist.

use std::fs;
use std::path::{Path, PathBuf};
use tests::dist;

/// Everything in backquotes that begins with this word.
fn named(text: &str, kind: &str) -> Vec<String> {
    let code = text.replace("\\`", "\u{1}");
    let quoted = code.split('`').skip(1).step_by(2);
    quoted.filter_map(|code| code.strip_prefix(kind)).map(|name| name.replace('\u{1}', "`")).collect()
}

fn sources(directory: &Path) -> String {
    let mut waiting: Vec<PathBuf> = vec![directory.to_owned()];
    let mut all = String::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.map(|entry| entry.path()));
        } else {
            all.push_str(&fs::read_to_string(&path).unwrap_or_default());
        }
    }
    all
}

#[test]
fn every_test_that_holds_a_promise_exists() {
    let root = dist::root();
    let page = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let corpus = sources(&root.join("tests/attack"));
    let cases = named(&page, "attack: ");
    assert!(cases.len() > 30, "{cases:?}");
    for case in cases {
        assert!(corpus.contains(&format!("\"{case}\"")), "the corpus has no case `{case}`");
    }
    for (kind, directories) in [("it: ", &["tests/it"][..]), ("unit: ", &["runtime/src", "runtime/policy/src"])] {
        for test in named(&page, kind) {
            let found = directories.iter().any(|directory| is_test(&root.join(directory), &test));
            assert!(found, "no test `{test}` is in {directories:?}");
        }
    }
}

/// A function with `#[test]` above it in the file of its module, or a module with tests.
fn is_test(sources: &Path, test: &str) -> bool {
    let text = |module: &str| fs::read_to_string(sources.join(module.replace("::", "/") + ".rs"));
    if text(test).is_ok_and(|text| text.contains("#[test]")) {
        return true;
    }
    let Some((module, name)) = test.rsplit_once("::") else { return false };
    let text = text(module).unwrap_or_default();
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else { return false };
    let attributes = before.trim_end().lines().rev().map(str::trim).take_while(|line| line.starts_with("#["));
    attributes.into_iter().any(|attribute| attribute == "#[test]")
}

#[test]
fn every_field_of_the_audit_log_is_documented() {
    let page = fs::read_to_string(dist::root().join("SECURITY.md")).unwrap();
    let missing: Vec<&str> = tests::audit::names().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "SECURITY.md does not name {missing:?}");
}
