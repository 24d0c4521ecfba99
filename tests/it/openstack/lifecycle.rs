//! The lifecycle of a server with its port and its volume, the same on every cloud.

use super::{describe, succeed, upload_image, wait_for};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::openstack::{Api, Service, on_each_cloud};

use Service::{Compute, Image, Network, Volume};

#[test]
fn a_server_with_a_port_and_a_volume_can_be_created_and_deleted_without_leftovers() {
    on_each_cloud(|name, gateway| {
        let cloud = gateway.cloud();
        let api = Api::tenant(&cloud);
        let before = api.contents();
        run_lifecycle(&api, &cloud);
        assert_eq!(api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}

fn run_lifecycle(api: &Api, cloud: &Value) {
    let image = upload_image(api);
    let port = json!({"port": {"network_id": cloud["network"], "fixed_ips": [{"ip_address": "10.0.0.77"}]}});
    let port = text(&succeed(api, Network, "POST", "/ports", port), "/port/id");
    let data = b"{\"settings\": 1}";
    let asked = json!({"server": {
        "name": "lives", "imageRef": image, "flavorRef": cloud["flavors"]["m1.small"], "networks": [{"port": port}],
        "key_name": cloud["key_name"], "security_groups": [{"name": cloud["security_group"]}], "config_drive": true,
        "availability_zone": cloud["availability_zone"], "user_data": STANDARD.encode(data), "metadata": {"a": "b"},
    }});
    let server = text(&succeed(api, Compute, "POST", "/servers", asked), "/server/id");
    let at = format!("/servers/{server}");
    // On a busy machine, the first read may already see the final state.
    let states = wait_for(api, Compute, &at, "/server/status", &json!("ACTIVE"));
    assert!(states.iter().all(|state| *state == "BUILD" || *state == "ACTIVE"), "{states:?}");
    assert_eq!(api.user_data(&server).as_deref(), Some(&data[..]));
    let bound = succeed(api, Network, "GET", &format!("/ports/{port}"), Value::Null);
    assert_eq!((&bound["port"]["device_id"], &bound["port"]["device_owner"]), (&json!(server), &json!("compute:nova")));

    let asked = json!({"volume": {"size": 1, "name": "disk", "volume_type": cloud["volume_type"]}});
    let volume = text(&succeed(api, Volume, "POST", "/volumes", asked), "/volume/id");
    let disk = format!("/volumes/{volume}");
    wait_for(api, Volume, &disk, "/volume/status", &json!("available"));
    let taken = json!({"volumeAttachment": {"volumeId": volume, "device": "/dev/sda"}});
    let refused = api.request(Compute, "POST", &format!("{at}/os-volume_attachments"), Some(&taken));
    assert_eq!(refused.status, 409, "{}", describe(&refused));
    // This cloud attaches as `sdc` what was requested as `vdc`.
    let asked = json!({"volumeAttachment": {"volumeId": volume, "device": "/dev/vdc"}});
    let attached = succeed(api, Compute, "POST", &format!("{at}/os-volume_attachments"), asked);
    assert_eq!(attached["volumeAttachment"]["device"], "/dev/sdc");
    wait_for(api, Volume, &disk, "/volume/status", &json!("in-use"));
    let refused = api.request(Volume, "DELETE", &disk, None);
    assert_eq!(refused.status, 400);
    let asked = json!({"snapshot": {"volume_id": volume, "force": true}});
    let snapshot = text(&succeed(api, Volume, "POST", "/snapshots", asked), "/snapshot/id");
    let copy = format!("/snapshots/{snapshot}");
    wait_for(api, Volume, &copy, "/snapshot/status", &json!("available"));
    succeed(api, Volume, "DELETE", &copy, Value::Null);
    wait_for(api, Volume, &copy, "/snapshot/status", &Value::Null);

    check_floating_ip(api, cloud, &port);
    succeed(api, Compute, "POST", &format!("{at}/action"), json!({"reboot": {"type": "SOFT"}}));
    wait_for(api, Compute, &at, "/server/OS-EXT-STS:task_state", &Value::Null);

    succeed(api, Compute, "DELETE", &format!("{at}/os-volume_attachments/{volume}"), Value::Null);
    wait_for(api, Volume, &disk, "/volume/status", &json!("available"));
    succeed(api, Volume, "POST", &format!("{disk}/action"), json!({"os-extend": {"new_size": 2}}));
    wait_for(api, Volume, &disk, "/volume/status", &json!("available"));
    assert_eq!(succeed(api, Volume, "GET", &disk, Value::Null)["volume"]["size"], 2);
    succeed(api, Volume, "DELETE", &disk, Value::Null);
    succeed(api, Compute, "DELETE", &at, Value::Null);
    wait_for(api, Compute, &at, "/server/status", &Value::Null);
    // A port that existed before its server is not deleted with it.
    let free = succeed(api, Network, "GET", &format!("/ports/{port}"), Value::Null);
    assert_eq!(free["port"]["device_id"], "");
    succeed(api, Network, "DELETE", &format!("/ports/{port}"), Value::Null);
    succeed(api, Image, "DELETE", &format!("/images/{image}"), Value::Null);
}

fn check_floating_ip(api: &Api, cloud: &Value, port: &str) {
    let address = cloud["floating_ip"].as_str().unwrap_or_default();
    let found = succeed(api, Network, "GET", &format!("/floatingips?floating_ip_address={address}"), Value::Null);
    let path = format!("/floatingips/{}", text(&found, "/floatingips/0/id"));
    let pointed = succeed(api, Network, "PUT", &path, json!({"floatingip": {"port_id": port}}));
    assert_eq!(pointed["floatingip"]["fixed_ip_address"], "10.0.0.77");
    succeed(api, Network, "PUT", &path, json!({"floatingip": {"port_id": null}}));
}

fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no {pointer} in {value}")).to_owned()
}
