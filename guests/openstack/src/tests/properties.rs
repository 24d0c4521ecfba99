//! Every property of the job spec is in README.md's table, and behaves as it says.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Fake;
use wasm_cpi_sdk::{Cpi, ErrorKind};

use super::{properties, properties_with};
use crate::OpenStack;
use crate::properties::{SPEC, Treatment};

const README: &str = include_str!("../../README.md");

fn opened(properties: Value) -> Result<(), wasm_cpi_sdk::Error> {
    let _host = Fake::new().properties(properties).install();
    OpenStack::open().map(drop)
}

/// Returns the cells of all rows of tables.
fn rows() -> Vec<Vec<&'static str>> {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
    README.lines().filter(|line| line.starts_with("| `")).map(cells).collect()
}

#[test]
fn the_table_has_every_property_of_the_job_spec() {
    let rows = rows();
    for (name, treatment) in SPEC {
        let row = rows.iter().find(|row| row[0].split(", ").any(|cell| covers(cell.trim_matches('`'), name)));
        let row = row.unwrap_or_else(|| panic!("README.md's table lacks {name}"));
        let expected = match treatment {
            Treatment::Same => "same",
            Treatment::Partly => "same, but",
            Treatment::Moved => "without BOSH, in cpi.json",
            Treatment::Refused => "refused",
        };
        assert!(row[1] == expected, "{name}: README.md says `{}`, but `{expected}` is expected", row[1]);
        assert!(row.len() == 3 && (treatment == Treatment::Same || !row[2].is_empty()), "{name}: no remedy");
    }
}

/// `registry.*` covers a group.
fn covers(cell: &str, name: &str) -> bool {
    cell == name || cell.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix))
}

#[test]
fn every_property_is_listed_once() {
    let mut names: Vec<&str> = SPEC.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SPEC.len());
}

#[test]
fn supported_values_of_properties_are_accepted() {
    let values = [
        ("region", json!("R")),
        ("endpoint_type", json!("internalURL")),
        ("state_timeout", json!(600)),
        ("boot_from_volume", json!(true)),
        ("stemcell_public_visibility", json!(true)),
        ("connection_options", json!({"ca_cert": "-----BEGIN", "ssl_verify_peer": true})),
        ("connection_options", Value::Null),
        ("default_volume_type", json!("SSD")),
        ("wait_resource_poll_interval", json!(1)),
        ("config_drive", json!("cdrom")),
        ("config_drive", json!("disk")),
        ("config_drive", json!("")),
        ("use_dhcp", json!(false)),
        ("ignore_server_availability_zone", json!(true)),
        ("human_readable_vm_names", json!(true)),
        ("use_nova_networking", json!(false)),
        ("enable_auto_anti_affinity", json!(true)),
        ("project_id", json!("p")),
        ("user_domain_name", json!("d")),
        ("project_domain_name", json!("d")),
        ("tenant", json!("ignored beside a project")),
        ("auth_url", json!("https://keystone.test:5000/identity/v3/")),
        ("endpoints", json!({"compute": "https://nova.test"})),
        ("something_else", json!("is ignored")),
    ];
    for (name, value) in values {
        assert_eq!(opened(properties_with(json!({name: value}))), Ok(()), "{name}");
    }
    let credential = json!({"auth_url": "https://k/v3", "application_credential_id": "i",
        "application_credential_secret": "<seal>"});
    assert_eq!(opened(credential), Ok(()));
    let domains = json!({"domain": null, "user_domain_name": "d", "project": null, "project_id": "p"});
    assert_eq!(opened(properties_with(domains)), Ok(()));
}

#[test]
fn unsupported_values_of_properties_are_rejected_with_a_remedy() {
    for (more, message) in [
        (json!({"auth_url": null}), "properties.auth_url: is missing; set it to Keystone's URL"),
        (
            json!({"auth_url": "http://k:5000/v2.0"}),
            "not a Keystone v3 URL, and Keystone v2 is not supported; use the URL that ends in /v3",
        ),
        (json!({"auth_url": "http://k:5000"}), "use the URL that ends in /v3"),
        (
            json!({"auth_url": "Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFy"}),
            "properties.auth_url: is sealed, because the policy does not expose it to the guest; use the preset openstack.json \
             of this guest, or list what the guest reads under `expose` of the policy",
        ),
        (
            json!({"auth_url": "Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFy", "project_id": "p"}),
            "use the preset openstack-project-id.json",
        ),
        (
            json!({"use_dhcp": "Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFy"}),
            "properties.use_dhcp: is sealed, because the policy does not expose it to the guest",
        ),
        (
            json!({"project": null, "tenant": "t"}),
            "properties.tenant: is for Keystone v2, which is not supported; set `project`",
        ),
        (json!({"project": null}), "properties.project: is missing"),
        (json!({"domain": null}), "properties.domain: is missing; set it, or `user_domain_name`"),
        (
            json!({"domain": null, "user_domain_name": "d"}),
            "properties.domain: is missing; set it, or `project_domain_name`",
        ),
        (json!({"api_key": null}), "neither is set completely"),
        (
            json!({"application_credential_id": "i", "application_credential_secret": "s"}),
            "both are set; set exactly one of the two pairs, and use the preset for it: openstack.json for project, \
             openstack-project-id.json for project_id, openstack-application-credential.json for the second pair",
        ),
        (
            json!({"connection_options": {"ssl_verify_peer": false}}),
            "properties.connection_options.ssl_verify_peer: certificates are always verified; remove it, and set \
             connection_options.ca_cert to the cloud's CA in PEM",
        ),
        (json!({"connection_options": {"ssl_ca_file": "/ca"}}), "set connection_options.ca_cert to the CA in PEM"),
        (json!({"connection_options": {"read_timeout": 360}}), "timeouts are `limits` of cpi.json"),
        (
            json!({"use_nova_networking": true}),
            "properties.use_nova_networking: OpenStack does not have Nova networks any more",
        ),
        (json!({"endpoint_type": "otherURL"}), "use publicURL, internalURL or adminURL"),
        (
            json!({"config_drive": "floppy"}),
            "properties.config_drive: `floppy` is not a config drive; use cdrom or disk",
        ),
        (json!({"state_timeout": "long"}), "properties.state_timeout: invalid type: string \"long\", expected u64"),
        (json!({"default_security_groups": "g"}), "properties.default_security_groups: invalid type: string"),
    ] {
        let error = opened(properties_with(more)).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert_eq!(error.kind, ErrorKind::Cpi);
    }
    assert_eq!(opened(properties()), Ok(()));
}
