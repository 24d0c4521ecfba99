//! Values of responses that are replaced by seals before the guest sees them, and values
//! that are removed.

use serde_json::{Value, json};
use tests::cloud::{answered, failed, get, outcomes, post, with_policy};
use tests::servers::{Answer, Server, with};
use tests::{CPI_ERROR, Job};

const TOKEN: &str = "t0ken-of-the-cloud";

fn job(server: &Server, keys: Value) -> Job {
    with_policy(json!({"http": [with(with(server.grant("api"), json!({"plain_http": true})), keys)]}))
}

fn capture(place: &str) -> Value {
    json!([{"method": "POST", "path": "/login", "place": place, "as": "token"}])
}

#[test]
fn a_captured_value_becomes_a_seal_that_can_be_sent_in_its_slot() {
    for (place, answer, seen) in [
        (
            "json:/access/token",
            Answer::json(200, &json!({"access": {"token": TOKEN, "id": 7}})),
            "{{0.ok.body.access.token}}",
        ),
        ("header:X-Subject-Token", Answer::ok("").header("X-Subject-Token", TOKEN), "{{0.ok.headers.x-subject-token}}"),
        ("xml:Token", Answer::ok(format!("<A><Token>{TOKEN}</Token></A>")).header("Content-Type", "text/xml"), ""),
        ("cookie:session", Answer::ok("").header("Set-Cookie", &format!("session={TOKEN}; Path=/; HttpOnly")), ""),
        ("body", Answer::ok(TOKEN), "{{0.ok.body}}"),
    ] {
        let server =
            Server::start(move |request| if request.target() == "/login" { answer.clone() } else { Answer::ok("in") });
        let slots = json!([{"method": "GET", "path": "/use", "place": "header:X-Token", "takes": ["token"]}]);
        let job = job(&server, json!({"captures": capture(place), "slots": slots}));
        let mut script = vec![
            json!({"op": "http", "method": "POST", "url": server.url("/login")}),
            json!({"op": "find", "reversed": "duolc-eht-fo-nek0t"}),
        ];
        if !seen.is_empty() {
            script.push(with(get(&server.url("/use")), json!({"headers": {"X-Token": seen}})));
        }
        let outcomes = outcomes(&job, &json!(script));
        let shown = answered(&outcomes[0], 200).to_string();
        assert!(shown.contains("<sealed:token>") && !shown.contains(TOKEN), "{place}: {shown}");
        assert_eq!(outcomes[1]["ok"]["count"], 0, "{place}");
        if !seen.is_empty() {
            answered(&outcomes[2], 200);
            assert_eq!(server.requests()[1].header("x-token"), Some(TOKEN), "{place}");
        }
        if place.starts_with("json") {
            assert!(shown.contains("\\\"id\\\":7"), "{shown}");
        }
    }
}

#[test]
fn a_captured_value_in_a_later_response_is_a_leak() {
    let server = Server::start(|_| Answer::json(200, &json!({"token": TOKEN})));
    let job = job(&server, json!({"captures": capture("json:/token")}));
    let outcomes = outcomes(
        &job,
        &json!([{"op": "http", "method": "POST", "url": server.url("/login")}, get(&server.url("/elsewhere"))]),
    );
    answered(&outcomes[0], 200);
    failed(&outcomes[1], "cancelled", true, &["the call is ending"]);
}

#[test]
fn a_response_whose_value_cannot_be_captured_is_withheld() {
    for (answer, withheld) in [
        (
            Answer::new(200, format!("{{\"token\":\"{TOKEN}\",\"token\":\"{TOKEN}\"}}"))
                .header("Content-Type", "application/json"),
            true,
        ),
        (Answer::new(200, format!("{{\"token\":\"{TOKEN}\"")).header("Content-Type", "application/json"), true),
        (Answer::new(200, TOKEN).header("Content-Type", "text/plain"), true),
        (Answer::json(200, &json!({"token": TOKEN.repeat(4000)})), true),
        (Answer::ok("\x1f\u{8b}").header("Content-Encoding", "gzip").header("Content-Type", "application/json"), true),
        (Answer::new(500, "<h1>an error page</h1>").header("Content-Type", "text/html"), false),
        (Answer::json(200, &json!({"other": 1})), false),
        (Answer::json(200, &json!({"token": null})), false),
    ] {
        let server = Server::answering(answer);
        let job = job(&server, json!({"captures": capture("json:/token")}));
        let outcome = outcomes(&job, &json!([{"op": "http", "method": "POST", "url": server.url("/login")}])).remove(0);
        assert!(!outcome.to_string().contains(TOKEN), "{outcome}");
        match withheld {
            true => failed(&outcome, "protocol", true, &["iaas: the response to POST /login was withheld"]),
            false => assert!(outcome["ok"]["status"].is_number(), "{outcome}"),
        }
    }
}

#[test]
fn credentials_that_are_not_captured_are_removed() {
    let server = Server::start(|seen| match seen.target() {
        "/headers" => ["Set-Cookie", "X-Subject-Token", "X-Auth-Token", "Authorization", "Proxy-Authenticate"]
            .iter()
            .fold(Answer::ok("").header("X-Kept", "yes").header("WWW-Authenticate", "Basic"), |answer, name| {
                answer.header(name, "s=ecret-of-the-cloud")
            }),
        "/json" => Answer::json(
            200,
            &json!({"server": {"id": 7, "adminPass": "ecret", "user_data": {"a": ["ecret", 1]}, "OS-EXT:admin_password": "ecret", "key": {"private_key": "ecret"}, "userData": ""}}),
        ),
        "/escaped" => {
            Answer::new(200, r#"{"admin\u0050ass": "ecret", "x": 1}"#).header("Content-Type", "application/json")
        }
        "/xml" => Answer::new(200, "<a><ns:userData>ecret</ns:userData><privateKey>ecret</privateKey><id>7</id></a>"),
        _ => Answer::new(404, ""),
    });
    let paths = ["/headers", "/json", "/escaped", "/xml"];
    let script: Vec<Value> = paths.iter().map(|path| get(&server.url(path))).collect();
    let outcomes = outcomes(&job(&server, json!({})), &json!(script));
    for (path, outcome) in paths.iter().zip(&outcomes) {
        assert!(!answered(outcome, 200).to_string().contains("ecret"), "{path}: {outcome}");
    }
    assert_eq!(
        outcomes[0]["ok"]["headers"],
        json!({"x-kept": "yes", "www-authenticate": "Basic", "content-length": "0"})
    );
    let body: Value = serde_json::from_str(outcomes[1]["ok"]["body"].as_str().unwrap()).unwrap();
    assert_eq!(
        body,
        json!({"server": {"id": 7, "adminPass": null, "user_data": {"a": [null, null]}, "OS-EXT:admin_password": null, "key": {"private_key": null}, "userData": null}})
    );
    assert_eq!(outcomes[1]["ok"]["headers"]["content-length"], outcomes[1]["ok"]["bytes"].to_string());
    assert!(outcomes[3]["ok"]["body"].as_str().unwrap().contains("<id>7</id>"));
}

#[test]
fn a_slot_accepts_only_captures_and_properties_that_exist() {
    let server = Server::answering(Answer::ok(""));
    let slots = json!([{"method": "GET", "path": "/use", "place": "header:X-Token", "takes": ["token"]}]);
    let response = job(&server, json!({"slots": slots})).script(json!([])).run();
    response.fails(
        CPI_ERROR,
        &["`http[0].slots[0].takes`", "names `token`, which is neither a capture nor a property that is set"],
    );
    // The slot does not accept another property either.
    let captured = job(&server, json!({"slots": slots, "captures": capture("json:/token")}));
    let outcome = outcomes(
        &captured,
        &json!([
            with(get(&server.url("/use")), json!({"headers": {"X-Token": "{{props.password}}"}})),
            post(&server.url("/login"), &json!({}))
        ]),
    );
    tests::cloud::denied(&outcome[0], "slot", &["whose slot takes `token` only"]);
    answered(&outcome[1], 200);
}

#[test]
fn the_size_limit_applies_to_a_response_that_grows_when_values_are_removed() {
    let many = format!("{{\"user_data\": [{}0]}}", "1,".repeat(400_000));
    let server = Server::answering(Answer::new(200, many));
    let job = job(&server, json!({})).limits(json!({"http_response_mib": 1}));
    let outcome = outcomes(&job, &json!([get(&server.url("/"))])).remove(0);
    assert_eq!(outcome["error"]["limit"], "http_response_mib", "{outcome}");
    failed(&outcome, "limit", true, &["raise `limits.http_response_mib`"]);
}
