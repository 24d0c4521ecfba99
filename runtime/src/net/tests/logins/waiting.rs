//! Requests at the same time: which ones wait for a login or a name server, and for how long.

use super::*;
use crate::limits::Limits;
use std::net::{TcpListener, UdpSocket};

/// Issues a token after some time.
fn slow_identity(pause: Duration) -> Server {
    Server::plain(move |_, wire| {
        std::thread::sleep(pause);
        let headers = "Content-Type: application/json\r\nX-Subject-Token: token-number-1\r\n";
        wire.write_all(&response("201 Created", headers, "{\"expires_in\": 3600}")).unwrap();
    })
}

/// Returns limits that a slow machine does not reach.
fn patient() -> Limits {
    Limits { connect_seconds: 20, first_byte_seconds: 20, idle_seconds: 20, ..Limits::default() }
}

fn get(url: String, timeout_ms: Option<u32>) -> GuestRequest {
    GuestRequest { timeout_ms, ..request("GET", url) }
}

#[test]
fn a_request_that_is_abandoned_during_its_login_was_not_sent() {
    let (slow, api) = (slow_identity(Duration::from_millis(500)), api(&["token-number-1"]));
    let running = start(&slow, &api);
    assert!(!running.abandon(request("GET", api.url("/x")), Duration::from_millis(200)));
    assert_eq!((slow.requests().len(), api.connections()), (1, 0));
    let sent: Vec<bool> = running.events().iter().map(|event| event.sent).collect();
    assert_eq!(sent, [true, false]);
}

#[test]
fn a_request_does_not_wait_for_the_login_of_another_service() {
    let (slow, fast) = (slow_identity(Duration::from_secs(5)), identity("3600"));
    let (first, second) = (api(&["token-number-1"]), api(&["token-number-1"]));
    let mut policy = policy(&slow, &first);
    policy["logins"]["other"] = policy["logins"]["main"].clone();
    policy["logins"]["other"]["to"] = json!(fast.url(""));
    let mut grant = policy["http"][0].clone();
    grant["id"] = json!("other");
    grant["to"] = json!(second.url(""));
    grant["auth"]["login"] = json!("other");
    policy["http"].as_array_mut().unwrap().push(grant);
    let properties = json!({"user": "admin-of-all", "password": PASSWORD});
    let running = Fixture { properties, limits: patient(), ..Fixture::with(policy) }.start();
    let mut requests = vec![get(first.url("/x"), None)];
    // They would end before the login of the first one does.
    requests.extend((0..3).map(|_| get(second.url("/x"), Some(4000))));
    for (outcome, _) in running.send_all(requests) {
        assert_eq!(outcome.unwrap().status, 200);
    }
    assert_eq!((slow.requests().len(), fast.requests().len()), (1, 1));
}

#[test]
fn the_time_of_a_request_ends_while_another_one_logs_in() {
    let (identity, api) = (slow_identity(Duration::from_secs(3)), api(&["token-number-1"]));
    let properties = json!({"user": "admin-of-all", "password": PASSWORD});
    let running = Fixture { properties, limits: patient(), ..Fixture::with(policy(&identity, &api)) }.start();
    let mut requests = vec![get(api.url("/x"), None)];
    requests.extend((0..4).map(|_| get(api.url("/x"), Some(200))));
    let mut outcomes = running.send_all(requests).into_iter();
    assert_eq!(outcomes.next().unwrap().0.unwrap().status, 200);
    for (outcome, _) in outcomes {
        let error = outcome.unwrap_err();
        assert_eq!((error.kind, error.sent, error.login.as_deref()), (HttpErrorKind::Timeout, false, Some("main")));
        assert!(error.message.starts_with("iaas: another request of this call has begun the login `main`"), "{error}");
    }
    assert_eq!(running.get(api.url("/x")).unwrap().status, 200);
    assert_eq!(identity.requests().len(), 1);
}

#[test]
fn a_login_that_was_not_sent_does_not_count_as_failed() {
    let (identity, api) = (identity("3600"), api(&["token-number-1"]));
    // No server listens at this port.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut policy = policy(&identity, &api);
    policy["logins"]["main"]["to"] = json!(format!("http://{closed}"));
    let properties = json!({"user": "admin-of-all", "password": PASSWORD});
    let running = Fixture { properties, ..Fixture::with(policy) }.start();
    for _ in 0..5 {
        let error = running.get(api.url("/x")).unwrap_err();
        assert_eq!(error.message, "iaas: login `main` failed (connect); the log says where and why");
    }
}

#[test]
fn a_login_that_was_sent_counts_as_failed() {
    for answer in [response("500 Oops", "", ""), response("200 OK", "", ""), b"".to_vec()] {
        let (identity, api) = (Server::answering(answer), api(&[]));
        let running = start(&identity, &api);
        let errors: Vec<_> = (0..5).map(|_| running.get(api.url("/x")).unwrap_err()).collect();
        assert_eq!(identity.requests().len(), 3);
        assert!(errors[3..].iter().all(|error| error.message.contains("failed 3 times in this call")), "{errors:?}");
    }
}

#[test]
fn the_time_of_a_request_ends_while_another_one_waits_for_the_name_server() {
    // The name server never answers.
    let name_server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let api = api(&[]);
    let url = format!("http://silent.test:{}", api.address.port());
    let grants = json!([{"id": "api", "to": url, "methods": ["GET"], "paths": ["/**"]}]);
    let name_server_port = name_server.local_addr().unwrap().port();
    let running = Fixture { name_server: name_server_port, ..Fixture::new(grants) }.start();
    let requests = [3000, 200, 300].map(|timeout| get(format!("{url}/x"), Some(timeout))).into();
    for ((outcome, elapsed), most) in running.send_all(requests).into_iter().zip([20_000, 2500, 2500]) {
        let error = outcome.unwrap_err();
        assert_eq!((error.kind, error.sent), (HttpErrorKind::Dns, false), "{error}");
        assert!(elapsed < Duration::from_millis(most), "{elapsed:?}");
    }
}
