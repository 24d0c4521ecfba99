//! Failures of `create_vm` and `delete_vm`.

use serde_json::json;
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::http::TransportError;
use wasm_cpi_sdk::{Cpi, ErrorKind, RetryAdvice};

use super::super::cloud::Fault;
use super::super::{cpi, manual, properties, request, small, start, start_with, vip};
use super::{fail, failures, matrix, requests, server_and_disk};

#[test]
fn a_failed_create_vm_leaves_nothing() {
    matrix(
        |fake| fake,
        |_| {},
        || cpi().create_vm(request(small(), vec![manual(), vip()])).map(|created| created.vm),
        |case, outcome, cloud| match outcome {
            Ok(vm) => {
                assert_eq!(cloud.borrow().only("servers")["id"], vm, "{case}");
                assert_eq!(cloud.borrow().all("ports").len(), 1, "{case}");
            }
            Err(error) => {
                assert_eq!(cloud.borrow().left(), Vec::<String>::new(), "{case}: {error}");
                let started = cloud.borrow().count_requests("POST ports") > 0 || case.contains("floatingips");
                let made = matches!(error.kind, ErrorKind::VmCreationFailed(_));
                assert_eq!(made, started, "{case}: {error:?}");
            }
        },
    );
}

#[test]
fn a_failed_vm_with_a_boot_volume_leaves_nothing() {
    matrix(
        |fake| fake,
        |_| {},
        || {
            let boot = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
            cpi().create_vm(request(boot, vec![manual()])).map(|created| created.vm)
        },
        |case, outcome, cloud| {
            if outcome.is_err() {
                assert_eq!(cloud.borrow().left(), Vec::<String>::new(), "{case}");
            }
        },
    );
}

/// Returns the expected error of `create_vm` for each failure in each kind of
/// request, or `None` if it succeeds.
fn outcome_of(method: &str, path: &str, failure: &str) -> Option<ErrorKind> {
    let started = method != "GET" || path == "servers/*";
    let failed = |ok_to_retry| {
        Some(if started { ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry }) } else { ErrorKind::Cloud })
    };
    match (failure, method) {
        ("429" | "connect", _) => None,
        ("500 once" | "reset before", "GET" | "PUT") => None,
        ("503 after" | "reset after" | "timeout after", _) => None,
        // The object is found by its name.
        ("garbage", "POST" | "PUT") => None,
        ("409" | "500 once" | "500 long" | "reset before", _) => failed(true),
        ("garbage", _) => failed(true),
        // A refusal before the server exists is final; after that, another server may succeed.
        _ => failed(path == "servers/*" || method == "PUT"),
    }
}

#[test]
fn create_vm_fails_with_the_expected_error() {
    let call = || cpi().create_vm(request(small(), vec![manual(), vip()])).map(|created| created.vm);
    let (_host, cloud) = start(properties());
    call().unwrap();
    for (method, path, number) in requests(&cloud) {
        // Floating IPs are read after everything is chosen and before anything is created.
        for (name, fault, times) in failures().into_iter().filter(|_| path != "floatingips") {
            let (_host, cloud) = start(properties());
            fail(&cloud, &method, &path, number, &fault, times);
            let kind = call().map(|_| ()).map_err(|error| error.kind).err();
            assert_eq!(kind, outcome_of(&method, &path, name), "{method} {path} #{number}, {name}");
        }
    }
}

#[test]
fn a_server_whose_answer_got_lost_is_found_by_its_name() {
    let (_host, cloud) = start(properties());
    let reset = Answer::fail(TransportError::Truncated, "connection reset", true);
    cloud.borrow_mut().fault("POST", "servers", 0, Fault::After(reset));
    let vm = cpi().create_vm(request(small(), vec![manual()])).unwrap().vm;
    assert_eq!(cloud.borrow().only("servers")["id"], vm);
    assert_eq!(cloud.borrow().count_requests("POST servers"), 1);
    assert_eq!(cloud.borrow().count_requests("GET servers/detail"), 1);
}

#[test]
fn a_server_whose_answer_and_first_search_failed_is_deleted_when_undoing() {
    let (_host, cloud) = start(properties());
    let reset = || Answer::fail(TransportError::Truncated, "connection reset", true);
    cloud.borrow_mut().fault("POST", "servers", 0, Fault::After(reset()));
    // As often as the search is retried.
    for _ in 0..5 {
        cloud.borrow_mut().fault("GET", "servers/detail", 0, Fault::Before(Answer::text(403, "not now")));
    }
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::VmCreationFailed(_)), "{error}");
    let left = cloud.borrow().left();
    assert!(left.is_empty() || error.message.contains("not certain"), "{error}: {left:?}");
}

#[test]
fn a_server_that_nova_refuses_to_delete_keeps_its_ports() {
    let (_host, cloud) = start(properties());
    server_and_disk(&cloud);
    for _ in 0..20 {
        cloud.borrow_mut().fault("DELETE", "servers/*", 0, Fault::Before(Answer::text(403, "it is locked")));
    }
    let error = cpi().delete_vm("s".into()).unwrap_err();
    assert!(error.message.contains("it is locked"), "{error}");
    assert_eq!((cloud.borrow().all("servers").len(), cloud.borrow().all("ports").len()), (1, 1));
}

#[test]
fn create_vm_waits_as_long_as_retry_after_says() {
    let (host, cloud) = start(properties());
    cloud.borrow_mut().fault("POST", "servers", 0, Fault::Before(Answer::text(429, "").header("retry-after", "7")));
    cpi().create_vm(request(small(), vec![manual()])).unwrap();
    assert_eq!(host.sleeps()[0], 7000);
}

#[test]
fn a_server_in_status_error_is_deleted_and_the_error_has_its_fault() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().broken = Some("No valid host was found.".into());
    let boot = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
    let error = cpi().create_vm(request(boot, vec![manual(), vip()])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: true }));
    assert!(error.message.contains("No valid host was found."), "{error}");
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn the_error_names_what_could_not_be_undone() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().broken = Some("No valid host was found.".into());
    for _ in 0..20 {
        cloud.borrow_mut().fault("DELETE", "ports/*", 0, Fault::Before(Answer::text(500, "down")));
    }
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: false }));
    assert!(error.message.contains("not certain that all of it was undone: deleting port ports-1"), "{error}");
}

#[test]
fn a_refusal_of_the_agent_settings_fails_create_vm() {
    let refused = wasm_cpi_sdk::bindings::bosh::cpi::agent::Error::Refused("too large".into());
    let (_host, cloud) = start_with(properties(), |fake| fake.fail_agent(refused));
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: false }));
    assert!(error.message.contains("too large"), "{error}");
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn delete_vm_succeeds_or_returns_a_cloud_error() {
    matrix(
        |fake| fake,
        server_and_disk,
        || cpi().delete_vm("s".into()).map(|()| String::new()),
        |case, outcome, cloud| {
            let cloud = cloud.borrow();
            match outcome {
                Ok(_) => assert!(cloud.all("servers").is_empty() && cloud.all("ports").is_empty(), "{case}"),
                Err(error) => assert_eq!(error.kind, ErrorKind::Cloud, "{case}: {error}"),
            }
            assert_eq!(cloud.all("volumes").len(), 1, "{case}: disks stay");
        },
    );
}

/// Ports lose the ID of their server when it is deleted.
#[test]
fn a_vm_is_not_deleted_before_its_ports_are_known() {
    let (_host, cloud) = start(properties());
    server_and_disk(&cloud);
    cloud.borrow_mut().fault("GET", "ports", 0, Fault::Before(Answer::text(200, "<html>")));
    let error = cpi().delete_vm("s".into()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cloud, "{error}");
    assert_eq!(cloud.borrow().all("servers").len(), 1);
    cpi().delete_vm("s".into()).unwrap();
    assert!(cloud.borrow().all("servers").is_empty() && cloud.borrow().all("ports").is_empty());
}

#[test]
fn a_port_whose_answer_and_search_failed_is_deleted_when_undoing() {
    for (searches, certain) in [(5, true), (50, false)] {
        let (_host, cloud) = start(properties());
        let reset = Answer::fail(TransportError::Truncated, "connection reset", true);
        cloud.borrow_mut().fault("POST", "ports", 0, Fault::After(reset));
        for _ in 0..searches {
            cloud.borrow_mut().fault("GET", "ports", 0, Fault::Before(Answer::text(503, "down")));
        }
        let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
        assert_eq!(error.kind, ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: certain }), "{error}");
        assert_eq!(cloud.borrow().left().is_empty(), certain, "{error}");
        assert_eq!(error.message.contains("it is not known whether port vm-"), !certain, "{error}");
    }
}

#[test]
fn a_soft_deleted_server_is_force_deleted() {
    let (_host, cloud) = start(properties());
    let boot = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
    cloud.borrow_mut().soft_deletes = true;
    let vm = cpi().create_vm(request(boot, vec![manual()])).unwrap().vm;
    cpi().delete_vm(vm).unwrap();
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
    // One that was soft-deleted by another client.
    cloud.borrow_mut().put("servers", "s", json!({"status": "SOFT_DELETED", "name": "vm-x", "image": {"id": "i"}}));
    assert_eq!(cpi().has_vm("s".into()), Ok(false));
    cpi().delete_vm("s".into()).unwrap();
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn the_error_says_that_a_soft_deleted_server_could_not_be_force_deleted() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().soft_deletes = true;
    let vm = cpi().create_vm(request(small(), vec![manual()])).unwrap().vm;
    for _ in 0..5 {
        cloud.borrow_mut().fault("POST", "servers/*/action", 0, Fault::Before(Answer::text(403, "not yours")));
    }
    let error = cpi().delete_vm(vm).unwrap_err();
    assert!(
        error.message.contains("is soft-deleted, but deleting it at once failed")
            && error.message.contains("not yours"),
        "{error}"
    );
}

#[test]
fn a_network_that_neutron_does_not_know_is_explained_after_its_message() {
    let (_host, cloud) = start(properties());
    let unknown = json!({"NeutronError": {"type": "NetworkNotFound", "message": "Network n could not be found."}});
    cloud.borrow_mut().fault("POST", "ports", 0, Fault::Before(Answer::json(404, unknown)));
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert!(error.message.contains("could not be found.; check that net_id is the ID of a network"), "{error}");
}
