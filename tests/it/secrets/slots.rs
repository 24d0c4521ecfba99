//! Slots: the only places of a request where a seal is replaced by its secret.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Value, json};
use tests::cloud::{answered, create_vm, denied, job, outcomes, post, vm_outcomes, with_policy};
use tests::response::CANARY;
use tests::servers::{Answer, ReceivedRequest, Server, with};
use tests::{CLOUD_ERROR, Job};

const PASSWORD: &str = "pa$$ <&\"word";

fn slotted(server: &Server, place: &str, takes: Value) -> Job {
    let slot = json!({"method": "POST", "path": "/vms", "place": place, "takes": takes});
    let grant = with(server.grant("api"), json!({"slots": [slot], "query": ["q"], "plain_http": true}));
    job(json!([grant])).properties(json!({"password": PASSWORD, "other": "another secret"}))
}

/// Sends agent settings in a slot and returns the request that the server received.
fn send_settings(server: &Server, place: &str, encodings: Value, request: Value) -> ReceivedRequest {
    let job = slotted(server, place, json!(["agent"]));
    let script = json!([{"op": "agent.bootstrap", "vm_name": "vm-1", "encodings": encodings}, with(json!({"op": "http", "method": "POST", "url": server.url("/vms")}), request)]);
    let response = create_vm(&job, &script).run();
    answered(&vm_outcomes(&response)[1], 200);
    server.requests().pop().unwrap()
}

/// Parses the settings and checks that they are complete.
#[track_caller]
fn settings(text: &str) -> Value {
    let settings: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(settings["agent_id"], "agent-1");
    assert_eq!(settings["env"]["bosh"]["password"], format!("{CANARY}-env-password"));
    assert_eq!(settings["mbus"], format!("nats://nats:{CANARY}-mbus@10.0.0.6:4222"));
    settings
}

#[test]
fn agent_settings_arrive_in_the_requested_encoding() {
    let server = Server::answering(Answer::ok(""));
    let decoded = |text: &str, encoding: &str| match encoding {
        "json-string" => serde_json::from_str::<String>(text).unwrap(),
        "base64" => String::from_utf8(STANDARD.decode(text).unwrap()).unwrap(),
        _ => String::from_utf8(URL_SAFE.decode(text).unwrap()).unwrap(),
    };
    let mut all = Vec::new();
    for encodings in
        [&[][..], &["json-string"], &["base64"], &["base64url"], &["base64", "json-string"], &["json-string", "base64"]]
    {
        let request = json!({"headers": {"Content-Type": "application/json"}, "body": {"server": {"name": "vm-1", "user_data": "{{0.ok}}", "n": 1.50}}});
        let seen = send_settings(&server, "json:/server/user_data", json!(encodings), request);
        let body = seen.json();
        assert_eq!((&body["server"]["name"], &body["server"]["n"]), (&json!("vm-1"), &json!(1.5)));
        let text = body["server"]["user_data"].as_str().unwrap().to_owned();
        all.push(settings(&encodings.iter().rev().fold(text, |text, encoding| decoded(&text, encoding))));
    }
    assert!(all.iter().all(|one| *one == all[0]));
}

#[test]
fn agent_settings_can_be_sent_in_every_kind_of_place() {
    let server = Server::answering(Answer::ok(""));
    let typed = |kind: &str, body: &str| json!({"headers": {"Content-Type": kind}, "body": body});

    let seen = send_settings(
        &server,
        "form:UserData",
        json!([]),
        typed("application/x-www-form-urlencoded", "A=b%26&UserData={{0.ok}}&C="),
    );
    let fields: Vec<(&str, &str)> = seen.text().split('&').filter_map(|field| field.split_once('=')).collect();
    assert_eq!((fields.len(), fields[0], fields[2]), (3, ("A", "b%26"), ("C", "")));
    let plain = percent_decoded(fields[1].1);
    settings(&plain);

    let seen = send_settings(
        &server,
        "xml:/Run/UserData",
        json!([]),
        typed("application/xml", "<Run a='1'><Name>n &amp; m</Name><UserData>{{0.ok}}</UserData></Run>"),
    );
    let (before, rest) = seen.text().split_once("<UserData>").unwrap();
    let (data, after) = rest.split_once("</UserData>").unwrap();
    assert!(before.contains("n &amp; m") && after == "</Run>", "{}", seen.text());
    let unescaped = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    settings(&unescaped.iter().fold(data.to_owned(), |text, (entity, plain)| text.replace(entity, plain)));

    let parts = "--XX\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nvm-1\r\n--XX\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{{0.ok}}\r\n--XX--\r\n";
    let seen = send_settings(&server, "part:data", json!([]), typed("multipart/form-data; boundary=XX", parts));
    let boundary = seen.header("content-type").unwrap().split_once("boundary=").unwrap().1.trim_matches('"').to_owned();
    let found: Vec<&str> = seen.text().split(&format!("--{boundary}")).collect();
    assert_eq!(found.len(), 4, "{}", seen.text());
    settings(found[2].split_once("\r\n\r\n").unwrap().1.trim_end_matches("\r\n"));

    let seen = send_settings(&server, "body", json!([]), typed("text/plain", "{{0.ok}}"));
    settings(seen.text());
    let seen = send_settings(
        &server,
        "header:X-User-Data",
        json!(["base64"]),
        json!({"headers": {"X-User-Data": "{{0.ok}}"}, "body": "x"}),
    );
    let data = STANDARD.decode(seen.header("x-user-data").unwrap()).unwrap();
    settings(std::str::from_utf8(&data).unwrap());
    assert_eq!(seen.text(), "x");
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits = (byte == b'%').then(|| [rest.next().unwrap(), rest.next().unwrap()]);
        bytes.push(match (byte, digits) {
            (_, Some(digits)) => u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap(),
            (b'+', None) => b' ',
            (byte, None) => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_property_arrives_in_its_slot_with_the_encoding_of_the_place() {
    let server = Server::answering(Answer::ok(""));
    let run = |place: &str, request: Value| {
        let job = slotted(&server, place, json!(["password"]));
        let outcome = outcomes(&job, &json!([request])).remove(0);
        answered(&outcome, 200);
        server.requests().pop().unwrap()
    };
    let typed = |kind: &str, body: &str| json!({"op": "http", "method": "POST", "url": server.url("/vms"), "headers": {"Content-Type": kind}, "body": body});
    let seen = run("json:/a/0/p", post(&server.url("/vms"), &json!({"a": [{"p": "{{props.password}}"}]})));
    assert_eq!(seen.json(), json!({"a": [{"p": PASSWORD}]}));
    let seen = run("form:p", typed("application/x-www-form-urlencoded", "p={{props.password}}"));
    assert_eq!(seen.text(), "p=pa%24%24+%3C%26%22word");
    let seen = run("xml:/p", typed("text/xml", "<p>{{props.password}}</p>"));
    assert!(seen.text().contains("pa$$ &lt;&amp;") && !seen.text().contains("<&"), "{}", seen.text());
    let seen = run(
        "header:x-p",
        with(post(&server.url("/vms"), &json!({})), json!({"headers": {"X-P": "{{props.password}}"}})),
    );
    assert_eq!(seen.header("x-p"), Some(PASSWORD));
}

#[test]
fn a_request_with_a_seal_outside_of_its_slot_is_not_sent() {
    let server = Server::answering(Answer::ok(""));
    let url = server.url("/vms");
    let job = slotted(&server, "json:/data", json!(["password"]));
    let with_body = |body: Value| post(&url, &body);
    let raw = |body: &str| json!({"op": "http", "method": "POST", "url": url, "headers": {"Content-Type": "application/json"}, "body": body});
    let typed = |kind: &str, body: &str| json!({"op": "http", "method": "POST", "url": url, "headers": {"Content-Type": kind}, "body": body});
    let headed = |name: &str, value: &str| {
        with(with_body(json!({})), json!({"headers": {"Content-Type": "application/json", name: value}}))
    };
    let cases = [
        ("in the query", json!({"op": "http", "url": format!("{url}?q={{{{props.password}}}}")}), "is in the URL"),
        ("in the path", json!({"op": "http", "url": format!("{url}/{{{{props.password}}}}")}), "is in the URL"),
        (
            "in the query, base64",
            json!({"op": "http", "url": format!("{url}?q={{{{props.password|base64url}}}}")}),
            "is in the URL",
        ),
        (
            "in the query, in upper case",
            json!({"op": "http", "url": format!("{url}?q={{{{props.password|upper}}}}")}),
            "is in the URL",
        ),
        (
            "in the query, half of it",
            json!({"op": "http", "url": format!("{url}?q={{{{props.password|first}}}}")}),
            "is in the URL",
        ),
        ("in a header", headed("X-Any", "{{props.password}}"), "`header:x-any`"),
        ("in a header's name", headed("{{props.password}}", "x"), "the name of a header"),
        ("in a header, base64", headed("X-Any", "{{props.password|base64}}"), "was changed by base64"),
        (
            "in another field",
            with_body(json!({"other": "{{props.password}}"})),
            "`json:/other`, where the grant has no slot",
        ),
        ("deeper", with_body(json!({"data": {"data": "{{props.password}}"}})), "`json:/data/data`"),
        ("in a list", with_body(json!({"data": ["{{props.password}}"]})), "`json:/data/0`"),
        ("as a key", with_body(json!({"{{props.password}}": 1})), "a key of the JSON body"),
        (
            "in the slot and elsewhere",
            with_body(json!({"data": "{{props.password}}", "name": "{{props.password}}"})),
            "`json:/name`",
        ),
        ("within a text", with_body(json!({"data": "x{{props.password}}"})), "within a longer text"),
        ("with a space", with_body(json!({"data": "{{props.password}} "})), "within a longer text"),
        ("base64", with_body(json!({"data": "{{props.password|base64}}"})), "was changed by base64"),
        ("base64 of base64url", with_body(json!({"data": "{{props.password|base64url}}"})), "was changed by base64"),
        ("hex", with_body(json!({"data": "{{props.password|hex}}"})), "was changed by hex"),
        ("upper case", with_body(json!({"data": "{{props.password|upper}}"})), "was changed by changing its case"),
        (
            "split",
            with_body(json!({"data": "{{props.password|first}}", "b": "{{props.password|second}}"})),
            "was changed by splitting",
        ),
        ("half", with_body(json!({"x": "{{props.password|second}}"})), "was changed by splitting"),
        ("a text within JSON", with_body(json!({"data": "{{props.password|json}}"})), "`json:/data`"),
        ("twice in one key", raw(r#"{"data":"{{props.password}}","data":"x"}"#), "cannot be used"),
        ("in a body that is not JSON", raw(r#"{"data":"{{props.password}}""#), "cannot be used"),
        ("in JSON with another content type", typed("text/plain", r#"{"data":"{{props.password}}"}"#), ""),
        ("in a form", typed("application/x-www-form-urlencoded", "data={{props.password}}"), "`form:data`"),
        (
            "in a part",
            typed(
                "multipart/form-data; boundary=X",
                "--X\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{{props.password}}\r\n--X--\r\n",
            ),
            "",
        ),
        (
            "by another method",
            json!({"op": "http", "method": "PUT", "url": url, "headers": {"Content-Type": "application/json"}, "body": {"data": "{{props.password}}"}}),
            "no slot",
        ),
        ("to another path", post(&server.url("/vms/1"), &json!({"data": "{{props.password}}"})), "no slot"),
        (
            "another secret in the slot",
            with_body(json!({"data": "{{props.other}}"})),
            "whose slot takes `password` only",
        ),
    ];
    let script: Vec<Value> = cases.iter().map(|(_, request, _)| request.clone()).collect();
    for ((name, _, expected), outcome) in cases.iter().zip(outcomes(&job, &json!(script))) {
        assert_eq!(outcome["error"]["reason"], "slot", "{name}: {outcome}");
        denied(&outcome, "slot", &["was not sent: the sealed value", expected]);
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn agent_settings_are_refused_in_other_slots_and_if_the_guest_changed_them() {
    let server = Server::answering(Answer::ok(""));
    let url = server.url("/vms");
    let run = |takes: Value, body: Value| {
        let job = slotted(&server, "json:/data", takes);
        let response = create_vm(&job, &json!([{"op": "agent.bootstrap"}, post(&url, &body), {"op": "error", "kind": "cloud", "message": "{{1|json}}"}])).run();
        response.fails(CLOUD_ERROR, &["denied"]).message().to_owned()
    };
    assert!(run(json!(["password"]), json!({"data": "{{0.ok}}"})).contains("whose slot takes `password` only"));
    assert!(run(json!(["agent"]), json!({"name": "{{0.ok}}"})).contains("where the grant has no slot"));
    let encoded = run(json!(["agent"]), json!({"data": "{{0.ok|base64}}"}));
    assert!(
        encoded.contains("was changed by base64")
            && encoded.contains("name the encoding it wants when it asks for agent settings"),
        "{encoded}"
    );
    assert_eq!(server.connections(), 0);
}

#[test]
fn create_vm_fails_if_the_agent_settings_were_never_sent() {
    let server = Server::start(|seen| if seen.target() == "/vms" { Answer::new(403, "no") } else { Answer::ok("") });
    let job = slotted(&server, "json:/data", json!(["agent"]));
    let bootstrap = json!({"op": "agent.bootstrap"});
    let send = post(&server.url("/vms"), &json!({"data": "{{0.ok}}"}));
    let done = json!({"op": "result", "json": "vm-1"});
    for (script, expected) in [
        (json!([done]), "without calling `agent.bootstrap`"),
        (json!([bootstrap, done]), "without sending the user-data of `agent.bootstrap`"),
        (json!([bootstrap, send, done]), "without sending the user-data of `agent.bootstrap`"),
        (json!([bootstrap, post(&server.url("/other"), &json!({})), done]), "without sending the user-data"),
    ] {
        create_vm(&job, &script)
            .run()
            .fails(CLOUD_ERROR, &["guest: `create_vm` created `vm-1` ", expected, "a bug in the guest"]);
    }
    // A policy without a slot for the settings does not require that they are sent.
    let without = with_policy(json!({"http": [server.grant("api")]}));
    assert_eq!(create_vm(&without, &json!([bootstrap, done])).run().result()[0], "vm-1");
}
