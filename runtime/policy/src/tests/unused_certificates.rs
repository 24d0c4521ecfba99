use super::*;

const PEM: &str = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n";

fn warnings(grant: &Value, job: &Value) -> Vec<String> {
    let mut policy = json!({"version": 1, "http": [
        {"id": "api", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/vms"]},
    ]});
    for (key, value) in grant.as_object().unwrap() {
        policy["http"][0][key] = value.clone();
    }
    let policy = resolve(&policy, job, &json!({}), Some(&any_needs())).unwrap();
    let properties = Properties::merge(job.as_object().cloned().unwrap(), Map::new());
    policy.unused_certificates(&properties).iter().map(ToString::to_string).collect()
}

#[test]
fn a_certificate_that_nothing_uses_is_reported_with_the_line_to_add() {
    let job = json!({"options": {"ca": PEM, "other": "text"}, "key": "-----BEGIN PRIVATE KEY-----"});
    let found = warnings(&json!({}), &job);
    assert_eq!(found.len(), 1, "{found:?}");
    for part in ["property `options.ca`", r#""tls": {"ca": "${options.ca}"}"#, "`presets`"] {
        assert!(found[0].contains(part), "{found:?}");
    }
    for used in [
        json!({"tls": {"ca": "${options.ca}"}}),
        json!({"tls": {"client": {"cert": "${options.ca}", "key": "${key}"}}}),
        json!({"slots": [{"method": "POST", "path": "/vms", "place": "json:/ca", "takes": ["options.ca"]}]}),
        json!({"to": "http://api.iaas.test"}),
    ] {
        assert_eq!(warnings(&used, &job), Vec::<String>::new(), "{used}");
    }
}
