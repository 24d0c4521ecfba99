//! The presets grant exactly what the needs declare. They differ only in the login.

use serde_json::Value;

use crate::NEEDS;

const PRESETS: [(&str, &str); 3] = [
    ("policy.json", include_str!("../../policy.json")),
    ("policy-project-id.json", include_str!("../../policy-project-id.json")),
    ("policy-application-credential.json", include_str!("../../policy-application-credential.json")),
];

/// The preset for pools of load balancers, used together with one of the others.
const POOLS: &str = include_str!("../../policy-loadbalancer.json");

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn presets_differ_only_in_the_body_of_the_login() {
    let strip = |text: &str| {
        let mut policy = parsed(text);
        let body = policy["logins"]["keystone"]["body"].take();
        assert!(body.is_object());
        (policy, body)
    };
    let (first, body) = strip(PRESETS[0].1);
    for (name, text) in &PRESETS[1..] {
        let (other, other_body) = strip(text);
        assert_eq!(other, first, "{name}");
        assert_ne!(other_body, body, "{name}");
    }
}

#[test]
fn presets_grant_exactly_what_the_needs_declare() {
    let needs = parsed(NEEDS);
    for (name, text) in PRESETS {
        let policy = parsed(text);
        assert_eq!(policy["expose"], needs["expose"], "{name}");
        let more = parsed(POOLS);
        let grants = [policy["http"].as_array().unwrap().as_slice(), more["http"].as_array().unwrap()].concat();
        let needs_login = &needs["logins"][0];
        let needs = needs["http"].as_array().unwrap();
        assert_eq!(grants.len(), needs.len(), "{name}");
        for (grant, need) in grants.iter().zip(needs) {
            for key in ["id", "to", "methods", "paths", "operations"] {
                assert_eq!(grant[key], need[key], "{name}: {}", grant["id"]);
            }
            assert_eq!(grant["auth"]["login"], "keystone", "{name}: {}", grant["id"]);
            assert_eq!(needs_login, "keystone", "{name}: {}", grant["id"]);
            assert_eq!(grant["slots"].is_array(), need["slots"].is_array(), "{name}: {}", grant["id"]);
        }
    }
}

#[test]
fn the_preset_for_pools_grants_nothing_else() {
    let policy = parsed(POOLS);
    let keys: Vec<&String> = policy.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["http", "version"]);
    for grant in policy["http"].as_array().unwrap() {
        assert_eq!(grant["to"], "${endpoints.loadbalancer}");
        assert!(grant["slots"].is_null());
    }
}

/// One request of such a path can do more than the CPI does.
#[test]
fn every_request_that_creates_or_changes_something_has_its_fields_limited() {
    for (name, text) in PRESETS.into_iter().chain([("policy-loadbalancer.json", POOLS)]) {
        for grant in parsed(text)["http"].as_array().unwrap() {
            let listed =
                |key: &str| grant[key].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect::<Vec<_>>();
            let methods = listed("methods").into_iter().filter(|method| ["POST", "PUT"].contains(method));
            for (method, path) in methods.flat_map(|method| listed("paths").into_iter().map(move |path| (method, path)))
            {
                let fields = grant["fields"].as_array().into_iter().flatten();
                let limited = fields.filter(|one| one["method"] == method && one["path"] == path).count() > 0;
                // A tag and the data of an image have no fields; the operation has no argument.
                let without = ["/v2.0/ports/*/tags/*", "/v2/images/*/file"].contains(&path)
                    || grant["id"] == "compute-force-delete";
                assert_eq!(limited, !without, "{name}: {} {method} {path}", grant["id"]);
            }
        }
    }
}

#[test]
fn only_the_request_for_a_new_server_has_a_slot_for_the_agents_settings() {
    for (name, text) in PRESETS {
        let slots: Vec<Value> =
            parsed(text)["http"].as_array().unwrap().iter().filter_map(|grant| grant.get("slots").cloned()).collect();
        assert_eq!(slots.len(), 1, "{name}");
        let slot = &slots[0][0];
        assert_eq!(
            (&slot["method"], &slot["path"], &slot["place"]),
            (&"POST".into(), &"/servers".into(), &"json:/server/user_data".into())
        );
        assert_eq!(slot["takes"], serde_json::json!(["agent"]));
        // All that the guest reads of the answer, and the largest user data that Nova accepts, in Base64.
        assert_eq!(slot["show"], serde_json::json!(["json:/server/id", "header:Retry-After"]));
        assert_eq!(slot["max_bytes"], 65_535);
    }
}

/// Nova filters and shows servers by more than their names. The guest uses these parameters alone.
#[test]
fn presets_allow_exactly_the_query_parameters_that_the_guest_uses() {
    let sources = [
        ("compute", concat!(include_str!("../api/compute.rs"), include_str!("../api/groups.rs"))),
        ("image", include_str!("../api/images.rs")),
        (
            "network",
            concat!(
                include_str!("../api/networking.rs"),
                include_str!("../vm/ports.rs"),
                include_str!("../vm/leftovers.rs")
            ),
        ),
        ("volume", include_str!("../api/volumes.rs")),
        ("loadbalancer", include_str!("../api/loadbalancing.rs")),
    ];
    let grants =
        [parsed(PRESETS[0].1), parsed(POOLS)].map(|policy| policy["http"].as_array().unwrap().clone()).concat();
    for (service, source) in sources {
        let to = format!("${{endpoints.{service}}}");
        let here = grants.iter().filter(|grant| grant["to"] == to);
        let mut listed: Vec<String> = here
            .flat_map(|grant| grant["query"].as_array().cloned().unwrap_or_default())
            .map(|name| name.as_str().unwrap().to_owned())
            .collect();
        // `.query("name", …)`, and pairs like `("name", …)` in lists of filters.
        let calls = source.split(".query(\"").skip(1);
        let filters =
            source.split(".ports(&[").skip(1).flat_map(|rest| rest.split("])").next().unwrap().split("(\"").skip(1));
        let mut used: Vec<String> =
            calls.chain(filters).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
        used.retain(|name| !name.contains('='));
        for names in [&mut listed, &mut used] {
            names.sort();
            names.dedup();
        }
        assert_eq!(listed, used, "{service}");
    }
}

#[test]
fn answers_of_the_compute_service_are_read_without_user_data_and_passwords() {
    for (name, text) in PRESETS {
        let policy = parsed(text);
        let compute = policy["http"].as_array().unwrap().iter().find(|grant| grant["id"] == "compute").unwrap();
        let dropped: Vec<&str> =
            compute["drop"].as_array().unwrap().iter().map(|place| place.as_str().unwrap()).collect();
        for field in ["OS-EXT-SRV-ATTR:user_data", "adminPass"] {
            for place in [format!("json:/server/{field}"), format!("json:/servers/*/{field}")] {
                assert!(dropped.contains(&place.as_str()), "{name}: {place}");
            }
        }
    }
}

#[test]
fn every_property_except_secrets_is_exposed() {
    use crate::properties::SPEC;
    let needs = parsed(NEEDS);
    let exposed: Vec<&str> = needs["expose"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for name in SPEC.iter().filter_map(|(name, _)| name.strip_prefix("openstack.")) {
        // Only two of the connection options are exposed: others may be secrets.
        let secret = ["api_key", "application_credential_secret", "connection_options"].contains(&name);
        assert_eq!(exposed.contains(&name), !secret, "{name}");
    }
    assert!(["ca_cert", "ssl_verify_peer"].iter().all(|one| exposed.contains(&&*format!("connection_options.{one}"))));
}

/// Compares the paths in the sources of `api` with those in the needs.
#[test]
fn every_path_of_the_api_is_declared() {
    let sources = [
        ("compute", concat!(include_str!("../api/compute.rs"), include_str!("../api/groups.rs"))),
        ("image", include_str!("../api/images.rs")),
        ("network", include_str!("../api/networking.rs")),
        ("volume", include_str!("../api/volumes.rs")),
        ("loadbalancer", include_str!("../api/loadbalancing.rs")),
    ];
    let needs = parsed(NEEDS);
    for (service, source) in sources {
        let to = format!("${{endpoints.{service}}}");
        let declared: Vec<&str> = needs["http"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|need| need["to"] == to)
            .flat_map(|need| need["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()))
            .collect();
        let used: Vec<String> = source
            .split("\"/")
            .skip(1)
            .map(|rest| format!("/{}", rest.split('"').next().unwrap()).replace("{}", "*"))
            .collect();
        for path in &used {
            assert!(declared.contains(&path.as_str()), "{service}: {path} is not in needs.json");
        }
        for path in declared {
            assert!(used.iter().any(|other| other == path), "{service}: {path} is in needs.json and unused");
        }
    }
}
