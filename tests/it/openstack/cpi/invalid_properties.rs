//! Invalid and unsupported properties and `cloud_properties`: they are refused before
//! anything is created, and the error says what to do instead.

use super::{Cpi, Login, small_vm};
use serde_json::json;
use tests::openstack::{Service, on_each_cloud};
use tests::{CLOUD_ERROR, CPI_ERROR};

#[test]
fn unsupported_properties_are_refused_with_a_remedy_before_any_request() {
    on_each_cloud(|cloud, gateway| {
        let v2 = gateway.cloud()["auth_url"].as_str().unwrap_or_default().replace("/v3", "/v2.0");
        for (name, value, expected) in [
            (
                "connection_options",
                json!({"ssl_verify_peer": false}),
                &["properties.connection_options.ssl_verify_peer", "connection_options.ca_cert"][..],
            ),
            ("connection_options", json!({"ssl_ca_file": "/ca.pem"}), &["ssl_ca_file", "connection_options.ca_cert"]),
            ("connection_options", json!({"read_timeout": 5}), &["read_timeout", "first_byte_seconds"]),
            ("use_nova_networking", json!(true), &["properties.use_nova_networking", "remove it"]),
            ("auth_url", json!(v2), &["properties.auth_url", "use the URL that ends in /v3"]),
            ("endpoint_type", json!("other"), &["properties.endpoint_type", "publicURL"]),
            ("config_drive", json!("floppy"), &["properties.config_drive", "cdrom or disk"]),
            ("project", json!(""), &["properties.project", "project_id"]),
            ("application_credential_id", json!("id"), &[]),
            ("state_timeout", json!("long"), &["state_timeout"]),
        ] {
            let cpi = Cpi::new(gateway).set(name, value.clone());
            gateway.clear_records();
            let response = cpi.run("has_vm", json!(["vm"]));
            if expected.is_empty() {
                assert_eq!(*response.result(), false, "{cloud}: {name}");
                continue;
            }
            response.fails(CPI_ERROR, expected);
            assert_eq!(gateway.records().len(), 0, "{cloud}: {name}: {value}");
        }
    });
}

#[test]
fn the_error_names_the_invalid_cloud_property_and_nothing_is_created() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        for (key, value, kind, expected) in [
            ("instance_type", json!(7), CPI_ERROR, "instance_type"),
            (
                "instance_type",
                json!("m1.none"),
                CPI_ERROR,
                "cloud_properties.instance_type: flavor `m1.none` was not found",
            ),
            ("key_name", json!("nobodys"), CLOUD_ERROR, "key pair `nobodys` was not found"),
            ("security_groups", json!(["none"]), CLOUD_ERROR, "security group `none` was not found"),
            ("security_groups", json!("bosh"), CPI_ERROR, "security_groups"),
            ("availability_zones", json!(["a", "b"]), CPI_ERROR, "ignore_server_availability_zone"),
            ("loadbalancer_pools", json!([{"name": "p"}]), CPI_ERROR, "cloud_properties.loadbalancer_pools"),
            ("root_disk", json!({"size": "x"}), CPI_ERROR, "cloud_properties.root_disk.size"),
        ] {
            let mut arguments = small_vm(&cpi, &stemcell, "10.0.0.51");
            arguments[2][key] = value;
            cpi.run("create_vm", arguments).fails(kind, &[expected]);
        }
        let mut arguments = small_vm(&cpi, &stemcell, "10.0.0.51");
        arguments[1] = json!("11111111-2222-4333-8444-555555555555");
        cpi.run("create_vm", arguments)
            .fails(CLOUD_ERROR, &["image `11111111-2222-4333-8444-555555555555` was not found"]);
        let mut arguments = small_vm(&cpi, &stemcell, "10.0.0.51");
        arguments[3]["vip"] = json!({"type": "vip", "ip": "192.0.2.7", "cloud_properties": {}});
        let response = cpi.run("create_vm", arguments);
        assert!(response.message().contains("floating IP 192.0.2.7 is not allocated"), "{}", response.message());
        cpi.run("create_disk", json!([100, {}, null])).fails(CPI_ERROR, &["the smallest size is 1024 MiB"]);
        let size = json!([{"ram": 900_000, "cpu": 64, "ephemeral_disk_size": 1}]);
        cpi.run("calculate_vm_cloud_properties", size).fails(CLOUD_ERROR, &["flavor"]);
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn the_error_for_a_login_that_the_preset_does_not_have_names_the_presets() {
    on_each_cloud(|name, gateway| {
        for login in [Login::ProjectId, Login::Credential] {
            // The properties of one login with the preset of another.
            let cpi = Cpi::with_login(gateway, login);
            let preset = std::fs::read(Login::Password.preset()).unwrap_or_default();
            tests::job::write(&cpi.job.path("config/openstack.json"), &preset);
            let right = match login {
                Login::ProjectId => "openstack-project-id.json",
                _ => "openstack-application-credential.json",
            };
            let message = cpi.run("has_vm", json!(["vm"])).message().to_owned();
            assert!(message.contains("which is not set"), "{name}: {message}");
            assert!(message.contains(right), "{name}: {message}");
        }
    });
}

#[test]
fn the_error_for_a_policy_without_a_preset_names_expose() {
    on_each_cloud(|name, gateway| {
        let mut cpi = Cpi::new(gateway);
        cpi.job = cpi.job.policy(json!({"version": 1}));
        gateway.clear_records();
        let response = cpi.run("has_vm", json!(["vm"]));
        response.fails(CPI_ERROR, &["properties.auth_url: is sealed", "`expose`", "openstack.json"]);
        assert_eq!(gateway.records().len(), 0, "{name}");
    });
}

#[test]
fn a_refused_login_is_reported_without_the_password() {
    on_each_cloud(|_, gateway| {
        for (login, name) in [(Login::Password, "api_key"), (Login::Credential, "application_credential_secret")] {
            let cpi = Cpi::with_login(gateway, login).set(name, json!("no-such-secret-at-all"));
            let response = cpi.run("has_vm", json!(["vm"]));
            let message = response.message();
            assert!(message.contains("401"), "{message}");
            assert!(!message.contains("no-such-secret-at-all"), "{message}");
        }
        let other =
            Cpi::with_login(gateway, Login::ProjectId).set("project_id", json!("0123456789abcdef0123456789abcdef"));
        let message = other.run("has_vm", json!(["vm"])).message().to_owned();
        assert!(message.contains("401"), "{message}");
    });
}

#[test]
fn the_error_for_an_unknown_region_lists_the_regions_of_the_catalog() {
    on_each_cloud(|_, gateway| {
        let cpi = Cpi::new(gateway).set("region", json!("Nowhere"));
        cpi.run("has_vm", json!(["vm"])).fails(CPI_ERROR, &["`Nowhere`", "`region`", "RegionOne"]);
        let asked =
            gateway.records().iter().any(|record| record.service == Service::Compute && record.path.contains("vm"));
        assert!(!asked);
    });
}
