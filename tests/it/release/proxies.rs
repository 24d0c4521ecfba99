//! The operator's proxy, which the properties of the release name: what the runtime
//! sends to it, and that no guest can reach the proxy itself.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use tests::cloud::{answered, call, failed, outcomes};
use tests::response::CANARY;
use tests::servers::{Answer, Authority, Server, Validity};
use tests::{Job, dist};

/// A private address that is not reachable from this machine except through a proxy.
const FAR: &str = "10.203.7.9";
const FARTHER: &str = "10.203.7.10";

/// A proxy that accepts CONNECT and records the request.
struct Proxy {
    server: Server,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Starts a proxy that sends this answer to CONNECT and then connects to `to`.
fn proxy(to: SocketAddr, answer: &'static str) -> Proxy {
    routing_proxy(move |_| to, answer)
}

/// Starts a proxy that sends this answer to CONNECT and then connects to the server that `route` returns for the
/// destination in the request line, such as `10.203.7.9:443`.
fn routing_proxy(route: impl Fn(&str) -> SocketAddr + Send + Sync + 'static, answer: &'static str) -> Proxy {
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let heads = Arc::clone(&requests);
    let server = Server::with_handler("http", move |mut stream| {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let destination = head.split(' ').nth(1).unwrap_or_default().to_owned();
        heads.lock().unwrap().push(head);
        let _ = stream.write_all(answer.as_bytes());
        if answer.starts_with("HTTP/1.1 200")
            && let Ok(target) = TcpStream::connect(route(&destination))
        {
            join(&stream, &target);
        }
    });
    Proxy { server, requests }
}

/// Copies bytes in both directions until one side ends.
fn join(one: &TcpStream, other: &TcpStream) {
    let (mut from, mut to) = (one.try_clone().unwrap(), other.try_clone().unwrap());
    let back = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let _ = std::io::copy(&mut &*other, &mut &*one);
    let _ = one.shutdown(std::net::Shutdown::Both);
    let _ = back.join();
}

impl Proxy {
    fn url(&self, credentials: &str) -> String {
        format!("http://{credentials}{}", self.server.address())
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

const OPEN: &str = "HTTP/1.1 200 Connection established\r\nVia: a-proxy\r\n\r\n";

fn grant(origin: &str, more: &Value) -> Value {
    let own = json!({"id": "far", "to": origin, "methods": ["GET", "POST", "PUT"], "paths": ["/**"], "addresses": ["10.0.0.0/8"]});
    tests::servers::with(own, more.clone())
}

fn job(env: &Value, grants: &Value) -> Job {
    Job::installed(&json!({
        "guest": {"file": "probe.wasm"}, "cache": dist::shared_cache(), "env": env, "policy": {"http": grants},
        "properties": {"token": format!("{CANARY}-token")}, "hardening": "required",
    }))
}

fn get(url: &str) -> Value {
    json!([{"op": "http", "url": url}])
}

#[test]
fn a_proxy_gets_the_checked_address_and_the_destination_proves_its_name() {
    let authority = Authority::new();
    let cloud = Server::tls(authority.issue(&[FAR], Validity::Now).server(None), |_| Answer::ok("far away"));
    let proxy = proxy(cloud.address(), OPEN);
    let auth = json!({"tls": {"ca": authority.pem()}, "auth": {"bearer": "${token}"}});
    let origin = format!("https://{FAR}");
    let env = json!({"https_proxy": proxy.url(&format!("pr%6fxy:{CANARY}%40-pass@")), "no_proxy": "elsewhere.test"});
    let job = job(&env, &json!([grant(&origin, &auth)]));

    let outcomes = outcomes(
        &job,
        &json!([{"op": "http", "url": format!("{origin}/v1/x?q=1")},
        {"op": "http", "method": "POST", "url": format!("{origin}/v1/y"), "body": {"a": "b"}, "headers": {"Content-Type": "application/json"}}]),
    );
    assert_eq!(answered(&outcomes[0], 200)["body"], "far away");
    answered(&outcomes[1], 200);
    for head in proxy.requests() {
        let lines: Vec<&str> = head.trim_end().lines().collect();
        let credentials = tests::registry_server::basic("proxy", &format!("{CANARY}@-pass"));
        let expected = [
            format!("CONNECT {FAR}:443 HTTP/1.1"),
            format!("Host: {FAR}:443"),
            format!("Proxy-Authorization: {credentials}"),
        ];
        assert_eq!(lines, expected, "the proxy must receive nothing else of the request");
    }
    let seen = cloud.requests();
    assert_eq!((seen.len(), seen[0].method(), seen[0].target()), (2, "GET", "/v1/x?q=1"));
    assert_eq!(seen[0].header("host"), Some(FAR));
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {CANARY}-token").as_str()));
    assert_eq!(seen[0].header("proxy-authorization"), None);
    assert_eq!(seen[1].json(), json!({"a": "b"}));
}

#[test]
fn a_destination_that_cannot_prove_its_name_gets_no_request_through_a_proxy() {
    let authority = Authority::new();
    let other = Server::tls(authority.issue(&[FARTHER], Validity::Now).server(None), |_| Answer::ok("x"));
    let proxy = proxy(other.address(), OPEN);
    let origin = format!("https://{FAR}");
    let grants = json!([grant(&origin, &json!({"tls": {"ca": authority.pem()}, "auth": {"bearer": "${token}"}}))]);
    let outcome = outcomes(&job(&json!({"https_proxy": proxy.url("")}), &grants), &get(&format!("{origin}/x")));
    failed(&outcome[0], "tls", false, &["TLS failed"]);
    assert!(other.requests().is_empty());
}

#[test]
fn a_tunnel_is_kept_for_its_own_destination_alone() {
    let authority = Authority::new();
    let cloud = |name: &'static str| {
        let identity = authority.issue(&[FAR, FARTHER], Validity::Now);
        Server::tls(identity.server(None), move |_| Answer::ok(name))
    };
    // Another host, and another port of the first one. The certificate of each server is valid for both hosts.
    let destinations = [(FAR, 443, "one"), (FARTHER, 443, "two"), (FAR, 8443, "three")];
    let clouds = destinations.map(|(_, _, name)| cloud(name));
    let routes: Vec<(String, SocketAddr)> = destinations
        .iter()
        .zip(&clouds)
        .map(|((host, port, _), cloud)| (format!("{host}:{port}"), cloud.address()))
        .collect();
    let asked: Vec<String> = routes.iter().map(|(to, _)| format!("CONNECT {to} HTTP/1.1")).collect();
    let proxy = routing_proxy(
        move |destination| routes.iter().find(|(known, _)| known == destination).map(|(_, to)| *to).unwrap(),
        OPEN,
    );
    let origins = [format!("https://{FAR}"), format!("https://{FARTHER}"), format!("https://{FAR}:8443")];
    let tls = json!({"tls": {"ca": authority.pem()}});
    let grants: Vec<Value> = origins
        .iter()
        .enumerate()
        .map(|(number, origin)| tests::servers::with(grant(origin, &tls), json!({"id": format!("g{number}")})))
        .collect();
    let twice: Vec<Value> =
        origins.iter().chain(&origins).map(|origin| get(&format!("{origin}/x"))[0].clone()).collect();
    let outcomes = outcomes(&job(&json!({"https_proxy": proxy.url("")}), &json!(grants)), &json!(twice));
    let bodies: Vec<&Value> = outcomes.iter().map(|outcome| &answered(outcome, 200)["body"]).collect();
    assert_eq!(bodies, ["one", "two", "three", "one", "two", "three"]);
    let lines: Vec<String> =
        proxy.requests().iter().map(|head| head.lines().next().unwrap_or_default().to_owned()).collect();
    assert_eq!(lines, asked);
    assert!(clouds.iter().all(|cloud| cloud.requests().len() == 2));
}

#[test]
fn plain_http_uses_a_tunnel_as_well() {
    let cloud = Server::answering(Answer::ok("far away"));
    let proxy = proxy(cloud.address(), OPEN);
    let origin = format!("http://{FAR}:8080");
    let job = job(&json!({"http_proxy": proxy.url("")}), &json!([grant(&origin, &json!({}))]));
    let outcomes = outcomes(&job, &get(&format!("{origin}/x")));
    assert_eq!(answered(&outcomes[0], 200)["body"], "far away");
    assert!(proxy.requests()[0].starts_with(&format!("CONNECT {FAR}:8080 HTTP/1.1\r\n")), "{:?}", proxy.requests());
    assert_eq!(cloud.request().header("host"), Some(format!("{FAR}:8080").as_str()));
}

#[test]
fn an_image_arrives_complete_through_a_tunnel() {
    let cloud = Server::answering(Answer::new(201, "stored"));
    let proxy = proxy(cloud.address(), OPEN);
    let origin = format!("http://{FAR}");
    let job = job(&json!({"http_proxy": proxy.url("")}), &json!([grant(&origin, &json!({}))]));
    let image = b"0123456789abcdef".repeat(200_000);
    tests::job::write(&job.path("image"), &image);
    let script = json!([{"op": "http", "method": "PUT", "url": format!("{origin}/image"), "image": true}]);
    let response = job.call("create_stemcell", json!([job.path("image"), {"probe": script}])).run();
    answered(&tests::probe::outcomes(response.result())[0], 201);
    let seen = cloud.request();
    assert_eq!((seen.length, seen.digest), (image.len() as u64, blake3::hash(&image).to_string()));
}

#[test]
fn a_proxy_is_not_asked_for_forbidden_addresses() {
    let unreached = Server::answering(Answer::ok("x"));
    let proxy = proxy(unreached.address(), OPEN);
    let origins = ["http://11.0.0.1", "http://192.168.1.1", "http://127.0.0.1:9"];
    let grants: Vec<Value> = origins
        .iter()
        .enumerate()
        .map(|(index, origin)| tests::servers::with(grant(origin, &json!({})), json!({"id": format!("g{index}")})))
        .collect();
    let job = job(&json!({"http_proxy": proxy.url("")}), &json!(grants));
    for origin in origins {
        let outcome = outcomes(&job, &get(&format!("{origin}/x")));
        assert_eq!(outcome[0]["error"]["reason"], "address", "{outcome:?}");
    }
    assert!(proxy.requests().is_empty() && unreached.requests().is_empty());
}

#[test]
fn a_grant_for_the_proxy_itself_is_refused() {
    let unreached = Server::answering(Answer::ok("x"));
    let proxy = proxy(unreached.address(), OPEN);
    let grants = json!([tests::servers::grant("proxy", &proxy.server.origin())]);
    let manifest = json!({
        "guest": {"file": "probe.wasm"}, "cache": dist::shared_cache(), "allow_local": true,
        "env": {"http_proxy": proxy.url("")}, "policy": {"http": grants},
    });
    let response = Job::installed(&manifest).call("has_vm", json!(["vm-1"])).run();
    response.fails(tests::CPI_ERROR, &["`http[0].to`: is the proxy, which no guest may reach"]);
    assert!(proxy.requests().is_empty());
}

#[test]
fn local_addresses_are_reached_without_the_proxy() {
    let cloud = Server::answering(Answer::ok("near"));
    let proxy = proxy(cloud.address(), OPEN);
    let near = json!([tests::servers::grant("near", &cloud.origin())]);
    let manifest = json!({
        "guest": {"file": "probe.wasm"}, "cache": dist::shared_cache(), "allow_local": true,
        "env": {"http_proxy": proxy.url("")}, "policy": {"http": near},
    });
    answered(&outcomes(&Job::installed(&manifest), &get(&cloud.url("/x")))[0], 200);
    assert!(proxy.requests().is_empty());
}

#[test]
fn the_error_names_a_proxy_that_fails_without_quoting_its_response() {
    let cloud = Server::answering(Answer::ok("x"));
    let origin = format!("http://{FAR}");
    for (answer, expected) in [
        ("HTTP/1.1 407 drowssap\r\n\r\nhtml", "requires other credentials (407)"),
        ("HTTP/1.1 403 drowssap\r\nX: y\r\n\r\nhtml", "does not connect to 10.203.7.9:80 (status 403)"),
        ("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "sent data after its response to CONNECT"),
        ("drowssap", "closed the connection without a response to CONNECT"),
        ("SSH-2.0-drowssap\r\n\r\n", "did not respond to CONNECT with HTTP/1.1"),
        ("", "closed the connection without a response to CONNECT"),
    ] {
        let proxy = proxy(cloud.address(), answer);
        let job = job(&json!({"http_proxy": proxy.url(&format!("u:{CANARY}@"))}), &json!([grant(&origin, &json!({}))]));
        let response = call(&job, &get(&format!("{origin}/x")));
        let outcome = tests::probe::outcomes_in(response.message());
        failed(&outcome[0], "connect", false, &["iaas: GET http://10.203.7.9/x: no connection through the proxy"]);
        assert!(!outcome[0].to_string().contains("127.0.0.1"), "{outcome:?}");
        let message = response.message();
        assert!(message.contains("the proxy 127.0.0.1:") && message.contains(expected), "{message}");
        assert!(!message.contains("drowssap"), "{message}");
    }
    let (unresponsive, _connections) = Server::full_backlog();
    let env = json!({"http_proxy": format!("http://u:{CANARY}@{unresponsive}")});
    let job = job(&env, &json!([grant(&origin, &json!({}))])).installed_limits(json!({"connect_seconds": 1}));
    let outcome = outcomes(&job, &get(&format!("{origin}/x")));
    assert_eq!(outcome[0]["error"]["sent"], false, "{outcome:?}");
    assert!(cloud.requests().is_empty());
}

#[test]
fn proxies_of_the_environment_are_ignored() {
    let cloud = Server::answering(Answer::ok("x"));
    let proxy = proxy(cloud.address(), OPEN);
    let near = json!([tests::servers::grant("near", &cloud.origin())]);
    let job = Job::installed(&json!({
        "guest": {"file": "probe.wasm"}, "cache": dist::shared_cache(), "allow_local": true, "policy": {"http": near},
    }));
    let script = tests::probe::cid(&get(&cloud.url("/x")));
    let call = ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"]
        .into_iter()
        .fold(job.call("has_vm", json!([script])), |call, name| call.env(name, proxy.url("")));
    answered(&tests::probe::outcomes_in(call.run().message())[0], 200);
    assert!(proxy.requests().is_empty());
}
