//! What happens when the cloud fails: every request of a method, with every
//! kind of failure. A method ends well or with the error of its table, and in
//! both cases nothing is left that nobody knows of.

use serde_json::json;
use wasm_cpi_sdk::fake::{Answer, Fake};
use wasm_cpi_sdk::http::{Denial, ErrorKind as HttpErrorKind};
use wasm_cpi_sdk::{Cpi, Error, ErrorKind, Json};

use super::cloud::{Fault, Shared};
use super::{cpi, manual, properties, request, small, start, start_with, vip, with};

/// One failure: its name, how it meets a request, and how often in a row; five
/// are one more than the retries.
fn failures() -> Vec<(&'static str, Fault, usize)> {
    let reset = || Answer::fail(HttpErrorKind::Truncated, "connection reset", true);
    let error = |status| Answer::json(status, json!({"computeFault": {"message": "it failed"}}));
    vec![
        ("500 once", Fault::Before(error(500)), 1),
        ("500 long", Fault::Before(error(500)), 5),
        ("503 after", Fault::After(error(503)), 1),
        ("429", Fault::Before(error(429).header("retry-after", "7")), 1),
        ("reset before", Fault::Before(reset()), 1),
        ("reset after", Fault::After(reset()), 1),
        ("timeout after", Fault::After(Answer::fail(HttpErrorKind::Timeout, "no answer", true)), 1),
        ("connect", Fault::Before(Answer::fail(HttpErrorKind::Connect, "refused", false)), 1),
        ("garbage", Fault::After(Answer::text(202, "<html>")), 1),
        ("403", Fault::Before(error(403)), 1),
        ("409", Fault::Before(error(409)), 1),
        ("denied", Fault::Before(Answer::fail(HttpErrorKind::Denied(Denial::Path), "denied", false)), 1),
    ]
}

/// The requests of a method that succeeds, each with its number among equals.
fn requests(cloud: &Shared) -> Vec<(String, String, usize)> {
    let seen: Vec<String> = cloud.borrow().seen.iter().map(|line| pattern(line)).collect();
    let count = |at: usize| seen[..at].iter().filter(|line| **line == seen[at]).count();
    let mut all = vec![];
    for (at, line) in seen.iter().enumerate() {
        let (method, path) = line.split_once(' ').unwrap();
        all.push((method.to_owned(), path.to_owned(), count(at)));
    }
    all
}

/// `GET servers/servers-3` as `GET servers/*`.
fn pattern(line: &str) -> String {
    let fixed = ["detail", "action", "metadata", "file", "os-volume_attachments", "tags"];
    let (method, path) = line.split_once(' ').unwrap();
    let parts: Vec<&str> = path.split('/').collect();
    let part =
        |(at, part): (usize, &&str)| if at == 0 || fixed.contains(part) { (*part).to_owned() } else { "*".into() };
    format!("{method} {}", parts.iter().enumerate().map(part).collect::<Vec<_>>().join("/"))
}

/// From the nth request on, `times` in a row.
fn fail(cloud: &Shared, method: &str, path: &str, nth: usize, fault: &Fault, times: usize) {
    for after in std::iter::once(nth).chain(std::iter::repeat_n(0, times - 1)) {
        cloud.borrow_mut().fault(method, path, after, fault.clone());
    }
}

/// Runs `call` with each failure in each of its requests. `prepare` sets up the
/// cloud, and `check` judges what came of it.
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
fn an_upload_that_breaks_off_begins_again() {
    let (_host, cloud) = start_with(properties(), |fake| fake.image_member("root.img", "data"));
    let reset = || Fault::Before(Answer::fail(HttpErrorKind::Protocol, "connection reset", true));
    for _ in 0..2 {
        cloud.borrow_mut().fault("PUT", "images/*/file", 0, reset());
    }
    let id = cpi().create_stemcell(Json::default(), vec![]).unwrap();
    assert_eq!(cloud.borrow().get("images", &id)["status"], "active");
    assert_eq!(cloud.borrow().asked("PUT images"), 3);
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
fn a_lost_answer_to_deleting_an_image_is_no_image_that_was_not_there() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().put("images", "i", json!({"id": "i", "status": "active"}));
    let reset = Answer::fail(HttpErrorKind::Truncated, "connection reset", true);
    cloud.borrow_mut().fault("DELETE", "images/*", 0, Fault::After(reset));
    cpi().delete_stemcell("i".into()).unwrap();
    assert!(!cloud.borrow().all("images").iter().any(|image| image["id"] == "i"));
    assert!(cpi().delete_stemcell("i".into()).is_err());
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
fn a_call_that_ends_takes_back_what_it_began() {
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
            let (_host, cloud) = start_with(properties(), |fake| fake.end_after_ms(after_ms, "SIGTERM"));
            let needs_disk = matches!(name, "snapshot_disk" | "attach_disk");
            if needs_disk {
                server_and_disk(&cloud);
            }
            cloud.borrow_mut().slow = 3;
            let error = call().unwrap_err();
            if name == "create_vm" {
                assert_eq!(error.kind, ErrorKind::VmCreationFailed(false), "{error}");
            }
            assert!(error.message.contains("SIGTERM"), "{error}");
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
fn what_goes_on_already_is_not_refused() {
    let reset = || Fault::After(Answer::fail(HttpErrorKind::Truncated, "connection reset", true));
    let (_host, cloud) = start(properties());
    server_and_disk(&cloud);
    cpi().attach_disk("s".into(), "d".into()).unwrap();
    let snapshot = cpi().snapshot_disk("d".into(), vec![]).unwrap();
    for path in ["servers/*/os-volume_attachments/*", "snapshots/*", "volumes/*"] {
        cloud.borrow_mut().fault("DELETE", path, 0, reset());
    }
    cpi().detach_disk("s".into(), "d".into()).unwrap();
    cpi().delete_snapshot(snapshot).unwrap();
    cpi().delete_disk("d".into()).unwrap();
    assert!(cloud.borrow().all("volumes").is_empty() && cloud.borrow().all("snapshots").is_empty());
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
fn a_disk_is_attached_or_the_error_says_not() {
    matrix(
        |fake| fake,
        server_and_disk,
        || cpi().attach_disk("s".into(), "d".into()).map(|_| String::new()),
        |case, outcome, cloud| {
            let volume = cloud.borrow().get("volumes", "d");
            match outcome {
                Ok(_) => assert_eq!(volume["attachments"][0]["server_id"], "s", "{case}"),
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Cloud, "{case}");
                    assert!(volume["attachments"] == json!([]), "{case}: {volume}");
                }
            }
        },
    );
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
fn an_upload_whose_token_is_not_taken_is_begun_again() {
    let (_host, cloud) = start_with(properties(), |fake| fake.image_member("root.img", "data"));
    cloud.borrow_mut().fault("PUT", "images/*/file", 0, Fault::Before(Answer::text(401, "")));
    let id = cpi().create_stemcell(Json::from(json!({"disk_format": "raw"})), vec![]).unwrap();
    assert_eq!(cloud.borrow().get("images", &id)["status"], "active");
}

#[test]
fn a_stemcell_is_uploaded_or_leaves_no_image() {
    matrix(
        |fake| fake.image_member("root.img", "data"),
        |_| {},
        || cpi().create_stemcell(Json::from(json!({"disk_format": "raw"})), vec![]),
        |case, outcome, cloud| match outcome {
            Ok(id) => assert_eq!(cloud.borrow().get("images", &id)["status"], "active", "{case}"),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Cloud, "{case}");
                assert!(cloud.borrow().left().is_empty(), "{case}: {error}");
            }
        },
    );
}

#[test]
fn a_disk_or_snapshot_is_made_or_leaves_nothing() {
    matrix(
        |fake| fake,
        |_| {},
        || cpi().create_disk(2048, Json::default(), None),
        |case, outcome, cloud| match outcome {
            Ok(id) => assert_eq!(cloud.borrow().only("volumes")["id"], id, "{case}"),
            Err(_) => assert!(cloud.borrow().left().is_empty(), "{case}"),
        },
    );
    matrix(
        |fake| fake,
        server_and_disk,
        || cpi().snapshot_disk("d".into(), vec![]),
        |case, outcome, cloud| match outcome {
            Ok(id) => assert_eq!(cloud.borrow().only("snapshots")["id"], id, "{case}"),
            Err(_) => assert!(cloud.borrow().all("snapshots").is_empty(), "{case}"),
        },
    );
}

#[test]
fn the_rest_is_certain_or_an_error() {
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
                // What passes is no reason to fail where asking twice is harmless.
                let passes =
                    ["500 once", "503 after", "429", "connect", "reset before", "reset after", "timeout after"];
                if passes.contains(&name) {
                    assert_eq!(outcome, Ok(()), "{method} {path}, {name}");
                }
            }
        }
    }
}

#[test]
fn quota_of_volumes_is_no_disk_space() {
    let (_host, cloud) = start(with(json!({})));
    let quota = json!({"overLimit": {"code": 413, "message": "VolumeSizeExceedsAvailableQuota"}});
    cloud.borrow_mut().fault("POST", "volumes", 0, Fault::Before(Answer::json(413, quota)));
    let error = cpi().create_disk(2048, Json::default(), None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoDiskSpace(false));
    assert!(error.message.contains("VolumeSizeExceedsAvailableQuota"), "{error}");
}
