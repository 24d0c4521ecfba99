//! What only a simulated cloud can be made to do.

use super::{done, image, server, told, watch};
use serde_json::{Value, json};
use std::time::Duration;
use tests::openstack::{Api, Gateway, Service, Simulator};

use Service::{Compute, Network, Volume};

fn cloud() -> (Simulator, Value) {
    let simulator = Simulator::new();
    let cloud = Gateway::start(simulator.clone()).cloud();
    (simulator, cloud)
}

#[test]
fn changes_take_as_many_reads_as_they_are_told() {
    for reads in [0, 1, 3] {
        let (simulator, cloud) = cloud();
        simulator.set_reads(reads);
        let api = Api::tenant(&cloud);
        let made = done(&api, Volume, "POST", "/volumes", json!({"volume": {"size": 1}}));
        let path = format!("/volumes/{}", made["volume"]["id"].as_str().unwrap_or_default());
        for _ in 0..reads {
            assert_eq!(done(&api, Volume, "GET", &path, Value::Null)["volume"]["status"], "creating");
        }
        assert_eq!(done(&api, Volume, "GET", &path, Value::Null)["volume"]["status"], "available");
    }
}

#[test]
fn a_token_that_is_old_or_revoked_is_good_for_nothing() {
    let (simulator, cloud) = cloud();
    let api = Api::tenant(&cloud);
    let gateway = Gateway::start(simulator.clone());
    let watched = Api::tenant(&gateway.cloud());
    simulator.revoke_tokens();
    // The client logs in again.
    assert_eq!(watched.servers(), Vec::<Value>::new());
    let lines: Vec<String> = gateway.records().iter().map(tests::openstack::Recorded::line).collect();
    let login = "POST /auth/tokens 201";
    assert_eq!(lines, [login, "GET /servers/detail 401", login, "GET /servers/detail 200"]);
    simulator.revoke_tokens();
    simulator.set_token_lifetime(Duration::ZERO);
    for (service, path) in
        [(Compute, "/servers"), (Network, "/ports"), (Volume, "/volumes"), (Service::Image, "/images")]
    {
        let answer = api.request(service, "GET", path, None);
        assert_eq!(answer.status, 401, "{}", told(&answer));
        assert!(
            answer
                .header("www-authenticate")
                .is_some_and(|realm| realm.starts_with("Keystone uri=\"http://127.0.0.1:"))
        );
    }
}

#[test]
fn one_tenant_sees_nothing_of_another() {
    let (_, cloud) = cloud();
    let (bosh, admin) = (Api::tenant(&cloud), Api::admin(&cloud));
    image(&bosh);
    done(&bosh, Volume, "POST", "/volumes", json!({"volume": {"size": 1}}));
    let all = admin.contents();
    assert_eq!((all.count("image"), all.count("volume"), all.count("server")), (0, 0, 0), "{all:?}");
    let own = bosh.contents();
    assert_eq!((own.count("image"), own.count("volume"), own.count("floating")), (1, 1, 1), "{own:?}");
}

#[test]
fn quotas_hold_and_say_by_how_much() {
    let (_, cloud) = cloud();
    let (api, admin) = (Api::tenant(&cloud), Api::admin(&cloud));
    let image = image(&api);
    let port = json!({"port": {"network_id": cloud["network"]}});
    for (service, name, path, body, status, said) in [
        (
            Compute,
            "instances",
            "/servers",
            server(&cloud, &image),
            403,
            "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances",
        ),
        (
            Compute,
            "ram",
            "/servers",
            server(&cloud, &image),
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
        assert_eq!(answer.status, status, "{}", told(&answer));
        assert!(told(&answer).contains(said), "{}", told(&answer));
        admin.set_quota(service, &api.project(), name, -1);
    }
}

#[test]
fn servers_that_no_host_takes_say_so() {
    let (_, cloud) = cloud();
    let (api, admin) = (Api::tenant(&cloud), Api::admin(&cloud));
    let image = image(&api);
    let huge = json!({"flavor": {"name": "huge", "ram": 900_000, "vcpus": 1, "disk": 1}});
    let huge = done(&admin, Compute, "POST", "/flavors", huge)["flavor"]["id"].clone();
    admin.set_quota(Compute, &api.project(), "ram", -1);
    let group = json!({"server_group": {"name": "apart", "policies": ["anti-affinity"]}});
    let group = done(&api, Compute, "POST", "/os-server-groups", group)["server_group"]["id"].clone();
    let mut too_big = server(&cloud, &image);
    too_big["server"]["flavorRef"] = huge;
    let mut apart = server(&cloud, &image);
    apart["os:scheduler_hints"] = json!({"group": group});
    for (asked, said) in [
        (too_big, Some("No valid host was found. ")),
        (apart.clone(), None),
        (apart, Some("No valid host was found. There are not enough hosts available.")),
    ] {
        let made = done(&api, Compute, "POST", "/servers", asked);
        let path = format!("/servers/{}", made["server"]["id"].as_str().unwrap_or_default());
        done(&api, Compute, "GET", &path, Value::Null);
        let built = done(&api, Compute, "GET", &path, Value::Null);
        assert_eq!(built["server"]["status"], if said.is_some() { "ERROR" } else { "ACTIVE" });
        assert_eq!(built["server"]["fault"]["message"].as_str(), said);
        assert_eq!(built["server"]["fault"]["code"].as_u64(), said.map(|_| 500));
    }
}

#[test]
fn a_server_that_boots_from_a_volume_takes_it_along_when_it_goes() {
    let (_, cloud) = cloud();
    let api = Api::tenant(&cloud);
    let image = image(&api);
    let before = api.contents();
    let mut asked = server(&cloud, "");
    asked["server"]["block_device_mapping_v2"] = json!([{
        "boot_index": 0, "uuid": image, "source_type": "image", "destination_type": "volume", "volume_size": 3,
        "delete_on_termination": true,
    }]);
    let made = done(&api, Compute, "POST", "/servers", asked);
    let path = format!("/servers/{}", made["server"]["id"].as_str().unwrap_or_default());
    watch(&api, Compute, &path, "/server/status", &json!("ACTIVE"));
    let now = api.contents();
    assert_eq!((now.count("server"), now.count("volume")), (1, 1), "{now:?}");
    assert_eq!(api.volumes()[0]["attachments"][0]["device"], "/dev/sda");
    done(&api, Compute, "DELETE", &path, Value::Null);
    assert_eq!(watch(&api, Compute, &path, "/server/status", &Value::Null).last(), Some(&Value::Null));
    assert_eq!(api.left_behind(&before), Vec::<String>::new());
}
