//! Secrets in responses, and secrets that a guest has learned nevertheless.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use serde_json::json;
use tests::cloud::{answered, call, failed, get, job, outcomes};
use tests::servers::{Answer, Server};
use tests::{CLOUD_ERROR, Job, Response};

const SECRET: &str = "s3cr3t/of+the \"job\" & more";

fn echoing(answer: Answer) -> (Server, Job) {
    let server = Server::answering(answer);
    let job = job(json!([server.grant("api")])).properties(json!({"auth": {"password": SECRET}, "pin": "4711-0815"}));
    // Several calls of one job leak here.
    (server, job.configure(|config| config["leaks"] = json!("end")))
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_response_that_holds_a_secret_in_any_encoding_is_withheld() {
    let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let escaped: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let entities = SECRET.replace('&', "&amp;").replace('"', "&quot;");
    let within = json!({"settings": json!({"a": {"password": SECRET}}).to_string()}).to_string();
    let wrapped = STANDARD
        .encode(format!("user-data: {SECRET} and more of it"))
        .as_bytes()
        .chunks(20)
        .map(|line| String::from_utf8_lossy(line) + "\n")
        .collect::<String>();
    for (name, body) in [
        ("raw", format!("it is {SECRET}.")),
        ("in JSON", json!({"a": [SECRET]}).to_string()),
        ("in JSON in JSON", within),
        ("escaped", format!("{{\"a\": \"{escaped}\"}}")),
        ("percent-encoded", format!("q={percent}")),
        (
            "as form data",
            format!(
                "q={}",
                SECRET
                    .replace('/', "%2F")
                    .replace('+', "%2B")
                    .replace('"', "%22")
                    .replace('&', "%26")
                    .replace(' ', "+")
            ),
        ),
        ("XML", format!("<a>{entities}</a>")),
        ("hex", hex(SECRET)),
        ("HEX", hex(SECRET).to_uppercase()),
        ("base64", STANDARD.encode(SECRET)),
        ("base64 after one byte", STANDARD.encode(format!("x{SECRET}"))),
        ("base64 after two bytes", STANDARD.encode(format!("xy{SECRET}z"))),
        ("base64url", URL_SAFE.encode(SECRET)),
        ("base64 without padding", STANDARD_NO_PAD.encode(format!("a:{SECRET}"))),
        ("base64 in lines", wrapped),
        ("base64 of JSON", STANDARD.encode(json!({"password": SECRET}).to_string())),
    ] {
        let (server, job) = echoing(Answer::ok(body));
        let response = call(&job, &json!([get(&server.url("/"))]));
        let outcome = tests::probe::outcomes_in(response.message()).remove(0);
        failed(&outcome, "cancelled", true, &["the call is ending: undo what is unfinished, and return"]);
        let held = format!("the response to GET {} held the credential `auth.password`", server.url("/"));
        assert!(response.message().contains(&held), "{name}: {}", response.message());
        assert!(response.stderr.contains("`drop`"), "{name}: {}", response.stderr);
    }
    for answer in [
        Answer::ok("").header("X-Echo", SECRET),
        Answer::ok("").header("Location", "http://x.test/?p=s3cr3t%2Fof%2Bthe%20%22job%22%20%26%20more"),
        Answer::new(500, format!("wrong password {SECRET}")),
    ] {
        let (server, job) = echoing(answer);
        let outcome = outcomes(&job, &json!([get(&server.url("/"))])).remove(0);
        assert_eq!(outcome["error"]["kind"], "cancelled", "{outcome}");
    }
}

#[test]
fn exposed_and_short_values_in_a_response_are_not_leaks() {
    let server = Server::answering(Answer::ok("region-of-this-cloud 4711-0815"));
    let job = tests::cloud::with_policy(json!({"http": [server.grant("api")], "expose": ["region"]}))
        .properties(json!({"region": "region-of-this-cloud", "pin": "4711-0815"}));
    let outcome = outcomes(&job, &json!([get(&server.url("/"))])).remove(0);
    // The short secret is redacted in the response of the call.
    assert_eq!(answered(&outcome, 200)["body"], "region-of-this-cloud <redacted>");
}

#[test]
fn a_leak_ends_the_call_in_two_stages_and_a_second_one_stops_the_guest() {
    let secret = Server::start(|seen| match seen.target() {
        "/leak" => Answer::ok(SECRET),
        _ => Answer::ok("fine"),
    });
    let job = job(json!([secret.grant("api")])).properties(json!({"auth": {"password": SECRET}}));
    let job = job.configure(|config| config["leaks"] = json!("end"));
    let undo = json!({"op": "http", "method": "DELETE", "url": secret.url("/undo")});
    let script = json!([
        get(&secret.url("/leak")),
        {"op": "clock.sleep", "ms": 60_000, "on_cancel": [undo, {"op": "log", "message": "cleaned up"}]},
    ]);
    let response = call(&job, &script);
    response.fails(CLOUD_ERROR, &["policy: the response to GET", "held the credential `auth.password`"]);
    assert!(response.stderr.contains("cleaned up"), "{}", response.stderr);
    assert_eq!(secret.requests().len(), 2);
    // The call also fails if the guest ignores the leak, and is stopped at the next one.
    let ignoring = json!([get(&secret.url("/leak")), {"op": "result", "json": true}]);
    call(&job, &ignoring).fails(CLOUD_ERROR, &["held the credential `auth.password`"]);
    let insisting = json!([get(&secret.url("/leak")), get(&secret.url("/leak")), get(&secret.url("/leak"))]);
    let before = secret.requests().len();
    call(&job, &insisting).fails(CLOUD_ERROR, &["held the credential", "got a second credential while it cleaned up"]);
    assert_eq!(secret.requests().len(), before + 2);
}

/// The server sends the secret reversed, which is not detected. The guest reverses it again and
/// tries to write it to every output that it has.
#[test]
fn a_secret_that_a_guest_learned_appears_in_no_output() {
    let backwards: String = SECRET.chars().rev().collect();
    let (server, job) = echoing(Answer::json(200, &json!({"p": backwards})));
    let learn = json!({"op": "http", "url": server.url("/"), "keep": 100});
    let forms = ["", "|base64", "|base64url", "|hex", "|percent", "|json", "|hex|upper"];
    let learned = |form: &str| format!("it is {{{{0.ok.body.p|reverse{form}}}}}, really");
    let check_clean = |response: &Response| {
        let text = format!("{} {}", response.json, response.stderr);
        let hex = hex(SECRET);
        for secret in ["s3cr3t", "of+the", "czNjcjN0", &hex[..20], &hex.to_uppercase()[..20]] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    };
    let operations = |op: &str, key: &str| forms.map(|form| json!({"op": op, key: learned(form)}));
    let script =
        [vec![learn.clone()], operations("log", "message").to_vec(), operations("print", "text").to_vec()].concat();
    let logged = call(&job, &json!(script));
    check_clean(&logged);
    assert_eq!(logged.stderr.matches("<redacted>").count(), 2 * forms.len(), "{}", logged.stderr);
    for form in forms {
        for end in [
            json!({"op": "error", "kind": "cloud", "message": learned(form)}),
            json!({"op": "error", "kind": "no-disk-space", "message": learned(form)}),
            json!({"op": "panic", "message": learned(form)}),
        ] {
            let response = job.script(json!([learn, end])).run();
            check_clean(&response);
            assert!(response.json.to_string().contains("<redacted>"), "{}", response.json);
        }
        // A result is either returned unchanged or withheld.
        let response = job.script(json!([learn, {"op": "result", "json": learned(form)}])).run();
        check_clean(&response);
        response.fails(
            CLOUD_ERROR,
            &["the result was withheld, because it holds the credential `auth.password`", "`drop` of the grant"],
        );
    }
    for network in [
        json!({"name": "net", "ip": learned("")}),
        json!({"name": "net", "extra": {learned(""): [1]}}),
        json!({"name": "net", "cloud_properties": {"p": learned("")}}),
    ] {
        let vm = json!({"op": "result", "json": {"vm": "vm-1", "networks": [network]}});
        let response = tests::cloud::create_vm(&job, &json!([learn, vm])).run();
        check_clean(&response);
        response.fails(CLOUD_ERROR, &["the result was withheld"]);
    }
}
