//! The login and the catalog: which endpoint is used, and the error for a missing one.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::{Answer, Fake};
use wasm_cpi_sdk::http::{Denial, TransportError};
use wasm_cpi_sdk::{Cpi, ErrorKind};

use super::{cpi, properties, properties_with};

/// Returns a catalog with compute in these regions, at
/// `https://<region>-<interface>.test/v2.1`.
fn catalog(regions: &[&str]) -> Value {
    let endpoint = |region: &str, interface: &str| json!({"region_id": region, "interface": interface, "url": format!("https://{region}-{interface}.test/v2.1/")});
    let all: Vec<Value> =
        regions.iter().flat_map(|r| ["public", "internal", "admin"].map(|i| endpoint(r, i))).collect();
    json!({"project_id": "p", "catalog": [{"type": "compute", "endpoints": all}]})
}

fn gone() -> Answer {
    Answer::json(404, json!({"itemNotFound": {"code": 404, "message": "no such server"}}))
}

/// Returns a fake in which every request is declared: the needs name the properties `endpoints`, and these tests are
/// about the URLs of the catalog.
fn fake_with(properties: Value) -> Fake {
    let http = json!([{"id": "any", "to": "*", "methods": ["*"], "paths": ["/**"]}]);
    let any = json!({"version": 1, "http": http, "logins": "*"});
    Fake::new().needs(&any.to_string()).properties(properties)
}

#[test]
fn region_and_interface_choose_the_endpoint() {
    for (regions, more, host) in [
        (&["a"][..], json!({}), Ok("a-public")),
        (&["a"], json!({"endpoint_type": "internalURL"}), Ok("a-internal")),
        (&["a"], json!({"endpoint_type": "admin", "region": ""}), Ok("a-admin")),
        (&["a", "b"], json!({"region": "b"}), Ok("b-public")),
        (&["a", "b"], json!({}), Err("several regions (a, b); set the property `region`")),
        (&["a", "b"], json!({"region": "c"}), Err("no region `c`")),
        (&[], json!({}), Err("no usable public endpoint for the compute service")),
    ] {
        let url = |host: &str| format!("https://{host}.test/v2.1/servers/vm-1");
        let answer = gone();
        let fake = fake_with(properties_with(more)).session("keystone", catalog(regions));
        let host_fake = fake.on("GET", &url(host.unwrap_or("none")), answer).install();
        match (cpi().has_vm("vm-1".into()), host) {
            (Ok(found), Ok(host)) => {
                assert!(!found);
                assert_eq!(host_fake.requests()[0].url, url(host));
            }
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{error}"),
            (outcome, host) => panic!("{outcome:?} {host:?}"),
        }
    }
}

#[test]
fn a_denial_names_the_property_to_set_if_it_is_the_reason() {
    let denied = |denial| Answer::fail(TransportError::Denied(denial), "not granted", false);
    let right = "https://a-public.test/v2.1";
    for (denial, set, hinted) in [
        (Denial::Host, "https://b-public.test/v2.1", true),
        (Denial::Port, "https://a-public.test:8774/v2.1", true),
        (Denial::Path, "https://a-public.test/v2.1/deeper", true),
        (Denial::Undeclared, "", true),
        (Denial::Slot, "", false),
        // The property is right: the path or the method is not granted.
        (Denial::Path, right, false),
        (Denial::Undeclared, right, false),
        (Denial::Host, "https://a-public.test/v2.1/", false),
    ] {
        let fake = fake_with(properties_with(json!({"endpoints": {"compute": set}})));
        let fake = fake.session("keystone", catalog(&["a"]));
        let _host = fake.on("GET", "https://a-public.test/v2.1/servers/vm-1", denied(denial)).install();
        let error = cpi().has_vm("vm-1".into()).unwrap_err();
        let hint = "set the property `endpoints.compute` to `https://a-public.test/v2.1`";
        assert_eq!(error.message.contains(hint), hinted, "{error}");
    }
}

#[test]
fn a_404_that_is_not_json_is_an_error() {
    for (answer, absent) in [
        (gone(), true),
        (Answer::json(404, json!({"message": "no", "code": "404 Not Found", "title": "Not Found"})), true),
        (Answer::text(404, "<html><h1>Not Found</h1></html>"), false),
        (Answer::text(404, ""), false),
    ] {
        let fake = fake_with(properties()).session("keystone", catalog(&["a"]));
        let host = fake.on("GET", "https://a-public.test/v2.1/servers/vm-1", answer).install();
        match cpi().has_vm("vm-1".into()) {
            Ok(there) => assert!(absent && !there),
            Err(error) => {
                let said =
                    "the answer is not from the compute service; check that `https://a-public.test/v2.1` is its URL";
                assert!(!absent && error.message.contains(said), "{error}");
            }
        }
        assert!(host.requests()[0].headers.contains(&("accept".into(), "application/json".into())));
    }
}

#[test]
fn a_service_can_have_several_entries_in_the_catalog() {
    let entry = |kind: &str, region: &str| {
        let url = format!("https://{kind}-{region}.test/v3/p");
        json!({"type": kind, "endpoints": [{"interface": "public", "region": region, "url": url}]})
    };
    for (entries, region, host) in [
        (vec![entry("volumev3", "a"), entry("volumev3", "b")], "b", "volumev3-b"),
        (vec![entry("block-storage", "a"), entry("volumev3", "a")], "a", "volumev3-a"),
        // An entry without endpoints is ignored.
        (vec![json!({"type": "volumev3", "endpoints": []}), entry("block-storage", "a")], "a", "block-storage-a"),
    ] {
        let shown = json!({"project_id": "p", "catalog": entries});
        let fake = fake_with(properties_with(json!({"region": region}))).session("keystone", shown);
        let _host = fake.on("GET", &format!("https://{host}.test/v3/p/volumes/d"), gone()).install();
        assert_eq!(cpi().has_disk("d".into()), Ok(false), "{host}");
    }
}

#[test]
fn the_error_for_a_policy_without_the_login_names_the_preset() {
    let credential = json!({
        "auth_url": "https://k/v3", "application_credential_id": "i", "application_credential_secret": "<seal>",
    });
    for (properties, preset) in [
        (properties(), "openstack.json"),
        (properties_with(json!({"project_id": "p"})), "openstack-project-id.json"),
        (credential, "openstack-application-credential.json"),
    ] {
        let _host = fake_with(properties).install();
        let error = cpi().has_vm("vm-1".into()).unwrap_err();
        assert!(error.message.contains(&format!("use the preset {preset} of this guest")), "{error}");
        assert_eq!(error.kind, ErrorKind::Cpi);
    }
}

#[test]
fn a_login_for_another_project_is_rejected() {
    let fake = fake_with(properties_with(json!({"project_id": "other"}))).session("keystone", catalog(&["a"]));
    let host = fake.install();
    let error = cpi().has_vm("vm-1".into()).unwrap_err();
    assert!(
        error
            .message
            .contains("properties.project_id: expected a login for project `other`, but the login is for project `p`"),
        "{error}"
    );
    assert!(error.message.contains("use the preset openstack-project-id.json"), "{error}");
    assert!(host.requests().is_empty());
}

#[test]
fn a_failed_login_is_retried_unless_it_was_refused() {
    for (kind, times, waited, done) in [
        (TransportError::Protocol, 1, 1, true),
        (TransportError::Timeout, 3, 7, true),
        (TransportError::Connect, 4, 7, false),
        (TransportError::Tls, 1, 0, false),
        (TransportError::Denied(Denial::Credential), 1, 0, false),
    ] {
        let fake = fake_with(properties()).session("keystone", catalog(&["a"]));
        let fake = fake.on("GET", "https://a-public.test/v2.1/servers/vm-1", gone());
        let host = fake.fail_sessions(kind.clone(), times).install();
        let outcome = cpi().has_vm("vm-1".into());
        assert_eq!(outcome.is_ok(), done, "{kind:?} {outcome:?}");
        assert_eq!(host.sleeps().iter().sum::<u64>(), waited * 1000, "{kind:?}");
    }
}
