//! A request names exactly one operation, and the guest declares it.

use super::*;

fn granting(operations: Value, needs: &Needs) -> Policy {
    let grant = json!([{"id": "api", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/**"], "operations": operations}]);
    policy_of(&grant, Some(needs))
}

fn typed(content_type: &str, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let all = std::iter::once(("Content-Type", content_type)).chain(more.iter().copied());
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn judged(policy: &Policy, headers: &[(String, String)], body: &str) -> (String, String) {
    verdict_on(policy, "POST", "https://api.iaas.test/v1/x", &Message { headers, body: body.as_bytes() })
}

#[test]
fn a_json_body_names_one_operation() {
    let headers = typed("application/json", &[]);
    for (operations, body, expected) in [
        (json!({"in": "json:/reboot/type", "allow": ["SOFT"]}), r#"{"reboot": {"type": "SOFT"}}"#, true),
        (
            json!({"in": "json:/reboot/type", "allow": ["SOFT"]}),
            r#"{"reboot": {"type": "SOFT"}, "createImage": {}}"#,
            false,
        ),
        (
            json!({"in": "json:/reboot/type", "allow": ["SOFT"]}),
            r#"{"createImage": {}, "reboot": {"type": "SOFT"}}"#,
            false,
        ),
        (json!({"in": "json:/op", "allow": ["Run"]}), r#"{"op": "Run"}"#, true),
        (json!({"in": "json:/op", "allow": ["Run"]}), r#"{"op": "Run", "more": null}"#, false),
        (json!({"in": "json", "allow": ["grow", "move"]}), r#"{"grow": {"size": 2}}"#, true),
        (json!({"in": "json", "allow": ["grow", "move"]}), r#"{"move": null}"#, true),
        (json!({"in": "json", "allow": ["grow", "move"]}), r#"{"Grow": 1}"#, false),
        (json!({"in": "json", "allow": ["grow", "move"]}), r#"{"grow": 1, "move": 1}"#, false),
        (json!({"in": "json", "allow": ["grow", "move"]}), r#"{"delete": 1}"#, false),
        (json!({"in": "json", "allow": ["grow", "move"]}), "{}", false),
        (json!({"in": "json", "allow": ["grow", "move"]}), "", false),
        (json!({"in": "json", "allow": ["grow", "move"]}), r#"["grow"]"#, false),
        (json!({"in": "json", "allow": ["grow", "move"]}), "\u{feff}{\"grow\": 1}", false),
    ] {
        let (verdict, said) = judged(&granting(operations.clone(), &any_needs()), &headers, body);
        let expected = if expected { "allowed by api" } else { "operation" };
        assert_eq!(verdict, expected, "{operations} {body}: {said}");
    }
    let encoded = typed("application/json", &[("Content-Encoding", "deflate")]);
    let policy = granting(json!({"in": "json", "allow": ["grow"]}), &any_needs());
    assert_eq!(judged(&policy, &encoded, r#"{"grow": 1}"#).0, "operation");
    assert_eq!(judged(&policy, &typed("text/plain", &[]), r#"{"grow": 1}"#).0, "operation");
    // To a server that reads a form, this one destroys.
    for headers in [Vec::new(), typed("application/x-www-form-urlencoded, application/json", &[])] {
        assert_eq!(judged(&policy, &headers, r#"{"grow":"&destroy=now&x="}"#).0, "operation", "{headers:?}");
    }
}

#[test]
fn parameters_that_servers_read_as_the_operation_are_refused() {
    let form = typed("application/x-www-form-urlencoded", &[]);
    let policy = granting(json!({"in": "form:Action", "allow": ["Start"]}), &any_needs());
    let on = |policy: &Policy, query: &str, headers: &[(String, String)], body: &str| {
        let url = format!("https://api.iaas.test/v1/x{query}");
        verdict_on(policy, "POST", &url, &Message { headers, body: body.as_bytes() }).0
    };
    assert_eq!(on(&policy, "", &form, "Action=Start&Name=x&Actions=y"), "allowed by api");
    assert_eq!(on(&policy, "?", &form, "Action=Start"), "allowed by api");
    for name in ["+Action", "Action%00", "Action%00x", "Action%5B%5D", "Action%20", "%5BAction%5D", "%0aaction"] {
        assert_eq!(on(&policy, "", &form, &format!("Action=Start&{name}=Destroy")), "operation", "{name}");
        assert_eq!(on(&policy, &format!("?{name}=Destroy"), &form, "Action=Start"), "operation", "{name}");
    }
    for query in
        ["x=1;Action=Destroy", "%u0041ction=Destroy", "%41%2Gction=x", "x=1%u0026Action=x", "%C1%81ction=x", "x=%00"]
    {
        assert_eq!(on(&policy, &format!("?{query}"), &form, "Action=Start"), "operation", "{query}");
    }
    // Servers read any parameter of the query as a field of the form.
    for query in ["?Version=1&Actions=x", "?x=%3BAction=Destroy&&y=%E4&z"] {
        assert_eq!(on(&policy, query, &form, "Action=Start"), "operation", "{query}");
    }
    let json = typed("application/json", &[]);
    let policy = granting(json!({"in": "json:/Action", "allow": ["Start"]}), &any_needs());
    for query in ["?v=1", "?x=%3BAction=Destroy&&y=%E4&z"] {
        assert_eq!(on(&policy, query, &json, r#"{"Action": "Start"}"#), "allowed by api", "{query}");
    }
    for query in ["?Action=Destroy", "?v=1&action=Destroy", "?Action%5B%5D=Destroy", "?a.Action=Destroy"] {
        assert_eq!(on(&policy, query, &json, r#"{"Action": "Start"}"#), "operation", "{query}");
    }
    // The operation is a key, so that any parameter could be one, except those that the grant lists.
    let policy = granting(json!({"in": "json", "allow": ["start"]}), &any_needs());
    assert_eq!(on(&policy, "", &json, r#"{"start": 1}"#), "allowed by api");
    assert_eq!(on(&policy, "?destroy=1", &json, r#"{"start": 1}"#), "query");
    let listing = json!([{"id": "api", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/**"],
        "query": ["version"], "operations": {"in": "json", "allow": ["start"]}}]);
    let policy = policy_of(&listing, Some(&any_needs()));
    assert_eq!(on(&policy, "?version=1", &json, r#"{"start": 1}"#), "allowed by api");
}

#[test]
fn a_request_with_its_operation_in_a_header_names_no_second_one() {
    let policy = granting(json!({"in": "header:X-Amz-Target", "allow": ["Api.Describe"]}), &any_needs());
    let target = ("X-Amz-Target", "Api.Describe");
    let on = |query: &str, headers: &[(String, String)], body: &str| {
        let url = format!("https://api.iaas.test/v1/x{query}");
        verdict_on(&policy, "POST", &url, &Message { headers, body: body.as_bytes() }).0
    };
    let untyped = vec![(target.0.to_owned(), target.1.to_owned())];
    assert_eq!(on("", &untyped, ""), "allowed by api");
    assert_eq!(on("", &untyped, "Action=Stop"), "operation");
    for (content_type, expected) in [
        ("application/json", "allowed by api"),
        ("application/x-amz-json-1.1", "allowed by api"),
        ("application/json; charset=utf-8", "allowed by api"),
        ("application/cbor", "allowed by api"),
        ("application/octet-stream", "allowed by api"),
        ("text/xml", "allowed by api"),
        ("application/x-www-form-urlencoded", "operation"),
        ("application/json, application/x-www-form-urlencoded", "operation"),
        ("application/json; x=1", "operation"),
        ("multipart/form-data; boundary=b", "operation"),
        ("text/plain", "operation"),
    ] {
        assert_eq!(on("", &typed(content_type, &[target]), "Action=Stop&Id=1"), expected, "{content_type}");
    }
    let json = typed("application/json", &[target]);
    assert_eq!(on("?Action=Stop", &json, "{}"), "query");
    assert_eq!(on("?", &json, "{}"), "allowed by api");
    let url = "https://api.iaas.test/v1/x;Action=Stop";
    assert_eq!(verdict_on(&policy, "POST", url, &Message { headers: &json, body: b"{}" }).0, "query");
    for other in ["SOAPAction", "smithy-protocol"] {
        assert_eq!(on("", &typed("application/json", &[target, (other, "x")]), "{}"), "operation", "{other}");
    }
    let listing = json!([{"id": "api", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/**"],
        "query": ["version"], "operations": {"in": "header:X-Amz-Target", "allow": ["Api.Describe"]}}]);
    let message = Message { headers: &json, body: b"{}" };
    let policy = policy_of(&listing, Some(&any_needs()));
    assert_eq!(verdict_on(&policy, "POST", "https://api.iaas.test/v1/x?version=1", &message).0, "allowed by api");
}

#[test]
fn a_header_or_a_query_does_not_name_an_operation_beside_that_of_a_body() {
    let parts = "--b\r\nContent-Disposition: form-data; name=\"Action\"\r\n\r\nRun\r\n--b--\r\n";
    let soap = "<s:Envelope xmlns:s=\"urn:soap\"><s:Body><Run/></s:Body></s:Envelope>";
    for (place, content_type, body, in_query) in [
        ("json", "application/json", r#"{"Run": 1}"#, "query"),
        ("json:/Action", "application/json", r#"{"Action": "Run"}"#, "allowed by api"),
        ("form:Action", "application/x-www-form-urlencoded", "Action=Run", "operation"),
        ("xml:/Request/Action", "text/xml", "<Request><Action>Run</Action></Request>", "query"),
        ("part:Action", "multipart/form-data; boundary=b", parts, "query"),
        ("body", "text/plain", "Run", "query"),
        ("soap", "text/xml", soap, "query"),
    ] {
        let policy = granting(json!({"in": place, "allow": ["Run"]}), &any_needs());
        assert_eq!(judged(&policy, &typed(content_type, &[]), body).0, "allowed by api", "{place}");
        for header in ["X-Amz-Target", "x_amz_target", "Smithy-Protocol", "SOAPAction"] {
            let headers = typed(content_type, &[(header, "Api.Stop")]);
            assert_eq!(judged(&policy, &headers, body).0, "operation", "{place} {header}");
        }
        let headers = typed(content_type, &[]);
        let message = Message { headers: &headers, body: body.as_bytes() };
        let found = verdict_on(&policy, "POST", "https://api.iaas.test/v1/x?Op=Stop", &message).0;
        assert_eq!(found, in_query, "{place}");
    }
}

#[test]
fn an_operation_that_is_named_again_in_another_spelling_is_refused() {
    let part = |name: &str| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"Action\"\r\n\r\nRun\r\n--b\r\nContent-Disposition: form-data; \
             name=\"{name}\"\r\n\r\nStop\r\n--b--\r\n"
        )
    };
    let form = |name: &str| format!("Action=Run&{name}=Stop");
    let json = |name: &str| format!(r#"{{"a":{{"op":"Run","{name}":"Stop"}}}}"#);
    let xml = |name: &str| format!("<Req><Action>Run</Action><{name}>Stop</{name}></Req>");
    for (place, content_type, body, alike, others) in [
        (
            "form:Action",
            "application/x-www-form-urlencoded",
            &form as &dyn Fn(&str) -> String,
            &["Act_ion", "ACTION_", "Action.1", "Act.ion", "action"][..],
            &["Actions", "Reaction", "Name.Action"][..],
        ),
        ("json:/a/op", "application/json", &json, &["o_p", "OP", "o-p"], &["ops", "x"]),
        ("xml:/Req/Action", "text/xml", &xml, &["action", "Act_ion", "ACTION"], &["Actions", "Action-Id"]),
        ("part:Action", "multipart/form-data; boundary=b", &part, &["%41ction", "action", "Act_ion"], &["Actions"]),
    ] {
        let policy = granting(json!({"in": place, "allow": ["Run"]}), &any_needs());
        let headers = typed(content_type, &[]);
        for name in alike {
            assert_eq!(judged(&policy, &headers, &body(name)).0, "operation", "{place} {name}");
        }
        for name in others {
            let (verdict, said) = judged(&policy, &headers, &body(name));
            assert_eq!(verdict, "allowed by api", "{place} {name}: {said}");
        }
    }
    let policy = granting(json!({"in": "json:/a/op", "allow": ["Run"]}), &any_needs());
    let headers = typed("application/json", &[]);
    for (query, body) in [("?a_op=Stop", r#"{"a":{"op":"Run"}}"#), ("", r#"{"a":{"op":"Run"},"a_op":"Stop"}"#)] {
        let message = Message { headers: &headers, body: body.as_bytes() };
        let url = format!("https://api.iaas.test/v1/x{query}");
        assert_eq!(verdict_on(&policy, "POST", &url, &message).0, "operation", "{query} {body}");
    }
}

#[test]
fn a_soap_body_has_one_child_and_the_soap_action_names_it() {
    let soap = |body: &str| format!(r#"<s:Envelope xmlns:s="urn:soap"><s:Header><x/></s:Header>{body}</s:Envelope>"#);
    let policy = |place: &str| {
        let allow = if place == "soap" { json!(["Run"]) } else { json!(["urn:x#Run", "\"urn:x#Run\""]) };
        granting(json!({"in": place, "allow": allow}), &any_needs())
    };
    let one = "<s:Body><m:Run xmlns:m=\"urn:x\"><a>1</a></m:Run></s:Body>";
    for (place, action, body, expected) in [
        ("soap", None, one, true),
        ("soap", Some("urn:x#Run"), one, true),
        ("soap", Some("\"http://x.test/Run\""), one, true),
        ("soap", Some("\"\""), one, true),
        ("soap", Some("urn:x#Stop"), one, false),
        ("soap", Some("urn:x#run"), one, false),
        ("soap", None, "<s:Body><Run/><Stop/></s:Body>", false),
        ("soap", None, "<s:Body><Stop/></s:Body>", false),
        ("soap", None, "<s:Body/>", false),
        ("soap", None, "<s:Body><Run/></s:Body><s:Body><Stop/></s:Body>", false),
        ("soap", None, "<s:Other><Run/></s:Other>", false),
        ("soap", None, "<s:Body><Run/></s:Body><s:Header/>", false),
        ("header:SOAPAction", Some("urn:x#Run"), one, true),
        ("header:SOAPAction", Some("\"urn:x#Run\""), one, true),
        ("header:SOAPAction", None, one, false),
        ("header:SOAPAction", Some("urn:x#Run"), "<s:Body><Stop/></s:Body>", false),
        ("header:SOAPAction", Some("urn:x#Run"), "<s:Body><Run/><Stop/></s:Body>", false),
    ] {
        let more: Vec<(&str, &str)> = action.iter().map(|action| ("SOAPAction", *action)).collect();
        let (verdict, said) = judged(&policy(place), &typed("text/xml", &more), &soap(body));
        let expected = if expected { "allowed by api" } else { "operation" };
        assert_eq!(verdict, expected, "{place} {action:?} {body}: {said}");
    }
    let addressed = |action: &str| {
        format!(
            r#"<s:Envelope xmlns:s="urn:soap" xmlns:a="urn:a"><s:Header>{action}</s:Header><s:Body><Run/></s:Body></s:Envelope>"#
        )
    };
    for (action, expected) in [
        ("<a:Action>urn:x/Run</a:Action><a:To>urn:x/Stop</a:To>", "allowed by api"),
        ("<a:Action>\n urn:x/Run </a:Action>", "allowed by api"),
        ("<a:Action>urn:x/Stop</a:Action>", "operation"),
        ("<a:Action>urn:x/Run</a:Action><a:Action>urn:x/Stop</a:Action>", "operation"),
        ("<a:Action>urn:x/<![CDATA[Stop]]></a:Action>", "operation"),
        ("<a:Action>urn:x/Run<!-- --><b>/Stop</b></a:Action>", "operation"),
    ] {
        assert_eq!(judged(&policy("soap"), &typed("text/xml", &[]), &addressed(action)).0, expected, "{action}");
    }
    let other = typed("application/soap+xml; action=\"urn:x#Stop\"", &[]);
    assert_eq!(judged(&policy("soap"), &other, &soap(one)).0, "operation");
    assert_eq!(judged(&policy("soap"), &typed("text/xml", &[]), "<Run/>").0, "operation");
}

#[test]
fn an_operation_must_be_both_granted_and_declared() {
    let headers = typed("application/json", &[]);
    let need = |operations: Value| {
        let mut need = json!({"id": "n", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/**"]});
        if !operations.is_null() {
            need["operations"] = operations;
        }
        needs(&json!({"version": 1, "http": [need]}))
    };
    let both = json!({"in": "json", "allow": ["grow", "move"]});
    for (granted, declared, body, expected) in [
        (both.clone(), both.clone(), "grow", "allowed by api"),
        (both.clone(), json!("*"), "move", "allowed by api"),
        (both.clone(), json!({"in": "json", "allow": ["grow"]}), "grow", "allowed by api"),
        (both.clone(), json!({"in": "json", "allow": ["grow"]}), "move", "undeclared"),
        (both.clone(), json!({"in": "json:/grow", "allow": ["x"]}), "grow", "undeclared"),
        (both.clone(), json!(null), "grow", "undeclared"),
        (json!({"in": "json", "allow": ["grow"]}), both.clone(), "move", "operation"),
    ] {
        let needs = need(declared.clone());
        let (verdict, said) = judged(&granting(granted.clone(), &needs), &headers, &format!(r#"{{"{body}": "y"}}"#));
        assert_eq!(verdict, expected, "{granted} {declared} {body}: {said}");
    }
    // A need that lists operations limits itself, even where the grant does not.
    let grant = json!([{"id": "api", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/**"]}]);
    let policy = policy_of(&grant, Some(&need(both)));
    assert_eq!(judged(&policy, &headers, r#"{"grow": 1}"#).0, "allowed by api");
    assert_eq!(judged(&policy, &headers, r#"{"delete": 1}"#).0, "undeclared");
    let policy = policy_of(&grant, Some(&need(json!(null))));
    assert_eq!(judged(&policy, &headers, r#"{"delete": 1}"#).0, "allowed by api");
}

#[test]
fn a_login_must_be_declared() {
    let login = json!({"to": "https://id.iaas.test", "path": "/t", "token": "json:/t", "send": {"header": "X-Token"}});
    let policy = json!({"version": 1, "logins": {"main": login}, "http": [
        {"id": "api", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/**"], "auth": {"login": "main"}}]});
    for (logins, expected) in [
        (json!(["main"]), "allowed by api"),
        (json!("*"), "allowed by api"),
        (json!(["other"]), "undeclared"),
        (json!([]), "undeclared"),
    ] {
        let needs = needs(&json!({"version": 1, "logins": logins, "http": [
            {"id": "n", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/**"]}]}));
        let policy = resolve(&policy, &json!({}), &json!({}), Some(&needs)).unwrap();
        let (verdict, said) = verdict_on(&policy, "GET", "https://api.iaas.test/v1/x", &NOTHING);
        assert_eq!(verdict, expected, "{logins}: {said}");
        assert_eq!(policy.declares_login("main"), expected != "undeclared");
        assert_eq!(said.contains(r#"needs.json, at its top: "logins": ["main"]"#), expected == "undeclared", "{said}");
    }
    let trusting = json!({"version": 1, "trust_undeclared": true, "logins": policy["logins"], "http": policy["http"]});
    let trusted = resolve(&trusting, &json!({}), &json!({}), None).unwrap();
    assert_eq!(verdict(&trusted, "GET", "https://api.iaas.test/v1/x"), "allowed by api");
    assert!(!resolve(&policy, &json!({}), &json!({}), None).unwrap().declares_login("main"));
}
