//! Server groups for anti-affinity, also if several calls create them in parallel.

use serde_json::{Value, json};
use wasm_cpi_sdk::Cpi;
use wasm_cpi_sdk::fake::Answer;

use super::cloud::Fault;
use super::{cpi, manual, properties, properties_with, request, small, start};

/// The ID of the group that the call creates.
const OWN: &str = "groups-1";

fn group(members: &[&str]) -> Value {
    json!({"name": "director-uuid-web", "policy": "soft-anti-affinity", "members": members})
}

#[test]
fn parallel_calls_choose_the_same_group_and_each_deletes_only_its_own() {
    // The groups of other calls that appear while this call creates its own, and the members of the own one.
    for (others, members, chosen, left) in [
        (vec![], vec![], OWN, vec![OWN]),
        (vec![("a", vec![])], vec![], "a", vec!["a"]),
        (vec![("z", vec![])], vec![], OWN, vec![OWN, "z"]),
        (vec![("z", vec![]), ("b", vec![]), ("a", vec![])], vec![], "a", vec!["a", "b", "z"]),
        // A group with members is in use.
        (vec![("z", vec!["vm"]), ("a", vec![])], vec![], "z", vec!["a", "z"]),
        (vec![("z", vec!["vm"]), ("a", vec!["vm"])], vec![], "a", vec!["a", "z"]),
        // The own group is on another page than the one in use.
        (vec![("b", vec![]), ("a", vec!["vm"])], vec![], "a", vec!["a", "b"]),
        // The own group is never deleted if it has members.
        (vec![("a", vec![])], vec!["vm"], OWN, vec!["a", OWN]),
        (vec![("a", vec!["vm"])], vec!["vm"], "a", vec!["a", OWN]),
    ] {
        let (host, cloud) = start(properties_with(json!({"enable_auto_anti_affinity": true})));
        let rivals = others.iter().map(|(id, members)| ((*id).to_owned(), group(members))).collect();
        cloud.borrow_mut().parallel_groups = rivals;
        cloud.borrow_mut().own_members = members.iter().map(|member| json!(member)).collect();
        cpi().create_vm(request(small(), vec![manual()])).unwrap();
        let cloud = cloud.borrow();
        assert_eq!(cloud.only("servers")["hints"], json!({"group": chosen}), "{others:?}");
        let ids: Vec<Value> = cloud.all("groups").iter().map(|group| group["id"].clone()).collect();
        assert_eq!(ids, left, "{others:?}");
        assert!(host.sleeps().contains(&500), "{:?}", host.sleeps());
    }
}

#[test]
fn a_group_without_members_is_used_after_a_pause_and_never_deleted() {
    for (id, appears, chosen) in [("m", None, "m"), ("m", Some("a"), "a"), ("m", Some("z"), "m")] {
        let (host, cloud) = start(properties_with(json!({"enable_auto_anti_affinity": true})));
        cloud.borrow_mut().put("groups", id, group(&[]));
        // The second group appears after the call read the first list, which has two pages.
        cloud.borrow_mut().late_group = appears.map(|id| (id.to_owned(), group(&[])));
        cpi().create_vm(request(small(), vec![manual()])).unwrap();
        assert_eq!(cloud.borrow().only("servers")["hints"], json!({"group": chosen}));
        assert_eq!(cloud.borrow().count_requests("POST os-server-groups"), 0);
        assert_eq!(cloud.borrow().count_requests("DELETE os-server-groups"), 0);
        assert!(host.sleeps().contains(&500), "{:?}", host.sleeps());
    }
}

#[test]
fn a_group_that_cannot_be_deleted_is_left_with_a_warning() {
    let (host, cloud) = start(properties_with(json!({"enable_auto_anti_affinity": true})));
    cloud.borrow_mut().parallel_groups = vec![("a".to_owned(), group(&[]))];
    let refused = Answer::json(403, json!({"forbidden": {"message": "no"}}));
    cloud.borrow_mut().fault("DELETE", "os-server-groups/*", 0, Fault::Before(refused));
    cpi().create_vm(request(small(), vec![manual()])).unwrap();
    assert_eq!(cloud.borrow().only("servers")["hints"], json!({"group": "a"}));
    let said = format!("server group {OWN} is left in the cloud");
    assert!(host.logs().iter().any(|(_, line)| line.contains(&said)), "{:?}", host.logs());
}

#[test]
fn the_director_may_try_again_if_the_group_was_deleted_meanwhile() {
    let (_host, cloud) = start(properties_with(json!({"enable_auto_anti_affinity": true})));
    let gone = json!({"badRequest": {"code": 400, "message": "Instance group g could not be found."}});
    cloud.borrow_mut().fault("POST", "servers", 0, Fault::Before(Answer::json(400, gone)));
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert_eq!(error.kind, wasm_cpi_sdk::ErrorKind::VmCreationFailed(wasm_cpi_sdk::RetryAdvice { ok_to_retry: true }));
}

#[test]
fn an_existing_server_group_is_used_and_a_scheduler_hint_takes_precedence() {
    let (host, cloud) = start(properties_with(json!({"enable_auto_anti_affinity": true})));
    let group = json!({"name": "director-uuid-web", "policy": "soft-anti-affinity", "members": ["vm-1"]});
    cloud.borrow_mut().put("groups", "group-9", group);
    // It is not on the first page.
    for id in ["group-1", "group-2", "group-3", "group-4"] {
        cloud.borrow_mut().put("groups", id, json!({"name": "other", "policy": "affinity"}));
    }
    cpi().create_vm(request(small(), vec![manual()])).unwrap();
    assert_eq!(cloud.borrow().only("servers")["hints"], json!({"group": "group-9"}));
    assert_eq!(cloud.borrow().count_requests("POST os-server-groups"), 0);
    // It is on the third page, and no further page is read.
    assert_eq!(cloud.borrow().count_requests("GET os-server-groups"), 3);
    // A group with members is in use: there is nothing to wait for.
    assert!(!host.sleeps().contains(&500), "{:?}", host.sleeps());
    let (_host, cloud) = start(properties_with(json!({"enable_auto_anti_affinity": true})));
    let own = json!({"instance_type": "m1.small", "scheduler_hints": {"group": "own"}});
    cpi().create_vm(request(own, vec![manual()])).unwrap();
    assert_eq!(cloud.borrow().only("servers")["hints"], json!({"group": "own"}));
    assert_eq!(cloud.borrow().count_requests("os-server-groups"), 0);
}

#[test]
fn a_server_group_is_created_with_the_newest_common_version() {
    let affinity = || properties_with(json!({"enable_auto_anti_affinity": true}));
    let policy = "soft-anti-affinity";
    for (newest, sent, made) in [
        ("2.15", "compute 2.15", json!({"policies": [policy]})),
        ("2.63", "compute 2.63", json!({"policies": [policy]})),
        ("2.100", "compute 2.64", json!({"policy": policy})),
    ] {
        let (host, cloud) = start(affinity());
        cloud.borrow_mut().newest = newest;
        cpi().create_vm(request(small(), vec![manual()])).unwrap();
        let group = cloud.borrow().only("groups");
        assert_eq!((&group["policy"], &group["policies"]), (&made["policy"], &made["policies"]), "{newest}");
        let versions: Vec<String> = host
            .requests()
            .iter()
            .filter(|request| request.url.contains("os-server-groups"))
            .flat_map(|request| request.headers.iter().filter(|(name, _)| name == "openstack-api-version").cloned())
            .map(|(_, value)| value)
            .collect();
        // An empty list, the new group, and a list of two pages, of which the second is empty.
        assert_eq!(versions, [sent; 4], "{newest}");
    }
    let (_host, cloud) = start(affinity());
    cloud.borrow_mut().newest = "2.9";
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    let said = "the newest version of the service is 2.9, but 2.15 is needed; if this error persists, set the property";
    assert!(error.message.contains(said), "{error}");
    // Without anti-affinity, Nova is not asked for its versions.
    let (_host, cloud) = start(properties());
    cpi().create_vm(request(small(), vec![manual()])).unwrap();
    assert!(!cloud.borrow().seen.contains(&"GET ".to_owned()));
}

#[test]
fn a_nova_without_a_version_document_gets_the_first_sufficient_version() {
    for answer in [Answer::text(404, "not here"), Answer::json(300, json!({"versions": []}))] {
        let (_host, cloud) = start(properties_with(json!({"enable_auto_anti_affinity": true})));
        cloud.borrow_mut().fault("GET", "", 0, Fault::Before(answer));
        cpi().create_vm(request(small(), vec![manual()])).unwrap();
        assert_eq!(cloud.borrow().only("groups")["policies"], json!(["soft-anti-affinity"]));
    }
}

#[test]
fn the_error_for_missing_anti_affinity_has_a_remedy() {
    for (method, status, part) in [
        ("GET", 406, "anti-affinity needs Nova's API 2.15"),
        ("POST", 400, "anti-affinity needs Nova's API 2.15"),
        ("POST", 403, "raise the project's quota of server groups"),
    ] {
        let (_host, cloud) = start(properties_with(json!({"enable_auto_anti_affinity": true})));
        let answer = Answer::json(status, json!({"computeFault": {"message": "no"}}));
        cloud.borrow_mut().fault(method, "os-server-groups", 0, Fault::Before(answer));
        let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
        assert!(error.message.contains(part), "{error}");
        assert_eq!(cloud.borrow().left(), Vec::<String>::new());
    }
}

#[test]
fn a_cloud_that_repeats_a_page_is_not_asked_again() {
    let (_host, cloud) = start(properties_with(json!({"enable_auto_anti_affinity": true})));
    cloud.borrow_mut().same_page = true;
    cloud.borrow_mut().put("groups", "group-1", json!({"name": "other", "policy": "affinity"}));
    cpi().create_vm(request(small(), vec![manual()])).unwrap();
    // Twice before the group is created, and twice after it.
    assert_eq!(cloud.borrow().count_requests("GET os-server-groups"), 4);
    assert_eq!(cloud.borrow().count_requests("GET security-groups"), 2);
}
