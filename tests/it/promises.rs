//! The tests and the fields of the audit log that SECURITY.md names exist, and its numbers of
//! checks and limits are right.

use std::fs;
use std::path::{Path, PathBuf};
use tests::dist;

/// Returns all code spans that start with this prefix, without the prefix.
fn code_spans(text: &str, prefix: &str) -> Vec<String> {
    let code = text.replace("\\`", "\u{1}");
    let quoted = code.split('`').skip(1).step_by(2);
    quoted.filter_map(|code| code.strip_prefix(prefix)).map(|name| name.replace('\u{1}', "`")).collect()
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
fn every_test_that_security_md_names_exists() {
    let root = dist::root();
    let page = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let corpus = sources(&root.join("tests/attack"));
    let cases = code_spans(&page, "attack: ");
    assert!(cases.len() > 30, "{cases:?}");
    for case in cases {
        assert!(corpus.contains(&format!("\"{case}\"")), "the corpus has no case `{case}`");
    }
    for (kind, directories) in [("it: ", &["tests/it"][..]), ("unit: ", &["runtime/src", "runtime/policy/src"])] {
        for test in code_spans(&page, kind) {
            let found = directories.iter().any(|directory| is_test(&root.join(directory), &test));
            assert!(found, "{directories:?} has no test `{test}`");
        }
    }
}

/// Returns true if this is a module with tests, or a function with `#[test]` in the file of its module.
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
fn security_md_lists_tests_for_each_promise() {
    let page = fs::read_to_string(dist::root().join("SECURITY.md")).unwrap();
    let (_, rest) = page.split_once("\n## Promises").unwrap();
    let (promises, rest) = rest.split_once("\n### Tests of the promises\n").unwrap();
    let (tests, _) = rest.split_once("\n## ").unwrap();
    let numbers = |table: &str| -> Vec<usize> {
        let first_cell = |line: &str| line.strip_prefix("| ")?.split_once(" |")?.0.parse().ok();
        table.lines().filter_map(first_cell).collect()
    };
    let all: Vec<usize> = (1..=numbers(promises).len()).collect();
    assert_eq!((numbers(promises), numbers(tests)), (all.clone(), all), "both tables must have the same numbers");
}

#[test]
fn security_md_has_the_numbers_of_checks_and_limits() {
    let root = dist::root();
    let entries = |file: &str, opening: &str| {
        let source = fs::read_to_string(root.join(file)).unwrap();
        let (_, list) = source.split_once(&format!("\n{opening}\n")).unwrap();
        let list = list.split_once("\n}\n").unwrap().0;
        let lines = list.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    // A line that ends with `{` is the head of an area.
    let checks = entries("runtime/checks/src/lib.rs", "checks! {");
    let checks = checks.iter().filter(|line| !line.ends_with(['{', '}'])).flat_map(|line| line.split_whitespace());
    let limits = entries("runtime/src/limits.rs", "limits! {");
    let expected = format!("{} checks and {} limits", checks.count(), limits.len());
    let page = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    assert!(page.contains(&expected), "SECURITY.md does not say `{expected}`");
}

#[test]
fn security_md_documents_every_field_of_the_audit_log() {
    let page = fs::read_to_string(dist::root().join("SECURITY.md")).unwrap();
    let missing: Vec<&str> = tests::audit::names().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "SECURITY.md does not name {missing:?}");
}
