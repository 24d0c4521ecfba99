//! Failures of `create_vm` and `delete_vm`.

use serde_json::json;
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::http::ErrorKind as HttpErrorKind;
use wasm_cpi_sdk::{Cpi, ErrorKind};

use super::super::cloud::Fault;
use super::super::{cpi, manual, properties, request, small, start, start_with, vip};
use super::{fail, failures, matrix, requests, server_and_disk};

#[test]
fn a_vm_is_made_or_leaves_nothing() {
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
                let begun = cloud.borrow().asked("POST ports") > 0 || case.contains("floatingips");
                let made = matches!(error.kind, ErrorKind::VmCreationFailed(_));
                assert_eq!(made, begun, "{case}: {error:?}");
            }
        },
    );
}

#[test]
fn a_vm_that_boots_from_a_volume_leaves_none() {
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

/// The table: what each failure in each kind of request makes of `create_vm`.
/// `None` is a VM.
fn outcome_of(method: &str, path: &str, failure: &str) -> Option<ErrorKind> {
    let begun = method != "GET" || path == "servers/*";
    let failed = |retry| Some(if begun { ErrorKind::VmCreationFailed(retry) } else { ErrorKind::Cloud });
    match (failure, method) {
        ("429" | "connect", _) => None,
        ("500 once" | "reset before", "GET" | "PUT") => None,
        ("503 after" | "reset after" | "timeout after", _) => None,
        // Found by its name.
        ("garbage", "POST" | "PUT") => None,
        ("409" | "500 once" | "500 long" | "reset before", _) => failed(true),
        ("garbage", _) => failed(true),
        // What is refused before there is a server is refused for good; later, another server may fare better.
        _ => failed(path == "servers/*" || method == "PUT"),
    }
}

#[test]
fn create_vm_fails_as_the_table_says() {
    let call = || cpi().create_vm(request(small(), vec![manual(), vip()])).map(|created| created.vm);
    let (_host, cloud) = start(properties());
    call().unwrap();
    for (method, path, number) in requests(&cloud) {
        // Floating IPs are looked at between what is chosen and what is made.
        for (name, fault, times) in failures().into_iter().filter(|_| path != "floatingips") {
            let (_host, cloud) = start(properties());
            fail(&cloud, &method, &path, number, &fault, times);
            let kind = call().map(|_| ()).map_err(|error| error.kind).err();
            assert_eq!(kind, outcome_of(&method, &path, name), "{method} {path} #{number}, {name}");
        }
    }
}

#[test]
fn a_lost_answer_to_a_new_server_finds_it_again() {
    let (_host, cloud) = start(properties());
    let reset = Answer::fail(HttpErrorKind::Truncated, "connection reset", true);
    cloud.borrow_mut().fault("POST", "servers", 0, Fault::After(reset));
    let vm = cpi().create_vm(request(small(), vec![manual()])).unwrap().vm;
    assert_eq!(cloud.borrow().only("servers")["id"], vm);
    assert_eq!(cloud.borrow().asked("POST servers"), 1);
    assert_eq!(cloud.borrow().asked("GET servers/detail"), 1);
}

#[test]
fn a_server_whose_answer_and_first_search_got_lost_is_found_when_undoing() {
    let (_host, cloud) = start(properties());
    let reset = || Answer::fail(HttpErrorKind::Truncated, "connection reset", true);
    cloud.borrow_mut().fault("POST", "servers", 0, Fault::After(reset()));
    // As often as a search is repeated by itself.
    for _ in 0..5 {
        cloud.borrow_mut().fault("GET", "servers/detail", 0, Fault::Before(Answer::text(403, "not now")));
    }
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::VmCreationFailed(_)), "{error}");
    let left = cloud.borrow().left();
    assert!(left.is_empty() || error.message.contains("not certain"), "{error}: {left:?}");
}

#[test]
fn a_server_that_the_cloud_keeps_keeps_its_ports() {
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
fn retry_after_is_waited_for() {
    let (host, cloud) = start(properties());
    cloud.borrow_mut().fault("POST", "servers", 0, Fault::Before(Answer::text(429, "").header("retry-after", "7")));
    cpi().create_vm(request(small(), vec![manual()])).unwrap();
    assert_eq!(host.sleeps()[0], 7000);
}

#[test]
fn a_server_in_error_is_told_in_the_clouds_words_and_taken_away() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().broken = Some("No valid host was found.".into());
    let boot = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
    let error = cpi().create_vm(request(boot, vec![manual(), vip()])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::VmCreationFailed(true));
    assert!(error.message.contains("No valid host was found."), "{error}");
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn a_vm_that_cannot_be_undone_says_what_is_left() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().broken = Some("No valid host was found.".into());
    for _ in 0..20 {
        cloud.borrow_mut().fault("DELETE", "ports/*", 0, Fault::Before(Answer::text(500, "down")));
    }
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::VmCreationFailed(false));
    assert!(error.message.contains("not certain that all of it was undone: deleting port ports-1"), "{error}");
}

#[test]
fn an_agent_that_cannot_be_told_costs_the_vm() {
    let refused = wasm_cpi_sdk::bindings::bosh::cpi::agent::Error::Refused("too large".into());
    let (_host, cloud) = start_with(properties(), |fake| fake.fail_agent(refused));
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::VmCreationFailed(false));
    assert!(error.message.contains("too large"), "{error}");
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn a_vm_is_deleted_or_the_error_says_not() {
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

/// Ports forget whose they were when their server goes.
#[test]
fn a_vm_whose_ports_are_not_known_stays_for_another_try() {
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
fn a_port_whose_answer_and_search_got_lost_is_found_when_undoing() {
    for (searches, certain) in [(5, true), (50, false)] {
        let (_host, cloud) = start(properties());
        let reset = Answer::fail(HttpErrorKind::Truncated, "connection reset", true);
        cloud.borrow_mut().fault("POST", "ports", 0, Fault::After(reset));
        for _ in 0..searches {
            cloud.borrow_mut().fault("GET", "ports", 0, Fault::Before(Answer::text(503, "down")));
        }
        let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
        assert_eq!(error.kind, ErrorKind::VmCreationFailed(certain), "{error}");
        assert_eq!(cloud.borrow().left().is_empty(), certain, "{error}");
        assert_eq!(error.message.contains("whether there is a port vm-"), !certain, "{error}");
    }
}

#[test]
fn a_server_that_the_cloud_keeps_for_a_while_is_deleted_for_good() {
    let (_host, cloud) = start(properties());
    let boot = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
    cloud.borrow_mut().soft_deletes = true;
    let vm = cpi().create_vm(request(boot, vec![manual()])).unwrap().vm;
    cpi().delete_vm(vm).unwrap();
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
    // One that was left so by somebody else.
    cloud.borrow_mut().put("servers", "s", json!({"status": "SOFT_DELETED", "name": "vm-x", "image": {"id": "i"}}));
    assert_eq!(cpi().has_vm("s".into()), Ok(false));
    cpi().delete_vm("s".into()).unwrap();
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn a_server_that_must_be_kept_is_told() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().soft_deletes = true;
    let vm = cpi().create_vm(request(small(), vec![manual()])).unwrap().vm;
    for _ in 0..5 {
        cloud.borrow_mut().fault("POST", "servers/*/action", 0, Fault::Before(Answer::text(403, "not yours")));
    }
    let error = cpi().delete_vm(vm).unwrap_err();
    assert!(
        error.message.contains("but the cloud keeps it for a while") && error.message.contains("not yours"),
        "{error}"
    );
}
