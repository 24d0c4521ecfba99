//! The conformance table, `tests/cases/conformance.json`: method x API version
//! x outcome. Each row is executed as the Director and as the CLI.
//! `tests/CONFORMANCE.md` shows that table to readers; `UPDATE_EXPECT=1` rewrites it.
//!
//! In the table, `*` at the start or the end of a string stands for any text, and
//! `$name` for a value that this module generates.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tests::registry::Registry;
use tests::{Call, Job, dist, job, probe};

const TABLE: &str = include_str!("../cases/conformance.json");

/// All methods that a Director may call, including those that it no longer calls.
const METHODS: [&str; 25] = [
    "info",
    "create_stemcell",
    "delete_stemcell",
    "create_vm",
    "delete_vm",
    "has_vm",
    "reboot_vm",
    "set_vm_metadata",
    "calculate_vm_cloud_properties",
    "create_disk",
    "delete_disk",
    "has_disk",
    "attach_disk",
    "detach_disk",
    "set_disk_metadata",
    "get_disks",
    "resize_disk",
    "update_disk",
    "snapshot_disk",
    "delete_snapshot",
    "create_network",
    "delete_network",
    "current_vm_id",
    "ping",
    "configure_networks",
];

fn table() -> Value {
    serde_json::from_str(TABLE).unwrap()
}

fn rows(part: &str) -> Vec<Value> {
    table()[part].as_array().cloned().unwrap()
}

#[test]
fn every_row_has_the_outcome_of_the_table_for_the_director() {
    check_rows("director", |job| job);
}

#[test]
fn every_row_has_the_same_outcome_with_the_rendered_job() {
    check_rows("director", Job::installed_from_release);
    check_rows("cli", Job::installed_from_release);
}

#[test]
fn every_row_has_the_outcome_of_the_table_for_the_cli() {
    check_rows("cli", |job| job);
}

fn check_rows(caller: &str, install: fn(Job) -> Job) {
    let plain = install(Job::default());
    let registry = Registry::start();
    let with_registry = install(Job::default().configure(|config| config["registry"] = registry.section()));
    let image = plain.path("image");
    job::write(&image, b"the image of a stemcell");
    let mut wrong = Vec::new();
    for row in rows("methods").iter().filter(|row| callers(row).contains(&caller.to_owned())) {
        for version in row["api_versions"].as_array().unwrap() {
            registry.clear();
            registry.put("vm-1", &json!({"agent_id": "agent-1", "disks": {"system": "/dev/sda", "persistent": {}}}));
            let capped = row.get("api_cap").map(|cap| {
                install(Job::default().configure(|config| config["debug"] = json!({"cpi": {"api_version": cap}})))
            });
            let job = match (&capped, row["registry"] == true) {
                (Some(capped), _) => capped,
                (None, true) => &with_registry,
                (None, false) => &plain,
            };
            let arguments = filled(&row["arguments"], &image.to_string_lossy());
            let version = version.as_u64().map(|version| u32::try_from(version).unwrap());
            let call = job.call(row["method"].as_str().unwrap(), arguments).api_version(version);
            let response = if caller == "cli" { call.cli() } else { call.director() }.run();
            let answered = match row.get("error") {
                None => json!({"result": response.json["result"], "error": response.json["error"]}),
                Some(_) => json!({"error": response.json["error"]}),
            };
            let expected = match row.get("error") {
                None => json!({"result": filled(&row["result"], ""), "error": null}),
                Some(error) => {
                    json!({"error": {"type": error["type"], "message": error["message"], "ok_to_retry": false}})
                }
            };
            if !matches(&expected, &answered) {
                wrong.push(format!("{} at {version:?}: expected {expected}, got {answered}", row["method"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{caller}:\n{}", wrong.join("\n"));
}

#[test]
fn the_table_has_every_method_in_every_version() {
    let versions = |method: &str| -> BTreeSet<String> {
        let rows = rows("methods");
        let of_method = rows.iter().filter(|row| row["method"] == method);
        of_method.flat_map(|row| row["api_versions"].as_array().unwrap().clone()).map(|v| v.to_string()).collect()
    };
    for method in METHODS {
        for version in ["null", "1", "2", "3"] {
            assert!(versions(method).contains(version), "no row for {method} at {version}");
        }
    }
}

#[test]
fn every_error_kind_of_a_guest_has_the_type_and_the_retry_flag_of_the_table() {
    let job = Job::default();
    for row in rows("errors") {
        for retry in [false, true] {
            let script =
                json!([{"op": "error", "kind": row["kind"], "message": "what went wrong", "ok_to_retry": retry}]);
            let response = job.script(script).run();
            let expected = json!({
                "type": row["type"], "message": "what went wrong", "ok_to_retry": retry && row["carries_retry"] == true,
            });
            assert_eq!(*response.error(), expected, "{}", row["kind"]);
        }
    }
}

#[test]
fn every_error_kind_of_the_wit_is_in_the_table() {
    let wit = std::fs::read_to_string(dist::root().join("wit/types.wit")).unwrap();
    let (_, rest) = wit.split_once("variant error-kind {").unwrap();
    let (body, _) = rest.split_once("\n    }").unwrap();
    let kinds = body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let kinds: Vec<&str> = kinds.map(|line| line.split(['(', ',']).next().unwrap()).collect();
    let rows = rows("errors");
    let in_table: Vec<&str> = rows.iter().map(|row| row["kind"].as_str().unwrap()).collect();
    assert_eq!(in_table, kinds);
}

#[test]
fn an_error_of_a_guest_without_a_message_gets_one() {
    let response = Job::default().script(json!([{"op": "error", "kind": "cloud", "message": ""}])).run();
    response.fails(tests::CLOUD_ERROR, &["create_disk failed without a message"]);
}

#[test]
fn a_method_that_the_guest_does_not_list_is_not_implemented() {
    let job = Job::new().guest_bytes(&tests::hostile::guest("plain"));
    let response = job.call("delete_disk", json!(["disk-1"])).run();
    response.fails(tests::NOT_IMPLEMENTED, &["hostile 1.0.0 does not implement delete_disk"]);
}

#[test]
fn the_tool_returns_the_same_responses_as_the_hot_binary() {
    let (hot, tool) = (Job::default(), Job::default().with_tool());
    for (method, arguments) in
        [("info", json!([])), ("has_vm", json!(["vm-1"])), ("has_vm", json!([])), ("ping", json!([]))]
    {
        assert_eq!(hot.call(method, arguments.clone()).run().json, tool.call(method, arguments).run().json);
    }
}

#[test]
fn the_guest_sees_the_context_that_the_director_and_the_cli_send() {
    let job = Job::default();
    let seen = |call: Call<'_>| probe::outcomes(call.run().result())[0]["ok"].clone();
    let script = json!([{"op": "call"}]);
    let director = seen(job.script(script.clone()));
    assert_eq!(
        director,
        json!({"method": "create_disk", "director_uuid": director["director_uuid"], "request_id": "cpi-123456",
               "api_version": 2, "stemcell_api_version": null})
    );
    assert!(director["director_uuid"].is_string());
    let cli = seen(job.script(script.clone()).cli());
    assert_eq!((&cli["request_id"], &cli["stemcell_api_version"]), (&Value::Null, &json!(2)));
    let old = seen(job.script(script).api_version(None));
    assert_eq!(old["api_version"], 1);
}

#[test]
fn conformance_md_shows_the_current_table() {
    let path = dist::root().join("tests/CONFORMANCE.md");
    let rendered = rendered();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &rendered).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        written, rendered,
        "tests/CONFORMANCE.md is outdated: run the command that it names, and review the difference"
    );
}

fn callers(row: &Value) -> Vec<String> {
    let all = json!(["director", "cli"]);
    let callers = row.get("callers").unwrap_or(&all).as_array().unwrap();
    callers.iter().map(|caller| caller.as_str().unwrap().to_owned()).collect()
}

/// Returns the value with every `$name` replaced.
fn filled(value: &Value, image: &str) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| filled(item, image)).collect(),
        Value::String(name) => match name.as_str() {
            "$image" => image.into(),
            "$networks" => networks(),
            "$created_networks" => {
                let mut networks = networks();
                for (key, text) in [("ip", "10.*"), ("netmask", "255.255.255.0"), ("gateway", "10.*")] {
                    networks["d"][key] = json!(text);
                }
                networks
            }
            "$hint" => probe::cid(&json!([{"op": "result", "json": {"path": "/dev/sdc", "lun": "0"}}])).into(),
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}

/// Networks as a Director sends them, with keys that the documentation does not list yet.
fn networks() -> Value {
    json!({
        "m": {"type": "manual", "ip": "10.0.0.6", "prefix": "32", "netmask": "255.255.255.0", "gateway": "10.0.0.1",
              "dns": ["10.0.0.2"], "default": ["dns", "gateway"], "cloud_properties": {"net_id": "n"}, "nic_group": "1"},
        "d": {"type": "dynamic", "cloud_properties": {}, "prefix": "32", "dns": ["10.0.0.2"], "later": {"key": [null]}},
        "v": {"type": "vip", "ip": "192.0.2.9", "cloud_properties": {}, "prefix": "32"},
    })
}

fn matches(expected: &Value, answered: &Value) -> bool {
    match (expected, answered) {
        (Value::String(pattern), Value::String(text)) => {
            let middle = pattern.trim_start_matches('*').trim_end_matches('*');
            match (pattern.starts_with('*'), pattern.ends_with('*')) {
                (false, false) => pattern == text,
                (false, true) => text.starts_with(middle),
                (true, false) => text.ends_with(middle),
                (true, true) => text.contains(middle),
            }
        }
        (Value::Array(expected), Value::Array(answered)) => {
            expected.len() == answered.len() && expected.iter().zip(answered).all(|(e, a)| matches(e, a))
        }
        (Value::Object(expected), Value::Object(answered)) => {
            expected.len() == answered.len()
                && expected.iter().all(|(key, e)| answered.get(key).is_some_and(|a| matches(e, a)))
        }
        _ => expected == answered,
    }
}

fn rendered() -> String {
    let mut text = String::from(INTRODUCTION);
    for row in rows("methods") {
        let versions = row["api_versions"].as_array().unwrap().iter();
        let versions: Vec<String> = versions.map(|v| v.as_u64().map_or("absent".into(), |v| v.to_string())).collect();
        let outcome = match row.get("error") {
            None => format!("`{}`", row["result"]),
            Some(error) => format!("{}: {}", error["type"].as_str().unwrap(), error["message"].as_str().unwrap()),
        };
        let mut notes: Vec<&str> = row["note"].as_str().into_iter().collect();
        if row["registry"] == true {
            notes.push("through the registry");
        }
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {} | {} | {} |",
            row["method"].as_str().unwrap(),
            row["arguments"],
            versions.join(", "),
            callers(&row).join(", "),
            outcome.replace('*', "…"),
            notes.join("; ")
        );
    }
    text.push_str(ERRORS);
    for row in rows("errors") {
        let retry = if row["carries_retry"] == true { "as the guest says" } else { "false" };
        let (kind, error_type) = (row["kind"].as_str().unwrap(), row["type"].as_str().unwrap());
        let _ = writeln!(text, "| {kind} | {error_type} | {retry} | {} |", row["note"].as_str().unwrap_or_default());
    }
    text
}

const INTRODUCTION: &str = "\
# Conformance

This file is generated from `tests/cases/conformance.json` by
`UPDATE_EXPECT=1 cargo xtask test --only it -- conformance_md_shows_the_current_table`.
The tests execute every row with the guest `probe`, for every version and caller that
the row names. `…` stands for any text. Names with `$` stand for values that
`tests/it/conformance.rs` generates: `$image` is the path of a file, `$networks` are
networks as a Director sends them, `$created_networks` are the same with the addresses
that the cloud chose, and `$hint` is the ID of a disk whose hint has several fields.

| method | arguments | api_version | callers | outcome | |
|---|---|---|---|---|---|
";

const ERRORS: &str = "
## Errors of guests

| error-kind in `wit/types.wit` | type on the wire | ok_to_retry | |
|---|---|---|---|
";
