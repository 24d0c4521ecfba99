//! The templates, rendered with Ruby's ERB: valid manifests, and the errors of invalid
//! ones.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::dist;
use tests::release::{job_source, read_properties, render, yaml};
use tests::response::CANARY;

fn rendered(properties: &Value) -> Result<Value, String> {
    render(&job_source("wasm_cpi"), properties)
}

#[track_caller]
fn config(properties: &Value) -> Value {
    let files = rendered(properties).unwrap_or_else(|error| panic!("{error}"));
    serde_json::from_str(files["config/cpi.json"].as_str().unwrap()).unwrap()
}

#[track_caller]
fn policy(properties: &Value) -> Value {
    let files = rendered(properties).unwrap_or_else(|error| panic!("{error}"));
    serde_json::from_str(files["config/policy.json"].as_str().unwrap()).unwrap()
}

#[test]
fn a_minimal_manifest_needs_only_a_guest() {
    let minimal = json!({"guest": {"file": "openstack.wasm"}});
    assert_eq!(
        config(&minimal),
        json!({
            "version": 1, "guest": {"package": "wasm-cpi-guests", "file": "openstack.wasm"}, "properties": {},
            "agent": {"ntp": []}, "policy": "policy.json", "hardening": "best-effort",
            "leaks": "latch", "keep_tokens": true, "log": {"level": "info", "format": "text"}, "allow_local": false,
        })
    );
    assert_eq!(policy(&minimal), json!({"version": 1}));
    let files = rendered(&minimal).unwrap();
    let paths: Vec<&String> = files.as_object().unwrap().keys().collect();
    assert_eq!(paths, ["bin/cpi", "config/cpi.json", "config/policy.json", "bin/pre-start", "monit"]);
    assert_eq!(files["monit"], "");
    for script in ["bin/cpi", "bin/pre-start"] {
        assert!(files[script].as_str().unwrap().starts_with("#!/bin/sh\n"), "{files}");
    }
}

/// Returns a manifest with every property that is not an alternative to another one.
fn full() -> Value {
    json!({
        "guest": {"package": "acme-cpi", "file": "lib/acme.wasm", "sha256": "a".repeat(64),
                  "signature": {"ed25519": ["key"], "threshold": 1}},
        "openstack": {"auth_url": "https://old.test/v3", "region": "r"},
        "aws": {"default_key_name": "k"},
        "properties": {"auth_url": "https://new.test/v3", "quotes": "a\"b\\c#{d}<%= e %>\u{e9}"},
        "policy": {"version": 1, "expose": ["region"], "presets": [{"package": "acme-cpi", "file": "p.json"}]},
        "agent": {"mbus": "nats://m.test", "blobstore": {"provider": "s3", "options": {"bucket_name": "b"}}},
        "ntp": ["n.test"],
        "registry": {"endpoint": "https://r.test:25777", "username": "u", "password": "p", "ca": "PEM",
                     "agent_endpoint": "http://u:p@10.0.0.6:25777"},
        "env": {"http_proxy": "http://p.test:3128", "https_proxy": "http://u:p@p.test:3128/",
                "no_proxy": "a.test, .b.test,10.0.0.0/8,"},
        "limits": {"memory_mib": 512}, "hardening": "required", "leaks": "end", "keep_tokens": false,
        "log": {"level": "debug", "format": "json"},
        "audit": {"path": "/var/vcap/sys/log/wasm_cpi/audit.log", "max_bytes": 65536}, "http_trace": "headers",
        "cache": "/var/vcap/store/cache", "image_dirs": ["/var/vcap/data"], "allow_local": true,
        "debug": {"cpi": {"api_version": 2}}, "not_of_this_job": {"password": "x"},
    })
}

#[test]
fn a_full_manifest_sets_every_key_of_the_config() {
    let full = full();
    assert_eq!(
        config(&full),
        json!({
            "version": 1,
            "guest": full["guest"],
            "properties": {"auth_url": "https://new.test/v3", "region": "r", "default_key_name": "k",
                           "quotes": full["properties"]["quotes"]},
            "agent": {"ntp": ["n.test"], "mbus": "nats://m.test",
                      "blobstore": {"provider": "s3", "options": {"bucket_name": "b"}}},
            "registry": {"endpoint": "https://r.test:25777", "user": "u", "password": "p", "ca": "PEM",
                         "agent_endpoint": "http://u:p@10.0.0.6:25777"},
            "proxy": {"http": "http://p.test:3128", "https": "http://u:p@p.test:3128/",
                      "no_proxy": ["a.test", ".b.test", "10.0.0.0/8"]},
            "policy": "policy.json", "limits": {"memory_mib": 512}, "hardening": "required",
            "leaks": "end", "keep_tokens": false, "log": {"level": "debug", "format": "json"},
            "audit": {"path": "/var/vcap/sys/log/wasm_cpi/audit.log", "max_bytes": 65536}, "http_trace": "headers",
            "cache": "/var/vcap/store/cache", "image_dirs": ["/var/vcap/data"], "allow_local": true,
            "debug": {"cpi": {"api_version": 2}},
        })
    );
    assert_eq!(policy(&full), full["policy"]);
}

#[test]
fn the_properties_of_other_cpis_are_accepted() {
    let with = |more: Value| {
        let mut manifest = json!({"guest": {"file": "openstack.wasm"}});
        manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config(&manifest)
    };
    let nats = json!({"address": "10.0.0.6", "user": "nats", "password": "p"});
    assert_eq!(with(json!({"nats": nats}))["agent"]["mbus"], "nats://nats:p@10.0.0.6:4222");
    let special = json!({"address": "10.0.0.6", "user": "n:s", "password": "p@/ss"});
    assert_eq!(with(json!({"nats": special}))["agent"]["mbus"], "nats://n%3As:p%40%2Fss@10.0.0.6:4222");
    assert_eq!(with(json!({"nats": {"address": "10.0.0.6"}}))["agent"]["mbus"], "nats://10.0.0.6:4222");
    let both = with(json!({"nats": nats, "agent": {"mbus": "https://mbus:p@0.0.0.0:6868"}}));
    assert_eq!(both["agent"]["mbus"], "https://mbus:p@0.0.0.0:6868");
    for (blobstore, expected) in [
        (json!({"provider": "local", "path": "/p"}), json!({"provider": "local", "options": {"blobstore_path": "/p"}})),
        (
            json!({"provider": "dav", "address": "10.0.0.6", "agent": {"user": "a", "password": "p"}}),
            json!({"provider": "dav", "options": {"endpoint": "http://10.0.0.6:25250", "user": "a", "password": "p"}}),
        ),
        (
            json!({"provider": "dav", "address": "b.test", "port": 1, "tls": {"cert": {"ca": "PEM"}}}),
            json!({"provider": "dav", "options": {"endpoint": "https://b.test:1", "tls": {"cert": {"ca": "PEM"}}}}),
        ),
    ] {
        assert_eq!(with(json!({"blobstore": blobstore}))["agent"]["blobstore"], expected);
    }
    let registry = with(json!({"registry": {"host": "10.0.0.6", "username": "u", "password": "p"}}));
    assert_eq!(registry["registry"], json!({"endpoint": "http://10.0.0.6:25777", "user": "u", "password": "p"}));
    // Empty proxies count as not set, because manifests for all clouds contain them.
    let none = with(json!({"env": {"http_proxy": "", "https_proxy": "", "no_proxy": ""}}));
    assert_eq!(none.get("proxy"), None);
    // Null counts as not set, in a module as well.
    let module = json!({"guest": {"package": "wasm-cpi-guests", "file": "a.wasm"}, "properties": null, "policy": null});
    let module = with(json!({"modules": {"acme": module}}))["modules"]["acme"].clone();
    assert_eq!((&module["properties"], &module["policy"]), (&json!({}), &json!({"version": 1})));
}

#[test]
fn no_proxy_accepts_the_entries_that_the_runtime_accepts() {
    let entries = |entries: Value| {
        let env = json!({"http_proxy": "http://p.test:1", "no_proxy": entries});
        rendered(&json!({"guest": {"file": "openstack.wasm"}, "env": env}))
    };
    let right = [
        "*",
        "a.test",
        ".a.test",
        "*.a.test",
        "a.test:8443",
        "10.0.0.1",
        "10.0.0.1:443",
        "10.0.0.0/8",
        "fd00::/8",
        "fd01::1",
        "[fd01::1]",
        "[fd01::1]:443",
    ];
    entries(json!(right)).unwrap();
    for wrong in [
        "10.0.0.0/99",
        "10.0.0.0/255.0.0.0",
        "a b",
        "a.test:port",
        "a.test:65536",
        "http://a.test",
        ".",
        "a/b",
        "10.*",
        "<local>",
        "fe80::1%eth0",
    ] {
        let error = entries(json!(["", wrong])).unwrap_err();
        assert!(error.contains("property 'env.no_proxy[1]' must be a name, an address"), "{wrong}: {error}");
    }
}

#[test]
fn the_error_for_an_invalid_manifest_names_the_property_without_its_value() {
    let secret = format!("{CANARY}-value");
    let module = |module: Value| json!({"modules": {"acme": module}});
    let bundled = json!({"package": "wasm-cpi-guests", "file": "a.wasm"});
    for (wrong, expected) in [
        (json!({}), "property 'guest.file' is missing: set it to the file of the guest in its package"),
        (json!({"guest": secret}), "Property 'guest.package' expects a hash, but received 'String'"),
        (json!({"guest": {"file": ["x"]}}), "property 'guest.file' must be a path in its package"),
        (json!({"guest": {"file": "../x.wasm"}}), "property 'guest.file' must be a path in its package"),
        (json!({"guest": {"file": "x.wasm\n"}}), "property 'guest.file' must be a path in its package"),
        (json!({"guest": {"file": "/x.wasm"}}), "property 'guest.file' must be a path in its package"),
        (json!({"guest": {"package": "../p", "file": "x"}}), "property 'guest.package' must be the name of a package"),
        (json!({"guest": {"package": "p", "file": "x"}}), "property 'guest.sha256' must be a sha256"),
        (
            json!({"guest": {"file": "x", "sha256": secret}}),
            "property 'guest.sha256' must be a sha256 of 64 lower-case hex digits (received another text)",
        ),
        (json!({"properties": secret}), "property 'properties' must be a hash"),
        (json!({"openstack": [secret]}), "property 'openstack' must be a hash"),
        (json!({"aws": secret}), "property 'aws' must be a hash"),
        (json!({"policy": secret}), "property 'policy' must be a hash"),
        (json!({"ntp": secret}), "property 'ntp' must be a list of strings"),
        (json!({"agent": {"mbus": {"url": secret}}}), "property 'agent.mbus' must be a string (received Hash)"),
        (json!({"agent": {"mbus": ""}}), "property 'agent.mbus' must be a string (received an empty string)"),
        (json!({"nats": {"address": [secret]}}), "property 'nats.address' must be a string"),
        (json!({"nats": {"address": "a", "user": {"a": secret}}}), "property 'nats.user' must be a string"),
        (json!({"nats": {"address": "a", "user": "u", "password": [secret]}}), "property 'nats.password' must be a"),
        (
            json!({"nats": {"address": "a", "port": secret}}),
            "property 'nats.port' must be a port from 1 to 65535 (received String)",
        ),
        (
            json!({"nats": {"address": "a", "port": 65_536}}),
            "property 'nats.port' must be a port from 1 to 65535 (received a number out of range)",
        ),
        (json!({"blobstore": {"provider": "s3"}}), "property 'blobstore.provider' must be local or dav"),
        (json!({"blobstore": {"provider": "simple"}}), "property 'blobstore.provider' must be local or dav"),
        (json!({"blobstore": {"provider": "local"}}), "property 'blobstore.path' must be a string"),
        (
            json!({"agent": {"blobstore": {"address": secret}}}),
            "property 'agent.blobstore' must be a hash of 'provider' and 'options'; single settings go to 'blobstore'",
        ),
        (
            json!({"blobstore": {"provider": "dav", "address": "b", "agent": {"user": secret}}}),
            "property 'blobstore.agent.password' must be a string",
        ),
        (
            json!({"blobstore": {"provider": "dav", "address": "b", "agent": {"password": secret}}}),
            "property 'blobstore.agent.user' must be a string",
        ),
        (
            json!({"blobstore": {"provider": "dav", "address": {"a": secret}}}),
            "property 'blobstore.address' must be a string",
        ),
        (
            json!({"blobstore": {"provider": "dav", "address": "b", "tls": {"cert": {"ca": [secret]}}}}),
            "property 'blobstore.tls.cert.ca' must be a string",
        ),
        (json!({"blobstore": {"provider": "dav"}}), "Can't find property 'blobstore.address'"),
        (json!({"registry": {"endpoint": "r.test"}}), "property 'registry.endpoint' must be a URL"),
        (
            json!({"registry": {"endpoint": format!("http://u:{secret}@r.test"), "username": "u", "password": "p"}}),
            "property 'registry.endpoint' must be a URL with http:// or https://, and without credentials",
        ),
        (json!({"registry": {"host": secret.clone() + "@r.test"}}), "property 'registry.host' must be the name or"),
        (json!({"registry": {"host": "http://r.test"}}), "property 'registry.host' must be the name or address"),
        (json!({"registry": {"host": ["r.test"]}}), "property 'registry.host' must be the name or address of a host"),
        (json!({"registry": {"host": "r.test"}}), "property 'registry.username' must be a string"),
        (json!({"env": {"https_proxy": secret}}), "property 'env.https_proxy' must be the URL of an HTTP proxy"),
        (
            json!({"env": {"http_proxy": "https://p.test"}}),
            "property 'env.http_proxy' must be the URL of an HTTP proxy",
        ),
        (
            json!({"env": {"http_proxy": "http://p.test", "no_proxy": {"a": 1}}}),
            "property 'env.no_proxy' must be a list of strings",
        ),
        (
            json!({"env": {"http_proxy": "http://p.test", "no_proxy": format!("a.test,{secret}.*")}}),
            "property 'env.no_proxy[1]' must be a name, an address, a network like 10.0.0.0/8 (and not 10.*), or *",
        ),
        (json!({"limits": 5}), "property 'limits' must be a hash"),
        (
            json!({"hardening": "some"}),
            "property 'hardening' must be one of best-effort, required, off (received another text)",
        ),
        (json!({"leaks": "ignore"}), "property 'leaks' must be one of latch, end"),
        (json!({"log": {"level": "loud"}}), "property 'log.level' must be one of debug, info, warn, error"),
        (json!({"audit": {"path": "a", "max_bytes": "1"}}), "property 'audit.max_bytes' must be a positive number"),
        (json!({"http_trace": "all"}), "property 'http_trace' must be one of headers, bodies"),
        (json!({"image_dirs": "x"}), "property 'image_dirs' must be a list of strings"),
        (json!({"allow_local": "yes"}), "property 'allow_local' must be true or false"),
        (json!({"debug": {"cpi": {"api_version": "2"}}}), "property 'debug.cpi.api_version' must be one of 1, 2, 3"),
        (json!({"user": "vcap; rm -rf /"}), "property 'user' must be the name of a user"),
        (json!({"modules": secret}), "property 'modules' must be a hash"),
        (module(json!(secret)), "property 'modules.acme' must be a hash"),
        (module(Value::Null), "property 'modules.acme' must be a hash"),
        (module(json!({})), "property 'modules.acme.guest' must be a hash"),
        (
            module(json!({"guest": {"package": "p", "file": "f", "path": "x"}})),
            "property 'modules.acme.guest' has the unknown key 'path'; known keys are package, file,",
        ),
        (
            module(json!({"guest": bundled, "env": {"http_proxy": secret}})),
            "property 'modules.acme' has the unknown key 'env'; known keys are guest, properties, policy, ",
        ),
        (module(json!({"guest": bundled, "ntp": [secret]})), "property 'modules.acme' has the unknown key 'ntp'"),
        (module(json!({"guest": bundled, "version": 1})), "property 'modules.acme' has the unknown key 'version'"),
        (
            module(json!({"guest": {"package": "p", "file": "f"}})),
            "property 'modules.acme.guest.sha256' must be a sha256",
        ),
        (json!({"modules": {"../x": {}}}), "must have a name of letters, digits, _ and -"),
    ] {
        let mut manifest = json!({"guest": {"file": "openstack.wasm"}});
        if wrong == json!({}) {
            manifest = json!({});
        }
        manifest.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let error = rendered(&manifest).expect_err(expected);
        assert!(error.contains(expected) && error.contains("for wasm_cpi/0"), "{wrong}: {error}");
        // All templates are rendered, and none of them crashes on a value that another one refuses.
        assert!(!error.contains(CANARY) && !error.contains("undefined method"), "{error}");
    }
}

#[test]
fn every_property_is_used_and_described_with_its_type() {
    let guest = json!({"file": "openstack.wasm"});
    let others = json!({
        "guest": guest, "nats": {"address": "n.test"}, "blobstore": {"provider": "dav", "address": "b.test"},
        "registry": {"host": "r.test", "username": "u", "password": "p"},
    });
    let local = json!({"guest": guest, "blobstore": {"provider": "local", "path": "/p"}});
    let of_wasm_cpi = [json!({"guest": guest}), full(), others, local];
    for (job, manifests) in [("wasm_cpi", &of_wasm_cpi[..]), ("openstack_cpi", &[json!({})]), ("aws_cpi", &[json!({})])]
    {
        let source = job_source(job);
        let spec = yaml(&source.join("spec"));
        assert_eq!(spec["name"], job);
        let types =
            ["String", "String with commas, or list of strings", "Hash", "List of strings", "Number", "Boolean"];
        for (name, property) in spec["properties"].as_object().unwrap() {
            let description = property["description"].as_str().unwrap_or_default();
            let (kind, rest) = description.split_once(". ").unwrap_or_default();
            assert!(types.contains(&kind) && !rest.is_empty(), "{name}: {description}");
        }
        let described: BTreeSet<String> = spec["properties"].as_object().unwrap().keys().cloned().collect();
        let used: BTreeSet<String> =
            manifests.iter().flat_map(|manifest| read_properties(&source, manifest).unwrap()).collect();
        assert_eq!(used, described, "{job}: the templates must use exactly the properties of the spec");
    }
}

/// A job with properties of its own gets none of the instance group, so the ops files have to set all of them.
#[test]
fn the_ops_files_set_all_agent_settings_for_the_job_of_the_director() {
    for (file, guest) in [("openstack.yml", "openstack.wasm"), ("aws.yml", "aws.wasm")] {
        let ops = yaml(&dist::root().join("release/ops").join(file));
        let values = ops.as_array().unwrap().iter().map(|op| &op["value"]);
        let mut jobs = values.filter(|value| value["name"] == "wasm_cpi" && value["properties"].is_object());
        let mut properties = jobs.next().unwrap()["properties"].clone();
        // The variables stay as they are, except one whose form is checked.
        properties["guest"]["sha256"] = json!("0".repeat(64));
        let config = config(&properties);
        let agent = &config["agent"];
        assert!(agent["ntp"].as_array().is_some_and(|servers| !servers.is_empty()), "{file}: {agent}");
        assert_eq!(agent["mbus"], "nats://((internal_ip)):4222", "{file}");
        assert_eq!(agent["blobstore"]["options"]["endpoint"], "https://((internal_ip)):25250", "{file}");
        assert_eq!(config["guest"]["file"], guest, "{file}");
        assert_eq!(config["properties"]["region"], "((region))", "{file}");
    }
}
