//! The two keys: what the operator grants and what the guest declares. A denial
//! of what is declared says what to paste.

use serde_json::{Value, json};
use tests::cloud::{answered, denied, get, job, needing, outcome, post};
use tests::servers::{Answer, Server, with};
use tests::{CPI_ERROR, Job};

/// The grant in a denial.
#[track_caller]
fn hint(outcome: &Value) -> Value {
    let message = outcome["error"]["message"].as_str().unwrap_or_default();
    let (_, rest) = message
        .split_once("to allow it, add this, asked for by the guest, to the policy's \"http\": ")
        .unwrap_or_else(|| panic!("no hint in: {message}"));
    serde_json::from_str(rest).unwrap_or_else(|error| panic!("{rest}: {error}"))
}

#[test]
fn what_a_denial_says_to_paste_opens_just_that() {
    let server = Server::answering(Answer::ok("in"));
    let request = json!({"op": "http", "method": "PUT", "url": server.url("/v1/things/7?secret=query")});
    let near = with(server.grant("any"), json!({"methods": ["GET"], "paths": ["/v1/**"]}));
    let other = with(near.clone(), json!({"methods": ["PUT"], "paths": ["/v2/**"]}));
    let far = with(near.clone(), json!({"to": "http://127.0.0.2"}));
    for (grants, reason) in
        [(json!([]), "undeclared"), (json!([near]), "method"), (json!([other]), "path"), (json!([far]), "host")]
    {
        let mut grants = grants;
        let refused = outcome(&job(grants.clone()), request.clone());
        denied(&refused, reason, &["asked for by the guest"]);
        let pasted = hint(&refused);
        let keys: Vec<&String> = pasted.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["id", "to", "methods", "paths"], "{pasted}");
        assert_eq!(pasted["to"], server.origin());
        assert_eq!((&pasted["methods"], &pasted["paths"]), (&json!(["PUT"]), &json!(["/v1/things/7"])));
        assert!(grants.as_array().unwrap().iter().all(|grant| grant["id"] != pasted["id"]), "{pasted}");
        grants.as_array_mut().unwrap().push(pasted);
        // Which addresses it may have is left for the operator to think of.
        denied(&outcome(&job(grants.clone()), request.clone()), "address", &["`addresses`, as a CIDR"]);
        grants.as_array_mut().unwrap().last_mut().unwrap()["addresses"] = json!(["127.0.0.1/32"]);
        let opened = job(grants);
        assert_eq!(answered(&outcome(&opened, request.clone()), 200)["body"], "in");
        for (method, path) in [("PUT", "/v1/things/8"), ("DELETE", "/v1/things/7"), ("PUT", "/v1/things/7/x")] {
            let other = json!({"op": "http", "method": method, "url": server.url(path)});
            assert_eq!(outcome(&opened, other)["error"]["kind"], "denied", "{method} {path}");
        }
    }
    assert_eq!(server.connections(), 4);
}

/// Puts a text into the list of grants in the policy's file, as an operator does in an editor.
fn paste(job: &Job, text: &str) {
    let file = std::fs::read_to_string(job.policy_file()).unwrap();
    let (before, after) = file.split_once("\"http\":[").unwrap();
    let comma = if after.starts_with(']') { "" } else { "," };
    tests::job::write(&job.policy_file(), format!("{before}\"http\":[\n  {text}{comma}{after}").as_bytes());
}

/// What follows these words in a denial is what to paste.
fn to_paste(outcome: &Value) -> Option<String> {
    let message = outcome["error"]["message"].as_str().unwrap_or_default();
    message.split_once("asked for by the guest, to the policy's \"http\": ").map(|(_, text)| text.to_owned())
}

#[test]
fn the_text_of_a_denial_in_the_policys_file_lets_the_request_arrive() {
    let server = Server::answering(Answer::ok("arrived"));
    let origin = server.origin();
    let busy = with(server.grant("api"), json!({"methods": ["GET"], "paths": ["/v9/**"]}));
    for (number, (need, method, path)) in [
        (json!({"id": "api", "to": origin, "methods": ["PUT"], "paths": ["/v1/*/x"]}), "PUT", "/v1/a/x?q=1"),
        (json!({"id": "api", "to": "${endpoint}", "methods": ["GET", "DELETE"], "paths": ["/v2/**"]}), "DELETE", "/v2"),
        (json!({"id": "api", "to": origin, "methods": "*", "paths": ["/v3"]}), "PATCH", "/v3"),
        (json!({"id": "api", "to": "*", "methods": ["HEAD"], "paths": "*"}), "HEAD", "/v4/%C3%A9;x=1"),
    ]
    .into_iter()
    .enumerate()
    {
        // A value that is not exposed is shown nowhere: the text names the property instead.
        let properties = if need["to"] == "${endpoint}" { json!({"endpoint": origin}) } else { json!({}) };
        let guest = needing(&json!({"version": 1, "http": [need]}));
        let request = json!({"op": "http", "method": method, "url": server.url(path)});
        let grants = if number % 2 == 0 { json!([]) } else { json!([busy]) };
        let job = job(grants).guest_bytes(&guest).properties(properties);
        let refused = outcome(&job, request.clone());
        let text = to_paste(&refused).unwrap_or_else(|| panic!("nothing to paste in {refused}"));
        paste(&job, &text);
        // It opens names; which addresses they may have is left to the operator, who is told so.
        denied(&outcome(&job, request.clone()), "address", &["list it in the grant's `addresses`, as a CIDR"]);
        assert_eq!(server.connections(), number);
        let file = std::fs::read_to_string(job.policy_file()).unwrap();
        let addresses = format!("{},\"addresses\":[\"127.0.0.1/32\"]}}", text.strip_suffix('}').unwrap());
        tests::job::write(&job.policy_file(), file.replace(&text, &addresses).as_bytes());
        answered(&outcome(&job, request), 200);
        let seen = server.requests().pop().unwrap();
        assert_eq!((seen.method(), seen.target()), (method, path), "as it was asked for");
        assert_eq!(server.connections(), number + 1);
    }
}

/// Nobody is to paste what a module asks for without having declared it.
#[test]
fn nothing_can_be_pasted_for_what_a_module_does_not_declare() {
    let server = Server::answering(Answer::ok(""));
    let need = json!({"id": "api", "to": server.origin(), "methods": ["GET"], "paths": ["/v1/**"]});
    let declares = needing(&json!({"version": 1, "http": [need]}));
    let nothing = needing(&json!({"version": 1}));
    // The section under another name is no section.
    let name = b"bosh-cpi:needs";
    let mut silent = needing(&json!({"version": 1}));
    for at in (0..silent.len() - name.len()).filter(|at| silent[*at..].starts_with(name)).collect::<Vec<_>>() {
        silent[at..at + name.len()].copy_from_slice(b"bosh-cpi:nones");
    }
    let grant = with(server.grant("far"), json!({"paths": ["/v9/**"]}));
    for (guest, method, path) in [
        (&declares, "GET", "/v2/x"),
        (&declares, "POST", "/v1/x"),
        (&declares, "GET", "/v1/../v2"),
        (&nothing, "GET", "/v1/x"),
        (&silent, "GET", "/v1/x"),
        (&silent, "GET", "/v9/x"),
    ] {
        for (grants, trusting) in [(json!([]), false), (json!([grant]), false), (json!([grant]), true)] {
            if trusting && path == "/v9/x" {
                continue;
            }
            let policy = json!({"version": 1, "trust_undeclared": trusting, "http": grants});
            let job = job(json!([])).guest_bytes(guest).policy(policy);
            let refused = outcome(&job, json!({"op": "http", "method": method, "url": server.url(path)}));
            assert_eq!(refused["error"]["kind"], "denied", "{refused}");
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(to_paste(&refused).is_none() && !message.contains(['{', '[']), "{message}");
        }
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_hint_is_neither_given_for_operations_nor_for_paths_that_would_be_patterns() {
    let server = Server::answering(Answer::ok(""));
    let grant = with(server.grant("api"), json!({"operations": {"in": "header:X-Target", "allow": ["Read"]}}));
    let write = with(get(&server.url("/")), json!({"headers": {"X-Target": "Write"}}));
    for (grants, request) in
        [(json!([grant]), write), (json!([]), get(&server.url("/a/*/b"))), (json!([]), get(&server.url("/**")))]
    {
        let refused = outcome(&job(grants), request);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            !message.contains("add this") && message.contains("a grant in the policy's \"http\" would have to name it"),
            "{message}"
        );
    }
}

#[test]
fn what_the_guest_does_not_declare_is_denied_though_it_is_granted() {
    let server = Server::answering(Answer::ok(""));
    let needs = json!({"version": 1, "http": [{"id": "api", "to": server.origin(), "methods": ["GET", "POST"], "paths": ["/v1/**"],
                       "slots": [{"method": "POST", "path": "/v1/vms", "place": "json:/data"}]}]});
    let slot =
        |place: &str| json!({"method": "POST", "path": "/v1/vms", "place": place, "takes": ["agent", "password"]});
    let grant =
        with(server.grant("all"), json!({"slots": [slot("json:/data"), slot("json:/other")], "plain_http": true}));
    let base =
        job(json!([grant])).guest_bytes(&needing(&needs)).configure(|config| config["cache"] = json!("../cache"));
    let run = |request: Value| outcome(&base, request);
    answered(&run(get(&server.url("/v1/x"))), 200);
    let not_declared = "grant `all` allows it, but the module's needs do not declare it; the module's author has to";
    denied(&run(get(&server.url("/v2/x"))), "undeclared", &[not_declared]);
    denied(&run(json!({"op": "http", "method": "PUT", "url": server.url("/v1/x")})), "undeclared", &[not_declared]);
    // A slot that both have takes what both name.
    denied(
        &run(post(&server.url("/v1/vms"), &json!({"data": "{{props.password}}"}))),
        "slot",
        &["whose slot takes `agent` only"],
    );
    denied(
        &run(post(&server.url("/v1/vms"), &json!({"other": "{{props.password}}"}))),
        "slot",
        &["where the grant has no slot"],
    );
    // The registry and images are declared in the same way.
    let mut denials = tests::cloud::outcomes(&base, &json!([{"op": "registry.get", "id": "vm-1"}]));
    let registry = denials.remove(0);
    assert_eq!(registry["error"]["kind"], "denied", "{registry}");
    assert!(registry["error"]["message"].as_str().unwrap().contains("do not declare `registry`"), "{registry}");
    assert_eq!(server.connections(), 1);

    // The hint is the declared pattern, and not more than the operator's keys.
    let closed = base.policy(json!({"version": 1, "http": []}));
    let pasted = hint(&outcome(&closed, get(&server.url("/v1/x"))));
    assert_eq!(
        (&pasted["paths"], &pasted["methods"], &pasted["slots"]),
        (&json!(["/v1/**"]), &json!(["GET"]), &Value::Null)
    );
    denied(
        &outcome(&closed, get(&server.url("/v2/x"))),
        "undeclared",
        &["the module's needs do not declare it either"],
    );
}

#[test]
fn needs_that_are_not_right_stop_the_guest_before_it_runs() {
    for (needs, said) in [
        (json!({"version": 2}), "`version`: is not 1"),
        (json!({"version": 1, "htp": []}), "`htp`"),
        (
            json!({"version": 1, "http": [{"id": "a", "to": "https://a.test/path", "methods": ["GET"], "paths": ["/"]}]}),
            "`http[0].to`",
        ),
        (
            json!({"version": 1, "http": [{"id": "a", "to": "*", "methods": ["CONNECT"], "paths": ["/"]}]}),
            "`http[0].methods[0]`",
        ),
    ] {
        let response = Job::new().guest_bytes(&needing(&needs)).script(json!([])).run();
        assert!([CPI_ERROR, tests::CLOUD_ERROR].contains(&response.error_type()), "{}", response.json);
        assert!(response.message().contains(said), "no `{said}` in {}", response.message());
    }
}
