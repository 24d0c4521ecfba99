//! Every property of the job spec: in README.md's table, and as it says there.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Fake;
use wasm_cpi_sdk::{Cpi, ErrorKind};

use super::{properties, with};
use crate::OpenStack;
use crate::properties::{SPEC, Treatment};

const README: &str = include_str!("../../README.md");

fn opened(properties: Value) -> Result<(), wasm_cpi_sdk::Error> {
    let _host = Fake::new().properties(properties).install();
    OpenStack::open().map(drop)
}

/// The rows of tables as their cells.
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
        let word = match treatment {
            Treatment::Same => "same",
            Treatment::Partly => "same, but",
            Treatment::Moved => "in cpi.json",
            Treatment::Refused => "refused",
        };
        assert!(row[1] == word, "{name}: README.md says `{}`, and it is `{word}`", row[1]);
        assert!(row.len() == 3 && (treatment == Treatment::Same || !row[2].is_empty()), "{name}: no remedy");
    }
}

/// `registry.*` covers a group.
fn covers(cell: &str, name: &str) -> bool {
    cell == name || cell.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix))
}

#[test]
fn each_name_is_there_once() {
    let mut names: Vec<&str> = SPEC.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SPEC.len());
}

#[test]
fn properties_that_mean_the_same_are_taken() {
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
        assert_eq!(opened(with(json!({name: value}))), Ok(()), "{name}");
    }
    let credential = json!({"auth_url": "https://k/v3", "application_credential_id": "i",
        "application_credential_secret": "<seal>"});
    assert_eq!(opened(credential), Ok(()));
    let domains = json!({"domain": null, "user_domain_name": "d", "project": null, "project_id": "p"});
    assert_eq!(opened(with(domains)), Ok(()));
}

#[test]
fn what_cannot_work_is_refused_with_a_remedy() {
    for (more, message) in [
        (json!({"auth_url": null}), "properties.auth_url: is missing; set it to Keystone's URL"),
        (
            json!({"auth_url": "http://k:5000/v2.0"}),
            "not a Keystone v3 URL, and Keystone v2 is gone; let it end in /v3",
        ),
        (json!({"auth_url": "http://k:5000"}), "let it end in /v3"),
        (
            json!({"project": null, "tenant": "t"}),
            "properties.tenant: is for Keystone v2, which is gone; set `project`",
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
            "both are set; set exactly one of the two pairs",
        ),
        (
            json!({"connection_options": {"ssl_verify_peer": false}}),
            "properties.connection_options.ssl_verify_peer: certificates are always verified; remove it, and give the \
             cloud's CA as PEM in connection_options.ca_cert",
        ),
        (json!({"connection_options": {"ssl_ca_file": "/ca"}}), "give the CA as PEM in connection_options.ca_cert"),
        (json!({"connection_options": {"read_timeout": 360}}), "timeouts are `limits` of cpi.json"),
        (json!({"use_nova_networking": true}), "properties.use_nova_networking: Nova's own networks are gone"),
        (json!({"endpoint_type": "otherURL"}), "use publicURL, internalURL or adminURL"),
        (json!({"config_drive": "floppy"}), "properties.config_drive: `floppy` is not known; use cdrom or disk"),
        (json!({"state_timeout": "long"}), "properties.state_timeout: invalid type: string \"long\", expected u64"),
        (json!({"default_security_groups": "g"}), "properties.default_security_groups: invalid type: string"),
    ] {
        let error = opened(with(more)).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert_eq!(error.kind, ErrorKind::Cpi);
    }
    assert_eq!(opened(properties()), Ok(()));
}
