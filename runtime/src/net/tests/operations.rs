//! An API with one path: slots and records by operation.

use super::fixture::{Fixture, Running, request};
use super::gates::{PASSWORD, grant, refusal, with_password};
use super::server::{Seen, Server, kept_response, response};
use crate::image::{Image, ImagePart};
use crate::net::error::HttpErrorKind;
use crate::net::gate::{GuestBody, GuestBodyPart, GuestRequest};
use serde_json::{Value, json};
use std::sync::Arc;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::DenialReason;

/// A server that answers each request with `vm-1`, `vm-2`, … and the number of its connections.
fn cloud() -> Server {
    Server::raw(|mut stream, seen| {
        use std::io::Write as _;
        while let Some(request) = super::server::read_request(&mut stream) {
            let number = {
                let mut seen = seen.lock().unwrap();
                seen.push(request);
                seen.len()
            };
            let body = json!({"id": format!("vm-{number}"), "image": "img-1", "note": "n"}).to_string();
            let _ = stream.write_all(&kept_response("200 OK", "Content-Type: application/json\r\n", &body));
        }
    })
}

fn one_path(server: &Server) -> Value {
    let mut grant = grant(server, None);
    grant["paths"] = json!(["/"]);
    grant["operations"] =
        json!({"in": "form:Action", "allow": ["Run", "Tag", "DescribeAll"], "read_only": ["Describe*"]});
    grant["slots"] = json!([{"method": "POST", "path": "/", "operation": "Run", "place": "form:UserData",
        "takes": ["password"], "show": ["json:/id", "json:/image"]}]);
    grant
}

fn start(server: &Server) -> Running {
    with_password(Fixture::new(json!([one_path(server)]))).start()
}

fn form(server: &Server, body: &str) -> GuestRequest {
    let headers = vec![("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
    GuestRequest { headers, body: GuestBody::Bytes(body.into()), ..request("POST", server.url("/")) }
}

fn bodies(server: &Server) -> Vec<String> {
    let body = |seen: &Seen| String::from_utf8(seen.body.clone()).unwrap();
    server.requests().iter().map(body).collect()
}

#[test]
fn a_slot_is_filled_only_in_requests_of_its_operation() {
    let server = cloud();
    let running = start(&server);
    let seal = running.visible["password"].as_str().unwrap().to_owned();
    for (body, reason, check) in [
        (format!("Action=Tag&UserData={seal}"), DenialReason::Slot, Check::SealOutsideSlot),
        (format!("Action=DescribeAll&UserData={seal}"), DenialReason::Slot, Check::SealOutsideSlot),
        (format!("Action=Run&Name={seal}"), DenialReason::Slot, Check::SealOutsideSlot),
        (format!("Action=Stop&UserData={seal}"), DenialReason::Operation, Check::GrantOperation),
        (format!("UserData={seal}"), DenialReason::Operation, Check::GrantOperation),
        (format!("Action={seal}&UserData=x"), DenialReason::Operation, Check::GrantOperation),
        (format!("Action=Run&Action=Tag&UserData={seal}"), DenialReason::Operation, Check::PlaceOnce),
        (format!("Action=Run&UserData={seal}&UserData={seal}"), DenialReason::Operation, Check::FieldTwice),
    ] {
        let error = refusal(running.send(form(&server, &body)));
        assert_eq!(
            (error.kind, error.check, error.sent),
            (HttpErrorKind::Denied(reason), Some(check), false),
            "{body}: {error}"
        );
    }
    assert_eq!((server.connections(), running.gate.changes().len()), (0, 0));
    let sent = running.send(form(&server, &format!("Action=Run&UserData={seal}"))).unwrap();
    assert_eq!(bodies(&server), ["Action=Run&UserData=correct+horse+battery+staple"]);
    assert_eq!(serde_json::from_slice::<Value>(&sent.body).unwrap(), json!({"id": "vm-1", "image": "img-1"}));
    assert_eq!(running.gate.delivered_secrets(), ["password"]);
    assert!(!running.events().iter().any(|event| event.to_string().contains(PASSWORD)));
}

#[test]
fn what_a_slot_shows_is_for_its_operation_alone() {
    let server = cloud();
    let mut grant = one_path(&server);
    // Two slots for the same place: each operation shows what its own slot does.
    let other = json!({"method": "POST", "path": "/", "operation": "Tag", "place": "form:UserData", "takes": ["password"], "show": ["json:/note"]});
    grant["slots"].as_array_mut().unwrap().push(other);
    let running = with_password(Fixture::new(json!([grant]))).start();
    let seal = running.visible["password"].as_str().unwrap().to_owned();
    let shown = |action: &str| {
        let response = running.send(form(&server, &format!("Action={action}&UserData={seal}"))).unwrap();
        serde_json::from_slice::<Value>(&response.body).unwrap()
    };
    assert_eq!(shown("Run"), json!({"id": "vm-1", "image": "img-1"}));
    assert_eq!(shown("Tag"), json!({"note": "n"}));
    let plain = running.send(form(&server, "Action=DescribeAll")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&plain.body).unwrap()["note"], "n");
}

#[test]
fn changes_and_events_name_operations_and_reads_are_no_changes() {
    let server = cloud();
    let running = start(&server);
    for body in ["Action=DescribeAll", "Action=Tag&Id=vm-9", "Action=DescribeAll&Tag=1", "Action=Run&Describe=1"] {
        running.send(form(&server, body)).unwrap();
    }
    refusal(running.send(form(&server, "Action=Terminate")));
    refusal(running.send(form(&server, "Action=Ter%0aminate")));
    let url = server.url("/");
    assert_eq!(running.gate.changes(), [format!("POST {url} Tag -> 200"), format!("POST {url} Run -> 200")]);
    let events = running.events();
    let named: Vec<Option<&str>> = events.iter().map(|event| event.operation.as_deref()).collect();
    assert_eq!(named, [Some("DescribeAll"), Some("Tag"), Some("DescribeAll"), Some("Run"), Some("Terminate"), None]);
    assert!(events[1].to_string().starts_with(&format!("POST {url} Tag 200 (api; ")), "{}", events[1]);
    assert!(events[4].to_string().starts_with(&format!("POST {url} Terminate denied")), "{}", events[4]);
    assert!(events[5].to_string().starts_with(&format!("POST {url} denied")), "{}", events[5]);
    // Forms are no beginning of a request, so all of them used one connection.
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_put_is_a_change_whatever_the_policy_says_of_its_operation() {
    let server = cloud();
    let mut grant = one_path(&server);
    grant["methods"] = json!(["PUT", "DELETE"]);
    grant["slots"] = json!([]);
    let running = with_password(Fixture::new(json!([grant]))).start();
    for method in ["PUT", "DELETE"] {
        running.send(GuestRequest { method: method.into(), ..form(&server, "Action=DescribeAll") }).unwrap();
    }
    assert_eq!(running.gate.changes().len(), 2);
}

#[test]
fn only_an_operation_that_changes_something_proves_a_creation() {
    let created = |read_only: Value, requests: &[&str]| {
        let server = cloud();
        let mut grant = one_path(&server);
        grant["operations"]["read_only"] = read_only;
        let fixture = with_password(Fixture::new(json!([grant])));
        let running = Fixture { records_creations: true, ..fixture }.start();
        let seal = running.visible["password"].as_str().unwrap().to_owned();
        for body in requests {
            running.send(form(&server, &body.replace("SEAL", &seal))).unwrap();
        }
        (1..=requests.len()).filter(|number| running.gate.has_created(&format!("vm-{number}"))).collect::<Vec<_>>()
    };
    let reads = json!(["Describe*"]);
    assert_eq!(created(reads.clone(), &["Action=DescribeAll", "Action=Run", "Action=DescribeAll"]), [2]);
    assert_eq!(created(reads.clone(), &["Action=Run&UserData=SEAL"]), [1]);
    // What the request names existed before.
    assert_eq!(created(reads.clone(), &["Action=Tag&Id.1=vm-1"]), Vec::<usize>::new());
    assert!(!created(reads, &["Action=Tag&Id.1=vm-2", "Action=Run"]).contains(&2));
    // Without the list, a response may only show what exists.
    assert_eq!(created(json!([]), &["Action=Run", "Action=DescribeAll"]), Vec::<usize>::new());
}

#[test]
fn fields_of_an_operation_in_a_header_refuse_an_image() {
    let server = cloud();
    let mut grant = grant(&server, None);
    grant["paths"] = json!(["/"]);
    grant["operations"] = json!({"in": "header:X-Op", "allow": ["Run", "Put"]});
    grant["fields"] = json!([{"method": "POST", "path": "/", "operation": "Run", "others": "deny",
        "places": {"json:/Name": {"is": "ok"}, "header:X-Op": "any"}}]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    std::fs::write(&path, b"\"x\"").unwrap();
    let image = Some(Arc::new(Image::open(&path, &[]).unwrap()));
    let running = Fixture { image, ..Fixture::new(json!([grant])) }.start();
    let around = || {
        let text = |text: &str| GuestBodyPart::Bytes(text.as_bytes().to_vec());
        GuestBody::Parts(vec![text("{\"Name\":\"evil\",\"Other\":"), GuestBodyPart::Image(ImagePart::Whole), text("}")])
    };
    for (operation, more, refused) in [
        ("Run", None, Some(Check::FieldBody)),
        ("Run", Some("X-Extra"), Some(Check::FieldOthers)),
        ("Put", Some("X-Extra"), None),
    ] {
        for body in [GuestBody::Image(ImagePart::Whole), around()] {
            let mut headers = vec![("X-Op".to_owned(), operation.to_owned())];
            headers.extend(more.map(|name| (name.to_owned(), "1".to_owned())));
            let result = running.send(GuestRequest { headers, body, ..request("POST", server.url("/")) });
            assert_eq!(result.as_ref().err().and_then(|error| error.check), refused, "{operation}: {result:?}");
        }
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_resource_that_the_request_names_anywhere_existed_before() {
    let server = Server::answering(response("200 OK", "Content-Type: application/json\r\n", r#"{"id": "vm-old"}"#));
    let grant = json!({"id": "api", "to": server.url(""), "methods": ["POST"], "paths": ["/**"]});
    for (url, header, body, created) in [
        ("/v1/servers", "x", r#"{"size": 1}"#, true),
        ("/v1/action?id=vm-old", "x", "", false),
        ("/v1/action?id=vm%2Dold", "x", "", false),
        ("/v1/action", "vm-old", "", false),
        ("/v1/action", "x", r#"{"id": "vm-old"}"#, false),
        ("/v1/vm-old/action", "x", "", false),
    ] {
        let running = Fixture { records_creations: true, ..Fixture::new(json!([grant])) }.start();
        let headers = vec![("X-Id".to_owned(), header.to_owned())];
        let body = GuestBody::Bytes(body.as_bytes().to_vec());
        running.send(GuestRequest { headers, body, ..request("POST", server.url(url)) }).unwrap();
        assert_eq!(running.gate.has_created("vm-old"), created, "{url} {header}");
    }
}
