//! Behaviour of the simulator that tests cannot control on a real cloud.

use super::{describe, server_request, succeed, upload_image, wait_for};
use serde_json::{Value, json};
use std::time::Duration;
use tests::openstack::{Api, Gateway, Service, Simulator};

use Service::{Compute, Image, Network, Volume};

fn cloud() -> (Simulator, Value) {
    let simulator = Simulator::new();
    let cloud = Gateway::start(simulator.clone()).cloud();
    (simulator, cloud)
}

#[test]
fn a_change_takes_the_configured_number_of_reads() {
    for reads in [0, 1, 3] {
        let (simulator, cloud) = cloud();
        simulator.set_reads_before_change(reads);
        let api = Api::tenant(&cloud);
        let made = succeed(&api, Volume, "POST", "/volumes", json!({"volume": {"size": 1}}));
        let path = format!("/volumes/{}", made["volume"]["id"].as_str().unwrap_or_default());
        for _ in 0..reads {
            assert_eq!(succeed(&api, Volume, "GET", &path, Value::Null)["volume"]["status"], "creating");
        }
        assert_eq!(succeed(&api, Volume, "GET", &path, Value::Null)["volume"]["status"], "available");
    }
}

#[test]
fn expired_and_revoked_tokens_are_refused() {
    let (simulator, cloud) = cloud();
    let api = Api::tenant(&cloud);
    let gateway = Gateway::start(simulator.clone());
    let watched = Api::tenant(&gateway.cloud());
    simulator.revoke_tokens();
    // The client logs in again.
    assert_eq!(watched.servers(), Vec::<Value>::new());
    let lines: Vec<String> = gateway.records().iter().map(tests::openstack::RecordedRequest::line).collect();
    let login = "POST /auth/tokens 201";
    assert_eq!(lines, [login, "GET /servers/detail 401", login, "GET /servers/detail 200"]);
    simulator.revoke_tokens();
    simulator.set_token_lifetime(Duration::ZERO);
    for (service, path) in [(Compute, "/servers"), (Network, "/ports"), (Volume, "/volumes"), (Image, "/images")] {
        let answer = api.request(service, "GET", path, None);
        assert_eq!(answer.status, 401, "{}", describe(&answer));
        assert!(
            answer
                .header("www-authenticate")
                .is_some_and(|realm| realm.starts_with("Keystone uri=\"http://127.0.0.1:"))
        );
    }
}

#[test]
fn a_tenant_does_not_see_the_resources_of_another_tenant() {
    let (_, cloud) = cloud();
    let (bosh, admin) = (Api::tenant(&cloud), Api::admin(&cloud));
    upload_image(&bosh);
    succeed(&bosh, Volume, "POST", "/volumes", json!({"volume": {"size": 1}}));
    let all = admin.contents();
    assert_eq!((all.count("image"), all.count("volume"), all.count("server")), (0, 0, 0), "{all:?}");
    let own = bosh.contents();
    assert_eq!((own.count("image"), own.count("volume"), own.count("floating")), (1, 1, 1), "{own:?}");
}

#[test]
fn a_request_beyond_a_quota_is_refused_and_the_message_shows_the_quota() {
    let (_, cloud) = cloud();
    let (api, admin) = (Api::tenant(&cloud), Api::admin(&cloud));
    let image = upload_image(&api);
    let port = json!({"port": {"network_id": cloud["network"]}});
    for (service, name, path, body, status, expected) in [
        (
            Compute,
            "instances",
            "/servers",
            server_request(&cloud, &image),
            403,
            "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances",
        ),
        (
            Compute,
            "ram",
            "/servers",
            server_request(&cloud, &image),
            403,
            "Quota exceeded for ram: Requested 512, but already used 0 of 0 ram",
        ),
        (
            Volume,
            "volumes",
            "/volumes",
            json!({"volume": {"size": 1}}),
            413,
            "Maximum number of volumes allowed (0) exceeded for quota 'volumes'.",
        ),
        (
            Volume,
            "gigabytes",
            "/volumes",
            json!({"volume": {"size": 1}}),
            413,
            "Requested 1G, quota is 0G and 0G has been consumed.",
        ),
        (Network, "port", "/ports", port, 409, "Quota exceeded for resources: ['port']."),
    ] {
        let least = i64::from(name == "port");
        admin.set_quota(service, &api.project(), name, least);
        let answer = api.request(service, "POST", path, Some(&body));
        assert_eq!(answer.status, status, "{}", describe(&answer));
        assert!(describe(&answer).contains(expected), "{}", describe(&answer));
        admin.set_quota(service, &api.project(), name, -1);
    }
}

#[test]
fn a_server_that_fits_on_no_host_reports_a_fault() {
    let (_, cloud) = cloud();
    let (api, admin) = (Api::tenant(&cloud), Api::admin(&cloud));
    let image = upload_image(&api);
    let huge = json!({"flavor": {"name": "huge", "ram": 900_000, "vcpus": 1, "disk": 1}});
    let huge = succeed(&admin, Compute, "POST", "/flavors", huge)["flavor"]["id"].clone();
    admin.set_quota(Compute, &api.project(), "ram", -1);
    let group = json!({"server_group": {"name": "apart", "policies": ["anti-affinity"]}});
    let group = succeed(&api, Compute, "POST", "/os-server-groups", group)["server_group"]["id"].clone();
    let mut too_big = server_request(&cloud, &image);
    too_big["server"]["flavorRef"] = huge;
    let mut apart = server_request(&cloud, &image);
    apart["os:scheduler_hints"] = json!({"group": group});
    for (asked, expected) in [
        (too_big, Some("No valid host was found. ")),
        (apart.clone(), None),
        (apart, Some("No valid host was found. There are not enough hosts available.")),
    ] {
        let made = succeed(&api, Compute, "POST", "/servers", asked);
        let path = format!("/servers/{}", made["server"]["id"].as_str().unwrap_or_default());
        succeed(&api, Compute, "GET", &path, Value::Null);
        let built = succeed(&api, Compute, "GET", &path, Value::Null);
        assert_eq!(built["server"]["status"], if expected.is_some() { "ERROR" } else { "ACTIVE" });
        assert_eq!(built["server"]["fault"]["message"].as_str(), expected);
        assert_eq!(built["server"]["fault"]["code"].as_u64(), expected.map(|_| 500));
    }
}

#[test]
fn an_image_for_another_hypervisor_fits_on_no_host() {
    let (_, cloud) = cloud();
    let api = Api::tenant(&cloud);
    for (hypervisor, status) in [("kvm", "ERROR"), ("fake", "ACTIVE")] {
        let asked = json!({
            "name": "i", "disk_format": "raw", "container_format": "bare", "hypervisor_type": hypervisor,
        });
        let image = succeed(&api, Image, "POST", "/images", asked)["id"].as_str().unwrap_or_default().to_owned();
        let headers = [("Content-Type", "application/octet-stream")];
        api.request_with(Image, "PUT", &format!("/images/{image}/file"), &headers, Some(&json!({"any": "bytes"})));
        let made = succeed(&api, Compute, "POST", "/servers", server_request(&cloud, &image));
        let path = format!("/servers/{}", made["server"]["id"].as_str().unwrap_or_default());
        succeed(&api, Compute, "GET", &path, Value::Null);
        let built = succeed(&api, Compute, "GET", &path, Value::Null);
        assert_eq!(built["server"]["status"], status, "{hypervisor}: {built}");
    }
}

#[test]
fn deleting_a_server_deletes_its_boot_volume() {
    let (_, cloud) = cloud();
    let api = Api::tenant(&cloud);
    let image = upload_image(&api);
    let before = api.contents();
    let mut asked = server_request(&cloud, "");
    asked["server"]["block_device_mapping_v2"] = json!([{
        "boot_index": 0, "uuid": image, "source_type": "image", "destination_type": "volume", "volume_size": 3,
        "delete_on_termination": true,
    }]);
    let made = succeed(&api, Compute, "POST", "/servers", asked);
    let path = format!("/servers/{}", made["server"]["id"].as_str().unwrap_or_default());
    wait_for(&api, Compute, &path, "/server/status", &json!("ACTIVE"));
    let now = api.contents();
    assert_eq!((now.count("server"), now.count("volume")), (1, 1), "{now:?}");
    assert_eq!(api.volumes()[0]["attachments"][0]["device"], "/dev/sda");
    succeed(&api, Compute, "DELETE", &path, Value::Null);
    assert_eq!(wait_for(&api, Compute, &path, "/server/status", &Value::Null).last(), Some(&Value::Null));
    assert_eq!(api.left_behind(&before), Vec::<String>::new());
}
