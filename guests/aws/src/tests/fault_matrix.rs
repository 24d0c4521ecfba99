//! Every request of `create_vm` in three variants, and of `delete_vm`, with every kind of fault: what is left in the
//! cloud, and whether the call succeeds.

use std::rc::Rc;

use serde_json::{Value, json};
use wasm_cpi_sdk::bindings::bosh::cpi::http::ErrorKind as Transport;
use wasm_cpi_sdk::fake::{Answer, Fake, Installed};
use wasm_cpi_sdk::{Cpi, Error, Json, Network};

use super::answers::{answer, failure_with};
use super::cloud::{Cloud, Fault, Shared};
use super::{cpi, manual, network, properties, request, small, vip, with};

/// The kinds of faults, and true for those that a call survives.
fn faults() -> Vec<(&'static str, Fault, bool)> {
    let status = |status, code| answer(&failure_with(status, code, "A fault."));
    let lost = |sent| Answer::fail(Transport::Timeout, "no answer in time", sent);
    vec![
        ("not sent", Fault::Before(lost(false)), true),
        ("lost before it is processed", Fault::Before(lost(true)), true),
        ("lost after it is processed", Fault::After(lost(true)), true),
        ("throttled", Fault::Before(status(503, "RequestLimitExceeded")), true),
        ("internal error before it is processed", Fault::Before(status(500, "InternalError")), true),
        ("internal error after it is processed", Fault::After(status(500, "InternalError")), true),
        ("refused", Fault::Before(status(403, "UnauthorizedOperation")), false),
        ("not an answer", Fault::After(Answer::text(200, "<html>")), false),
    ]
}

/// A VM with everything that points to one, a VM with several networks, and a spot instance.
fn variants() -> Vec<(&'static str, Value, Vec<Network>)> {
    let all = with(small(), "security_groups", json!(["web"]));
    let all = with(all, "elbs", json!(["elb-1"]));
    let all = with(all, "lb_target_groups", json!(["tg"]));
    let all = with(all, "source_dest_check", json!(false));
    let all = with(all, "advertised_routes", json!([{"table_id": "rtb-1", "destination": "10.9.0.0/16"}]));
    let other = network("other", "manual", Some("10.0.1.5"), json!({"subnet": "subnet-2"}));
    let mut prefix = network("prefix", "manual", Some("10.0.0.16"), json!({"subnet": "subnet-1"}));
    prefix.prefix = Some("28".to_owned());
    prefix.extra = Json::raw(r#"{"nic_group": "default"}"#);
    let spot = with(small(), "spot_bid_price", json!(0.01));
    vec![
        ("everything", all, vec![manual(), vip()]),
        ("several networks", with(small(), "auto_assign_public_ip", json!(true)), vec![manual(), prefix, other]),
        ("spot", with(spot, "spot_ondemand_fallback", json!(true)), vec![manual()]),
    ]
}

fn start(fault: Option<(usize, Fault)>) -> (Installed, Shared) {
    let cloud = Cloud::shared(fault);
    let behind = Rc::clone(&cloud);
    let fake = Fake::new().properties(properties()).serve(move |request| behind.borrow_mut().answer(request));
    (fake.install(), cloud)
}

/// Creates a VM, with a fault at this request, and returns the outcome and the cloud.
fn create(variant: &(&str, Value, Vec<Network>), fault: Option<(usize, Fault)>) -> (Result<String, Error>, Shared) {
    let (_host, cloud) = start(fault);
    let created = cpi().create_vm(request(variant.1.clone(), variant.2.clone()));
    (created.map(|created| created.vm), cloud)
}

#[test]
fn whatever_fails_once_while_a_vm_is_created_nothing_is_left() {
    for variant in variants() {
        let (created, cloud) = create(&variant, None);
        created.unwrap();
        let requests = cloud.borrow().seen.clone();
        assert!(requests.len() >= 4, "{requests:?}");
        for (number, operation) in requests.iter().enumerate() {
            for (fault, answer, is_survived) in faults() {
                let cell = format!("{}, request {number} ({operation}), {fault}", variant.0);
                let (created, cloud) = create(&variant, Some((number, answer.clone())));
                match created {
                    Ok(vm) => {
                        // The spot launch falls back, and an assignment is looked up.
                        let is_checked = ["RunInstances", "AssignPrivateIpAddresses"].contains(&operation.as_str());
                        assert!(is_survived || is_checked, "{cell}: the call succeeded");
                        delete(&cloud, &vm, &cell);
                    }
                    Err(error) => {
                        assert!(!is_survived, "{cell}: {error}");
                        assert!(!error.message.contains("not certain"), "{cell}: {error}");
                        assert_eq!(cloud.borrow().left(), Vec::<String>::new(), "{cell}: {error}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_outage_leaves_only_what_the_error_says() {
    for variant in variants() {
        let (created, cloud) = create(&variant, None);
        created.unwrap();
        let count = cloud.borrow().seen.len();
        for number in 0..count {
            let (_host, cloud) = start(None);
            cloud.borrow_mut().outage = Some(number);
            let error = cpi().create_vm(request(variant.1.clone(), variant.2.clone())).unwrap_err();
            let left = cloud.borrow().left();
            let cell = format!("{}, from request {number}: {left:?}", variant.0);
            assert!(
                left.is_empty() || error.message.contains("it is not certain that all of it was undone"),
                "{cell}: {error}"
            );
            for vm in left.iter().filter(|left| left.starts_with("i-")) {
                assert!(error.message.contains(vm.as_str()) || error.message.contains("VM vm-"), "{cell}: {error}");
            }
        }
    }
}

/// Deletes a VM in this cloud, and expects that nothing is left.
fn delete(cloud: &Shared, vm: &str, cell: &str) {
    cloud.borrow_mut().fault = None;
    let behind = Rc::clone(cloud);
    let _host =
        Fake::new().properties(properties()).serve(move |request| behind.borrow_mut().answer(request)).install();
    cpi().delete_vm(vm.to_owned()).unwrap_or_else(|error| panic!("{cell}: {error}"));
    assert_eq!(cloud.borrow().left(), Vec::<String>::new(), "{cell}");
}

#[test]
fn whatever_fails_once_while_a_vm_is_deleted_it_is_deleted_now_or_by_the_next_call() {
    let variant = variants().remove(0);
    let (created, cloud) = create(&variant, None);
    let vm = created.unwrap();
    let before = cloud.borrow().seen.len();
    delete(&cloud, &vm, "no fault");
    let count = cloud.borrow().seen.len() - before;
    assert!(count >= 8);
    for number in 0..count {
        for (fault, answer, is_survived) in faults() {
            let (created, cloud) = create(&variant, None);
            let vm = created.unwrap();
            let at = cloud.borrow().seen.len() + number;
            cloud.borrow_mut().fault = Some((at, answer));
            let behind = Rc::clone(&cloud);
            let fake = Fake::new().properties(properties());
            let host = fake.serve(move |request| behind.borrow_mut().answer(request)).install();
            let outcome = cpi().delete_vm(vm.clone());
            drop(host);
            let cell = format!("request {number} ({}), {fault}", cloud.borrow().seen[at]);
            assert!(outcome.is_ok() || !is_survived, "{cell}: {outcome:?}");
            if outcome.is_err() {
                delete(&cloud, &vm, &cell);
            }
            // Load balancers and routes forget an instance that has ended.
            let left = cloud.borrow().left();
            assert!(left.iter().all(|left| *left == vm || left.ends_with(&format!(" to {vm}"))), "{cell}: {left:?}");
            assert!(!left.contains(&vm) || fault == "refused" || fault == "not an answer", "{cell}: {left:?}");
        }
    }
}
