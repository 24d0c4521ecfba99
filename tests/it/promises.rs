//! SECURITY.md names the tests that hold its promises: they exist.

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
    let tests = sources(&root.join("tests/it"));
    for test in named(&page, "it: ") {
        let (_, name) = test.rsplit_once("::").unwrap();
        let known = [format!("fn {name}("), format!("mod {name};")];
        assert!(known.iter().any(|known| tests.contains(known)), "tests/it has no `{test}`");
    }
    let unit = sources(&root.join("runtime/src"));
    for test in named(&page, "unit: ") {
        assert!(unit.contains(&format!("fn {test}(")), "runtime/src has no test `{test}`");
    }
}
