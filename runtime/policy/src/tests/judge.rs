use super::*;

/// Returns the grant of the corpus: GET and POST below `/v1`.
fn corpus() -> Value {
    json!([{"id": "api", "to": "https://api.iaas.test", "methods": ["GET", "POST"], "paths": ["/v1/**"]}])
}

#[test]
fn requests_are_judged_by_the_furthest_stage() {
    let policy = policy_of(&corpus(), Some(&any_needs()));
    for (method, url, expected) in [
        ("GET", "https://api.iaas.test/v1/x", "allowed by api"),
        ("POST", "https://API.IAAS.TEST/v1/x", "allowed by api"),
        ("GET", "https://api.iaas.test:443/v1/x", "allowed by api"),
        ("GET", "https://api.iaas.test/v1", "allowed by api"),
        ("GET", "https://api.iaas.test/v1/x?y=https://evil.test", "allowed by api"),
        ("GET", "https://api.iaas.test/v1/x#../../admin", "allowed by api"),
        ("GET", "https://api.iaas.test/%76%31/x", "allowed by api"),
        ("GET", "http://api.iaas.test/v1/x", "scheme"),
        ("GET", "http://api.iaas.test:443/v1/x", "scheme"),
        ("GET", "https://api.iaas.test./v1/x", "host"),
        ("GET", "https://api.iaas.test.evil.test/v1/x", "host"),
        ("GET", "https://evil-api.iaas.test/v1/x", "host"),
        ("GET", "https://iaas.test/v1/x", "host"),
        ("GET", "https://.api.iaas.test/v1/x", "host"),
        ("GET", "https://127.0.0.1/v1/x", "host"),
        ("GET", "https://2130706433/v1/x", "host"),
        ("GET", "https://0x7f000001/v1/x", "host"),
        ("GET", "https://0/", "host"),
        ("GET", "https://[::1]/v1/x", "host"),
        ("GET", "https://[::ffff:127.0.0.1]/v1/x", "host"),
        ("GET", "https://[::127.0.0.1]/v1/x", "host"),
        ("GET", "http://169.254.169.254/latest/meta-data/", "scheme"),
        ("GET", "https://169.254.169.254/latest/meta-data/", "host"),
        ("GET", "https://metadata.provider.internal/v1/x", "host"),
        ("GET", "https://localhost/v1/x", "host"),
        ("GET", "https://api.iaas.test:8443/v1/x", "port"),
        ("DELETE", "https://api.iaas.test/v1/x", "method"),
        ("CONNECT", "https://api.iaas.test/v1/x", "method"),
        ("get", "https://api.iaas.test/v1/x", "method"),
        ("", "https://api.iaas.test/v1/x", "method"),
        ("GET /x HTTP/1.1\r\n", "https://api.iaas.test/v1/x", "method"),
        ("GET", "https://api.iaas.test/", "path"),
        ("GET", "https://api.iaas.test/v11/x", "path"),
        ("GET", "https://api.iaas.test/V1/x", "path"),
        ("GET", "https://api.iaas.test/v1/../../admin", "path"),
        ("GET", "https://api.iaas.test/v1/%2e%2e/admin", "path"),
        ("GET", "https://api.iaas.test/v1/%2E%2E/", "path"),
        ("GET", "https://api.iaas.test//v1/x", "path"),
    ] {
        assert_eq!(verdict(&policy, method, url), expected, "{method} {url}");
    }
}

#[test]
fn a_literal_address_grants_itself_and_no_sibling() {
    let grants = json!([{"id": "ip", "to": "https://10.0.0.0:443", "methods": ["GET"], "paths": ["/**"]}]);
    let policy = policy_of(&grants, Some(&any_needs()));
    assert_eq!(verdict(&policy, "GET", "https://10.0.0.0/"), "allowed by ip");
    assert_eq!(verdict(&policy, "GET", "https://0xa000000/"), "allowed by ip");
    assert_eq!(verdict(&policy, "GET", "https://10.0.0.1/"), "host");
}

#[test]
fn a_wildcard_grants_one_label() {
    let grants = json!([{"id": "any", "to": "https://*.iaas.test", "methods": ["GET"], "paths": ["/**"]}]);
    let policy = policy_of(&grants, Some(&any_needs()));
    for (url, expected) in [
        ("https://a.iaas.test/", "allowed by any"),
        ("https://iaas.test/", "host"),
        ("https://a.b.iaas.test/", "host"),
        ("https://.iaas.test/", "host"),
        ("https://a.iaas.test./", "host"),
    ] {
        assert_eq!(verdict(&policy, "GET", url), expected, "{url}");
    }
}

#[test]
fn the_most_specific_grant_wins_and_then_the_first() {
    let grants = json!([
        {"id": "wild", "to": "https://*.iaas.test", "methods": ["GET"], "paths": ["/v1/servers"]},
        {"id": "all", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/**"]},
        {"id": "star", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/*"]},
        {"id": "servers", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/servers"]},
        {"id": "again", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/servers"]}]);
    let policy = policy_of(&grants, Some(&any_needs()));
    for (url, expected) in [
        ("https://api.iaas.test/v1/servers", "allowed by servers"),
        ("https://api.iaas.test/v1/x", "allowed by star"),
        ("https://api.iaas.test/v1/x/y", "allowed by all"),
        ("https://other.iaas.test/v1/servers", "allowed by wild"),
    ] {
        assert_eq!(verdict(&policy, "GET", url), expected, "{url}");
    }
}

#[test]
fn the_reason_is_the_furthest_stage_that_any_grant_reached() {
    let grants = json!([
        {"id": "a", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/a"]},
        {"id": "b", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/b"]},
        {"id": "c", "to": "http://other.iaas.test:8080", "methods": ["GET"], "paths": ["/c"]}]);
    let policy = policy_of(&grants, Some(&any_needs()));
    for (method, url, expected, said) in [
        ("GET", "https://api.iaas.test/b", "path", "`a` /a"),
        ("PUT", "https://api.iaas.test/b", "method", "`a` GET, `b` POST"),
        ("GET", "http://other.iaas.test/c", "port", "`c` 8080"),
        ("GET", "http://api.iaas.test/a", "host", "api.iaas.test"),
    ] {
        let (reason, message) = verdict_on(&policy, method, url, &NOTHING);
        assert_eq!(reason, expected, "{method} {url}");
        assert!(
            message.starts_with(&format!("the policy refuses {method} {url}: ")) && message.contains(said),
            "{message}"
        );
    }
}

#[test]
fn each_field_of_a_grant_can_be_the_reason() {
    let operations = json!({"in": "header:X-Op", "allow": ["Run"]});
    let url = "https://api.iaas.test/v1/x";
    for (key, value, reason, said) in [
        ("id", json!("renamed"), "allowed by renamed", ""),
        ("to", json!("http://api.iaas.test"), "scheme", "no grant is for https://"),
        ("to", json!("https://other.iaas.test"), "host", "no grant names the host api.iaas.test"),
        ("to", json!("https://*.api.iaas.test"), "host", "no grant names the host api.iaas.test"),
        ("to", json!("https://10.0.0.5"), "host", "no grant names the host api.iaas.test"),
        ("to", json!("https://*.iaas.test"), "allowed by api", ""),
        ("to", json!("https://api.iaas.test:8443"), "port", "`api` 8443"),
        ("to", json!("https://*.iaas.test:8443"), "port", "`api` 8443"),
        ("methods", json!(["POST", "DELETE"]), "method", "`api` POST DELETE"),
        ("paths", json!(["/v2/**", "/v1"]), "path", "`api` /v2/** /v1"),
        ("operations", operations, "operation", "`api` Run, and the request has none in `header:x-op`"),
        ("addresses", json!(["10.0.0.0/8"]), "allowed by api", ""),
        ("plain_http", json!(true), "allowed by api", ""),
        ("tls", json!({"ca": "ca.pem"}), "allowed by api", ""),
        ("auth", json!({"bearer": "${token}"}), "allowed by api", ""),
        ("slots", json!([{"method": "POST", "path": "/v1/x", "place": "body"}]), "allowed by api", ""),
        ("captures", json!([{"method": "POST", "path": "/v1/x", "place": "body", "as": "t"}]), "allowed by api", ""),
    ] {
        let mut grants = corpus();
        grants[0][key] = value.clone();
        let policy = json!({"version": 1, "http": grants});
        let policy = resolve(&policy, &json!({"token": "t"}), &json!({}), Some(&any_needs())).unwrap();
        let (verdict, message) = verdict_on(&policy, "GET", url, &NOTHING);
        assert_eq!(verdict, reason, "{key}: {value}");
        assert!(message.contains(said), "{key}: {message}");
        // What refuses says what to add, unless that is an operation.
        let hint = !verdict.starts_with("allowed") && verdict != "operation";
        assert_eq!(message.contains("if it should have it"), hint, "{key}: {message}");
    }
}

#[test]
fn operations_are_read_from_their_place() {
    let grants = json!([{"id": "api", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/"],
                         "operations": {"in": "form:Action", "allow": ["Run", "Stop"]}}]);
    let policy = policy_of(&grants, Some(&any_needs()));
    let headers = [("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
    for (query, body, expected) in [
        ("", "Action=Run&x=1", "allowed by api"),
        ("?", "Action=Stop", "allowed by api"),
        ("?x=1", "Action=Stop", "operation"),
        ("", "Action=Delete", "operation"),
        ("", "action=Run", "operation"),
        ("", "x=1", "operation"),
        ("", "", "operation"),
        ("", "Action=Run&Action=Delete", "operation"),
        ("?Action=Delete", "Action=Run", "operation"),
        ("?action=Delete", "Action=Run", "operation"),
        ("?%41ction=Delete", "Action=Run", "operation"),
    ] {
        let message = Message { headers: &headers, body: body.as_bytes() };
        let url = format!("https://api.iaas.test/{query}");
        let (reason, said) = verdict_on(&policy, "POST", &url, &message);
        assert_eq!(reason, expected, "{query} {body}: {said}");
        // Only an operation that the grant does not list is a reason for another grant, with that one.
        let hint = r#""operations":{"in":"form:Action","allow":["Delete"]}"#;
        assert_eq!(
            (said.contains("\"id\""), said.contains(hint)),
            (body == "Action=Delete", body == "Action=Delete"),
            "{said}"
        );
    }
    let message = Message { headers: &headers, body: b"Action=a%20hunter2%20b" };
    let (_, said) = verdict_on(&policy, "POST", "https://api.iaas.test/", &message);
    assert!(said.contains("`api` Run Stop") && !said.contains("hunter2"), "{said}");
    let plain = Message { headers: &[], body: b"Action=Run" };
    assert_eq!(verdict_on(&policy, "POST", "https://api.iaas.test/", &plain).0, "operation");
}

#[test]
fn a_request_must_be_both_granted_and_declared() {
    let url = "https://api.iaas.test/v1/x";
    let one = |need: Value| needs(&json!({"version": 1, "http": [need]}));
    for (need, expected) in [
        (json!({"id": "n", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/**"]}), "allowed by api"),
        (json!({"id": "n", "to": "https://*.iaas.test", "methods": "*", "paths": "*"}), "allowed by api"),
        (json!({"id": "n", "to": "${url}", "methods": ["GET"], "paths": ["/v1/**"]}), "undeclared"),
        (json!({"id": "n", "to": "https://api.iaas.test:8443", "methods": ["GET"], "paths": ["/v1/**"]}), "undeclared"),
        (json!({"id": "n", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/**"]}), "undeclared"),
        (json!({"id": "n", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/y"]}), "undeclared"),
    ] {
        let policy = policy_of(&corpus(), Some(&one(need.clone())));
        assert_eq!(verdict(&policy, "GET", url), expected, "{need}");
    }
    let nothing = needs(&json!({"version": 1}));
    assert_eq!(verdict(&policy_of(&corpus(), Some(&nothing)), "GET", url), "undeclared");
    assert_eq!(verdict(&policy_of(&corpus(), None), "GET", url), "undeclared");
    assert_eq!(verdict(&policy_of(&corpus(), None), "GET", "https://evil.test/"), "undeclared");
    assert_eq!(verdict(&policy_of(&json!([]), Some(&any_needs())), "GET", url), "undeclared");
    let wide = needs(
        &json!({"version": 1, "http": [{"id": "n", "to": "https://evil.test", "methods": ["GET"], "paths": ["/**"]}]}),
    );
    assert_eq!(verdict(&policy_of(&corpus(), Some(&wide)), "GET", "https://evil.test/"), "host");
}

#[test]
fn a_trusted_module_without_needs_gets_what_is_granted() {
    let trusting = json!({"version": 1, "trust_undeclared": true, "http": corpus()});
    let policy = resolve(&trusting, &json!({}), &json!({}), None).unwrap();
    assert_eq!(verdict(&policy, "GET", "https://api.iaas.test/v1/x"), "allowed by api");
    assert_eq!(verdict(&policy, "GET", "https://evil.test/v1/x"), "host");
    assert!(policy.registry.allows("vm", &["vm"]).is_ok());
    let nothing = needs(&json!({"version": 1}));
    let policy = resolve(&trusting, &json!({}), &json!({}), Some(&nothing)).unwrap();
    assert_eq!(verdict(&policy, "GET", "https://api.iaas.test/v1/x"), "undeclared");
    assert!(policy.registry.allows("vm", &["vm"]).is_err());
}

#[test]
fn no_grant_opens_the_endpoints_of_bosh() {
    let endpoints = [
        Endpoint::from_url("the registry", "https://registry.iaas.test:25777").unwrap(),
        Endpoint::from_url("the message bus", "nats://u:p@10.0.0.6:4222").unwrap(),
    ];
    let resolve = |to: &str| {
        let policy = json!({"version": 1, "http": [{"id": "a", "to": to, "methods": ["GET"], "paths": ["/**"]}]});
        Policy::resolve(&file(&policy), &Properties::default(), Some(&any_needs()), &endpoints, false)
    };
    for to in ["https://registry.iaas.test:25777", "https://10.0.0.6:4222", "http://10.0.0.6:4222"] {
        let problems = resolve(to).err().unwrap_or_else(|| panic!("{to} was granted"));
        assert_eq!(problems[0].key, "http[0].to", "{to}");
        // Nor by a property, or to log in.
        let login =
            json!({"to": "${url}", "path": "/t", "plain_http": true, "token": "json:/t", "send": {"header": "X"}});
        let policy = json!({"version": 1, "logins": {"l": login}, "http": [
            {"id": "a", "to": "${url}", "methods": ["GET"], "paths": ["/**"], "plain_http": true, "auth": {"login": "l"}}]});
        for (job, context) in [(json!({"url": to}), json!({})), (json!({}), json!({"url": to}))] {
            let properties = Properties::merge(object(&job), object(&context));
            let problems = Policy::resolve(&file(&policy), &properties, None, &endpoints, true).err().unwrap();
            let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
            assert!(keys.contains(&"http[0].to") && keys.contains(&"logins.l.to"), "{keys:?}");
        }
    }
    let label = json!({"version": 1, "http": [
        {"id": "a", "to": "https://${name}.iaas.test:25777", "methods": ["GET"], "paths": ["/**"]}]});
    let properties = Properties::merge(object(&json!({"name": "registry"})), Map::new());
    assert!(Policy::resolve(&file(&label), &properties, None, &endpoints, false).is_err());
    let policy = resolve("https://*.iaas.test:25777").unwrap();
    assert_eq!(verdict(&policy, "GET", "https://other.iaas.test:25777/"), "allowed by a");
    let registry = Destination::parse("https://registry.iaas.test:25777/", 8192).unwrap();
    let Verdict::Denied(denial) = policy.judge(&registry, "GET", &NOTHING) else { panic!("it is allowed") };
    assert_eq!((denial.reason, denial.hint), (DenialReason::Host, None));
    // Which of them it is, is for operators only.
    assert!(denial.message.ends_with(CLOSED_SERVER), "{}", denial.message);
    assert_eq!(denial.detail, "it is the registry");
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(policy.forbids(ip("10.0.0.6"), 4222), Some("the message bus"));
    assert_eq!(policy.forbids(ip("::ffff:10.0.0.6"), 4222), Some("the message bus"));
    assert_eq!(policy.forbids(ip("10.0.0.6"), 443), None);
    assert!(resolve("https://10.0.0.6").is_ok());
}

#[test]
fn neither_query_nor_fragment_is_in_a_message() {
    let policy = policy_of(&corpus(), Some(&any_needs()));
    let (_, message) = verdict_on(&policy, "GET", "https://evil.test/x?token=hunter2#hunter2", &NOTHING);
    assert!(!message.contains("hunter2"), "{message}");
}
