//! The catalog: which endpoint is used, and what a missing one is told.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::{Answer, Fake};
use wasm_cpi_sdk::http::{Denial, ErrorKind as HttpErrorKind};
use wasm_cpi_sdk::{Cpi, ErrorKind};

use super::{cpi, properties, with};

/// Compute in these regions, under `https://<region>-<interface>.test/v2.1`.
fn catalog(regions: &[&str]) -> Value {
    let endpoint = |region: &str, interface: &str| json!({"region_id": region, "interface": interface, "url": format!("https://{region}-{interface}.test/v2.1/")});
    let all: Vec<Value> =
        regions.iter().flat_map(|r| ["public", "internal", "admin"].map(|i| endpoint(r, i))).collect();
    json!({"project_id": "p", "catalog": [{"type": "compute", "endpoints": all}]})
}

#[test]
fn region_and_interface_choose_the_endpoint() {
    for (regions, more, host) in [
        (&["a"][..], json!({}), Ok("a-public")),
        (&["a"], json!({"endpoint_type": "internalURL"}), Ok("a-internal")),
        (&["a"], json!({"endpoint_type": "admin", "region": ""}), Ok("a-admin")),
        (&["a", "b"], json!({"region": "b"}), Ok("b-public")),
        (&["a", "b"], json!({}), Err("several regions (a, b): set the property `region`")),
        (&["a", "b"], json!({"region": "c"}), Err("no region `c`")),
        (&[], json!({}), Err("no endpoint for compute (public)")),
    ] {
        let url = |host: &str| format!("https://{host}.test/v2.1/servers/vm-1");
        let answer = Answer::text(404, "");
        let fake = Fake::new().properties(with(more)).session("keystone", catalog(regions));
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
fn a_denial_names_the_property_to_set() {
    let denied = |denial| Answer::fail(HttpErrorKind::Denied(denial), "not granted", false);
    for (denial, hinted) in [
        (Denial::Host, true),
        (Denial::Port, true),
        (Denial::Path, true),
        (Denial::Undeclared, true),
        (Denial::Slot, false),
    ] {
        let fake = Fake::new().properties(properties()).session("keystone", catalog(&["a"]));
        let _host = fake.on("GET", "https://a-public.test/v2.1/servers/vm-1", denied(denial)).install();
        let error = cpi().has_vm("vm-1".into()).unwrap_err();
        let hint = "set the property `endpoints.compute` to `https://a-public.test/v2.1`";
        assert_eq!(error.message.contains(hint), hinted, "{error}");
    }
}

#[test]
fn a_policy_without_the_login_is_told_of_the_preset() {
    let _host = Fake::new().properties(properties()).install();
    let error = cpi().has_vm("vm-1".into()).unwrap_err();
    assert!(error.message.contains("use the preset"), "{error}");
    assert_eq!(error.kind, ErrorKind::Cpi);
}

#[test]
fn a_login_for_another_project_is_not_used() {
    let fake = Fake::new().properties(with(json!({"project_id": "other"}))).session("keystone", catalog(&["a"]));
    let host = fake.install();
    let error = cpi().has_vm("vm-1".into()).unwrap_err();
    assert!(error.message.contains("properties.project_id: `other`, but the login is for project `p`"), "{error}");
    assert!(host.requests().is_empty());
}

#[test]
fn a_login_that_fails_is_tried_again_and_one_that_is_refused_is_not() {
    for (kind, times, waited, done) in [
        (HttpErrorKind::Protocol, 1, 1, true),
        (HttpErrorKind::Timeout, 3, 7, true),
        (HttpErrorKind::Connect, 4, 7, false),
        (HttpErrorKind::Tls, 1, 0, false),
        (HttpErrorKind::Denied(Denial::Credential), 1, 0, false),
    ] {
        let fake = Fake::new().properties(properties()).session("keystone", catalog(&["a"]));
        let fake = fake.on("GET", "https://a-public.test/v2.1/servers/vm-1", Answer::text(404, ""));
        let host = fake.session_fails(kind.clone(), times).install();
        let outcome = cpi().has_vm("vm-1".into());
        assert_eq!(outcome.is_ok(), done, "{kind:?} {outcome:?}");
        assert_eq!(host.sleeps().iter().sum::<u64>(), waited * 1000, "{kind:?}");
    }
}
