mod schema;

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn parse(value: &Value) -> Result<Config, Vec<Problem>> {
    parse_text(&ConfigSource::new(Path::new("/job/config/cpi.json")), &value.to_string())
}

fn parse_text(source: &ConfigSource, text: &str) -> Result<Config, Vec<Problem>> {
    Config::parse(ConfigFile::parse(source, text).map_err(|problem| vec![problem])?)
}

fn texts(problems: &[Problem]) -> String {
    problems.iter().map(|problem| problem.text.as_str()).collect::<Vec<_>>().join("\n")
}

fn minimal() -> Value {
    json!({"version": 1, "guest": {"path": "../guest.wasm", "sha256": "0".repeat(64)}})
}

#[test]
fn paths_are_relative_to_the_file_and_defaults_are_filled_in() {
    let config = parse(&minimal()).ok().unwrap();
    assert_eq!(config.guest.path, Path::new("/job/config/../guest.wasm"));
    assert_eq!(config.policy_path, Path::new("/job/config/policy.json"));
    assert_eq!((config.api_version, config.allow_local, &config.limits), (3, false, &Limits::default()));
}

#[test]
fn every_problem_is_listed() {
    let problems = parse(&json!({
        "version": 2, "guest": {"path": "x", "sha256": "ABC"}, "limits": {"memory_mib": 0}, "polcy": "x",
        "allow_local": "yes-hunter2", "debug": {"cpi": {"api_version": 9}}, "log": {"level": "loud"},
    }))
    .err()
    .unwrap();
    let all = texts(&problems);
    for said in
        ["`version` must be 1", "`guest.sha256`", "memory_mib", "`polcy`", "`allow_local`", "api_version", "`log`"]
    {
        assert!(all.contains(said), "{said} in {all}");
    }
    assert!(!all.contains("hunter2"), "{all}");
}

#[test]
fn a_module_inherits_all_keys_except_guest_properties_and_policy() {
    let guest = |digit: &str| json!({"path": "g.wasm", "sha256": digit.repeat(64)});
    let text = json!({
        "version": 1, "guest": guest("0"), "properties": {"a": 1}, "policy": "mine.json", "allow_local": true,
        "limits": {"memory_mib": 7},
        "modules": {
            "a": {"guest": guest("1")},
            "b": {"guest": guest("2"), "properties": {"b": 2}, "policy": {"version": 1, "http": []}, "limits": {}},
            "c": {"guest": guest("3"), "modules": {}},
            "d": {},
        },
    })
    .to_string();
    let load = |module: Option<&str>| {
        let source =
            ConfigSource { module: module.map(str::to_owned), ..ConfigSource::new(Path::new("/j/config/cpi.json")) };
        parse_text(&source, &text)
    };
    let own = load(None).ok().unwrap();
    assert_eq!((own.policy_path.as_path(), own.policy_text), (Path::new("/j/config/mine.json"), None));
    let a = load(Some("a")).ok().unwrap();
    assert_eq!((a.guest.sha256, a.properties.len(), a.limits.memory_mib), ("1".repeat(64), 0, 7));
    assert_eq!((a.policy_text.as_deref(), a.allow_local), (Some(r#"{"version":1}"#), true));
    let b = load(Some("b")).ok().unwrap();
    assert_eq!((b.properties["b"].clone(), b.limits), (json!(2), Limits::default()));
    assert_eq!(b.policy_text.as_deref(), Some(r#"{"version":1,"http":[]}"#));
    assert_eq!(
        b.policy_path,
        Path::new("/j/config/cpi.json"),
        "files that the policy names are relative to the config"
    );
    for (module, said) in [("c", "`modules.c.modules`"), ("d", "`guest` is missing"), ("e", "has: a, b, c, d")] {
        let problems = texts(&load(Some(module)).err().unwrap());
        assert!(problems.contains(said), "{module}: {problems}");
    }
}

#[test]
fn the_error_for_a_missing_module_lists_the_modules() {
    for (text, module, said) in [
        (r#"{"version":1,"modules":{"a":{},"b":{}}}"#, None, "choose one of its `modules`: a, b ("),
        (r#"{"version":1,"guest":null,"modules":{"a":{}}}"#, None, "choose one of its `modules`: a ("),
        (r#"{"version":1,"modules":{}}"#, None, "`guest` is missing"),
        (r#"{"version":1,"modules":{}}"#, Some("a"), "no module `a`; `modules` has: none"),
        (r#"{"version":1}"#, Some("a"), "no module `a`; `modules` has: none"),
    ] {
        let source = ConfigSource { module: module.map(str::to_owned), ..ConfigSource::new(Path::new("c")) };
        let problems = texts(&parse_text(&source, text).err().unwrap());
        assert!(problems.contains(said), "{text} {module:?}: {problems}");
    }
}

#[test]
fn duplicate_keys_are_rejected() {
    let text = r#"{"version":1,"version":1}"#;
    assert!(parse_text(&ConfigSource::new(Path::new("c")), text).err().unwrap()[0].text.contains("twice"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,120}") {
        let _ = parse_text(&ConfigSource::new(Path::new("c")), &text);
    }
}
