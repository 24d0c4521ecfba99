use super::*;

#[test]
fn the_answer_to_a_filled_slot_is_its_status_and_the_shown_places() {
    let policy = policy(slot(json!(["json:/server/id", "json:/links/*/rel", "header:Retry-After"])));
    let body = json!({"server": {"id": "vm-1", "echo": "12345678", "name": {"id": 7}}, "user_data": "12345678",
                      "links": [{"rel": "self", "href": "12345678"}, {"href": "x"}]});
    let headers = [("content-type", "application/json"), ("x-echo", "12345678"), ("Retry-After", "7"), ("etag", "e")];
    for status in [200, 202, 400, 500] {
        let shown = cleaned(&policy, &["password"], status, &headers, &body.to_string());
        let expected = json!({"server": {"id": "vm-1"}, "links": [{"rel": "self"}]});
        assert_eq!(serde_json::from_str::<Value>(&shown.body).unwrap(), expected);
        assert_eq!(shown.headers.len(), 2, "{:?}", shown.headers);
        assert_eq!(shown.result.unwrap().is_some(), status >= 400);
    }
    for (content_type, body) in [
        ("text/plain", "12345678"),
        ("application/json", "{\"server\": {\"id\": \"a\"}, \"server\": {}}"),
        ("application/json", "{\"server\": \"12345678\"}"),
        ("application/json", "{\"server\": {\"id\": [\"12345678\"]}}"),
        ("application/json", "{\"server\": {\"ID\": \"12345678\"}}"),
        ("application/json", "\"12345678\""),
        ("text/html", "<html>12345678</html>"),
    ] {
        let shown = cleaned(&policy, &["password"], 200, &[("content-type", content_type)], body);
        assert_eq!((shown.body.as_str(), shown.headers.len()), ("", 0), "{body}");
        assert_eq!(shown.result, Ok(None));
    }
    let long = json!({"server": {"id": "x".repeat(2000)}}).to_string();
    assert_eq!(cleaned(&policy, &["password"], 200, JSON, &long).body, "");
    assert!(cleaned(&policy, &["password"], 200, &[("retry-after", &"x".repeat(2000))], "").headers.is_empty());
    // The keys of an object are not shown: a server could choose them.
    let keys = json!({"links": {"12345678": {"rel": "self"}}}).to_string();
    assert_eq!(cleaned(&policy, &["password"], 200, JSON, &keys).body, "");
    // A request without a secret has the whole response.
    assert_eq!(cleaned(&policy, &[], 200, JSON, &body.to_string()).body, body.to_string());
}

#[test]
fn two_filled_slots_show_what_both_show_and_captures_are_kept() {
    let slots = json!([
        {"method": "POST", "path": "/vms", "place": "json:/a", "takes": ["password"], "show": ["json:/id", "json:/x"]},
        {"method": "POST", "path": "/vms", "place": "json:/b", "takes": ["token"], "show": ["json:/id", "json:/y"]}]);
    let captures = json!([{"method": "POST", "path": "/vms", "place": "json:/keys/0/token", "as": "token"},
                          {"method": "POST", "path": "/vms", "place": "cookie:s", "as": "cookie"}]);
    let policy = policy(json!({"slots": slots, "captures": captures}));
    let body = json!({"id": 1, "x": 2, "y": 3, "keys": [{"token": "t", "z": 4}, 5]}).to_string();
    let headers = [("content-type", "application/json"), ("set-cookie", "s=1"), ("x-other", "2")];
    let both = cleaned(&policy, &["password", "token"], 200, &headers, &body);
    assert_eq!(serde_json::from_str::<Value>(&both.body).unwrap(), json!({"id": 1, "keys": [{"token": "t"}]}));
    assert_eq!(both.headers.len(), 2, "{:?}", both.headers);
    let one = cleaned(&policy, &["password"], 200, JSON, &body);
    assert_eq!(serde_json::from_str::<Value>(&one.body).unwrap()["x"], 2);
}

#[test]
fn shown_elements_are_written_into_a_new_document() {
    let policy = policy(slot(json!(["xml:instanceId"])));
    let body = "<r><echo>12345678</echo><n:instanceId>i-1 &lt;&amp;</n:instanceId></r>";
    let shown = cleaned(&policy, &["password"], 200, &[("content-type", "text/xml")], body);
    assert_eq!(shown.body, "<shown><instanceId>i-1 &lt;&amp;</instanceId></shown>");
    let twice = "<r><instanceId>a</instanceId><instanceId>b</instanceId></r>";
    assert_eq!(cleaned(&policy, &["password"], 200, &[("content-type", "text/xml")], twice).body, "");
}

#[test]
fn dropped_places_are_removed_in_any_case_and_at_every_occurrence() {
    let policy = policy(
        json!({"drop": ["json:/Config/Env", "json:/list/*/Cmd", "json:/0/Cmd", "xml:userData", "header:X-Echo"]}),
    );
    for (body, expected) in [
        (json!({"Config": {"Env": ["SECRET"], "x": 1}}), json!({"Config": {"x": 1}})),
        (
            json!({"config": {"ENV": {"a": "SECRET"}, "env": "SECRET"}, "CONFIG": {"Env": 1}}),
            json!({"config": {}, "CONFIG": {}}),
        ),
        (json!({"list": [{"cmd": "SECRET"}, {"Cmd": ["SECRET"], "y": 2}, 3]}), json!({"list": [{}, {"y": 2}, 3]})),
        (json!({"list": {"any": {"Cmd": "SECRET"}}}), json!({"list": {"any": {}}})),
        (json!([{"Cmd": "SECRET"}, {"Cmd": "kept"}]), json!([{}, {"Cmd": "kept"}])),
        (json!({"Env": "kept", "Config": "kept"}), json!({"Env": "kept", "Config": "kept"})),
    ] {
        for status in [200, 404] {
            let left = cleaned(
                &policy,
                &[],
                status,
                &[("content-type", "application/json"), ("x-echo", "SECRET")],
                &body.to_string(),
            );
            assert_eq!((left.result, left.headers.len()), (Ok(None), 1), "{body}");
            assert_eq!(serde_json::from_str::<Value>(&left.body).unwrap(), expected);
        }
    }
    let xml =
        cleaned(&policy, &[], 200, &[("content-type", "text/xml")], "<r><userdata><a>SECRET</a></userdata><b/></r>");
    assert_eq!(xml.body, "<r><b/></r>");
}

#[test]
fn an_answer_in_which_places_cannot_be_found_is_withheld() {
    let policy = policy(json!({"drop": ["json:/Config/Env"]}));
    for (content_type, body) in [
        ("text/plain", "{\"Config\": {\"Env\": \"HIDDEN\"}}"),
        ("text/html", "<html>HIDDEN</html>"),
        ("application/octet-stream", "HIDDEN"),
        ("application/json", "{\"Config\": {\"Env\": \"HIDDEN\"}"),
        ("application/json", "{\"Config\": {\"Env\": 1, \"Env\": \"HIDDEN\"}}"),
        ("application/json", "{\"Config\": {}}{\"Config\": {\"Env\": \"HIDDEN\"}}"),
        ("application/json; charset=utf-16", "{\"Config\": {\"Env\": \"HIDDEN\"}}"),
        ("application/json", r#""{\"Config\": {\"Env\": \"HIDDEN\"}}""#),
        ("", "HIDDEN"),
    ] {
        let headers: Vec<(&str, &str)> =
            [("content-type", content_type)].into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let failure = cleaned(&policy, &[], 200, &headers, body).result.unwrap_err();
        assert_eq!(failure.check, Some(Check::DropUnreadable), "{body}");
        assert!(!failure.message.contains("HIDDEN"), "{failure}");
        // A guest decides by the status of an error, and operators see the rest, unless it names the place.
        let error = cleaned(&policy, &[], 503, &headers, body);
        assert_eq!((error.body.as_str(), error.headers.len()), ("", 0));
        let shown = error.result.unwrap().unwrap();
        assert_eq!(shown.contains("HIDDEN"), !body.contains("Env"), "{shown}");
    }
    // The same document in another form, and places of both kinds.
    let xml = "<server><Config><Env>HIDDEN</Env></Config></server>";
    let as_xml = [("content-type", "application/xml")];
    assert_eq!(cleaned(&policy, &[], 200, &as_xml, xml).result.unwrap_err().check, Some(Check::DropUnreadable));
    let of_xml = self::policy(json!({"drop": ["xml:Env"]}));
    assert_eq!(cleaned(&of_xml, &[], 200, &as_xml, xml).body, "<server><Config></Config></server>");
    assert!(cleaned(&of_xml, &[], 200, JSON, "{\"Env\": \"HIDDEN\"}").result.is_err());
    let of_header = self::policy(json!({"drop": ["header:X-Echo"]}));
    assert_eq!(cleaned(&of_header, &[], 200, &[("x-echo", "HIDDEN")], "text").body, "text");
    for empty in ["", " \r\n"] {
        assert!(cleaned(&policy, &[], 200, &[("content-type", "text/plain")], empty).result.is_ok());
    }
    let twice = [("content-type", "application/json"), ("content-type", "text/plain")];
    assert!(cleaned(&policy, &[], 200, &twice, "{}").result.is_err());
}

#[test]
fn operators_see_an_error_without_dropped_places_and_without_credentials() {
    let mut rules = slot(json!(["json:/id"]));
    rules.as_object_mut().unwrap().insert("drop".to_owned(), json!(["json:/*/user_data"]));
    let policy = policy(rules);
    let shown =
        |secret_names: &[&str], headers, body: &str| cleaned(&policy, secret_names, 400, headers, body).result.unwrap();
    let body = json!({"badRequest": {"message": "no such flavor", "user_data": "DROPPED", "adminPass": "HANDED-OUT"}});
    let expected = json!({"badRequest": {"message": "no such flavor", "adminPass": null}}).to_string();
    assert_eq!(shown(&["password"], JSON, &body.to_string()), Some(expected));
    let html: &[(&str, &str)] = &[("content-type", "text/html")];
    for secret_names in [&["password"][..], &[]] {
        let page = "<h1>502 Bad Gateway</h1>";
        assert_eq!(shown(secret_names, html, page).as_deref(), Some(page));
        for page in ["user_data: DROPPED", "<p>USER_DATA is DROPPED", "adminPass=HANDED-OUT"] {
            let text = shown(secret_names, &[("content-type", "text/plain")], page).unwrap();
            assert!(text.contains("not shown") && !text.contains("DROPPED") && !text.contains("HANDED"), "{text}");
        }
    }
}

#[test]
fn cleaning_stops_when_the_call_is_over() {
    let over = Vault::new();
    over.stop_searches_when(Box::new(|| true));
    for (secret_names, status) in [(&[][..], 200), (&[], 404), (&["password"], 404)] {
        for body in ["{\"agent_id\": \"a\"}", "{\"agent_id\": 1}", "<r>agent_id</r>"] {
            let policy = policy(slot(json!(["json:/agent_id"])));
            let stopped = cleaned_while(&over.search_deadline(), &policy, secret_names, status, &[("x-a", "1")], body);
            assert!(stopped.result.unwrap_err().message.contains("the call was over"), "{status} {body}");
        }
    }
}

#[test]
fn the_union_of_all_grants_of_the_origin_is_dropped() {
    let grant = |id: &str, to: &str, more: Value| {
        let mut grant = json!({"id": id, "to": to, "methods": ["GET"], "paths": [format!("/{id}")]});
        grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        grant
    };
    let grants = [
        grant("a", "https://api.iaas.test", json!({})),
        grant("b", "https://api.iaas.test", json!({"drop": ["json:/b"]})),
        grant("c", "https://*.iaas.test", json!({"drop": ["json:/c", "json:/b"]})),
        grant("d", "https://api.iaas.test:8443", json!({"drop": ["json:/d"]})),
        grant("e", "https://other.test", json!({"drop": ["json:/e"]})),
    ];
    let file = json!({"version": 1, "trust_undeclared": true, "http": grants}).to_string();
    let properties = Properties::merge(serde_json::Map::new(), serde_json::Map::new());
    let policy = Policy::resolve(&PolicyFile::parse(&file).unwrap(), &properties, None, &[], false).unwrap();
    let drops = |url: &str| policy.hidden_places(&Destination::parse(url, 2048).unwrap()).drop;
    assert_eq!(drops("https://api.iaas.test/a"), ["json:/b", "json:/c"].map(|place| place.parse().unwrap()));
    assert_eq!(drops("https://api.iaas.test:8443/a"), ["json:/d"].map(|place| place.parse().unwrap()));
    assert!(drops("http://api.iaas.test/a").is_empty());
    let left = cleaned(&policy, &[], 200, JSON, "{\"b\": 1, \"c\": 2, \"d\": 3}");
    assert_eq!(left.body, "{\"d\":3}");
}
