//! Refused requests: every cloud answers with the same status and message.

use super::{describe, server_request, succeed, upload_image};
use serde_json::{Value, json};
use tests::openstack::{Api, Service, on_each_cloud};
use tests::servers::with;

use Service::{Compute, Identity, Image, Network, Volume};

const NONE: &str = "00000000-0000-0000-0000-000000000000";

type Row = (Service, &'static str, String, Value, u16, &'static str);

#[test]
fn every_cloud_refuses_invalid_requests_with_the_same_messages() {
    on_each_cloud(|name, gateway| {
        let cloud = gateway.cloud();
        let api = Api::tenant(&cloud);
        let before = api.contents();
        let image = upload_image(&api);
        let port = json!({"port": {"network_id": cloud["network"], "fixed_ips": [{"ip_address": "10.0.0.60"}]}});
        let port = succeed(&api, Network, "POST", "/ports", port)["port"]["id"].as_str().unwrap_or_default().to_owned();
        for (service, method, path, body, status, expected) in rows(&cloud, &image) {
            let answer = api.request(service, method, &path, (!body.is_null()).then_some(&body));
            let json = answer.value();
            let plain = String::from_utf8_lossy(&answer.body).into_owned();
            let text = if json.is_null() { plain } else { json.to_string() }.replace(NONE, "ID");
            let matches = answer.status == status && text.contains(expected);
            assert!(
                matches,
                "{name}: {method} {path} {body}\nexpected {status} {expected}\nanswered {}",
                describe(&answer)
            );
        }
        succeed(&api, Network, "DELETE", &format!("/ports/{port}"), Value::Null);
        succeed(&api, Image, "DELETE", &format!("/images/{image}"), Value::Null);
        assert_eq!(api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}

fn rows(cloud: &Value, image: &str) -> Vec<Row> {
    let path = |text: &str| text.replace("ID", NONE);
    let net = &cloud["network"];
    let server = |more: Value| json!({"server": with(server_request(cloud, image)["server"].clone(), more)});
    let port = |more: Value| json!({"port": with(json!({"network_id": net}), more)});
    let at = |address: &str| port(json!({"fixed_ips": [{"ip_address": address}]}));
    let volume = |more: Value| json!({"volume": with(json!({"size": 1}), more)});
    let none = Value::Null;
    let mut rows: Vec<Row> = Vec::new();
    for (what, message) in [
        ("servers/ID", "{\"itemNotFound\":{\"code\":404,\"message\":\"Instance ID could not be found.\"}}"),
        ("servers/ID/os-volume_attachments", "Instance ID could not be found."),
        ("flavors/nope", "Flavor nope could not be found."),
        ("os-server-groups/ID", "Instance group ID could not be found."),
    ] {
        rows.push((Compute, "GET", path(&format!("/{what}")), none.clone(), 404, message));
    }
    for (more, status, message) in [
        (json!({"flavorRef": "nope"}), 400, "Flavor nope could not be found."),
        (json!({"imageRef": NONE}), 400, "Can not find requested image"),
        (json!({"availability_zone": "z9"}), 400, "The requested availability zone is not available"),
        (json!({"key_name": "nope"}), 400, "Invalid key_name provided."),
        (json!({"security_groups": [{"name": "nope"}]}), 400, "Unable to find security_group with name or id 'nope'"),
        (json!({"networks": [{"uuid": NONE}]}), 400, "Network ID could not be found."),
        (json!({"networks": [{"port": NONE}]}), 400, "Port id ID could not be found."),
        (
            json!({"networks": [{"uuid": net, "fixed_ip": "10.0.0.60"}]}),
            400,
            "Fixed IP address 10.0.0.60 is already in use",
        ),
        (json!({"nope": 1}), 400, "Additional properties are not allowed ('nope' was unexpected)"),
        (json!({"tags": ["a"]}), 400, "Additional properties are not allowed ('tags' was unexpected)"),
        (
            json!({"metadata": {"a": 1}}),
            400,
            "Invalid input for field/attribute a. Value: 1. 1 is not of type 'string'",
        ),
        (json!({"user_data": "A".repeat(65_536)}), 400, "is too long"),
    ] {
        rows.push((Compute, "POST", "/servers".to_owned(), server(more), status, message));
    }
    for (body, status, message) in [
        (at("10.0.0.60"), 409, "\"IpAddressAlreadyAllocated\""),
        (at("10.9.0.1"), 400, "IP address 10.9.0.1 is not a valid IP for any of the subnets on the specified network."),
        (at("10.0.0.1"), 409, "\"IpAddressAlreadyAllocated\""),
        (port(json!({"security_groups": [NONE]})), 404, "Security group ID does not exist"),
        (port(json!({"network_id": NONE})), 404, "Network ID could not be found."),
        (port(json!({"nope": 1})), 400, "Unrecognized attribute(s) 'nope'"),
    ] {
        rows.push((Network, "POST", "/ports".to_owned(), body, status, message));
    }
    rows.push((
        Network,
        "GET",
        path("/ports/ID"),
        none.clone(),
        404,
        "{\"NeutronError\":{\"type\":\"PortNotFound\",\"message\":\"Port ID could not be found.\",\"detail\":\"\"}}",
    ));
    rows.push((Network, "DELETE", path("/floatingips/ID"), none.clone(), 404, "Floating IP ID could not be found"));
    for (body, status, message) in [
        (volume(json!({"volume_type": "nope"})), 404, "Volume type with name nope could not be found."),
        (volume(json!({"availability_zone": "z9"})), 400, "Availability zone 'z9' is invalid."),
        (volume(json!({"size": 0})), 400, "0 is less than the minimum of 1"),
        (volume(json!({"size": 5000})), 413, "VolumeSizeExceedsLimit"),
        (volume(json!({"imageRef": NONE})), 400, "Invalid image identifier or unable to access requested image."),
    ] {
        rows.push((Volume, "POST", "/volumes".to_owned(), body, status, message));
    }
    rows.push((
        Volume,
        "DELETE",
        path("/volumes/ID"),
        none.clone(),
        404,
        "{\"itemNotFound\":{\"code\":404,\"message\":\"Volume ID could not be found.\"}}",
    ));
    rows.push((Volume, "GET", path("/snapshots/ID"), none.clone(), 404, "Snapshot ID could not be found."));
    rows.push((
        Volume,
        "PUT",
        path("/os-quota-sets/ID"),
        json!({"quota_set": {"volumes": 1}}),
        403,
        "Policy doesn't allow",
    ));
    rows.push((Image, "GET", path("/images/ID"), none.clone(), 404, "No image found with ID ID"));
    rows.push((Image, "DELETE", path("/images/ID"), none, 404, "Failed to find image ID to delete"));
    let public = json!({"name": "x", "visibility": "public"});
    rows.push((
        Image,
        "POST",
        "/images".to_owned(),
        public,
        403,
        "You are not authorized to complete publicize_image action.",
    ));
    let wrong = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": {
        "name": "bosh", "domain": {"name": "Default"}, "password": "wrong",
    }}}}});
    let message = "The request you have made requires authentication.";
    rows.push((Identity, "POST", "/auth/tokens".to_owned(), wrong, 401, message));
    rows
}
