//! Presets, what the operator lays over them, and paths below a property's URL.

use super::*;
use crate::addresses::Addresses;

const PRESET: &str = r#"{"version": 1, "expose": ["region"], "registry": {"keys": ["vm-*"]},
    "logins": {"main": {"to": "${auth_url}", "path": "/tokens", "token": "json:/t", "send": {"header": "X-T"}, "body": {"u": "${name|user}"}}},
    "http": [{"id": "compute", "to": "${endpoints.compute}", "methods": ["GET", "POST"], "paths": ["/servers", "/servers/*"],
              "auth": {"login": "main"}, "slots": [{"method": "POST", "path": "/servers", "place": "json:/d"}],
              "captures": [{"method": "GET", "path": "/servers/*", "place": "json:/k", "as": "key"}]}]}"#;

fn read(_: Option<&str>, name: &str) -> Result<String, String> {
    match name {
        "cloud.json" => Ok(PRESET.to_owned()),
        "nested.json" => Ok(r#"{"version": 1, "presets": [{"file": "cloud.json"}]}"#.to_owned()),
        "abroad.json" => Ok(r#"{"version": 1, "regions": ["eu-west-1"]}"#.to_owned()),
        "trusting.json" => Ok(r#"{"version": 1, "trust_undeclared": true}"#.to_owned()),
        "newer.json" => Ok(r#"{"version": 2}"#.to_owned()),
        "list.json" => Ok("[]".to_owned()),
        "broken.json" => Ok("{".to_owned()),
        _ => Err(format!("{name}: cannot be read")),
    }
}

fn properties_with(compute: &str) -> Properties {
    let job = json!({"auth_url": "https://id.test:5000/v3", "user": "u", "endpoints": {"compute": compute}});
    Properties::merge(object(&job), Map::new())
}

fn resolved(own: Value, compute: &str, needs: Option<&Needs>) -> Result<Policy, Vec<PolicyProblem>> {
    let file = PolicyFile::parse_with(&own.to_string(), &read)?;
    Policy::resolve(&file, &properties_with(compute), needs, &[], false)
}

fn own(preset: Value) -> Value {
    json!({"version": 1, "presets": [preset]})
}

#[test]
fn a_preset_holds_grants_and_the_operator_sets_origin_and_auth() {
    let over = json!({"file": "cloud.json", "addresses": ["10.0.0.0/8"], "tls": {"ca": "ca.pem"}});
    let policy = resolved(own(over), "https://servers.test:8774/compute/v2.1", None).unwrap();
    let (grant, login) = (&policy.http[0], &policy.logins["main"]);
    for (addresses, tls) in [(&grant.addresses, &grant.tls), (&login.addresses, &login.tls)] {
        assert!(matches!(addresses, Addresses::Cidrs(nets) if nets.len() == 1));
        assert_eq!(tls.ca, Some(Pem::File("ca.pem".into())));
    }
    assert!(policy.expose.shows("region", &json!("x"), None));
    assert!(policy.registry.declared(true).allows("vm-7", &[]).is_ok());
}

#[test]
fn paths_are_below_the_url_that_a_property_holds() {
    for (url, base) in [
        ("https://servers.test:8774/compute/v2.1", "/compute/v2.1"),
        ("https://servers.test:8774/compute/v2.1/", "/compute/v2.1"),
        ("https://servers.test:8774/", ""),
        ("https://servers.test:8774", ""),
    ] {
        let policy = resolved(own(json!({"file": "cloud.json"})), url, None).unwrap();
        let grant = &policy.http[0];
        let paths: Vec<String> = grant.paths.iter().map(ToString::to_string).collect();
        assert_eq!(paths, [format!("{base}/servers"), format!("{base}/servers/*")], "{url}");
        assert_eq!(grant.slots[0].path.to_string(), format!("{base}/servers"));
        assert_eq!(grant.captures[0].path.to_string(), format!("{base}/servers/*"));
        assert_eq!(policy.logins["main"].destination.to_string(), "https://id.test:5000/v3/tokens");
    }
}

#[test]
fn paths_of_needs_are_below_the_url_that_a_property_holds() {
    let needs = needs(
        &json!({"version": 1, "logins": ["main"], "http": [{"id": "compute", "to": "${endpoints.compute}", "methods": ["GET", "POST", "DELETE"],
        "paths": ["/servers", "/servers/*"], "slots": [{"method": "POST", "path": "/servers", "place": "json:/d"}]}]}),
    );
    let policy = resolved(own(json!({"file": "cloud.json"})), "https://servers.test/c/v2.1", Some(&needs)).unwrap();
    assert_eq!(policy.http[0].slots.len(), 1, "both keys have the slot");
    let judged = |method: &str, url: &str| verdict_on(&policy, method, url, &NOTHING);
    assert_eq!(judged("GET", "https://servers.test/c/v2.1/servers/7").0, "allowed by compute");
    for url in
        ["https://servers.test/servers", "https://servers.test/c/v2.10/servers", "https://servers.test/c/servers"]
    {
        assert!(judged("GET", url).1.contains("do not declare it either"), "{url}");
    }
    // What is to be pasted is written as the guest declares it.
    let denied = judged("DELETE", "https://servers.test/c/v2.1/servers/7").1;
    assert!(denied.contains(r#""to":"${endpoints.compute}","methods":["DELETE"],"paths":["/servers/*"]"#), "{denied}");
    let missing = policy.compare_needs(&needs);
    assert_eq!(missing.http[0].missing, ["DELETE /servers", "DELETE /servers/*"]);
    assert!(missing.http[0].slot_lines.is_empty(), "{:?}", missing.http[0].slot_lines);
}

#[test]
fn a_wrong_preset_is_refused_with_the_reason() {
    for (policy, at, what) in [
        (own(json!({"file": "gone.json"})), "presets[0].file", "gone.json: cannot be read"),
        (own(json!({"file": "nested.json"})), "presets[0].file", "`presets`, which is for the operator's own policy"),
        (own(json!({"file": "trusting.json"})), "presets[0].file", "`trust_undeclared`, which is for"),
        (own(json!({"file": "abroad.json"})), "presets[0].file", "`regions`, which is for"),
        (own(json!({"file": "newer.json"})), "presets[0].version", "unknown to this runtime"),
        (own(json!({"file": "list.json"})), "presets[0].file", "is not a JSON object"),
        (own(json!({"file": "broken.json"})), "presets[0].file", "is not valid JSON"),
        (own(json!({"addresses": ["10.0.0.0/8"]})), "presets[0].file", "is missing"),
        (own(json!({"file": "cloud.json", "methods": ["GET"]})), "presets[0].methods", "unknown key"),
        (
            own(json!({"file": "cloud.json", "addresses": ["10.0.0.1/8"]})),
            // The login and the grant of the preset have the same problem.
            "presets[0].logins.main.addresses[0]",
            "bits set",
        ),
        (
            json!({"version": 1, "presets": [{"file": "cloud.json"}, {"file": "cloud.json"}]}),
            "presets[1].http[0].id",
            "which is the id of an earlier grant",
        ),
    ] {
        let problems = resolved(policy.clone(), "https://servers.test", None).err().unwrap_or_default();
        let said = problems.iter().any(|problem| problem.key == at && problem.what.contains(what));
        assert!(said, "{policy}: {problems:#?}");
    }
    let unread = PolicyFile::parse(&own(json!({"file": "cloud.json"})).to_string()).unwrap_err();
    assert!(unread[0].what.contains("is not read here"), "{unread:?}");
}
