//! `http.send-all`: several requests at once, each with the checks of a single one.

use super::{check_reached, limited};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tests::cloud::{answered, call, denied, failed, get, job, outcome, outcomes, post, with_policy};
use tests::probe;
use tests::servers::{Answer, Server, with};

fn all(requests: impl IntoIterator<Item = Value>) -> Value {
    let request = |mut request: Value| {
        request.as_object_mut().unwrap().remove("op");
        request
    };
    json!({"op": "http.all", "requests": requests.into_iter().map(request).collect::<Vec<_>>()})
}

/// Returns the outcomes of the single requests.
#[track_caller]
fn each(outcome: &Value) -> Vec<Value> {
    outcome["ok"].as_array().cloned().unwrap_or_else(|| panic!("no outcomes: {outcome}"))
}

#[test]
fn eight_requests_are_in_progress_at_once_and_the_responses_keep_their_order() {
    // Every response waits until eight requests have arrived.
    let arrived = Arc::new(Barrier::new(8));
    let server = Server::start(move |seen| {
        arrived.wait();
        Answer::ok(seen.target())
    });
    let paths: Vec<String> = (0..24).map(|number| format!("/{number}")).collect();
    let script = all(paths.iter().map(|path| get(&server.url(path))));
    let outcomes = each(&outcome(&job(json!([server.grant("api")])), script));
    let bodies: Vec<&str> = outcomes.iter().map(|outcome| answered(outcome, 200)["body"].as_str().unwrap()).collect();
    assert_eq!(bodies, paths);
    assert_eq!(server.connections(), 8, "connections are kept for the requests after the first eight");
}

#[test]
fn no_more_than_eight_requests_are_in_progress() {
    let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let server = Server::start(move |_| {
        seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        now.fetch_sub(1, Ordering::SeqCst);
        Answer::ok("")
    });
    let script = all((0..40).map(|number| get(&server.url(&format!("/{number}")))));
    assert_eq!(each(&outcome(&job(json!([server.grant("api")])), script)).len(), 40);
    assert_eq!(most.load(Ordering::SeqCst), 8);
}

#[test]
fn a_request_that_fails_does_not_stop_the_others() {
    let server = Server::start(|seen| match seen.target() {
        "/api/closed" => Answer::bytes(""),
        "/api/missing" => Answer::new(404, ""),
        _ => Answer::ok("here"),
    });
    let grant = with(server.grant("api"), json!({"paths": ["/api/**"]}));
    let paths = ["/api/a", "/other", "/api/closed", "/api/missing", "/api/b"];
    let outcomes = each(&outcome(&job(json!([grant])), all(paths.map(|path| get(&server.url(path))))));
    answered(&outcomes[0], 200);
    denied(&outcomes[1], "path", &[]);
    assert_eq!(outcomes[2]["error"]["sent"], true, "{}", outcomes[2]);
    answered(&outcomes[3], 404);
    answered(&outcomes[4], 200);
    assert_eq!(each(&outcome(&job(json!([server.grant("api")])), all([]))), Vec::<Value>::new());
}

#[test]
fn budgets_are_reserved_before_anything_is_sent() {
    let server = Server::answering(Answer::ok(""));
    let job = limited(&server, json!({"http_requests": 3}));
    let outcomes_of = each(&outcome(&job, all((0..5).map(|_| get(&server.url("/"))))));
    outcomes_of[..3].iter().for_each(|outcome| {
        answered(outcome, 200);
    });
    outcomes_of[3..].iter().for_each(|outcome| check_reached(outcome, "http_requests", false));
    assert_eq!(server.requests().len(), 3);

    // Each body is allowed alone, and all of them together are too large.
    let server = Server::answering(Answer::ok(""));
    let job = limited(&server, json!({"http_total_mib": 1}));
    let large = Value::String("x".repeat(400 << 10));
    let script =
        json!([all((0..4).map(|_| post(&server.url("/"), &large))), post(&server.url("/small"), &json!("fits")),]);
    let outcomes = outcomes(&job, &script);
    let several = each(&outcomes[0]);
    several[..2].iter().for_each(|outcome| {
        answered(outcome, 200);
    });
    several[2..].iter().for_each(|outcome| check_reached(outcome, "http_total_mib", false));
    answered(&outcomes[1], 200);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn requests_that_are_sent_at_once_log_in_once() {
    let server = Server::start(|seen| match seen.target() {
        "/login" => Answer::json(200, &json!({"token": "a-token-of-a-login"})),
        _ if seen.header("x-token") == Some("a-token-of-a-login") => Answer::ok("in"),
        _ => Answer::new(401, ""),
    });
    let login = json!({
        "to": server.origin(), "path": "/login", "method": "POST", "addresses": ["127.0.0.0/8"], "plain_http": true,
        "body": {"password": "${password}"}, "token": "json:/token", "send": {"header": "X-Token"},
    });
    let grant = with(server.grant("api"), json!({"auth": {"login": "main"}, "plain_http": true}));
    let policy = json!({"http": [grant], "logins": {"main": login}});
    let job = with_policy(policy).properties(json!({"password": "a password of a login"}));
    let script = all((0..8).map(|number| get(&server.url(&format!("/{number}")))));
    each(&outcome(&job, script)).iter().for_each(|outcome| {
        answered(outcome, 200);
    });
    let logins = server.requests().iter().filter(|seen| seen.target() == "/login").count();
    assert_eq!((logins, server.requests().len()), (1, 9));
}

#[test]
fn requests_that_wait_are_not_sent_after_a_signal() {
    let (arrived, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, ready) = (Arc::clone(&arrived), Arc::clone(&done));
    let server = Server::start(move |seen| {
        if seen.method() == "DELETE" {
            return Answer::ok("undone");
        }
        if count.fetch_add(1, Ordering::SeqCst) + 1 == 8 {
            ready.store(1, Ordering::SeqCst);
        }
        std::thread::sleep(Duration::from_secs(1));
        Answer::ok("")
    });
    let job = job(json!([server.grant("api")]));
    let undo = json!({"op": "http", "method": "DELETE", "url": server.url("/undo")});
    let script = json!([all((0..40).map(|number| post(&server.url(&format!("/{number}")), &json!("x")))), undo]);
    let call = job.call("create_disk", json!([1024, {"probe": script}, null]));
    let response = call.signal_when(move || done.load(Ordering::SeqCst) == 1, Signal::TERM).run();
    let outcomes = probe::outcomes(response.result());
    let (sent, rest) = each(&outcomes[0]).into_iter().partition::<Vec<_>, _>(|outcome| !outcome["ok"].is_null());
    assert_eq!((sent.len(), arrived.load(Ordering::SeqCst)), (8, 8), "{rest:?}");
    for outcome in &rest {
        failed(outcome, "cancelled", false, &["the call is ending"]);
    }
    // The guest has time to undo what it did.
    answered(&outcomes[1], 200);
}

#[test]
fn two_credentials_in_the_responses_of_one_batch_leave_time_to_clean_up() {
    let server = Server::start(|seen| match seen.method() {
        "DELETE" => Answer::ok("undone"),
        _ => Answer::ok(seen.header("authorization").unwrap_or_default()),
    });
    let grant = with(server.grant("api"), json!({"auth": {"bearer": "${password}"}, "plain_http": true}));
    let job = job(json!([grant])).properties(json!({"password": "a long password of the job"}));
    let undo = json!({"op": "http", "method": "DELETE", "url": server.url("/undo")});
    let script = json!([all((0..20).map(|number| get(&server.url(&format!("/{number}"))))), undo]);
    let response = job.call("create_disk", json!([1024, {"probe": script}, null])).run();
    assert!(response.message().contains("[tripwire]"), "{}", response.message());
    let received = server.requests();
    assert!(received.iter().any(|seen| seen.method() == "DELETE"), "the guest was stopped before it cleaned up");
    assert!(received.len() <= 9, "{} requests were sent, many after the first credential", received.len());
}

#[test]
fn a_batch_has_at_most_a_thousand_requests() {
    let server = Server::answering(Answer::ok(""));
    let script = all((0..1001).map(|number| get(&server.url(&format!("/{number}")))));
    let response = call(&job(json!([server.grant("api")])), &json!([script]));
    let text = "guest: 1001 requests are too many for one `send-all`; send at most 1000";
    assert!(response.message().contains(text), "{}", response.message());
    assert_eq!(server.connections(), 0);
}
