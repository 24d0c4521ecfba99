use super::*;
use crate::registry::fake::{Dialect, Fake, http, run, soon};
use proptest::prelude::*;
use serde_json::json;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn settings_are_written_read_and_deleted_in_both_dialects() {
    for dialect in [Dialect::Ruby, Dialect::Go] {
        let fake = Fake::start(dialect);
        let client = fake.client();
        let settings = object(json!({"agent_id": "a", "disks": {"persistent": {}}, "ü": "\"\n"}));
        run(async {
            assert_eq!(client.get("vm-1", soon()).await, Ok(None));
            client.put("vm-1", &settings, soon()).await.unwrap();
            client.put("vm-1", &settings, soon()).await.unwrap();
            assert_eq!(client.get("vm-1", soon()).await, Ok(Some(settings)));
            client.delete("vm-1", soon()).await.unwrap();
            client.delete("vm-1", soon()).await.unwrap();
            assert_eq!(client.get("vm-1", soon()).await, Ok(None));
        });
        assert_eq!(fake.requests()[0], "GET /instances/vm-1/settings", "{dialect:?}");
    }
}

#[test]
fn an_endpoint_with_a_path_keeps_it() {
    let fake = Fake::start(Dialect::Ruby);
    fake.break_method("GET", http(404, ""));
    let mut client = fake.client();
    client.endpoint.push_str("/base");
    assert_eq!(run(client.get("a", soon())), Ok(None));
    assert_eq!(fake.requests(), ["GET /base/instances/a/settings"]);
}

#[test]
fn errors_name_endpoint_cause_and_remedy_but_no_credentials() {
    let settings = |text: &str| http(200, &json!({"status": "ok", "settings": text}).to_string());
    for (answer, expected) in [
        (http(401, ""), "answered GET for `vm` with HTTP 401; check `registry.user` and `registry.password`"),
        (http(403, ""), "HTTP 403; check `registry.user`"),
        (http(500, r#"{"status":"error"}"#), "HTTP 500; read the registry's log"),
        (http(302, ""), "HTTP 302; set `registry.endpoint`"),
        (http(204, ""), "HTTP 204"),
        (http(200, "<html>"), "something other than settings"),
        (http(200, r#"{"status":"ok"}"#), "something other than settings"),
        (http(200, r#"{"settings":{"a":1}}"#), "something other than settings"),
        (settings(""), "that are not a JSON object"),
        (settings("[]"), "that are not a JSON object"),
        (settings(r#"{"a":1,"a":2}"#), "that are not a JSON object"),
        (settings(&"[".repeat(1000)), "that are not a JSON object"),
        (settings(&format!("{{\"a\":\"{}\"}}", "x".repeat(1100))), "reached `registry_kib` (1)"),
        (settings(&"x".repeat(100_000)), "reached `registry_kib` (1)"),
        ("HTTP/1.1 200 X\r\nContent-Length: 500\r\n\r\n{".into(), "did not answer GET for `vm`"),
        ("SSH-2.0-x\r\n".into(), "did not answer GET for `vm`"),
        (String::new(), "did not answer GET for `vm`"),
    ] {
        let fake = Fake::start(Dialect::Ruby);
        fake.break_method("GET", answer.clone());
        let failure = run(fake.client().get("vm", soon())).unwrap_err();
        assert!(failure.message.contains(expected), "{answer:.60}: {failure}");
        assert!(failure.message.contains("registry http://127.0.0.1:"), "{failure}");
        assert!(!failure.to_string().contains("hunter2") && !failure.to_string().contains("admin"), "{failure}");
    }
}

#[test]
fn writes_that_the_registry_refuses_fail() {
    let fake = Fake::start(Dialect::Go);
    for (method, status) in [("PUT", 401), ("PUT", 404), ("DELETE", 500)] {
        fake.break_method(method, http(status, ""));
        let failure = match method {
            "PUT" => run(fake.client().put("vm", &Map::new(), soon())).unwrap_err(),
            _ => run(fake.client().delete("vm", soon())).unwrap_err(),
        };
        assert!(failure.who == Who::Iaas && failure.message.contains(&format!("{method} for `vm` with HTTP {status}")));
    }
}

#[test]
fn an_unreachable_registry_is_reported() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let section = json!({"endpoint": format!("http://127.0.0.1:{port}"), "user": "u", "password": "p"});
    let client = RegistryClient::new(&serde_json::from_value(section).unwrap(), &Limits::default()).unwrap();
    let failure = run(client.get("vm", soon())).unwrap_err();
    assert!(failure.message.contains("check that it runs"), "{failure}");
}

#[test]
fn settings_too_large_for_the_registry_are_not_sent() {
    let fake = Fake::start(Dialect::Ruby);
    let settings = object(json!({"env": "x".repeat(2000)}));
    let failure = run(fake.client().put("vm", &settings, soon())).unwrap_err();
    assert!(failure.who == Who::Limit && failure.message.contains("limits.registry_kib"), "{failure}");
    assert!(fake.requests().is_empty());
}

#[test]
fn settings_are_read_however_the_registry_escapes_them() {
    let fake = Fake::start(Dialect::Go);
    // Both parts are almost as large as their limit.
    let settings = json!({"env": "<".repeat(900), "disks": {"system": "<".repeat(900)}});
    let answer = json!({"status": "ok", "settings": settings.to_string()}).to_string().replace('<', "\\u003c");
    fake.break_method("GET", http(200, &answer));
    assert_eq!(run(fake.client().get("vm", soon())), Ok(Some(object(settings))));
}

#[test]
fn the_values_of_each_part_are_counted_alone() {
    let fake = Fake::start(Dialect::Ruby);
    let mut client = fake.client();
    client.max_kib = 64;
    for (other, of_guest, fits) in [(1900, 1900, true), (2100, 1, false), (1, 2100, false)] {
        // Empty objects have no values, but take memory.
        let many = |count: usize| Value::Array(vec![json!({}); count]);
        fake.store("vm", json!({"env": many(other), "disks": {"x": many(of_guest)}}));
        let found = run(client.get("vm", soon()));
        assert_eq!(found.is_ok(), fits, "{other} {of_guest}");
        assert!(fits || found.unwrap_err().check == Some(Check::RegistryValues));
    }
}

#[test]
fn ids_that_would_change_the_path_are_refused_before_sending() {
    let fake = Fake::start(Dialect::Ruby);
    for id in ["", ".", "..", "a/b", "a%2fb", "a?b", "a#b", "a b", "ä", "a\n", &"x".repeat(256)] {
        let failure = run(fake.client().get(id, soon())).unwrap_err();
        assert!(failure.message.contains("a registry ID must be"), "{id:?}: {failure}");
    }
    assert!(fake.requests().is_empty());
}

proptest! {
    #[test]
    fn an_accepted_id_is_unchanged_in_a_url(id in "[A-Za-z0-9._:%/-]{0,12}") {
        if check_id(&id).is_ok() {
            let url = url::Url::parse(&format!("http://h/instances/{id}/settings")).unwrap();
            prop_assert_eq!(url.path(), format!("/instances/{id}/settings"));
        }
    }
}
