//! Failures of the cloud: every request of a method fails in every way. A method
//! succeeds or returns the expected error, and in both cases no unknown object is
//! left in the cloud.

mod disks;
mod networks;
mod stemcells;
mod vms;

use serde_json::json;
use wasm_cpi_sdk::fake::{Answer, Fake};
use wasm_cpi_sdk::http::{Denial, TransportError};
use wasm_cpi_sdk::{Cpi, Error, ErrorKind, Json, RetryAdvice};

use super::cloud::{Fault, Shared};
use super::{cpi, manual, properties, request, small, start, start_with, vip};

/// Returns all failures: name, fault, and how often it occurs in a row. Five is one
/// more than the number of retries.
pub(super) fn failures() -> Vec<(&'static str, Fault, usize)> {
    let reset = || Answer::fail(TransportError::Truncated, "connection reset", true);
    let error = |status| Answer::json(status, json!({"computeFault": {"message": "it failed"}}));
    vec![
        ("500 once", Fault::Before(error(500)), 1),
        ("500 long", Fault::Before(error(500)), 5),
        ("503 after", Fault::After(error(503)), 1),
        ("429", Fault::Before(error(429).header("retry-after", "7")), 1),
        ("reset before", Fault::Before(reset()), 1),
        ("reset after", Fault::After(reset()), 1),
        ("timeout after", Fault::After(Answer::fail(TransportError::Timeout, "no answer", true)), 1),
        ("connect", Fault::Before(Answer::fail(TransportError::Connect, "refused", false)), 1),
        ("garbage", Fault::After(Answer::text(202, "<html>")), 1),
        ("403", Fault::Before(error(403)), 1),
        ("409", Fault::Before(error(409)), 1),
        ("denied", Fault::Before(Answer::fail(TransportError::Denied(Denial::Path), "denied", false)), 1),
    ]
}

/// Returns all requests, each with its number among equal requests.
pub(super) fn requests(cloud: &Shared) -> Vec<(String, String, usize)> {
    let seen: Vec<String> = cloud.borrow().seen.iter().map(|line| pattern(line)).collect();
    let count = |at: usize| seen[..at].iter().filter(|line| **line == seen[at]).count();
    let mut all = vec![];
    for (at, line) in seen.iter().enumerate() {
        let (method, path) = line.split_once(' ').unwrap();
        all.push((method.to_owned(), path.to_owned(), count(at)));
    }
    all
}

/// Turns `GET servers/servers-3` into `GET servers/*`.
fn pattern(line: &str) -> String {
    let fixed = ["detail", "action", "metadata", "file", "os-volume_attachments", "tags", "members"];
    let (method, path) = line.split_once(' ').unwrap();
    let parts: Vec<&str> = path.split('/').collect();
    let part =
        |(at, part): (usize, &&str)| if at == 0 || fixed.contains(part) { (*part).to_owned() } else { "*".into() };
    format!("{method} {}", parts.iter().enumerate().map(part).collect::<Vec<_>>().join("/"))
}

/// Adds a fault to the nth request and the following ones, `times` in all.
pub(super) fn fail(cloud: &Shared, method: &str, path: &str, nth: usize, fault: &Fault, times: usize) {
    for after in std::iter::once(nth).chain(std::iter::repeat_n(0, times - 1)) {
        cloud.borrow_mut().fault(method, path, after, fault.clone());
    }
}

/// Runs `call` with each failure in each of its requests. `prepare` sets up the
/// cloud, and `check` checks the outcome.
fn matrix(
    fake: fn(Fake) -> Fake,
    prepare: fn(&Shared),
    call: fn() -> Result<String, Error>,
    check: fn(&str, Result<String, Error>, &Shared),
) {
    let prepared = || {
        let (host, cloud) = start_with(properties(), fake);
        prepare(&cloud);
        (host, cloud)
    };
    let (_host, cloud) = prepared();
    call().unwrap();
    for (method, path, number) in requests(&cloud) {
        for (name, fault, times) in failures() {
            let (_host, cloud) = prepared();
            fail(&cloud, &method, &path, number, &fault, times);
            check(&format!("{method} {path} #{number}, {name}"), call(), &cloud);
        }
    }
}

#[test]
fn an_ending_call_undoes_what_it_created() {
    for (name, call) in [
        (
            "create_vm",
            (|| cpi().create_vm(request(small(), vec![manual(), vip()])).map(drop)) as fn() -> Result<(), Error>,
        ),
        ("create_disk", || cpi().create_disk(2048, Json::default(), None).map(drop)),
        ("snapshot_disk", || cpi().snapshot_disk("d".into(), vec![]).map(drop)),
        ("attach_disk", || cpi().attach_disk("s".into(), "d".into()).map(drop)),
    ] {
        for after_ms in [0, 100, 300, 700] {
            let (_host, cloud) = start_with(properties(), |fake| fake.end_after_ms(after_ms));
            let needs_disk = matches!(name, "snapshot_disk" | "attach_disk");
            if needs_disk {
                server_and_disk(&cloud);
            }
            cloud.borrow_mut().slow = 3;
            let error = call().unwrap_err();
            if name == "create_vm" {
                assert_eq!(error.kind, ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: false }), "{error}");
            }
            assert!(error.message.contains("the call is ending"), "{error}");
            let cloud = cloud.borrow();
            if needs_disk {
                assert_eq!(cloud.get("volumes", "d")["attachments"], json!([]), "{name} {after_ms}");
                assert!(cloud.all("snapshots").is_empty(), "{name} {after_ms}");
            } else {
                assert_eq!(cloud.left(), Vec::<String>::new(), "{name} {after_ms}");
            }
        }
    }
}

fn server_and_disk(cloud: &Shared) {
    let server = json!({"name": "vm-x", "status": "ACTIVE", "metadata": {}, "image": {"id": "i"},
        "flavor": {"id": "flavor-m1.small"}});
    cloud.borrow_mut().put("servers", "s", server);
    let volume = json!({"status": "available", "name": "volume-d", "size": 2, "attachments": [], "bootable": "false"});
    cloud.borrow_mut().put("volumes", "d", volume);
    cloud.borrow_mut().put("ports", "p", json!({"device_id": "s"}));
}

#[test]
fn other_methods_succeed_despite_transient_failures() {
    for call in [
        (|| cpi().delete_disk("d".into())) as fn() -> Result<(), Error>,
        || cpi().resize_disk("d".into(), 4096),
        || cpi().update_disk("d".into(), 4096, Json::from(json!({"type": "u"}))).map(drop),
        || cpi().reboot_vm("s".into()),
        || cpi().set_vm_metadata("s".into(), vec![("a".into(), "b".into())]),
        || cpi().set_disk_metadata("d".into(), vec![("a".into(), "b".into())]),
        || cpi().detach_disk("s".into(), "d".into()),
        || cpi().get_disks("s".into()).map(drop),
    ] {
        let (_host, cloud) = start(properties());
        server_and_disk(&cloud);
        call().unwrap();
        for (method, path, number) in requests(&cloud) {
            for (name, fault, times) in failures() {
                let (_host, cloud) = start(properties());
                server_and_disk(&cloud);
                fail(&cloud, &method, &path, number, &fault, times);
                let outcome = call();
                // These failures are retried, as repeating the request is harmless.
                let transient =
                    ["500 once", "503 after", "429", "connect", "reset before", "reset after", "timeout after"];
                if transient.contains(&name) {
                    assert_eq!(outcome, Ok(()), "{method} {path}, {name}");
                }
            }
        }
    }
}
