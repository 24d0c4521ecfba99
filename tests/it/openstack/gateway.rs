//! The gateway: it forwards, rewrites and records requests, and injects faults.

use super::{describe, succeed, upload_image};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tests::openstack::{Api, Fault, Gateway, Response, Rule, Service, Simulator, on_each_cloud};

use Service::{Compute, Identity, Image, Network};

#[test]
fn every_url_of_the_catalog_points_to_the_gateway() {
    on_each_cloud(|name, gateway| {
        let cloud = gateway.cloud();
        let api = Api::tenant(&cloud);
        let catalog = succeed(&api, Identity, "GET", "/auth/catalog", Value::Null);
        for (kind, key) in [("compute", "compute"), ("image", "image"), ("network", "network"), ("volumev3", "volume")]
        {
            let services = catalog["catalog"].as_array().into_iter().flatten();
            let service = services.into_iter().find(|service| service["type"] == kind).cloned().unwrap_or_default();
            let urls: Vec<&Value> =
                service["endpoints"].as_array().into_iter().flatten().map(|end| &end["url"]).collect();
            assert_eq!(urls, [&cloud["endpoints"][key]; 3], "{name}");
        }
        let made = succeed(&api, Image, "POST", "/images", json!({"name": "x"}));
        let id = made["id"].as_str().unwrap_or_default();
        succeed(&api, Image, "DELETE", &format!("/images/{id}"), Value::Null);
    });
}

#[test]
fn a_tls_gateway_is_trusted_only_with_its_own_authority() {
    let gateway = Gateway::secure(Simulator::new());
    let cloud = gateway.cloud();
    assert!(cloud["auth_url"].as_str().is_some_and(|url| url.starts_with("https://127.0.0.1:")), "{cloud}");
    assert_eq!(Api::tenant(&cloud).contents().count("floating"), 1);
    let mut other = cloud.clone();
    other["ca"] = Gateway::secure(Simulator::new()).cloud()["ca"].clone();
    assert!(std::panic::catch_unwind(|| Api::tenant(&other)).is_err());
}

#[test]
fn a_fault_affects_only_its_request_and_does_not_undo_what_the_service_did() {
    let body = json!({"port": {"name": "p", "device_id": "x"}});
    // The fault, the status of the response if there is one, and whether the service created a port.
    for (fault, status, made) in [
        (Fault::status(500), Some(500), false),
        (Fault::too_many(7), Some(429), false),
        (Fault::ResetBefore, None, false),
        (Fault::ResetAfter, None, true),
        (Fault::Delay(Duration::from_millis(30)), Some(201), true),
        (Fault::Body(b"<html>".to_vec()), Some(201), true),
        (Fault::Answer(Response::json(401, &json!({"error": 1}))), Some(401), false),
    ] {
        let gateway = Gateway::start(Simulator::new());
        let cloud = gateway.cloud();
        let api = Api::tenant(&cloud);
        let before = api.contents();
        let hits = gateway.inject(Rule::on(Network, "POST", "/ports").times(9), fault.clone());
        gateway.clear_records();
        let mut asked = body.clone();
        asked["port"]["network_id"] = cloud["network"].clone();
        let (answer, kind) = post_port(&cloud, &asked);
        assert_eq!(answer.as_ref().map(|answer| answer.0), status, "{fault:?}");
        assert_eq!(kind, status.is_none().then_some(ErrorKind::ConnectionReset), "{fault:?}");
        if let (Fault::Body(_), Some((_, text))) = (&fault, &answer) {
            assert!(text.ends_with("\r\n\r\n<html>"), "{text}");
        }
        if let (Fault::Answer(_), Some((429, text))) = (&fault, &answer) {
            assert!(text.contains("Retry-After: 7\r\n"), "{text}");
        }
        let records = gateway.records();
        let shown = if status.is_none() && made { Some(201) } else { status };
        assert_eq!(records.last().map(|record| (record.status, record.faulted)), Some((shown, true)), "{fault:?}");
        assert_eq!(records.last().map(|record| record.json()["port"]["name"].clone()), Some(json!("p")), "{fault:?}");
        gateway.clear_faults();
        assert_eq!(hits.count(), 1);
        assert_eq!(api.left_behind(&before).len(), usize::from(made), "{fault:?}");
    }
}

#[test]
fn a_stalled_request_gets_no_response() {
    for (fault, made) in [(Fault::StallBefore, 0), (Fault::StallAfter, 1)] {
        let gateway = Gateway::start(Simulator::new());
        let cloud = gateway.cloud();
        let api = Api::tenant(&cloud);
        let before = api.contents();
        gateway.inject(Rule::on(Network, "POST", "/ports"), fault);
        let (answer, kind) = post_port(&cloud, &json!({"port": {"network_id": cloud["network"]}}));
        assert_eq!(answer, None);
        assert!(matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{kind:?}");
        assert_eq!(api.left_behind(&before).len(), made);
    }
}

#[test]
fn a_rule_for_the_nth_request_affects_only_that_request() {
    let gateway = Gateway::start(Simulator::new());
    let api = Api::tenant(&gateway.cloud());
    gateway.inject(Rule::any().nth(3), Fault::status(503));
    let statuses: Vec<u16> = (0..4).map(|_| api.request(Compute, "GET", "/servers", None).status).collect();
    assert_eq!(statuses, [200, 200, 503, 200]);
}

#[test]
fn an_upload_is_streamed_and_recorded_with_its_length_and_digest() {
    let gateway = Gateway::start(Simulator::new());
    let cloud = gateway.cloud();
    let api = Api::tenant(&cloud);
    let asked = json!({"name": "big", "disk_format": "raw", "container_format": "bare"});
    let id = succeed(&api, Image, "POST", "/images", asked)["id"].as_str().unwrap_or_default().to_owned();
    let (chunk, count) = (vec![7; 1 << 20], 24);
    let mut stream = connect(&cloud["endpoints"]["image"]);
    let token = token(&cloud);
    let head = format!(
        "PUT /v2/images/{id}/file HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token}\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    send(&mut stream, head.as_bytes());
    let mut digest = blake3::Hasher::new();
    for number in 0..count {
        send(&mut stream, format!("{:x}\r\n", chunk.len()).as_bytes());
        send(&mut stream, &chunk);
        send(&mut stream, b"\r\n");
        digest.update(&chunk);
        if number == count / 2 {
            // Other requests are served meanwhile, and see that the upload is not complete.
            let until = Instant::now() + Duration::from_secs(20);
            while succeed(&api, Image, "GET", &format!("/images/{id}"), Value::Null)["status"] != "saving" {
                assert!(Instant::now() < until, "the image never had the status `saving`");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    send(&mut stream, b"0\r\n\r\n");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap_or_else(|error| panic!("no answer: {error}"));
    assert_eq!(&answer, b"HTTP/1.1 204");
    let records = gateway.records();
    let upload = records.iter().find(|record| record.method == "PUT").cloned();
    let upload = upload.unwrap_or_else(|| panic!("no upload among {records:?}"));
    assert_eq!((upload.length, upload.body.len()), (24 << 20, 0));
    assert_eq!(upload.digest, digest.finalize().to_string());
    let image = succeed(&api, Image, "GET", &format!("/images/{id}"), Value::Null);
    assert_eq!((&image["status"], &image["size"]), (&json!("active"), &json!(24 << 20)));
}

#[test]
fn an_aborted_upload_leaves_the_image_queued() {
    let gateway = Gateway::start(Simulator::new());
    let cloud = gateway.cloud();
    let api = Api::tenant(&cloud);
    let asked = json!({"name": "half", "disk_format": "raw", "container_format": "bare"});
    let id = succeed(&api, Image, "POST", "/images", asked)["id"].as_str().unwrap_or_default().to_owned();
    let mut stream = connect(&cloud["endpoints"]["image"]);
    let head = format!(
        "PUT /v2/images/{id}/file HTTP/1.1\r\nX-Auth-Token: {}\r\nContent-Type: application/octet-stream\r\nContent-Length: 100\r\n\r\nhalf",
        token(&cloud)
    );
    send(&mut stream, head.as_bytes());
    drop(stream);
    let until = Instant::now() + Duration::from_secs(20);
    while !gateway.records().iter().any(|record| record.method == "PUT") {
        assert!(Instant::now() < until, "the gateway still waits for the upload");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(succeed(&api, Image, "GET", &format!("/images/{id}"), Value::Null)["status"], "queued");
}

#[test]
fn one_connection_carries_many_requests() {
    let gateway = Gateway::start(Simulator::new());
    let cloud = gateway.cloud();
    upload_image(&Api::tenant(&cloud));
    let mut stream = connect(&cloud["endpoints"]["compute"]);
    for _ in 0..3 {
        send(&mut stream, b"GET /v2.1/ HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut text = String::new();
        let mut byte = [0];
        while !text.ends_with("]}}") {
            stream.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error}: {text}"));
            text.push(char::from(byte[0]));
        }
        assert!(text.starts_with("HTTP/1.1 200 ") && text.contains("\"2.100\""), "{text}");
    }
}

/// Sends `POST /ports` on a new connection. Returns the response or the error.
fn post_port(cloud: &Value, body: &Value) -> (Option<(u16, String)>, Option<ErrorKind>) {
    let mut stream = connect(&cloud["endpoints"]["network"]);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(6)));
    let (token, body) = (token(cloud), body.to_string());
    let length = body.len();
    send(&mut stream, format!("POST /v2.0/ports HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Auth-Token: {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes());
    let mut text = String::new();
    match stream.read_to_string(&mut text) {
        Ok(_) => {
            let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
            (status.map(|status| (status, text)), None)
        }
        Err(error) => (None, Some(error.kind())),
    }
}

fn token(cloud: &Value) -> String {
    let login = json!({"auth": {
        "identity": {"methods": ["application_credential"], "application_credential": {
            "id": cloud["application_credential_id"], "secret": cloud["application_credential_secret"],
        }},
    }});
    let answer = Api::tenant(cloud).request(Identity, "POST", "/auth/tokens", Some(&login));
    assert_eq!(answer.status, 201, "{}", describe(&answer));
    answer.header("x-subject-token").unwrap_or_default().to_owned()
}

fn connect(url: &Value) -> TcpStream {
    let host = url.as_str().and_then(|url| url.split('/').nth(2)).unwrap_or_default();
    TcpStream::connect(host).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn send(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap_or_else(|error| panic!("not sent: {error}"));
}
