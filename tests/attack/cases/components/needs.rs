//! The needs that a guest declares, which can only narrow what is granted.

use super::{CLASS, assert_refused, has_vm};
use crate::case::Case;
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use tests::cloud::{outcome, probe_with_needs, probe_without_needs};
use tests::{CPI_ERROR, Job, hostile};

const SECTION: &str = "bosh-cpi:needs";

fn declaring(needs: &[u8]) -> Job {
    Job::new().guest_bytes(&hostile::with_section(hostile::guest("small"), SECTION, needs))
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "needs that are declared twice", &["needs-twice"], || {
            let once = || hostile::with_section(hostile::guest("small"), SECTION, b"{\"version\":1}");
            let hidden = hostile::with_section(
                hostile::component("(component)").unwrap_or_default(),
                SECTION,
                b"{\"version\":1}",
            );
            // The needs of a nested component, which is a section of the outer one.
            let nested = hostile::with_component(once(), &hidden);
            for guest in [hostile::with_section(once(), SECTION, b"{}"), nested] {
                assert_refused(&Job::new().guest_bytes(&guest), &["declares its needs twice"]);
            }
        }),
        Case::offline(CLASS, "needs that are not text", &[], || {
            assert_refused(&declaring(b"\xff\xfe"), &["declares needs that are not UTF-8"]);
        }),
        Case::offline(CLASS, "malformed needs", &["unknown-key", "unknown-version", "json-duplicate-key"], || {
            let deep = format!("{{\"version\":1,\"http\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
            for text in [
                "",
                "needs",
                "[]",
                "null",
                "{\"version\":9}",
                "{\"version\":1,\"htpp\":[]}",
                "{\"version\":1,\"version\":1}",
                "{\"version\":1} x",
                "{\"version\":1,\"http\":7}",
                &deep,
            ] {
                let job = declaring(text.as_bytes());
                let response = has_vm(&job);
                assert_eq!(response.error_type(), CPI_ERROR, "{text:.40}: {}", response.json);
                response.fails(CPI_ERROR, &["config: "]);
                assert!(!job.check().0, "check accepts {text:.40}");
            }
        }),
        Case::offline(CLASS, "megabytes of needs", &["needs-size"], || {
            let needs = json!({"version": 1, "expose": vec!["a-property".repeat(20); 4000]}).to_string();
            has_vm(&declaring(needs.as_bytes())).fails(CPI_ERROR, &["needs"]);
        }),
        Case::offline(CLASS, "needs with terminal escapes", &[], || {
            let needs = json!({"version": 1, "\u{1b}[2J\u{202e}": 1, "http": [{"id": "a", "to": "\u{1b}]0;x\u{7}", "methods": ["\u{1b}[1m"]}]});
            let job = declaring(needs.to_string().as_bytes());
            let response = has_vm(&job);
            response.fails(CPI_ERROR, &["config: the needs that hostile declares are invalid"]);
            let shown = format!("{}{}{}", response.message(), response.log(), job.check().1);
            assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{shown:?}");
        }),
        Case::new(
            CLASS,
            "needs that are wider than what is granted",
            &["grant-host", "grant-path", "grant-method"],
            |world| {
                // The probe declares that it needs everything.
                let job = row::job(world, &Value::Null);
                expect_denied(world, &job, json!({"url": "https://evil.test/v1/x"}), "host")?;
                expect_denied(world, &job, json!({"url": "https://api.iaas.test/admin"}), "path")?;
                expect_denied(world, &job, json!({"url": "https://api.iaas.test/v1/x", "method": "DELETE"}), "method")
            },
        ),
        Case::new(CLASS, "a request beyond what the guest declares", &["needs-http"], |world| {
            let needs = json!({"version": 1, "http": [{"id": "a", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/a"]}]});
            let job = row::job(world, &Value::Null).guest_bytes(&probe_with_needs(&needs));
            expect_denied(world, &job, json!({"url": "https://api.iaas.test/v1/x"}), "undeclared")
        }),
        Case::new(CLASS, "a login that the guest does not declare", &["needs-login"], |world| {
            let login =
                json!({"to": "https://id.iaas.test", "path": "/tokens", "token": "json:/t", "send": {"header": "X-T"}});
            let policy = json!({"policy": {"logins": {"main": login}}, "grant": {"auth": {"login": "main"}}});
            for logins in [json!([]), json!(["other"])] {
                let needs = json!({"version": 1, "logins": logins,
                                   "http": [{"id": "a", "to": "*", "methods": "*", "paths": "*"}]});
                let job = row::job(world, &policy).guest_bytes(&probe_with_needs(&needs));
                expect_denied(world, &job, json!({"url": "https://api.iaas.test/v1/x"}), "undeclared")?;
                expect_denied(world, &job, json!({"op": "session", "name": "main"}), "undeclared")?;
            }
            Ok(())
        }),
        Case::new(CLASS, "a wider grant, by leaving out the login of a specific one", &["grant-specific"], |world| {
            let login =
                json!({"to": "https://id.iaas.test", "path": "/tokens", "token": "json:/t", "send": {"header": "X-T"}});
            let grant = |id: &str, path: &str, auth: Value| json!({"id": id, "to": "https://api.iaas.test", "methods": ["GET"], "paths": [path], "auth": auth});
            let mut wide = grant("wide", "/v1/**", Value::Null);
            wide.as_object_mut().map(|wide| wide.remove("auth"));
            let grants = json!([wide, grant("keys", "/v1/keys", json!({"login": "main"}))]);
            let needs =
                json!({"version": 1, "logins": [], "http": [{"id": "a", "to": "*", "methods": "*", "paths": "*"}]});
            let job = row::job(world, &json!({"policy": {"logins": {"main": login}}, "grants": grants}));
            let job = job.guest_bytes(&probe_with_needs(&needs));
            expect_denied(world, &job, json!({"url": "https://api.iaas.test/v1/keys"}), "undeclared")
        }),
        Case::new(CLASS, "an operation that the guest does not declare", &["needs-operation"], |world| {
            let policy = json!({"grant": {"operations": {"in": "json", "allow": ["grow", "delete"]}}});
            for operations in
                [json!({"in": "json", "allow": ["grow"]}), json!({"in": "header:X-Op", "allow": ["delete"]})]
            {
                let needs = json!({"version": 1, "http": [
                    {"id": "a", "to": "*", "methods": "*", "paths": "*", "operations": operations}]});
                let job = row::job(world, &policy).guest_bytes(&probe_with_needs(&needs));
                let request = json!({"url": "https://api.iaas.test/v1/x", "method": "POST", "body": "{\"delete\":{}}",
                                     "headers": {"Content-Type": "application/json"}});
                expect_denied(world, &job, request, "undeclared")?;
            }
            Ok(())
        }),
        Case::new(CLASS, "a request of a guest that declares nothing", &["needs-absent"], |world| {
            let job = row::job(world, &Value::Null).guest_bytes(&probe_without_needs());
            expect_denied(world, &job, json!({"url": "https://api.iaas.test/v1/x"}), "undeclared")
        }),
    ]
}

/// Fails unless the request is denied for this reason and nothing is contacted.
fn expect_denied(world: &World, job: &Job, request: Value, reason: &str) -> Result<(), String> {
    world.reset(row::names(&Value::Null), Served::default())?;
    let mut operation = json!({"op": "http"});
    if let Some((operation, request)) = operation.as_object_mut().zip(request.as_object()) {
        operation.extend(request.clone());
    }
    let outcome = outcome(job, operation);
    match (outcome["error"]["reason"].as_str() == Some(reason), world.take_contacts()?.is_empty()) {
        (true, true) => Ok(()),
        (_, silent) => Err(format!("{outcome}, no contacts: {silent}")),
    }
}
