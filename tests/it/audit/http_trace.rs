//! `http_trace`: requests and responses on stderr, without secrets and with bounded size.

use serde_json::{Value, json};
use tests::cloud::{create_vm, get, post, with_policy};
use tests::job::write;
use tests::response::CANARY;
use tests::servers::{Answer, Server, with};
use tests::{CLOUD_ERROR, Job, Response};

const PASSWORD: &str = "correct-horse-battery-staple";
const TOKEN: &str = "a-token-that-is-never-shown";
const CAPTURED: &str = "a-value-that-is-captured";
/// Shorter than the secrets that the runtime searches for in texts.
const PIN: &str = "zq9";

fn cloud() -> Server {
    Server::start(|seen| match seen.target() {
        "/tokens" => Answer::json(200, &json!({"token": TOKEN, "refresh": "another-secret-of-the-login"}))
            .header("X-Handed-Out", "a-secret-in-a-header"),
        "/capture" => Answer::json(200, &json!({"key": CAPTURED, "plain": "shown-of-the-response"}))
            .header("Set-Cookie", "c=a-cookie-of-the-cloud"),
        "/binary" => Answer::ok(vec![0, 159, 146, 150]).header("Content-Type", "application/octet-stream"),
        "/leak" => Answer::ok(PASSWORD),
        "/gone" => Answer::bytes(""),
        _ => Answer::json(201, &json!({"id": "vm-1", "adminPass": "made-by-the-cloud"})).header("X-Shown", "a-value"),
    })
}

fn job(cloud: &Server, trace: &str) -> Job {
    let login = json!({
        "to": cloud.origin(), "path": "/tokens", "addresses": ["127.0.0.0/8"], "plain_http": true, "token": "json:/token",
        "body": {"password": "${password}", "pin": "${pin}"}, "headers": {"X-Pin": "${pin}"}, "send": {"header": "X-Its-Own"},
    });
    let grant = json!({
        "auth": {"login": "main"}, "plain_http": true,
        "slots": [
            {"method": "POST", "path": "/vms", "place": "json:/user_data", "show": ["json:/id", "header:X-Shown"]},
            {"method": "POST", "path": "/vms", "place": "json:/pin", "takes": ["pin"], "show": ["json:/id", "header:X-Shown"]},
        ],
        "query": ["flavor", "x"],
        "captures": [{"method": "GET", "path": "/capture", "place": "json:/key", "as": "key"}],
    });
    with_policy(json!({"logins": {"main": login}, "http": [with(cloud.grant("api"), grant)]}))
        .properties(json!({"password": PASSWORD, "pin": PIN}))
        .configure(|config| config["http_trace"] = json!(trace))
}

fn script(cloud: &Server) -> Value {
    json!([
        {"op": "config"},
        {"op": "agent.bootstrap", "vm_name": "the-name", "encodings": ["base64"]},
        with(post(&cloud.url("/vms?flavor=shown-of-the-query&x=1"), &json!({
            "name": "shown-of-the-body\u{1b}[2J\u{202e}", "user_data": "{{1.ok}}", "pin": "{{0.ok.pin}}",
        })), json!({"headers": {"Content-Type": "application/json", "X-Plain": "shown-of-the-headers"}})),
        get(&cloud.url("/capture")),
        get(&cloud.url("/binary")),
        get(&cloud.url("/leak")),
        get(&cloud.url("/gone")),
        get("http://elsewhere.test/"),
        {"op": "result", "json": "vm-1"},
    ])
}

fn traced(response: &Response) -> Vec<&str> {
    response.stderr.lines().filter_map(|line| line.split_once(" http_trace trace: ").map(|(_, rest)| rest)).collect()
}

#[track_caller]
fn check_no_secret(response: &Response) {
    let secrets = [
        PASSWORD,
        TOKEN,
        CAPTURED,
        PIN,
        CANARY,
        "another-secret-of-the-login",
        "a-secret-in-a-header",
        "a-cookie-of-the-cloud",
        "made-by-the-cloud",
        "bmF0czov",
    ];
    for secret in secrets {
        assert!(!response.stderr.contains(secret), "{secret} in {}", response.stderr);
    }
}

#[test]
fn nothing_is_traced_without_http_trace() {
    let cloud = cloud();
    let job = job(&cloud, "headers").configure(|config| config["http_trace"] = json!(null));
    let response = create_vm(&job, &script(&cloud)).run();
    response.fails(CLOUD_ERROR, &["held the credential `password`"]);
    assert_eq!(traced(&response), Vec::<&str>::new());
}

#[test]
fn the_level_headers_shows_no_bodies() {
    let cloud = cloud();
    let response = create_vm(&job(&cloud, "headers"), &script(&cloud)).run();
    response.fails(CLOUD_ERROR, &["held the credential `password`"]);
    check_no_secret(&response);
    let lines = traced(&response);
    let url = cloud.url("/vms?flavor=shown-of-the-query&x=1");
    for expected in [
        format!("> POST {} (login `main`)", cloud.url("/tokens")),
        "> x-pin: <redacted>".into(),
        "< 200 (login `main`)".into(),
        "< x-handed-out: <redacted>".into(),
        format!("> POST {url} (grant `api`)"),
        "> X-Plain: shown-of-the-headers".into(),
        "> x-its-own: <redacted>".into(),
        "< 201 (grant `api`)".into(),
        "< x-shown: a-value".into(),
        "< withheld: denied(leak) (grant `api`)".into(),
        "< protocol (grant `api`)".into(),
    ] {
        assert!(lines.contains(&expected.as_str()), "no `{expected}` in {lines:#?}");
    }
    assert!(!response.stderr.contains("shown-of-the-body") && !response.stderr.contains("shown-of-the-response"));
    assert!(!lines.iter().any(|line| line.contains("elsewhere")), "a request that is not sent must not be traced");
}

#[test]
fn the_level_bodies_shows_bodies_with_seals_instead_of_secrets() {
    let cloud = cloud();
    let response = create_vm(&job(&cloud, "bodies"), &script(&cloud)).run();
    response.fails(CLOUD_ERROR, &["held the credential `password`"]);
    check_no_secret(&response);
    let lines = traced(&response);
    let sent = cloud.requests().into_iter().find(|seen| seen.target().starts_with("/vms")).unwrap();
    assert_eq!(sent.json()["pin"], PIN);
    let body = lines.iter().find(|line| line.contains("shown-of-the-body")).unwrap();
    assert!(body.contains(r#""user_data":"<sealed:agent>""#) && body.contains(r#""pin":"<sealed:pin>""#), "{body}");
    let captured = lines.iter().find(|line| line.contains("shown-of-the-response")).unwrap();
    assert!(captured.contains(r#""key":"<sealed:key>""#), "{captured}");
    assert!(lines.contains(&"< 4 bytes that are not text"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.ends_with(" the body of a login, not shown")), "{lines:#?}");
}

#[test]
fn trace_lines_are_json_if_the_log_format_is_json() {
    let cloud = cloud();
    let job = job(&cloud, "bodies").configure(|config| config["log"] = json!({"format": "json", "level": "error"}));
    let response = create_vm(&job, &script(&cloud)).run();
    response.fails(CLOUD_ERROR, &["held the credential `password`"]);
    check_no_secret(&response);
    let mut lines: Vec<Value> = response.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The last line is the error of the call.
    assert_eq!(lines.pop().unwrap()["level"], "error");
    assert!(lines.len() > 20 && lines.iter().all(|line| line["source"] == "http_trace" && line["level"] == "trace"));
}

#[test]
fn only_the_size_of_an_image_is_traced() {
    let server = Server::answering(Answer::ok(""));
    let job =
        with_policy(json!({"http": [server.grant("api")]})).configure(|config| config["http_trace"] = json!("bodies"));
    write(&job.path("image"), "content of the image".as_bytes());
    let script = json!([{"op": "http", "method": "PUT", "url": server.url("/image"), "image": true}]);
    let response = job.call("create_stemcell", json!([job.path("image"), {"probe": script}])).run();
    response.result();
    assert!(traced(&response).contains(&"> 20 bytes of the image"), "{}", response.stderr);
    assert!(!response.stderr.contains("content of the image"));
}

#[test]
fn the_size_of_the_trace_of_a_call_is_bounded() {
    let server = Server::answering(Answer::ok("answer ".repeat(10_000)));
    let job =
        with_policy(json!({"http": [server.grant("api")]})).configure(|config| config["http_trace"] = json!("bodies"));
    let body = "sent ".repeat(20_000);
    let request =
        json!({"op": "http", "method": "POST", "url": server.url("/"), "body": body, "keep": 1, "repeat": 100});
    let response = job.script(json!([request])).run();
    response.result();
    let lines = traced(&response);
    assert!(lines.iter().all(|line| line.len() < 5 * 1024));
    assert_eq!(lines.last(), Some(&"the trace of this call ends here: it reached 256 KiB"));
    assert!(response.stderr.len() < 300 * 1024, "{} bytes", response.stderr.len());
}

#[test]
fn credentials_in_queries_and_headers_are_redacted() {
    let server = Server::answering(Answer::ok(""));
    let job =
        with_policy(json!({"http": [server.grant("api")]})).configure(|config| config["http_trace"] = json!("headers"));
    let url = server.url("/x?a=shown&access_token=unseen-1&X-Amz-Signature=unseen-2&sig=unseen-3&b");
    let request = json!({"op": "http", "url": url, "headers": {"X-Api-Key": "unseen-4", "Cookie": "unseen-5", "X-Session": "unseen-6"}});
    let response = job.script(json!([request])).run();
    response.result();
    assert!(!response.stderr.contains("unseen"), "{}", response.stderr);
    let shown = server.url("/x?a=shown&access_token=<redacted>&X-Amz-Signature=<redacted>&sig=<redacted>&b");
    assert!(traced(&response).contains(&format!("> GET {shown} (grant `api`)").as_str()), "{}", response.stderr);
}
