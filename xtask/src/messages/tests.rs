use super::*;

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn only_texts_that_a_user_can_see_are_messages_of_a_rust_file() {
    for (source, expected) in [
        (r#"f("two words", "word", "{a} {b}")"#, &["two words"][..]),
        (r##"f(r#"raw "two" words"#)"##, &["raw \"two\" words"]),
        (r#"f("a \"quote\" and \\ and\nline \u{200b} two")"#, &["a \"quote\" and \\ and\nline \\u{200b} two"]),
        ("f(\"one \\\n        line\")", &["one line"]),
        (r#"f(b"two words", br"two words", 'a', &'a x, "its own")"#, &["its own"]),
        ("// \"two words\"\n/* \"two words\" */ f()", &[]),
        ("/// It says \"two words\".\n//! \"two words\"\nfn f() {}", &[]),
        (
            r#"x.expect("two words"); assert!(a, "two {}", b("words ok")); panic!("two words"); f("after it")"#,
            &["after it"],
        ),
        (r#"#[error("no file {0}: {}", f("in it"))] A, "and more""#, &["no file {0}: {}", "in it", "and more"]),
        (r#"#[allow(x, reason = "two words")] fn f() { g("in it") }"#, &["in it"]),
        (r#"#![allow(x, reason = "two words")] fn f() { g("in it") }"#, &["in it"]),
        (r#"#[command(name = "two words", after_help = "Example: a b")] A"#, &["Example: a b"]),
        (r#"#[serde(rename = "two words")] a: A, b: f("in it")"#, &["in it"]),
        (r#"f(" and ", ": ", "{} KiB")"#, &[" and ", "{} KiB"]),
    ] {
        assert_eq!(rust::messages(source), expected, "{source}");
    }
}

#[test]
fn code_that_does_not_ship_has_no_messages() {
    for source in [
        "#[cfg(test)]\nmod tests { mod inner { fn f() { g(\"two words\") } } fn h() { g(\"two words\") } }",
        "#[cfg(test)]\nmod tests;",
        "#[cfg(test)]\n#[allow(x)]\nfn f<A, B>(a: &'static str) -> [u8; 2] { g(\"two words\") }",
        "#[cfg(test)]\nconst A: B = B { c: D {}, e: \"two words\" };",
        "#[cfg(test)]\nuse a::{b, c};",
        "#[cfg(all(test, unix))]\nlet a = if b { c } else { \"two words\" };",
        "#[cfg(feature = \"mutation-testing\")]\nA::B => { f(\"two words\") }",
        "#[error(\"two words\")]\n#[cfg(test)]\nA,",
        "#[cfg(feature = \"fuzzing\")]\na: \"two words\",",
    ] {
        let found = rust::messages(&format!("f(\"before it\");\n{source}\nfn last() {{ f(\"after it\") }}"));
        assert_eq!(found, ["before it", "after it"], "{source}");
    }
    let shipped = "#[cfg(not(feature = \"mutation-testing\"))]\nfn f() { g(\"two words\") }";
    assert_eq!(rust::messages(shipped), ["two words"]);
}

#[test]
fn the_last_field_that_does_not_ship_ends_with_its_group() {
    assert_eq!(rust::messages("f(A { #[cfg(test)] a: \"two words\" }, \"after it\")"), ["after it"]);
}

#[test]
fn doc_comments_are_messages_where_clap_makes_help_of_them() {
    let source = "
        /// Runs a program.
        #[derive(Parser)]
        struct Cli { #[arg(long)] /** no */ a: A }
        /// The options of a command.
        #[derive(Debug, Args)]
        struct Options {
            /// A first line,
            /// and a second line.
            ///
            /// A paragraph.
            #[arg(long, help = \"More of it\")]
            b: B,
            /// Not in this build.
            #[cfg(feature = \"mutation-testing\")]
            c: C,
        }
        /// Not for users.
        struct Other {
            /// Not for users.
            d: D,
        }";
    assert_eq!(
        rust::messages(source),
        ["Runs a program.", "A first line, and a second line.", "A paragraph.", "More of it"]
    );
}

#[test]
fn templates_have_messages_in_ruby_and_on_stderr() {
    let template = "#!/bin/sh
<%-
  # A comment with 'two words'.
  raise \"property '#{name}' must be a hash (received #{policy.class})\" unless x =~ /\\A[a b]\\z/
  kinds = { 'a string' => 1, 'word' => 2 }
  url = \"http://#{f('a port', 2)}\"
-%>
echo \"two words\" > file
echo \"pre-start: $data is a link\" >&2
chown \"<%= user %>:\" x
";
    let expected =
        ["property '#{name}' must be a hash (received #{policy.class})", "a string", "pre-start: $data is a link"];
    assert_eq!(templates::messages(template), expected);
}

#[test]
fn the_page_lists_files_that_ship_in_review_order() {
    let message = |text: &str| format!("f(\"{text}\")");
    let page = page(&[
        file("guests/openstack/src/lib.rs", &message("guest openstack")),
        file("guests/probe/src/lib.rs", &message("guest probe")),
        file("release/jobs/a/templates/b.erb", "<% raise 'no name' %>"),
        file("runtime/policy/src/lib.rs", &message("policy crate")),
        file("runtime/src/commands/run.rs", &message("one\\ntwo ")),
        file("runtime/src/host.rs", "#[cfg(feature = \"mutation-testing\")]\npub mod mutants;\nmod mutants_of_other;"),
        file("runtime/src/host/mutants.rs", &message("not shipped")),
        file("runtime/src/host/mutants/more.rs", &message("not shipped")),
        file("runtime/src/host/mutants_of_other.rs", &message("shipped module")),
        file("runtime/src/lib.rs", "#[cfg(test)]\n#[allow(x)]\npub(crate) mod fake;"),
        file("runtime/src/fake.rs", &message("not shipped")),
        file("runtime/src/net/client.rs", &(message("second file") + &message("second file"))),
        file("runtime/src/net.rs", &message("first file")),
        file("runtime/src/net/tests.rs", &message("a test")),
        file("runtime/src/signals.rs", &message("other module")),
        file("xtask/src/main.rs", &message("not for users")),
    ]);
    let list = page.strip_prefix(HEAD).unwrap();
    let expected = "
## runtime/src/commands/run.rs

    one
        two

## runtime/policy/src/lib.rs

    policy crate

## runtime/src/host/mutants_of_other.rs

    shipped module

## runtime/src/net.rs

    first file

## runtime/src/net/client.rs

    second file

## runtime/src/signals.rs

    other module

## guests/openstack/src/lib.rs

    guest openstack

## guests/probe/src/lib.rs

    guest probe

## release/jobs/a/templates/b.erb

    no name
";
    assert_eq!(list, expected);
}

#[test]
fn a_page_that_is_out_of_date_is_a_problem_that_names_the_command() {
    let mut files = vec![file("runtime/src/net.rs", "f(\"two words\")")];
    assert!(problem(&files).unwrap().contains("cargo xtask messages"));
    files.push(file(PAGE, &page(&files)));
    assert_eq!(problem(&files), None);
    files[0].text = "f(\"other words\")".to_owned();
    assert!(problem(&files).unwrap().starts_with(PAGE));
    files[0].text = "\n\nlet a = f(\"two words\");".to_owned();
    assert_eq!(problem(&files), None, "only messages change the page");
}
