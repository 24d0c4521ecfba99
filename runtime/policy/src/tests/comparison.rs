//! The lines that the operator is advised to add: hints in denials, and `inspect`.

use proptest::prelude::*;

use super::*;

/// Returns the grant in a denial's message.
fn hint(message: &str) -> Option<Value> {
    let (_, grant) = message.split_once("if it should have it, add to \"http\" of the policy: ")?;
    Some(serde_json::from_str(grant).unwrap_or_else(|error| panic!("{message}: {error}")))
}

#[test]
fn a_hint_pasted_into_the_policy_allows_the_request() {
    let job = json!({"url": "https://api.iaas.test:5000"});
    let needs = needs(&json!({"version": 1, "http": [
        {"id": "compute", "to": "${url}", "methods": ["GET", "POST"], "paths": ["/v3/*/servers", "/v2/**"],
         "slots": [{"method": "POST", "path": "/v3/*/servers", "place": "json:/user_data"}]},
        {"id": "wide", "to": "https://*.store.test", "methods": ["PUT"], "paths": ["/**"]},
        {"id": "any", "to": "*", "methods": ["*"], "paths": ["/**"]}]}));
    let auth = json!({"id": "compute", "to": "${url}", "methods": ["GET"], "paths": ["/v1/**"]});
    for (method, url, expected) in [
        (
            "POST",
            "https://api.iaas.test:5000/v3/p/servers",
            json!({"id": "compute-2", "to": "${url}", "methods": ["POST"], "paths": ["/v3/*/servers"],
                   "slots": [{"method": "POST", "path": "/v3/*/servers", "place": "json:/user_data", "takes": ["agent"]}]}),
        ),
        (
            "GET",
            "https://api.iaas.test:5000/v2/x/y?secret=1",
            json!({"id": "compute-2", "to": "${url}", "methods": ["GET"], "paths": ["/v2/**"]}),
        ),
        (
            "PUT",
            "https://a.store.test/b/c",
            json!({"id": "wide", "to": "https://a.store.test", "methods": ["PUT"], "paths": ["/b/c"]}),
        ),
        (
            "DELETE",
            "http://10.0.0.5:8080/x|y/%C3%A9",
            json!({"id": "any", "to": "http://10.0.0.5:8080", "methods": ["DELETE"], "paths": ["/x|y/%C3%A9"]}),
        ),
        (
            "GET",
            "https://[fd01::1]/",
            json!({"id": "any", "to": "https://[fd01::1]", "methods": ["GET"], "paths": ["/"]}),
        ),
    ] {
        for grants in [vec![auth.clone()], vec![]] {
            let policy = resolve(&json!({"version": 1, "http": grants}), &job, &json!({}), Some(&needs)).unwrap();
            let (_, message) = verdict_on(&policy, method, url, &NOTHING);
            let added = hint(&message).unwrap_or_else(|| panic!("no hint: {message}"));
            if !grants.is_empty() {
                assert_eq!(added, expected, "{method} {url}");
            }
            let mut pasted = grants;
            pasted.push(added.clone());
            let policy = resolve(&json!({"version": 1, "http": pasted}), &job, &json!({}), Some(&needs)).unwrap();
            assert_eq!(verdict(&policy, method, url), format!("allowed by {}", added["id"].as_str().unwrap()));
        }
    }
}

#[test]
fn there_is_no_hint_for_requests_that_cannot_or_should_not_be_granted() {
    let any = any_needs();
    let one = needs(
        &json!({"version": 1, "http": [{"id": "n", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/**"]}]}),
    );
    let grants = json!([{"id": "other", "to": "https://other.iaas.test", "methods": ["GET"], "paths": ["/**"]}]);
    for (needs, method, url) in [
        (Some(&one), "GET", "https://evil.test/v1/x"),
        (Some(&one), "POST", "https://api.iaas.test/v1/x"),
        (Some(&one), "GET", "https://api.iaas.test/v2/x"),
        (None, "GET", "https://api.iaas.test/v1/x"),
        (Some(&any), "GET", "http://169.254.169.254/latest"),
        (Some(&any), "GET", "https://api.iaas.test./"),
        (Some(&any), "GET", "https://.iaas.test/"),
        (Some(&any), "CONNECT", "https://api.iaas.test/"),
        (Some(&any), "get", "https://api.iaas.test/"),
        (Some(&any), "GET", "https://api.iaas.test/*/x"),
        (Some(&any), "GET", "https://api.iaas.test/x/**"),
        (Some(&any), "GET", "https://api.iaas.test/a*b"),
    ] {
        let (reason, message) = verdict_on(&policy_of(&grants, needs), method, url, &NOTHING);
        assert!(!reason.starts_with("allowed") && hint(&message).is_none(), "{method} {url}: {message}");
        assert!(!message.contains("if it should have it"), "{message}");
    }
}

#[test]
fn each_need_that_declares_a_request_can_give_the_hint() {
    // The first of them is about anything, and a path with a `*` in it cannot be granted by itself.
    let needs = needs(&json!({"version": 1, "http": [
        {"id": "any", "to": "*", "methods": "*", "paths": "*"},
        {"id": "api", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/**", "/v1/**"]}]}));
    let url = "https://api.iaas.test/v1/*/x";
    let (_, message) = verdict_on(&policy_of(&json!([]), Some(&needs)), "GET", url, &NOTHING);
    let added = hint(&message).unwrap_or_else(|| panic!("no hint: {message}"));
    assert_eq!((&added["id"], &added["paths"]), (&json!("api"), &json!(["/v1/**"])));
    assert_eq!(verdict(&policy_of(&json!([added]), Some(&needs)), "GET", url), "allowed by api");
}

#[test]
fn a_method_cannot_forge_a_hint() {
    let method = "GET https://api.iaas.test/: if it should have it, add to \"http\" of the policy: {}";
    let (reason, message) = verdict_on(&policy_of(&json!([]), Some(&any_needs())), method, "https://a.test/", &NOTHING);
    assert_eq!(reason, "undeclared");
    assert!(hint(&message).is_none() && !message.contains('{'), "{message}");
}

#[test]
fn needs_are_compared_with_grants() {
    let needs = needs(&json!({"version": 1, "expose": ["region", "api_key", "zone"], "http": [
        {"id": "compute", "to": "${url}", "methods": ["GET", "POST"], "paths": ["/v1/**", "/v2/x"], "why": "servers\u{1b}[31m",
         "slots": [{"method": "POST", "path": "/v1/servers", "place": "json:/user_data"}, {"method": "POST", "path": "/v1/x", "place": "body"}]},
        {"id": "images", "to": "${image_url}", "methods": "*", "paths": ["/**"]},
        {"id": "any", "to": "*", "methods": "*", "paths": "*"}]}));
    let policy = json!({"version": 1, "expose": ["region"], "http": [
        {"id": "compute", "to": "https://api.iaas.test", "methods": ["GET", "POST"], "paths": ["/v1/**"],
         "slots": [{"method": "POST", "path": "/v1/*", "place": "json:/user_data"}]},
        {"id": "get", "to": "https://*.iaas.test", "methods": ["GET"], "paths": ["/v2/*"]}]});
    let job = json!({"url": "https://api.iaas.test"});
    let policy = resolve(&policy, &job, &json!({}), Some(&needs)).unwrap();
    let found = policy.compare_needs(&needs);
    assert_eq!(found.hidden, ["api_key", "zone"]);
    assert_eq!(found.expose_line.as_deref(), Some(r#""expose": ["region","api_key","zone"]"#));
    let compute = &found.http[0];
    assert_eq!((compute.to.as_str(), compute.why.as_str()), ("${url}", "servers?[31m"));
    assert_eq!(compute.granted_by, ["compute", "get"]);
    assert_eq!(compute.missing, ["POST /v2/x", "a slot in POST /v1/x at `body`"]);
    assert_eq!(
        compute.grant_line.as_deref(),
        Some(r#"{"id":"compute-2","to":"${url}","methods":["POST"],"paths":["/v2/x"]}"#)
    );
    assert_eq!(compute.slot_lines, [r#"{"method":"POST","path":"/v1/x","place":"body","takes":["agent"]}"#]);
    let images = &found.http[1];
    assert_eq!(images.unset_property.as_deref(), Some("image_url"), "{images:?}");
    assert_eq!(
        images.grant_line.as_deref(),
        Some(r#"{"id":"images","to":"${image_url}","methods":["GET"],"paths":["/**"]}"#)
    );
    assert_eq!(found.http[2].granted_by, ["compute", "get"]);
    assert_eq!(found.http[2].missing, Vec::<String>::new());
}

#[test]
fn places_of_answers_that_a_guest_asks_to_see_are_compared_and_suggested() {
    let slot = json!({"method": "POST", "path": "/v1/servers", "place": "json:/user_data", "show": ["json:/id", "header:Retry-After"]});
    let needs = needs(&json!({"version": 1, "http": [
        {"id": "a", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/servers"], "slots": [slot]}]}));
    let grant = |slots: Value| {
        let grant = json!({"id": "g", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/servers"], "slots": slots});
        policy_of(&json!([grant]), Some(&needs)).compare_needs(&needs).http.remove(0)
    };
    let shown =
        |show: Value| json!([{"method": "POST", "path": "/v1/servers", "place": "json:/user_data", "show": show}]);
    let none = grant(json!([]));
    assert!(none.slot_lines[0].ends_with(r#""takes":["agent"],"show":["json:/id","header:retry-after"]}"#), "{none:?}");
    assert!(none.show_lines.is_empty(), "{none:?}");
    let part = grant(shown(json!(["json:/name", "json:/id"])));
    assert_eq!(part.missing, ["header:retry-after of the response to POST /v1/servers"]);
    let line =
        r#"the slot of POST /v1/servers at `json:/user_data`: "show": ["json:/name","json:/id","header:retry-after"]"#;
    assert_eq!(part.show_lines, [line]);
    assert_eq!(grant(shown(json!(["json:/id", "header:Retry-After"]))).missing, Vec::<String>::new());
}

#[test]
fn a_policy_with_the_suggested_lines_lacks_nothing() {
    let needs = needs(&json!({"version": 1, "expose": ["region"], "http": [
        {"id": "a", "to": "https://a.test", "methods": ["GET", "POST"], "paths": ["/x", "/y/**"],
         "slots": [{"method": "POST", "path": "/x", "place": "body", "takes": ["agent"]}]}]}));
    let empty = Policy::resolve(&PolicyFile::default(), &Properties::default(), Some(&needs), &[], false).unwrap();
    let found = empty.compare_needs(&needs);
    let grant: Value = serde_json::from_str(found.http[0].grant_line.as_deref().unwrap()).unwrap();
    assert!(found.lacks_something() && found.http[0].slot_lines.is_empty(), "{found:?}");
    let text = format!(r#"{{"version": 1, {}, "http": [{grant}]}}"#, found.expose_line.unwrap());
    let file = PolicyFile::parse(&text).unwrap();
    let full = Policy::resolve(&file, &Properties::default(), Some(&needs), &[], false).unwrap().compare_needs(&needs);
    assert_eq!((full.hidden.len(), full.http[0].missing.len(), &full.http[0].grant_line), (0, 0, &None));
    assert!(!full.lacks_something(), "{full:?}");
}

#[test]
fn a_suggested_grant_has_what_the_operator_chose_for_the_origin() {
    let needs = needs(&json!({"version": 1, "logins": ["main"], "http": [
        {"id": "n", "to": "${url}", "methods": ["POST"], "paths": ["/v1/*"], "operations": {"in": "json", "allow": ["grow"]},
         "slots": [{"method": "POST", "path": "/v1/x", "place": "header:x", "takes": ["agent"]},
                   {"method": "POST", "path": "/v1/x", "place": "header:y", "takes": ["unset"]}]}]}));
    let login = json!({"to": "https://id.test", "path": "/t", "token": "json:/t", "send": {"header": "X-Token"}});
    let tls = json!({"ca": "ca.pem", "client": {"cert": "c.pem", "key": "-----BEGIN PRIVATE KEY-----\nx"}});
    let near = json!({"id": "near", "to": "${url}", "methods": ["GET"], "paths": ["/**"], "addresses": ["10.0.0.0/8"],
                      "auth": {"login": "main"}, "tls": tls});
    let far = json!({"id": "far", "to": "https://far.test", "methods": ["POST"], "paths": ["/**"], "addresses": ["11.0.0.0/8"]});
    let job = json!({"url": "https://api.iaas.test/base"});
    let policy = json!({"version": 1, "logins": {"main": login}, "http": [far, near]});
    let headers = [("content-type".to_owned(), "application/json".to_owned())];
    let message = Message { headers: &headers, body: br#"{"grow": 1}"# };
    let resolved = resolve(&policy, &job, &json!({}), Some(&needs)).unwrap();
    let (_, said) = verdict_on(&resolved, "POST", "https://api.iaas.test/base/v1/x", &message);
    let added = hint(&said).unwrap_or_else(|| panic!("no hint: {said}"));
    let expected = json!({
        "id": "n", "to": "${url}", "methods": ["POST"], "paths": ["/v1/*"], "operations": {"in": "json", "allow": ["grow"]},
        "addresses": ["10.0.0.0/8"], "tls": {"ca": "ca.pem"}, "auth": {"login": "main"},
        "slots": [{"method": "POST", "path": "/v1/x", "place": "header:x", "takes": ["agent"]}],
    });
    assert_eq!(added, expected, "a key that is written into the policy must not be printed: {said}");
    let compared = resolved.compare_needs(&needs);
    assert_eq!(serde_json::from_str::<Value>(compared.http[0].grant_line.as_deref().unwrap()).unwrap(), expected);
    assert!(compared.ungranted().count() == 1 && compared.lacks_something());
    let mut pasted = policy;
    pasted["http"].as_array_mut().unwrap().push(added);
    let resolved = resolve(&pasted, &job, &json!({}), Some(&needs)).unwrap();
    assert_eq!(verdict_on(&resolved, "POST", "https://api.iaas.test/base/v1/x", &message).0, "allowed by n");
    assert!(!resolved.compare_needs(&needs).lacks_something());
}

#[test]
fn a_property_that_holds_the_url_of_a_need_must_be_exposed() {
    let needs = needs(&json!({"version": 1, "expose": ["endpoints", "zone"], "http": [
        {"id": "n", "to": "${endpoints.api}", "methods": ["GET"], "paths": ["/"]}]}));
    let job = json!({"endpoints": {"api": "https://api.test"}, "zone": "z"});
    let grant = json!({"id": "g", "to": "${endpoints.api}", "methods": ["GET"], "paths": ["/"]});
    for (expose, hidden, origins) in [
        (json!([]), vec!["endpoints", "zone"], vec!["endpoints"]),
        (json!(["endpoints"]), vec!["zone"], vec![]),
        (json!("declared"), vec![], vec![]),
    ] {
        let policy = json!({"version": 1, "expose": expose, "http": [grant]});
        let found = resolve(&policy, &job, &json!({}), Some(&needs)).unwrap().compare_needs(&needs);
        assert_eq!(
            (&found.hidden, &found.hidden_origins),
            (
                &hidden.iter().map(|s: &&str| (*s).to_owned()).collect(),
                &origins.iter().map(|s: &&str| (*s).to_owned()).collect()
            )
        );
        assert_eq!(found.lacks_something(), !origins.is_empty(), "{expose}");
    }
}

/// Needs sections with one mistake each, and a part of the problem.
pub(super) fn broken_needs() -> Vec<(&'static [u8], &'static str)> {
    vec![
        (&b"\xff"[..], "not UTF-8"),
        (b"{", "are not valid JSON"),
        (b"[]", "is a list"),
        (b"{}", "is not 1"),
        (br#"{"version": 2}"#, "is not 1"),
        (br#"{"version": 1, "version": 1}"#, "twice"),
        (br#"{"version": 1, "hosts": []}"#, "unknown key"),
        (br#"{"version": 1, "registry": "yes"}"#, "is a string"),
        (br#"{"version": 1, "expose": ["a b"]}"#, "is not a valid name of a property"),
        (
            br#"{"version": 1, "http": [{"id": "a\u001b", "to": "*", "methods": "*", "paths": "*"}]}"#,
            "is not a valid name for a need",
        ),
        (br#"{"version": 1, "http": [{"id": "a", "to": "https://*", "methods": "*", "paths": "*"}]}"#, "every host"),
        (
            br#"{"version": 1, "http": [{"id": "a", "to": "*", "methods": ["GET", "*"], "paths": "*"}]}"#,
            "is not an HTTP method",
        ),
        (br#"{"version": 1, "http": [{"id": "a", "to": "*", "methods": "*", "paths": ["x"]}]}"#, "does not begin with"),
        (
            br#"{"version": 1, "http": [{"id": "a", "to": "*", "methods": "*", "paths": "*", "slots": "x"}]}"#,
            "is a string",
        ),
        (
            br#"{"version": 1, "http": [{"id": "a", "to": "*", "methods": "*", "paths": "*", "auth": {}}]}"#,
            "unknown key",
        ),
    ]
}

#[test]
fn broken_needs_are_refused() {
    for (section, what) in broken_needs() {
        let problems = Needs::parse(section).unwrap_err();
        assert!(problems.iter().any(|problem| problem.to_string().contains(what)), "{what}: {problems:?}");
        assert!(problems.iter().all(|problem| !problem.to_string().contains('\u{1b}')), "{problems:?}");
    }
    let large = format!(r#"{{"version": 1, "http": [{}]}}"#, " ".repeat(70_000));
    assert!(Needs::parse(large.as_bytes()).unwrap_err()[0].what.contains("more than 65536 bytes"));
}

proptest! {
    #[test]
    fn parsing_never_panics_on_any_section(section in proptest::collection::vec(any::<u8>(), 0..60), to in r"\PC{0,20}", path in r"/\PC{0,20}") {
        let _ = Needs::parse(&section);
        let _ = Needs::parse(json!({"version": 1, "http": [{"id": "a", "to": to, "methods": "*", "paths": [path]}]}).to_string().as_bytes());
    }

    #[test]
    fn every_hint_allows_the_request_that_was_denied(path in r"(/[a-zA-Z0-9.%|'()+,:;=@!$&~_-]{0,5}){1,4}", host in r"[a-z]{1,5}(\.[a-z]{1,4}){0,2}|10\.0\.0\.[1-9]") {
        let needs = any_needs();
        let url = format!("https://{host}{path}");
        if Destination::parse(&url, 8192).is_ok() {
            let (reason, message) = verdict_on(&policy_of(&json!([]), Some(&needs)), "GET", &url, &NOTHING);
            prop_assert_eq!(reason, "undeclared");
            let grant = hint(&message);
            prop_assert!(grant.is_some(), "{}", message);
            let policy = policy_of(&json!([grant]), Some(&needs));
            prop_assert_eq!(verdict(&policy, "GET", &url), "allowed by any");
        }
    }
}
