//! `inspect OLD NEW`: what a new version of a guest needs beyond the old one.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output};
use tests::job::write;
use tests::{dist, hostile};

const SECTION: &str = "bosh-cpi:needs";

/// A temporary directory with guests.
struct Guests(tempfile::TempDir);

impl Guests {
    fn new() -> Guests {
        Guests(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        write(&path, bytes);
        path
    }

    /// Writes a small guest with these needs, or without a declaration if they are null.
    fn needing(&self, name: &str, needs: &Value) -> PathBuf {
        let plain = hostile::guest("plain");
        if needs.is_null() {
            return self.write(name, &plain);
        }
        self.write(name, &hostile::with_section(plain, SECTION, needs.to_string().as_bytes()))
    }
}

fn inspect(old: &PathBuf, new: &PathBuf, more: &[&str]) -> Output {
    let mut command = Command::new(dist::tool());
    command.arg("inspect").args([old, new]).args(more).env_clear().current_dir("/");
    command.output().unwrap()
}

fn needs(http: Value) -> Value {
    json!({"version": 1, "http": http})
}

#[test]
fn inspect_lists_additional_needs_and_exits_with_3() {
    let guests = Guests::new();
    let one = json!({"id": "api", "to": "https://api.test", "methods": ["GET"], "paths": ["/v1/**"]});
    let slot = json!([{"method": "GET", "path": "/v1/x", "place": "header:X-Data"}]);
    let with = |key: &str, value: Value| {
        let mut changed = one.clone();
        changed[key] = value;
        needs(json!([changed]))
    };
    let old = needs(json!([one.clone()]));
    for (old, new, more, less) in [
        (old.clone(), with("paths", json!(["/v1/x"])), vec![], vec!["need `api`: GET /v1/** at https://api.test"]),
        (old.clone(), with("id", json!("renamed")), vec![], vec![]),
        (
            old.clone(),
            with("paths", json!(["/v1/x", "/v2/**"])),
            vec!["need `api`: GET /v2/** at https://api.test"],
            vec!["need `api`: GET /v1/** at https://api.test"],
        ),
        (
            old.clone(),
            with("methods", json!(["GET", "PUT"])),
            vec!["need `api`: PUT /v1/** at https://api.test"],
            vec![],
        ),
        (
            old.clone(),
            with("to", json!("https://api.test:8443")),
            vec!["need `api`: GET /v1/** at https://api.test:8443"],
            vec!["need `api`: GET /v1/** at https://api.test"],
        ),
        (
            old.clone(),
            with("slots", slot),
            vec!["need `api`: agent in GET /v1/x at https://api.test, at `header:x-data`"],
            vec![],
        ),
        (with("to", json!("*")), old.clone(), vec![], vec!["need `api`: GET /v1/** at *"]),
        (json!({"version": 1}), json!({"version": 1, "registry": true}), vec!["the registry"], vec![]),
        (json!({"version": 1}), json!({"version": 1, "image": true}), vec!["the stemcell image"], vec![]),
        (
            json!({"version": 1, "logins": ["a"]}),
            json!({"version": 1, "logins": ["a", "b"]}),
            vec!["the login `b`"],
            vec![],
        ),
        (json!({"version": 1}), json!({"version": 1, "logins": "*"}), vec!["every login"], vec![]),
        (
            with("operations", json!({"in": "json", "allow": ["grow"]})),
            with("operations", json!({"in": "json", "allow": ["grow", "delete"]})),
            vec!["need `api`: the operations delete in GET /v1/** at https://api.test, at `json`"],
            vec![],
        ),
        (
            old.clone(),
            with("operations", json!("*")),
            vec!["need `api`: every operation that is granted at https://api.test"],
            vec![],
        ),
        (
            json!({"version": 1, "expose": ["a"]}),
            json!({"version": 1, "expose": ["a.b", "c"]}),
            vec!["to see the property `c`"],
            vec!["to see the property `a`"],
        ),
        (Value::Null, json!({"version": 1, "registry": true}), vec!["the registry"], vec!["declares no needs"]),
        (
            old.clone(),
            Value::Null,
            vec!["declares no needs: with `trust_undeclared`"],
            vec!["need `api`: GET /v1/** at https://api.test"],
        ),
        (Value::Null, Value::Null, vec![], vec![]),
    ] {
        let output = inspect(&guests.needing("old.wasm", &old), &guests.needing("new.wasm", &new), &[]);
        let text = String::from_utf8(output.stdout).unwrap();
        let context = format!("{old} to {new}: {text}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(if more.is_empty() { 0 } else { 3 }), "{context}");
        for (prefix, expected) in [("more      ", &more), ("less      ", &less)] {
            let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
            assert_eq!(lines.len(), expected.len(), "{context}");
            for (line, part) in lines.iter().zip(expected) {
                assert!(line.starts_with(part), "no `{part}`: {context}");
            }
        }
        assert_eq!(text.contains("needs more than the old one"), !more.is_empty(), "{context}");
    }
}

#[test]
fn additional_imports_and_methods_are_listed() {
    let guests = Guests::new();
    // This guest imports an interface of the host.
    let importing = hostile::guest("describe-calls-host");
    let old = guests.write("old.wasm", &hostile::describing("guest", "1.0", &["raw"], &["has_vm"]));
    let more = guests.write("more.wasm", &hostile::describing("guest", "2.0", &["raw"], &["has_vm", "reboot_vm"]));
    let output = inspect(&old, &more, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    for line in ["old       guest 1.0, ", "new       guest 2.0, ", "more      implements the method reboot_vm\n"] {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
    let less = inspect(&more, &old, &[]);
    assert_eq!(less.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&less.stdout).contains("less      implements the method reboot_vm\n"));
    let importing = guests.write("importing.wasm", &importing);
    let output = inspect(&old, &importing, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("more      imports bosh:cpi/"), "{text}");
}

#[test]
fn the_json_output_has_the_same_content() {
    let guests = Guests::new();
    let old = guests.needing("old.wasm", &json!({"version": 1, "image": true}));
    let new = guests.needing("new.wasm", &json!({"version": 1, "registry": true}));
    let output = inspect(&old, &new, &["--json"]);
    assert_eq!(output.status.code(), Some(3));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        found["old"],
        json!({"file": old, "sha256": dist::sha256_of(&old), "name": "hostile", "version": "1.0.0"})
    );
    assert_eq!(found["new"]["sha256"], json!(dist::sha256_of(&new)));
    assert_eq!(
        (&found["wants_more"], &found["more"], &found["less"]),
        (&json!(true), &json!([{"kind": "registry"}]), &json!([{"kind": "image"}]))
    );
    let same = inspect(&old, &old, &["--json"]);
    let found: Value = serde_json::from_slice(&same.stdout).unwrap();
    assert_eq!((same.status.code(), &found["wants_more"], &found["more"]), (Some(0), &json!(false), &json!([])));
    assert!(String::from_utf8_lossy(&inspect(&old, &old, &[]).stdout).contains("the files are the same\n"));
}

#[test]
fn a_file_that_cannot_be_inspected_exits_with_1_and_prints_no_result() {
    let guests = Guests::new();
    let good = guests.needing("good.wasm", &json!({"version": 1}));
    let broken = guests.needing("broken.wasm", &json!({"version": 1, "htpp": []}));
    let text = guests.write("text.wasm", b"(component)");
    let foreign = guests.write("foreign.wasm", &hostile::guest("foreign-imports"));
    let nowhere = guests.0.path().join("nowhere.wasm");
    for (bad, expected) in [
        (&broken, "broken.wasm: the needs that hostile declares are invalid"),
        (&text, "text.wasm: is WebAssembly text"),
        (&foreign, "foreign.wasm: imports "),
        (&nowhere, "nowhere.wasm: cannot be read"),
    ] {
        for (old, new) in [(&good, bad), (bad, &good)] {
            let output = inspect(old, new, &[]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(stderr.starts_with("config: guest ") && stderr.contains(expected), "no `{expected}` in {stderr}");
            assert!(output.stdout.is_empty());
        }
    }
    // `--config` is refused, because a policy applies to one guest.
    assert_eq!(inspect(&good, &good, &["--config", "x"]).status.code(), Some(2));
}

/// Texts of a guest must not control the terminal.
#[test]
fn texts_of_modules_are_escaped_before_they_are_printed() {
    let guests = Guests::new();
    let control_characters = "\u{202e}\u{9b}2J\u{200b}";
    let old = guests.needing("old.wasm", &json!({"version": 1}));
    let need = json!({"id": "api", "to": "*", "methods": "*", "paths": "*", "why": control_characters});
    let new = guests.needing("new.wasm", &needs(json!([need])));
    let mut foreign = hostile::component(r#"(component (import "acme:x/y" (instance)))"#).unwrap();
    let at = foreign.windows(8).position(|bytes| bytes == b"acme:x/y").unwrap();
    foreign[at..at + 8].copy_from_slice(b"ab\x1b[2J\x07b");
    let foreign = guests.write("foreign.wasm", &foreign);
    let unknown = guests.needing("unknown.wasm", &json!({"version": 1, control_characters: 1}));
    let check_escaped = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let bad = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{200b}".contains(c));
        assert!(!text.contains(bad), "{text:?}");
        text
    };
    let tool = |arguments: &[&str]| Command::new(dist::tool()).args(arguments).env_clear().output().unwrap();
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    for file in [foreign.to_str().unwrap(), unknown.to_str().unwrap(), new] {
        for arguments in [
            &["inspect", file][..],
            &["inspect", file, "--json"],
            &["inspect", old, file],
            &["inspect", old, file, "--json"],
        ] {
            let output = tool(arguments);
            let text = check_escaped(&output.stdout);
            let errors = check_escaped(&output.stderr);
            assert!(!text.is_empty() || !errors.is_empty());
            if file == new && arguments.contains(&"--json") {
                let found: Value = serde_json::from_str(&text).unwrap();
                let why = &found["needs"]["http"][0]["why"];
                assert!(
                    arguments.len() == 4 || *why == json!(control_characters),
                    "the escaped text must decode to the original: {why}"
                );
            }
        }
    }
    assert!(check_escaped(&tool(&["inspect", foreign.to_str().unwrap()]).stderr).contains("\\u{1b}[2J"));
}
