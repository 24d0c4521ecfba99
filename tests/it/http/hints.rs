//! A request is allowed only if the operator grants it and the guest declares it. After the denial of
//! a declared request, the Director gets the line to paste into the policy. The guest does not.

use serde_json::{Value, json};
use tests::cloud::{answered, denied, get, job, post, probe_with_needs};
use tests::servers::{Answer, Server, with};
use tests::{CPI_ERROR, Job, probe};

/// Runs one operation. Returns its outcome, and as `hint` what the Director and the log are told.
#[track_caller]
fn outcome(job: &Job, operation: Value) -> Value {
    let response = tests::cloud::call(job, &json!([operation]));
    let mut outcome = probe::outcomes_in(response.message()).remove(0);
    let guest_sees = outcome["error"]["message"].as_str().unwrap_or_default();
    assert!(!guest_sees.contains("if it should have it") && !guest_sees.contains("needs.json"), "{guest_sees}");
    let told = response.message().split_once("about the last denied request: ");
    let told = told.map_or("", |(_, told)| told);
    assert!(response.stderr.contains(told), "{told} is not in {}", response.stderr);
    outcome["hint"] = json!(told);
    outcome
}

/// Returns the grant that a denial shows.
#[track_caller]
fn hint(outcome: &Value) -> Value {
    let message = outcome["hint"].as_str().unwrap_or_default();
    let (_, rest) = message
        .split_once("the guest asks for this request; if it should have it, add to \"http\" of the policy: ")
        .unwrap_or_else(|| panic!("no hint in: {message}"));
    serde_json::from_str(rest).unwrap_or_else(|error| panic!("{rest}: {error}"))
}

#[test]
fn the_grant_of_a_denial_allows_exactly_the_denied_request() {
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
        denied(&refused, reason, &[]);
        let pasted = hint(&refused);
        // Another grant for the same origin says which addresses the operator accepts.
        let sibling = ["method", "path"].contains(&reason);
        let keys: Vec<&String> = pasted.as_object().unwrap().keys().collect();
        let expected = ["id", "to", "methods", "paths", "addresses"];
        assert_eq!(keys, &expected[..if sibling { 5 } else { 4 }], "{pasted}");
        assert_eq!(pasted["to"], server.origin());
        assert_eq!((&pasted["methods"], &pasted["paths"]), (&json!(["PUT"]), &json!(["/v1/things/7"])));
        assert!(grants.as_array().unwrap().iter().all(|grant| grant["id"] != pasted["id"]), "{pasted}");
        grants.as_array_mut().unwrap().push(pasted);
        if !sibling {
            // The operator has to decide about the addresses.
            denied(&outcome(&job(grants.clone()), request.clone()), "address", &["in `addresses` of the grant"]);
            grants.as_array_mut().unwrap().last_mut().unwrap()["addresses"] = json!(["127.0.0.1/32"]);
        }
        let opened = job(grants);
        assert_eq!(answered(&outcome(&opened, request.clone()), 200)["body"], "in");
        for (method, path) in [("PUT", "/v1/things/8"), ("DELETE", "/v1/things/7"), ("PUT", "/v1/things/7/x")] {
            let other = json!({"op": "http", "method": method, "url": server.url(path)});
            assert_eq!(outcome(&opened, other)["error"]["kind"], "denied", "{method} {path}");
        }
    }
    assert_eq!(server.connections(), 4);
}

/// Inserts a text into the list of grants of the policy file, as an operator does in an editor.
fn paste(job: &Job, text: &str) {
    let file = std::fs::read_to_string(job.policy_file()).unwrap();
    let (before, after) = file.split_once("\"http\":[").unwrap();
    let comma = if after.starts_with(']') { "" } else { "," };
    tests::job::write(&job.policy_file(), format!("{before}\"http\":[\n  {text}{comma}{after}").as_bytes());
}

/// Returns the text to paste, which follows a fixed text in a denial.
fn to_paste(outcome: &Value) -> Option<String> {
    let message = outcome["hint"].as_str().unwrap_or_default();
    message.split_once("if it should have it, add to \"http\" of the policy: ").map(|(_, text)| text.to_owned())
}

#[test]
fn the_request_arrives_once_the_text_of_its_denial_is_in_the_policy_file() {
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
        // The text names the property, because it must not show a value that is not exposed.
        let properties = if need["to"] == "${endpoint}" { json!({"endpoint": origin}) } else { json!({}) };
        let guest = probe_with_needs(&json!({"version": 1, "http": [need]}));
        let request = json!({"op": "http", "method": method, "url": server.url(path)});
        let grants = if number % 2 == 0 { json!([]) } else { json!([busy]) };
        let job = job(grants).guest_bytes(&guest).properties(properties);
        let refused = outcome(&job, request.clone());
        let text = to_paste(&refused).unwrap_or_else(|| panic!("nothing to paste in {refused}"));
        paste(&job, &text);
        if number % 2 == 0 {
            // The grant allows the name. The next denial says that the operator has to list its addresses.
            denied(
                &outcome(&job, request.clone()),
                "address",
                &["or the network of the cloud, in `addresses` of the grant or login"],
            );
            assert_eq!(server.connections(), number);
            let file = std::fs::read_to_string(job.policy_file()).unwrap();
            let addresses = format!("{},\"addresses\":[\"127.0.0.1/32\"]}}", text.strip_suffix('}').unwrap());
            tests::job::write(&job.policy_file(), file.replace(&text, &addresses).as_bytes());
        }
        answered(&outcome(&job, request), 200);
        let seen = server.requests().pop().unwrap();
        assert_eq!((seen.method(), seen.target()), (method, path), "the request must arrive unchanged");
        assert_eq!(server.connections(), number + 1);
    }
}

/// An operator must not be invited to grant what the guest does not declare.
#[test]
fn a_denial_of_an_undeclared_request_shows_no_grant() {
    let server = Server::answering(Answer::ok(""));
    let need = json!({"id": "api", "to": server.origin(), "methods": ["GET"], "paths": ["/v1/**"]});
    let declares = probe_with_needs(&json!({"version": 1, "http": [need]}));
    let nothing = probe_with_needs(&json!({"version": 1}));
    // A section with another name does not declare anything.
    let name = b"bosh-cpi:needs";
    let mut silent = probe_with_needs(&json!({"version": 1}));
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
            assert!(to_paste(&refused).is_none() && !message.contains(['{', '[']), "{refused}");
        }
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn no_grant_is_shown_for_paths_that_would_be_patterns() {
    let server = Server::answering(Answer::ok(""));
    for path in ["/a/*/b", "/**"] {
        let refused = outcome(&job(json!([])), get(&server.url(path)));
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("the operator can add a grant for it to the policy's \"http\""), "{message}");
        assert_eq!(refused["hint"], "");
    }
}

/// One line is enough, whatever the operator chose for the origin.
#[test]
fn the_suggested_grant_has_the_auth_the_slots_and_the_operation_of_the_request() {
    let server = Server::answering(Answer::ok("in"));
    let origin = server.origin();
    let needs = json!({"version": 1, "logins": [], "http": [{"id": "api", "to": origin, "methods": ["GET", "POST"],
        "paths": ["/v1/**"], "slots": [{"method": "POST", "path": "/v1/vms", "place": "json:/grow/data", "takes": ["agent"]}],
        "operations": {"in": "json", "allow": ["grow"]}}]});
    let guest = probe_with_needs(&needs);
    let near = with(
        server.grant("near"),
        json!({"methods": ["GET"], "paths": ["/v9/**"], "plain_http": true, "auth": {"bearer": "${token}"}}),
    );
    let job = job(json!([near])).guest_bytes(&guest).properties(json!({"token": "a token of the job"}));
    let script = json!([
        {"op": "agent.bootstrap", "vm_name": "vm-1", "encodings": ["base64"]},
        post(&server.url("/v1/vms"), &json!({"grow": {"data": "{{0.ok}}"}})),
    ]);
    let run = |job: &Job| tests::cloud::create_vm(job, &script).run();
    let first = run(&job);
    let line = first
        .stderr
        .lines()
        .find_map(|line| line.split_once("add to \"http\" of the policy: "))
        .map(|(_, line)| line.to_owned());
    let line = line.unwrap_or_else(|| panic!("no hint in {}", first.stderr));
    let pasted: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(pasted["auth"], json!({"bearer": "${token}"}));
    assert_eq!(pasted["operations"], json!({"in": "json", "allow": ["grow"]}));
    assert_eq!(pasted["slots"][0]["place"], "json:/grow/data");
    assert_eq!(server.connections(), 0);
    paste(&job, &line);
    run(&job);
    let seen = server.request();
    assert_eq!((seen.method(), seen.target()), ("POST", "/v1/vms"));
    assert_eq!(seen.header("authorization"), Some("Bearer a token of the job"));
}

/// Whatever the policy has already, one line is enough.
#[test]
fn the_line_of_a_denied_upload_in_blocks_allows_the_whole_upload() {
    let blocks = json!({"methods": ["PUT"], "paths": ["/blocks/**"], "blocks": true});
    let other_headers = with(blocks.clone(), json!({"block_headers": ["X-Other", "X-Sum"]}));
    // The grant, the start of the line, and the text in the policy after which the rest of the line belongs.
    for (more, start, place) in [
        (json!({"paths": ["/v9/**"]}), "add to \"http\" of the policy: ", "\"http\":["),
        (json!({}), "add to the grant `near`: ", "{\"id\":\"near\","),
        (blocks, "add to the grant `near`: ", "{\"id\":\"near\","),
        (other_headers, "add to `block_headers` of the grant `near`: ", "\"block_headers\":["),
    ] {
        let server = Server::answering(Answer::ok(""));
        let needs = json!({"version": 1, "image": true,
            "http": [{"id": "blocks", "to": server.origin(), "methods": ["PUT"], "paths": ["/blocks/*"]}]});
        let near = with(server.grant("near"), json!({"plain_http": true, "auth": {"bearer": "${token}"}}));
        let job = job(json!([with(near, more.clone())]))
            .guest_bytes(&probe_with_needs(&needs))
            .properties(json!({"token": "a token of the job"}));
        let image = job.path("image");
        tests::job::write(&image, &[7; 3000]);
        let upload = json!({"op": "http.blocks", "url": server.url("/blocks/{index}"), "block_bytes": 1000,
            "headers": {"x-sum": "{sha256-base64}", "x-length": "{length}"}});
        let run = || job.call("create_stemcell", json!([image, {"probe": [upload]}])).run();
        let refused = run().stderr;
        let line = refused.lines().find_map(|line| line.split_once(start)).map(|(_, line)| line);
        let line = line.unwrap_or_else(|| panic!("no `{start}` in {refused}"));
        assert_eq!(server.connections(), 0, "{more}");
        let file = std::fs::read_to_string(job.policy_file()).unwrap();
        let (before, after) = file.split_once(place).unwrap_or_else(|| panic!("no {place} in {file}"));
        tests::job::write(&job.policy_file(), format!("{before}{place}{line},{after}").as_bytes());
        let outcomes = probe::outcomes(run().result());
        assert_eq!(outcomes[0]["ok"]["sent"], 3, "{line}: {outcomes:?}");
        for seen in server.requests() {
            assert_eq!(seen.header("authorization"), Some("Bearer a token of the job"), "{line}");
            assert!(seen.header("x-sum").is_some() && seen.header("x-length") == Some("1000"), "{line}");
        }
    }
}

/// The grant names one operation more, and nothing else.
#[test]
fn the_suggested_grant_for_an_operation_allows_that_one() {
    let server = Server::answering(Answer::ok("in"));
    let grant = with(server.grant("api"), json!({"operations": {"in": "header:X-Target", "allow": ["Read"]}}));
    let write = |target: &str| with(get(&server.url("/")), json!({"headers": {"X-Target": target}}));
    let job = job(json!([grant]));
    let refused = outcome(&job, write("Write"));
    denied(&refused, "operation", &["`api` Read, not `Write`"]);
    paste(&job, &to_paste(&refused).unwrap_or_else(|| panic!("nothing to paste in {refused}")));
    answered(&outcome(&job, write("Write")), 200);
    denied(&outcome(&job, write("Delete")), "operation", &[]);
}

#[test]
fn a_missing_slot_is_the_fault_of_the_policy_and_its_line_is_enough() {
    let server = Server::answering(Answer::ok("in"));
    let slot = json!({"method": "POST", "path": "/vms", "place": "json:/data", "takes": ["password"]});
    let needs = |slots: Value| {
        probe_with_needs(&json!({"version": 1, "http": [
            {"id": "api", "to": "${url}", "methods": ["POST"], "paths": ["/vms", "/vms/*"], "slots": slots}]}))
    };
    // The paths of a grant are below the path of the URL that the property holds.
    let grant = json!({"id": "api", "to": "${url}", "methods": ["POST"], "paths": ["/vms"], "plain_http": true,
                       "addresses": ["127.0.0.1/32"], "auth": {"bearer": "${token}"}});
    let job = |guest: &[u8]| {
        job(json!([grant]))
            .guest_bytes(guest)
            .properties(json!({"url": server.url("/base/v2"), "password": "a password", "token": "t"}))
    };
    let request = post(&server.url("/base/v2/vms"), &json!({"data": "{{props.password}}"}));
    let declared = job(&needs(json!([slot])));
    let refused = outcome(&declared, request.clone());
    denied(&refused, "slot", &["policy: POST /base/v2/vms was not sent"]);
    let (_, line) = refused["hint"].as_str().unwrap().split_once("add to \"slots\" of grant `api`: ").unwrap();
    assert_eq!(serde_json::from_str::<Value>(line).unwrap(), slot);
    let file = std::fs::read_to_string(declared.policy_file()).unwrap();
    let (before, after) = file.rsplit_once("\"auth\":").unwrap();
    tests::job::write(&declared.policy_file(), format!("{before}\"slots\":[{line}],\"auth\":{after}").as_bytes());
    answered(&outcome(&declared, request.clone()), 200);
    // A slot that the guest does not declare is for the guest's author.
    let refused = outcome(&job(&needs(json!([]))), request);
    denied(&refused, "slot", &["guest: POST /base/v2/vms was not sent"]);
    assert!(refused["hint"].as_str().unwrap().contains("needs.json, under \"slots\" of the need: "), "{refused}");
}

#[test]
fn a_url_property_that_is_not_exposed_is_named_with_the_line_that_exposes_it() {
    let server = Server::answering(Answer::ok("in"));
    let job = tests::cloud::with_policy(json!({"http": [server.grant("api")]}))
        .properties(json!({"api_url": server.origin(), "region": "r"}));
    let request = get("{{props.api_url}}/v1/x");
    let refused = outcome(&job, request.clone());
    assert_eq!(refused["error"]["kind"], "invalid-request", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("it holds the seal of `api_url`"), "{refused}");
    let (_, line) = refused["hint"].as_str().unwrap().split_once("with this in the policy: ").unwrap();
    let file = std::fs::read_to_string(job.policy_file()).unwrap();
    tests::job::write(&job.policy_file(), format!("{{{line},{}", file.strip_prefix('{').unwrap()).as_bytes());
    answered(&outcome(&job, request), 200);
}

/// The author pastes the line into needs.json and builds the guest again.
#[test]
fn the_line_for_needs_declares_what_was_denied() {
    let server = Server::answering(Answer::ok("in"));
    let origin = server.origin();
    let operations = json!({"in": "header:X-Op", "allow": ["Run", "Stop"]});
    let run = with(get(&server.url("/v1/x")), json!({"headers": {"X-Op": "Run"}}));
    let job = |needs: &Value| {
        job(json!([with(server.grant("api"), json!({"operations": operations}))])).guest_bytes(&probe_with_needs(needs))
    };
    let refused = outcome(&job(&json!({"version": 1})), run.clone());
    denied(&refused, "undeclared", &[]);
    let (_, need) = refused["hint"].as_str().unwrap().split_once("needs.json, under \"http\": ").unwrap();
    let need: Value = serde_json::from_str(need).unwrap();
    answered(&outcome(&job(&json!({"version": 1, "http": [need]})), run.clone()), 200);
    let bare = json!({"id": "api", "to": origin, "methods": ["GET"], "paths": ["/v1/**"]});
    let refused = outcome(&job(&json!({"version": 1, "http": [bare.clone()]})), run.clone());
    denied(&refused, "undeclared", &["do not declare its operation"]);
    let (_, line) = refused["hint"].as_str().unwrap().split_once("of the need: ").unwrap();
    let line: Value = serde_json::from_str(&format!("{{{line}}}")).unwrap();
    answered(&outcome(&job(&json!({"version": 1, "http": [with(bare, line)]})), run), 200);
}

#[test]
fn a_granted_request_that_the_guest_does_not_declare_is_denied() {
    let server = Server::answering(Answer::ok(""));
    let needs = json!({"version": 1, "http": [{"id": "api", "to": server.origin(), "methods": ["GET", "POST"], "paths": ["/v1/**"],
                       "slots": [{"method": "POST", "path": "/v1/vms", "place": "json:/data"}]}]});
    let slot =
        |place: &str| json!({"method": "POST", "path": "/v1/vms", "place": place, "takes": ["agent", "password"]});
    let grant =
        with(server.grant("all"), json!({"slots": [slot("json:/data"), slot("json:/other")], "plain_http": true}));
    let base = job(json!([grant]))
        .guest_bytes(&probe_with_needs(&needs))
        .configure(|config| config["cache"] = json!("../cache"));
    let run = |request: Value| outcome(&base, request);
    answered(&run(get(&server.url("/v1/x"))), 200);
    let not_declared = "grant `all` allows it, but the guest's needs do not declare it; the guest's author has to";
    denied(&run(get(&server.url("/v2/x"))), "undeclared", &[not_declared]);
    denied(&run(json!({"op": "http", "method": "PUT", "url": server.url("/v1/x")})), "undeclared", &[not_declared]);
    // A slot that both list accepts only what both name.
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
    // The registry and images have to be declared as well.
    let mut denials = tests::cloud::outcomes(&base, &json!([{"op": "registry.get", "id": "vm-1"}]));
    let registry = denials.remove(0);
    assert_eq!(registry["error"]["kind"], "denied", "{registry}");
    assert!(registry["error"]["message"].as_str().unwrap().contains("do not declare `registry`"), "{registry}");
    assert_eq!(server.connections(), 1);

    // The hint shows the declared pattern, and only keys that an operator may set.
    let closed = base.policy(json!({"version": 1, "http": []}));
    let pasted = hint(&outcome(&closed, get(&server.url("/v1/x"))));
    assert_eq!(
        (&pasted["paths"], &pasted["methods"], &pasted["slots"]),
        (&json!(["/v1/**"]), &json!(["GET"]), &Value::Null)
    );
    denied(&outcome(&closed, get(&server.url("/v2/x"))), "undeclared", &["the guest's needs do not declare it either"]);
}

#[test]
fn a_guest_with_invalid_needs_does_not_run() {
    for (needs, expected) in [
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
        let response = Job::new().guest_bytes(&probe_with_needs(&needs)).script(json!([])).run();
        assert!([CPI_ERROR, tests::CLOUD_ERROR].contains(&response.error_type()), "{}", response.json);
        assert!(response.message().contains(expected), "no `{expected}` in {}", response.message());
    }
}
