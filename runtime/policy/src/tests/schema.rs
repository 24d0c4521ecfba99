//! The JSON Schemas of policies and needs, compared with the readers, which decide.
//!
//! A schema rejects nothing that the reader accepts, and it has the keys that the reader asks for.
//! Of known mistakes it finds all but those in `reader_only`.

mod reader_only;
mod rows;
mod tree;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::comparison::broken_needs;
use super::file::{complete_files, login, mistakes};
use super::mistakes::{unknown_keys, wrong_containers, wrong_values};
use super::mutated::{Change, apply, change, complete, complete_needs};
use super::*;
use reader_only::{ATTACKS, MISTAKES, NEEDS};
use rows::{attacks, check_list, documented, examples, merge};
use tree::{Schema, UNKNOWN, check_descriptions, compare_defaults, compare_keys};

fn policy_schema() -> Schema {
    Schema::load("policy")
}

fn needs_schema() -> Schema {
    Schema::load("needs")
}

/// Returns a policy with every object that there can be.
fn every_object() -> Value {
    let mut policy = complete();
    policy["presets"] = json!([{"file": "preset.json"}]);
    policy["logins"]["other"] = login(json!({"body": "REMOVED", "form": {"user": "${zone}"}}))["logins"]["main"].take();
    policy["http"][1]["auth"] = json!({"login": "other"});
    policy["http"][2]["auth"] = json!({"basic": {"user": "u", "password": "${zone}"}});
    policy["http"][3]["auth"] = json!({"header": {"name": "X-K", "value": "${zone}"}});
    policy
}

/// Reads a policy whose presets are empty.
fn read_policy(policy: &Value) -> Result<PolicyFile, Vec<PolicyProblem>> {
    PolicyFile::parse_with(&policy.to_string(), &|_, _| Ok(r#"{"version": 1}"#.to_owned()))
}

/// Returns the keys that the reader knows where it found the unknown key.
fn known_keys<T>(read: Result<T, Vec<PolicyProblem>>) -> Option<BTreeSet<String>> {
    let problems = read.err().unwrap_or_default();
    let problem = problems.iter().find(|problem| problem.what == "is an unknown key")?;
    assert!(problem.key.ends_with(UNKNOWN), "{problem}");
    let (_, known) = problem.remedy.split_once("known here: ").unwrap();
    Some(known.split(", ").map(str::to_owned).collect())
}

#[test]
fn the_schema_of_policies_has_the_keys_that_the_reader_asks_for() {
    read_policy(&every_object()).unwrap();
    compare_keys(&policy_schema(), &every_object(), |policy, _| known_keys(read_policy(policy)));
}

#[test]
fn the_schema_of_needs_has_the_keys_that_the_reader_asks_for() {
    compare_keys(&needs_schema(), &complete_needs(), |section, _| {
        known_keys(Needs::parse(section.to_string().as_bytes()))
    });
}

#[test]
fn a_preset_has_the_keys_of_a_policy_except_those_of_the_operator() {
    let schema = policy_schema();
    let policy = json!({"version": 1, "presets": [{"file": "preset.json"}]}).to_string();
    let read = |preset: &Value| PolicyFile::parse_with(&policy, &|_, _| Ok(preset.to_string()));
    let mut known = known_keys(read(&json!({"version": 1, UNKNOWN: 1}))).unwrap();
    for key in ["presets", "regions", "trust_undeclared"] {
        let problems = read(&json!({"version": 1, key: []})).unwrap_err();
        assert!(problems[0].what.contains("is for the operator's own policy"), "{problems:?}");
        assert!(known.insert(key.to_owned()));
    }
    let keys: BTreeSet<String> =
        schema.value(&schema.at("").unwrap())["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(known, keys);
}

#[test]
fn defaults_in_the_schemas_are_those_of_the_readers() {
    compare_defaults(&policy_schema(), &every_object(), |policy| format!("{:?}", read_policy(policy)));
    compare_defaults(&needs_schema(), &complete_needs(), |section| {
        format!("{:?}", Needs::parse(section.to_string().as_bytes()))
    });
}

#[test]
fn methods_in_the_schema_are_those_that_can_be_granted() {
    let schema = policy_schema();
    let method = schema.at("/http/0/methods/0").unwrap();
    assert_eq!(schema.keyword(&method, "enum"), Some(&json!(METHODS)));
}

#[test]
fn every_key_has_a_description() {
    check_descriptions(&policy_schema());
    check_descriptions(&needs_schema());
}

#[test]
fn a_schema_can_be_named_in_policies_presets_and_needs() {
    let named = json!({"$schema": "policy.schema.json", "version": 1});
    assert!(PolicyFile::parse(&named.to_string()).is_ok() && Needs::parse(named.to_string().as_bytes()).is_ok());
    let policy = json!({"version": 1, "presets": [{"file": "preset.json"}]}).to_string();
    assert!(PolicyFile::parse_with(&policy, &|_, _| Ok(named.to_string())).is_ok());
    for wrong in [json!(null), json!(true), json!(7), json!([]), json!({"$ref": "x"})] {
        let unnamed = json!({"$schema": wrong, "version": 1}).to_string();
        let preset = PolicyFile::parse_with(&policy, &|_, _| Ok(unnamed.clone())).unwrap_err();
        assert_eq!(preset[0].key, "presets[0].$schema");
        let needs = Needs::parse(unnamed.as_bytes()).unwrap_err();
        for problems in [PolicyFile::parse(&unnamed).unwrap_err(), needs] {
            assert_eq!((problems.len(), problems[0].key.as_str()), (1, "$schema"), "{problems:?}");
        }
    }
    // Only the file itself names its schema.
    let grant = json!({"$schema": "x", "id": "a", "to": "https://a.test", "methods": ["GET"], "paths": ["/"]});
    assert!(PolicyFile::parse(&json!({"version": 1, "http": [grant]}).to_string()).is_err());
}

#[test]
fn examples_are_valid() {
    let (policies, needs) = (policy_schema(), needs_schema());
    let found = (examples("policy"), examples("needs"), documented());
    assert!(found.0.len() >= 6 && found.1.len() >= 3 && !found.2.is_empty(), "{found:#?}");
    for (schema, files) in [(&policies, found.0), (&needs, found.1)] {
        for (path, file) in files {
            assert_eq!(schema.rejects(&file), None, "{}", path.display());
        }
    }
    assert!(found.2.iter().any(|(path, _)| path.ends_with("wit/README.md")), "the page about needs has no example");
    for (path, file) in found.2.iter().filter(|(_, file)| file.get("guest").or(file.get("modules")).is_none()) {
        let (policy, needs) = (policies.rejects(file), needs.rejects(file));
        assert!(policy.is_none() || needs.is_none(), "{}: {policy:?} {needs:?}", path.display());
    }
    for policy in complete_files().into_iter().chain([every_object()]) {
        assert_eq!(policies.rejects(&policy), None, "{policy}");
    }
    assert_eq!(needs.rejects(&complete_needs()), None);
}

#[test]
fn wrong_types_and_unknown_keys_are_rejected() {
    let schema = policy_schema();
    for (policy, key) in wrong_values().into_iter().chain(wrong_containers()).chain(unknown_keys()) {
        assert!(schema.rejects(&policy).is_some(), "{key} in {policy}");
    }
}

#[test]
fn mistakes_are_rejected_unless_only_the_reader_can_find_them() {
    let schema = policy_schema();
    let mut used = BTreeSet::new();
    for (policy, key, _) in mistakes() {
        let text = policy.to_string();
        let listed = MISTAKES.iter().position(|(at, part, _)| *at == key && text.contains(*part));
        assert_eq!(schema.rejects(&policy).is_none(), listed.is_some(), "`{key}` in {policy}");
        used.extend(listed);
    }
    assert_eq!(used.len(), MISTAKES.len(), "the list has mistakes that are not tried: {used:?}");
}

#[test]
fn mistakes_in_needs_are_rejected_unless_only_the_reader_can_find_them() {
    let schema = needs_schema();
    for (section, what) in broken_needs() {
        let accepted = serde_json::from_slice(section).is_ok_and(|value: Value| schema.rejects(&value).is_none());
        let listed = NEEDS.iter().any(|(problem, _)| *problem == what);
        assert_eq!(accepted, listed, "{what}: {}", String::from_utf8_lossy(section));
    }
}

#[test]
fn attacks_by_policies_are_rejected_unless_only_the_reader_can_find_them() {
    let schema = policy_schema();
    for attack in attacks().iter().filter(|attack| !attack.is_about_config()) {
        let mut grant =
            json!({"id": "api", "to": "https://api.iaas.test", "methods": ["GET", "POST"], "paths": ["/v1/**"]});
        merge(&mut grant, &attack.row["grant"]);
        let grants = if attack.row["grants"].is_null() { json!([grant]) } else { attack.row["grants"].clone() };
        let mut policy = json!({"version": 1, "http": grants});
        merge(&mut policy, &attack.row["policy"]);
        let expected = attack.is_mistake() && !attack.is_listed(ATTACKS);
        assert_eq!(schema.rejects(&policy).is_some(), expected, "{}: {policy}", attack.name);
    }
    check_list(ATTACKS);
}

#[test]
fn what_a_reader_accepts_its_schema_accepts() {
    let (policies, needs) = (policy_schema(), needs_schema());
    let config = ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() };
    let changed = |changes: Vec<Change>| {
        let (mut policy, mut section) = (every_object(), complete_needs());
        for change in changes {
            apply(&mut policy, change.clone());
            apply(&mut section, change);
        }
        if read_policy(&policy).is_ok() {
            prop_assert_eq!(policies.rejects(&policy), None, "{}", policy);
        }
        if Needs::parse(section.to_string().as_bytes()).is_ok() {
            prop_assert_eq!(needs.rejects(&section), None, "{}", section);
        }
        Ok(())
    };
    TestRunner::new(config).run(&proptest::collection::vec(change(), 0..3), changed).unwrap();
}
