use super::*;

const DOCUMENT: &str = "# Layers\n\n```layers\nbase other\nmiddle\ntop\n```\n\nmore\n";

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

/// Returns the problems of one file, together with files for all listed modules.
fn problems_of(path: &str, text: &str) -> Vec<String> {
    let mut files = vec![file(LIST, DOCUMENT), file("runtime/src/lib.rs", "mod base;\nuse crate::top::x;\n")];
    for module in ["base", "other", "middle", "top"] {
        files.push(file(&format!("runtime/src/{module}.rs"), ""));
    }
    files.push(file(path, text));
    problems(&files)
}

#[test]
fn lower_modules_may_be_used_in_every_syntax() {
    for (path, text) in [
        ("runtime/src/middle/a.rs", "use crate::base;\nuse crate::other::x;"),
        ("runtime/src/middle/a.rs", "use crate::middle::b;"),
        ("runtime/src/middle/a.rs", "use crate::{base, other::{x, y}, middle};"),
        ("runtime/src/top/a.rs", "fn f() { crate::base::g(); }"),
        ("runtime/src/top/a/b.rs", "use crate::{\n    base::{x, y::z},\n    middle,\n};"),
        ("runtime/src/base/a.rs", "// crate::top\n/// [`crate::top`]\nfn f() { g(\"crate::top\"); }"),
        ("runtime/src/base/a.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::top;\n}\n"),
        ("runtime/src/base/tests.rs", "use crate::top;"),
        ("runtime/src/base/tests/a.rs", "use crate::top;"),
        ("runtime/src/base/a.rs", "use other_crate::top;\nuse notcrate::top;\npub(crate) fn f() {}"),
        ("runtime/src/main.rs", "use crate::top;"),
        ("runtime/policy/src/a.rs", "use crate::anything;"),
        ("guests/sdk/src/base.rs", "use crate::top;"),
    ] {
        assert_eq!(problems_of(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}

#[test]
fn every_other_use_is_reported_with_its_line() {
    for (path, text, found) in [
        (
            "runtime/src/base/a.rs",
            "\nuse crate::top;",
            "runtime/src/base/a.rs:2: `base` uses `top`, which is in a higher",
        ),
        ("runtime/src/base/a.rs", "use crate::other::x;", "`base` uses `other`, which is in the same layer"),
        ("runtime/src/middle/a.rs", "fn f() { crate::top::g(); }", "`middle` uses `top`"),
        ("runtime/src/middle/a.rs", "use crate::{base::{x, y}, top};", "`middle` uses `top`"),
        ("runtime/src/middle/a.rs", "use crate::{\n    base,\n    top::x,\n};", "`middle` uses `top`"),
        ("runtime/src/middle/a.rs", "let url = \"http://\"; crate::top::g();", "`middle` uses `top`"),
        ("runtime/src/middle/a.rs", "use crate::Thing;", "`crate::Thing` is not a module of the layers"),
        ("runtime/src/new.rs", "", "the layers do not list the module `new`"),
        ("runtime/src/new/a.rs", "use crate::top;", "the layers do not list the module `new`"),
    ] {
        let problems = problems_of(path, text);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert!(problems[0].contains(found), "{text}: {problems:?}");
    }
}

#[test]
fn errors_in_the_list_are_reported() {
    for (document, found) in [
        ("```layers\nbase\n```\n", vec![]),
        ("no list", vec!["has no code block named `layers`"]),
        ("```layers\nbase\n", vec!["has no code block named `layers`"]),
        ("```layers\nbase gone\n```\n", vec!["list `gone`, which is not a module"]),
        ("```layers\nbase\nbase\n```\n", vec!["list the module `base` twice"]),
        ("```layers\n\n```\n", vec!["do not list the module `base`"]),
    ] {
        let problems = problems(&[file(LIST, document), file("runtime/src/base.rs", "")]);
        assert_eq!(problems.len(), found.len(), "{document}: {problems:?}");
        assert!(problems.iter().zip(found).all(|(problem, part)| problem.contains(part)), "{document}: {problems:?}");
    }
}
