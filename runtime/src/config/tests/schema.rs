//! Compares the JSON Schema of `cpi.json` with the reader, which decides. Uses helpers of the
//! policy crate's schema tests.

#[path = "../../../policy/src/tests/schema/rows.rs"]
mod rows;
#[path = "../../../policy/src/tests/schema/tree.rs"]
mod tree;

use super::*;
use rows::{attacks, check_list, documented, examples, merge};
use std::collections::BTreeSet;
use tree::{Schema, UNKNOWN, below, check_descriptions, compare_defaults, compare_keys, objects_of, repository};

/// Known mistakes of `tests/cases/config-mistakes.json` that the schema accepts: a part of the
/// reader's message, and the reason.
const MISTAKES: [(&str, &str); 7] = [
    ("the directory of packages is not known", "The file does not say where packages are."),
    ("is a key with which anyone can sign", "Which points have a small order is not a matter of patterns."),
    ("from 1 to 1, the number of keys", "A schema does not compare a number with the length of a list."),
    ("`endpoint` must be an http:// or https:// URL", "URLs are written in too many forms for a pattern."),
    ("`https` must be the URL of an HTTP proxy", "URLs are written in too many forms for a pattern."),
    ("`no_proxy[0]` must be a name", "Names, addresses, networks and ports are too many forms for a pattern."),
    ("`audit.path` must name a file", "Which paths lead to a directory is left to the reader."),
];

/// Rows of `tests/attack/rows/policies.json` that the schema accepts.
const ATTACKS: rows::ReaderOnly<'static> = &[(
    "invalid endpoints of the registry",
    &["ftp://registry.test", "http://u:hunter2@registry.test", "http://"],
    "URLs are written in too many forms for a pattern.",
)];

fn schema() -> Schema {
    Schema::load("cpi")
}

/// Returns a config with every possible object, except an inline policy.
fn every_object() -> Value {
    let keys = ["11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="];
    json!({
        "$schema": "cpi.schema.json", "version": 1,
        "guest": {"path": "g.wasm", "sha256": "0".repeat(64), "signature": {"ed25519": keys, "threshold": 1, "file": "s"}},
        "properties": {"a": 1},
        "agent": {"mbus": "nats://a.test:4222", "ntp": ["a"], "blobstore": {"provider": "dav"}},
        "registry": {"endpoint": "https://a.test", "user": "u", "password": "p", "ca": "ca.pem", "agent_endpoint": "b"},
        "proxy": {"http": "http://p.test:1", "https": "http://p.test:2", "no_proxy": ["a.test"]},
        "policy": "p.json", "limits": {"memory_mib": 64}, "log": {"level": "debug", "format": "json"},
        "audit": {"path": "audit.log", "max_bytes": 65_536}, "http_trace": "bodies", "cache": "c", "image_dirs": ["i"],
        "allow_local": true, "hardening": "off", "leaks": "end", "keep_tokens": false, "debug": {"cpi": {"api_version": 2}},
        "modules": {"m": {"guest": {"path": "m.wasm", "sha256": "1".repeat(64)}}},
    })
}

/// Reads the module that the JSON pointer leads into, or else the file itself.
fn read(config: &Value, pointer: &str) -> Result<Config, Vec<String>> {
    let module = pointer.strip_prefix("/modules/").and_then(|rest| rest.split('/').next()).map(str::to_owned);
    let source = ConfigSource { module, ..ConfigSource::new(Path::new("/job/config/cpi.json")) };
    let texts = |problems: Vec<Problem>| problems.into_iter().map(|problem| problem.text).collect();
    parse_text(&source, &config.to_string()).map_err(texts)
}

/// Returns the names in a text such as "expected one of `a`, `b`".
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the keys that the reader knows where it found the unknown key.
fn known_keys(config: &Value, pointer: &str) -> Option<BTreeSet<String>> {
    let problems = read(config, pointer).err()?;
    if let Some(known) = problems.iter().find_map(|problem| problem.split_once("; known here: ")) {
        assert!(known.0.contains(UNKNOWN), "{problems:?}");
        return Some(known.1.split(", ").map(str::to_owned).collect());
    }
    let field = format!("unknown field `{UNKNOWN}`, expected ");
    problems.iter().find_map(|problem| Some(quoted(problem.split_once(&field)?.1)))
}

/// Returns true if the reader refuses a key of the file in a module.
fn is_for_the_whole_file(key: &str) -> bool {
    let mut config = every_object();
    config["modules"]["m"][key] = json!(null);
    let problems = read(&config, "/modules/m").err().unwrap_or_default();
    problems.iter().any(|problem| problem.contains("is for the whole file"))
}

#[test]
fn the_schema_has_the_keys_that_the_reader_asks_for() {
    assert_eq!(read(&every_object(), "").err(), None);
    compare_keys(&schema(), &every_object(), |config, pointer| {
        let mut known = known_keys(config, pointer)?;
        if pointer == "/modules/m" {
            known.retain(|key| !is_for_the_whole_file(key));
        }
        Some(known)
    });
}

#[test]
fn the_job_of_the_release_knows_the_keys_of_a_module() {
    let template = std::fs::read_to_string(repository().join("release/jobs/wasm_cpi/templates/cpi.json.erb")).unwrap();
    let (_, list) = template.split_once("module_keys = %w[").unwrap();
    let list: BTreeSet<&str> = list.split_once(']').unwrap().0.split_whitespace().collect();
    let schema = schema();
    let module = schema.object(&schema.at("/modules/m").unwrap()).unwrap();
    let keys: BTreeSet<&str> =
        schema.value(&module)["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(list, keys);
}

#[test]
fn defaults_in_the_schema_are_those_of_the_reader() {
    compare_defaults(&schema(), &every_object(), |config| {
        let shown = |config: Config| {
            let Config { guest, properties, proxy, policy_path, policy_text, limits, audit, http_trace, .. } = config;
            let (signature, agent) = (guest.signature, config.agent.endpoints());
            let more = (config.cache, config.image_dirs, config.allow_local, config.hardening, config.on_leak);
            let (keep_tokens, api_version) = (config.keep_tokens, config.api_version);
            format!(
                "{signature:?} {properties:?} {agent:?} {proxy:?} {policy_path:?} {policy_text:?} {limits:?} {audit:?} {http_trace:?} {more:?} {keep_tokens} {api_version}"
            )
        };
        let log: Option<LogSection> = config.get("log").map(|log| serde_json::from_value(log.clone()).unwrap());
        let log = log.map_or((default_level(), default_format()), |log| (log.level, log.format));
        format!("{:?} {:?} {log:?}", read(config, "").map(shown), read(config, "/modules/m").map(shown))
    });
}

#[test]
fn every_limit_has_its_default_and_its_largest_value() {
    let schema = schema();
    let limits = schema.object(&schema.at("/limits").unwrap()).unwrap();
    let all = schema.value(&limits)["properties"].as_object().unwrap();
    for (name, limit) in all {
        let read = |value: &Value| serde_json::from_value::<Limits>(json!({name: value})).unwrap();
        let largest = limit["maximum"].as_u64().unwrap();
        assert_eq!(read(&limit["default"]), Limits::default(), "{name}");
        let problems = read(&json!(largest + 1)).problems();
        assert_eq!(problems, [format!("`limits.{name}` is {}; it must be from 1 to {largest}", largest + 1)]);
        assert_eq!((limit["minimum"].as_u64(), read(&json!(1)).problems()), (Some(1), Vec::new()), "{name}");
        assert_eq!(read(&json!(largest)).problems(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn enumerations_and_ranges_are_those_of_the_reader() {
    let (schema, sample) = (schema(), every_object());
    let (mut words, mut ranges) = (0, 0);
    for pointer in objects_of(&sample, "").iter().filter(|pointer| !pointer.starts_with("/modules")) {
        let node = schema.object(&schema.at(pointer).unwrap()).unwrap();
        for key in schema.value(&node)["properties"].as_object().into_iter().flat_map(Map::keys) {
            let part = below(&node, &["properties", key]);
            let problems = |value: Value| {
                let mut config = sample.clone();
                config.pointer_mut(pointer).unwrap()[key] = value;
                read(&config, "").err().unwrap().join("\n")
            };
            if let Some(list) = schema.keyword(&part, "enum") {
                let expected = list.as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned);
                let said = problems(json!("another-word"));
                assert_eq!(quoted(said.split_once(", expected ").unwrap().1), expected.collect(), "{pointer}/{key}");
                words += 1;
            }
            if let (Some(least), Some(most)) = (schema.keyword(&part, "minimum"), schema.keyword(&part, "maximum")) {
                let said = problems(json!(most.as_u64().unwrap() + 1));
                assert!(said.contains(&format!("must be from {least} to {most}")), "{pointer}/{key}: {said}");
                ranges += 1;
            }
        }
    }
    assert!(words >= 4 && ranges > 30, "{words} {ranges}");
}

#[test]
fn every_key_has_a_description() {
    check_descriptions(&schema());
}

#[test]
fn a_schema_can_be_named_at_the_top_of_the_file_only() {
    let mut config = minimal();
    config["$schema"] = json!("../../docs/schema/cpi.schema.json");
    config["modules"] = json!({"m": {"guest": minimal()["guest"]}});
    assert_eq!(read(&config, "").err().or(read(&config, "/modules/m").err()), None);
    config["modules"]["m"]["$schema"] = json!("x");
    let problems = read(&config, "/modules/m").err().unwrap();
    assert_eq!(
        problems,
        ["`modules.m.$schema` is set in a module, but is for the whole file; move it to the top of the file"]
    );
    for wrong in [json!(null), json!(true), json!(7), json!([]), json!({"$ref": "x"})] {
        config["$schema"] = wrong;
        let problems = read(&config, "").err().unwrap();
        assert!(problems.len() == 1 && problems[0].starts_with("`$schema` must be a string"), "{problems:?}");
    }
}

#[test]
fn examples_are_valid() {
    let schema = schema();
    let found: Vec<_> =
        documented().into_iter().filter(|(_, file)| file.get("guest").or(file.get("modules")).is_some()).collect();
    assert!(!found.is_empty());
    for (path, config) in &found {
        assert_eq!(schema.rejects(config), None, "{}", path.display());
    }
    // A policy may stand in the config itself.
    for (path, policy) in examples("policy") {
        let mut config = every_object();
        config["policy"] = policy;
        assert_eq!(schema.rejects(&config), None, "{}", path.display());
    }
    let corpus = std::fs::read_dir(repository().join("tests/fuzz/corpus/config")).unwrap();
    let corpus = corpus.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    for text in corpus.chain([minimal().to_string(), every_object().to_string()]) {
        let config = serde_json::from_str(&text).unwrap();
        assert_eq!(schema.rejects(&config).is_none(), read(&config, "").is_ok(), "{config}");
    }
}

#[test]
fn mistakes_are_rejected_unless_only_the_reader_can_find_them() {
    let schema = schema();
    let text = std::fs::read_to_string(repository().join("tests/cases/config-mistakes.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut used = BTreeSet::new();
    for row in rows {
        let mut config = minimal();
        config[row["key"].as_str().unwrap()] = row["value"].clone();
        let problems = read(&config, "").err().unwrap_or_default().join("\n");
        assert!(problems.contains(row["says"].as_str().unwrap()), "{row}: {problems}");
        if schema.rejects(&config).is_none() {
            let listed = MISTAKES.iter().position(|(part, _)| problems.contains(*part));
            assert!(used.insert(listed.unwrap_or_else(|| panic!("accepted: {row}"))), "twice: {row}");
        }
    }
    assert_eq!(used.len(), MISTAKES.len(), "the list has mistakes that are rejected: {used:?}");
}

#[test]
fn attacks_by_configs_are_rejected_unless_only_the_reader_can_find_them() {
    let schema = schema();
    let attacks = attacks();
    let about_config: Vec<_> = attacks.iter().filter(|attack| attack.is_about_config()).collect();
    assert!(about_config.len() > 30);
    for attack in about_config {
        let mut config = minimal();
        merge(&mut config, &attack.row["config"]);
        assert_eq!(attack.is_mistake(), read(&config, "").is_err(), "{}: {config}", attack.name);
        let expected = attack.is_mistake() && !attack.is_listed(ATTACKS);
        assert_eq!(schema.rejects(&config).is_some(), expected, "{}: {config}", attack.name);
    }
    check_list(ATTACKS);
}
