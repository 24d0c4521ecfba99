use super::*;
use serde_json::json;

fn parse(method: &str, arguments: Value, api_version: u32) -> Result<Call, Failure> {
    let method = Method::ALL.iter().find(|known| known.name() == method).copied().unwrap();
    let Value::Array(arguments) = arguments else { panic!("not an array") };
    Call::parse(method, arguments, api_version)
}

/// Returns valid arguments for every method, as the Director sends them.
fn valid() -> Vec<(&'static str, Value)> {
    let networks = json!({"net": {"type": "manual", "ip": "10.0.0.6", "prefix": "32", "nic_group": "1"}});
    vec![
        ("info", json!([])),
        ("create_stemcell", json!(["/x/image", null])),
        ("delete_stemcell", json!(["s"])),
        ("create_vm", json!(["agent", "s", {}, networks, ["d"], {"bosh": {}}])),
        ("delete_vm", json!(["v"])),
        ("has_vm", json!(["v"])),
        ("reboot_vm", json!(["v"])),
        ("set_vm_metadata", json!(["v", {"name": "x"}])),
        ("calculate_vm_cloud_properties", json!([{"ram": 1, "cpu": 2, "ephemeral_disk_size": 3}])),
        ("create_disk", json!([1024, {}, "v"])),
        ("delete_disk", json!(["d"])),
        ("has_disk", json!(["d"])),
        ("attach_disk", json!(["v", "d"])),
        ("detach_disk", json!(["v", "d"])),
        ("set_disk_metadata", json!(["d", {}])),
        ("get_disks", json!(["v"])),
        ("resize_disk", json!(["d", 10])),
        ("update_disk", json!(["d", 10, {}])),
        ("snapshot_disk", json!(["d", {}])),
        ("delete_snapshot", json!(["sn"])),
        ("create_network", json!([{"type": "manual"}])),
        ("delete_network", json!(["n"])),
    ]
}

#[test]
fn too_many_arguments_and_no_arguments_are_rejected() {
    assert_eq!(valid().len(), Method::ALL.len());
    for (method, arguments) in valid() {
        for api_version in 1..=3 {
            assert!(parse(method, arguments.clone(), api_version).is_ok(), "{method} v{api_version}");
        }
        let mut more = arguments.as_array().unwrap().clone();
        more.extend([json!({}), json!({})]);
        let failure = parse(method, Value::Array(more), 2).err().unwrap();
        assert!(failure.message.contains("arguments"), "{method}: {failure}");
        if method != "info" {
            let failure = parse(method, json!([]), 2).err().unwrap();
            assert!(failure.message.contains("is missing"), "{method}: {failure}");
        }
    }
}

#[test]
fn an_argument_of_a_wrong_type_is_named_in_the_error() {
    for (method, arguments) in valid() {
        for position in 0..arguments.as_array().unwrap().len() {
            // No method has a boolean argument.
            let mut wrong = arguments.clone();
            wrong[position] = json!(true);
            let failure = parse(method, wrong, 2).err().unwrap_or_else(|| panic!("{method} {position}"));
            assert!(failure.message.contains(&format!("argument {}", position + 1)), "{method}: {failure}");
            assert!(failure.message.contains("must be"), "{method}: {failure}");
        }
    }
}

#[test]
fn tags_are_accepted_from_version_3_on() {
    let arguments = json!(["/x/image", {}, {"tags": {"a": "b"}}]);
    let Ok(Call::CreateStemcell { tags, .. }) = parse("create_stemcell", arguments.clone(), 3) else { panic!() };
    assert_eq!(tags, *json!({"a": "b"}).as_object().unwrap());
    assert!(parse("create_stemcell", arguments, 2).is_err());
}

#[test]
fn null_is_accepted_where_clients_send_it() {
    for (method, arguments) in [
        ("create_stemcell", json!(["/x/image", null])),
        ("create_stemcell", json!(["/x/image", {}, {}])),
        ("create_vm", json!(["a", "s", {}, {}, null, null])),
        ("create_vm", json!(["a", "s", {}, {}])),
        ("create_disk", json!([1, {}, null])),
        ("create_disk", json!([1, {}, ""])),
        ("create_disk", json!([1, {}])),
        ("create_disk", json!([1.0, {}])),
    ] {
        assert!(parse(method, arguments.clone(), 3).is_ok(), "{method} {arguments}");
    }
}
