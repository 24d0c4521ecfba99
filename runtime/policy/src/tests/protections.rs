//! What all grants of an origin protect, whichever grant allows a request.

use super::*;
use wasm_cpi_checks::Check;

fn post(policy: &Policy, url: &str, body: &str) -> Result<String, Denial> {
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    let destination = Destination::parse(url, 8192).unwrap();
    match policy.judge(&destination, "POST", &Message { headers: &headers, body: body.as_bytes() }) {
        Verdict::Allowed { grant, .. } => Ok(grant.id.clone()),
        Verdict::Denied(denial) => Err(denial),
    }
}

fn grant(id: &str, path: &str, more: Value) -> Value {
    let mut grant = json!({"id": id, "to": "https://api.iaas.test", "methods": ["GET", "POST"], "paths": [path]});
    grant.as_object_mut().unwrap().extend(object(&more));
    grant
}

fn capture(path: &str) -> Value {
    json!({"method": "POST", "path": path, "place": "json:/key", "as": format!("key{}", path.replace('/', "."))})
}

#[test]
fn a_path_that_a_server_may_take_for_a_protected_one_is_refused() {
    let captures = json!({"captures": [capture("/v1/keys")]});
    let fields = json!({"fields": [{"method": "POST", "path": "/v1/keys", "places": {"json:/a": "absent"}}]});
    for (protection, hides) in [(captures, true), (fields, false)] {
        // Of the same grant, and of another one of the origin.
        for grants in [
            json!([grant("all", "/v1/**", protection.clone())]),
            json!([grant("all", "/v1/**", json!({})), grant("keys", "/v1/keys", protection.clone())]),
        ] {
            let policy = policy_of(&grants, Some(&any_needs()));
            for path in ["/v1/keys/", "/v1//keys", "/v1/Keys", "/v1/keys;a=b", "/v1/keys.json"] {
                let denial = post(&policy, &format!("https://api.iaas.test{path}"), "{}").unwrap_err();
                assert_eq!((denial.check, denial.reason), (Check::PathAlike, DenialReason::Path), "{path}");
                assert!(denial.message.contains("for `/v1/keys`, for which"), "{}", denial.message);
                let url = format!("https://api.iaas.test{path}");
                // Where parts of responses are hidden, parameters in the path could filter by them.
                let expected = if hides && path.contains(';') { "query" } else { "allowed by all" };
                assert_eq!(verdict(&policy, "GET", &url), expected, "{path}");
            }
            for path in ["/v1/keys", "/v1/keys/1", "/v1/other"] {
                assert!(post(&policy, &format!("https://api.iaas.test{path}"), "{}").is_ok(), "{path}");
            }
        }
    }
}

#[test]
fn a_path_with_the_same_protection_is_not_refused() {
    let entry = |path: &str| json!({"method": "POST", "path": path, "places": {"json:/a": "absent"}});
    let both = json!({"captures": [capture("/v1/keys"), capture("/v1/keys/")], "fields": [entry("/v1/keys"), entry("/v1/keys/")]});
    let policy = policy_of(&json!([grant("all", "/v1/**", both)]), Some(&any_needs()));
    for path in ["/v1/keys", "/v1/keys/"] {
        assert!(post(&policy, &format!("https://api.iaas.test{path}"), "{}").is_ok(), "{path}");
    }
    assert!(post(&policy, "https://api.iaas.test/v1/KEYS", "{}").is_err());
}

#[test]
fn captures_and_fields_of_all_grants_of_an_origin_apply() {
    let protection = json!({
        "captures": [capture("/v1/keys")],
        "fields": [{"method": "POST", "path": "/v1/keys", "places": {"json:/a": "absent"}, "others": "deny"}]
    });
    let grants = json!([
        grant("own", "/v1/keys", json!({})),
        grant("other", "/v1/**", protection),
        {"id": "elsewhere", "to": "https://b.test", "methods": ["POST"], "paths": ["/**"]}
    ]);
    let policy = policy_of(&grants, Some(&any_needs()));
    let denial = post(&policy, "https://api.iaas.test/v1/keys", r#"{"a": 1}"#).unwrap_err();
    assert_eq!(denial.check, Check::FieldAbsent);
    assert_eq!(denial.message.matches("`other` limits the fields").count(), 1, "{}", denial.message);
    let denial = post(&policy, "https://api.iaas.test/v1/keys", r#"{"b": 1}"#).unwrap_err();
    assert!(denial.hint.unwrap().contains("`fields` of grant `other`"));
    assert_eq!(post(&policy, "https://api.iaas.test/v1/keys", "").unwrap(), "own");
    assert_eq!(post(&policy, "https://b.test/v1/keys", r#"{"a": 1}"#).unwrap(), "elsewhere");
    let captures = |url: &str| policy.hidden_places(&Destination::parse(url, 8192).unwrap()).captures.len();
    assert_eq!((captures("https://api.iaas.test/x"), captures("https://b.test/x")), (1, 0));
}

#[test]
fn fields_of_a_grant_with_operations_are_for_its_operations() {
    let with = |operation: &str, places: Value| {
        json!({"operations": {"in": "json", "allow": [operation]},
            "fields": [{"method": "POST", "path": "/v1/act", "others": "deny", "places": places}]})
    };
    let grants = json!([
        grant("grow", "/v1/act", with("grow", json!({"json:/grow/size": "any"}))),
        grant("stop", "/v1/act", with("stop", json!({"json:/stop": "any"}))),
        grant("all", "/v1/**", json!({}))
    ]);
    let policy = policy_of(&grants, Some(&any_needs()));
    let judge = |body: &str| post(&policy, "https://api.iaas.test/v1/act", body);
    assert_eq!(judge(r#"{"grow": {"size": 1}}"#).unwrap(), "grow");
    assert_eq!(judge(r#"{"stop": {}}"#).unwrap(), "stop");
    assert_eq!(judge(r#"{"other": {}}"#).unwrap(), "all");
    assert_eq!(judge(r#"{"grow": {"size": 1, "force": true}}"#).unwrap_err().check, Check::FieldOthers);
}

#[test]
fn an_operation_that_cannot_be_read_for_certain_does_not_leave_the_fields_out() {
    let limits = |operations: Value, place: &str| {
        json!({"operations": operations,
            "fields": [{"method": "POST", "path": "/v1/act", "others": "deny", "places": {place: {"is": "small"}}}]})
    };
    let in_key = json!({"in": "json", "allow": ["resize"]});
    let in_value = json!({"in": "json:/resize/mode", "allow": ["SOFT"]});
    let in_form = json!({"in": "form:Action", "allow": ["resize"]});
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    for (limits, content_type, body, expected) in [
        (limits(in_key.clone(), "json:/resize/flavor"), json, r#"{"resize":{"flavor":"small"}}"#, None),
        (limits(in_key.clone(), "json:/resize/flavor"), json, r#"{"stop":{"flavor":"huge"}}"#, None),
        (limits(in_key.clone(), "json:/resize/flavor"), json, "", None),
        (
            limits(in_key.clone(), "json:/resize/flavor"),
            json,
            r#"{"resize":{"flavor":"huge"}}"#,
            Some(Check::FieldValue),
        ),
        (
            limits(in_key.clone(), "json:/resize/flavor"),
            json,
            r#"{"resize":{"flavor":"huge"},"x":1}"#,
            Some(Check::FieldOperation),
        ),
        (
            limits(in_key.clone(), "json:/resize/flavor"),
            json,
            r#"{"resize":1,"resize":{"flavor":"huge"}}"#,
            Some(Check::FieldOperation),
        ),
        (
            limits(in_key.clone(), "json:/resize/flavor"),
            json,
            r#"{"Resize":{"flavor":"huge"}}"#,
            Some(Check::FieldOperation),
        ),
        (
            limits(in_key.clone(), "json:/resize/flavor"),
            "text/plain",
            r#"{"resize":{"flavor":"huge"}}"#,
            Some(Check::FieldOperation),
        ),
        (
            limits(in_key.clone(), "json:/resize/flavor"),
            "application/json; charset=latin1",
            r#"{"resize":{"flavor":"huge"}}"#,
            Some(Check::FieldOperation),
        ),
        (
            limits(in_key, "json:/resize/flavor"),
            json,
            "\u{feff}{\"resize\":{\"flavor\":\"huge\"}}",
            Some(Check::FieldOperation),
        ),
        // Another operation at the same path, as a body with another key.
        (limits(in_value.clone(), "json:/resize/mode"), json, r#"{"stop":"now"}"#, None),
        (limits(in_value.clone(), "json:/resize/mode"), json, r#"{"resize":{"x":1}}"#, Some(Check::FieldOperation)),
        (
            limits(in_value, "json:/resize/mode"),
            json,
            r#"{"Resize":{"mode":"SOFT","flavor":"huge"}}"#,
            Some(Check::FieldOperation),
        ),
        (limits(in_form.clone(), "form:Flavor"), form, "Flavor=huge", None),
        (limits(in_form.clone(), "form:Flavor"), form, "Action=Stop&Flavor=huge", None),
        (limits(in_form.clone(), "form:Flavor"), form, "action=resize&Flavor=huge", Some(Check::FieldOperation)),
        (limits(in_form, "form:Flavor"), form, "+Action=resize&Flavor=huge", Some(Check::FieldOperation)),
    ] {
        let grants = json!([grant("limited", "/v1/act", limits), grant("all", "/v1/**", json!({}))]);
        let policy = policy_of(&grants, Some(&any_needs()));
        let headers = [("Content-Type".to_owned(), content_type.to_owned())];
        let message = Message { headers: &headers, body: body.as_bytes() };
        let destination = Destination::parse("https://api.iaas.test/v1/act", 8192).unwrap();
        let refused = match policy.judge(&destination, "POST", &message) {
            Verdict::Allowed { .. } => None,
            Verdict::Denied(denial) => {
                assert!(denial.message.contains("`limited` limits the fields of"), "{}", denial.message);
                Some(denial.check)
            }
        };
        assert_eq!(refused, expected, "{content_type} {body}");
        // Elsewhere, and with another method, the grant has no fields.
        let elsewhere = Destination::parse("https://api.iaas.test/v1/other", 8192).unwrap();
        assert!(matches!(policy.judge(&elsewhere, "POST", &message), Verdict::Allowed { .. }), "{body}");
        assert!(matches!(policy.judge(&destination, "GET", &message), Verdict::Allowed { .. }), "{body}");
    }
}

#[test]
fn fields_of_an_operation_in_a_header_apply_to_bodies_that_cannot_be_judged() {
    let limited = json!({"operations": {"in": "header:X-Op", "allow": ["Run", "Put"]}, "query": ["name"],
        "fields": [{"method": "PUT", "path": "/v1/act", "operation": "Run", "others": "deny",
            "places": {"json:/Name": {"is": "ok"}, "header:X-Op": "any"}}]});
    let mut limited = grant("limited", "/v1/act", limited);
    limited["methods"] = json!(["PUT"]);
    let mut wide = grant("wide", "/v1/**", json!({}));
    wide["methods"] = json!(["PUT"]);
    for grants in [json!([limited.clone()]), json!([limited, wide])] {
        let policy = policy_of(&grants, Some(&any_needs()));
        let judge = |operation: &str, query: &str, more: &[(&str, &str)], block: Option<&[String]>| {
            let headers: Vec<(String, String)> = [("X-Op", operation)]
                .iter()
                .chain(more)
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let destination = Destination::parse(&format!("https://api.iaas.test/v1/act{query}"), 8192).unwrap();
            match policy.judge_image(&destination, "PUT", &headers, block) {
                Verdict::Allowed { rewritten, .. } => Ok(rewritten.is_some()),
                Verdict::Denied(denial) => Err(denial.check),
            }
        };
        // What is judged is written anew, and an image cannot be.
        assert_eq!(judge("Run", "", &[], None), Ok(true));
        assert_eq!(judge("Run", "", &[], Some(&[])), Ok(true));
        assert_eq!(judge("Run", "?name=x", &[], None), Err(Check::FieldOthers));
        assert_eq!(judge("Run", "", &[("X-Extra", "1")], Some(&[])), Err(Check::FieldOthers));
        assert_eq!(judge("Put", "", &[("X-Extra", "1")], None), Ok(false));
        let several = ("Content-Type", "multipart/form-data; boundary=b");
        assert!(judge("Run", "", &[several], None).is_err());
    }
}

#[test]
fn parameters_in_the_path_are_refused_where_fields_judge_the_query() {
    let fields = |places: Value, others: &str| {
        json!({"fields": [
        {"method": "GET", "path": "/v1/s/*", "others": others, "places": places}]})
    };
    for (fields, judged) in [
        (fields(json!({"query:name": {"is": "1"}}), "deny"), true),
        (fields(json!({"query:name": {"is": "1"}}), "allow"), true),
        (fields(json!({"json:/size": {"is": 1}}), "allow"), true),
        (fields(json!({"header:X-Op": {"is": "1"}}), "allow"), false),
    ] {
        let policy = policy_of(&json!([grant("api", "/v1/s/*", fields.clone())]), Some(&any_needs()));
        for path in ["1;name=9", "1%3Bname=9", "1(name=9)", "1%28name%3D9)", "1%3Fname=9"] {
            let expected = if judged { "query" } else { "allowed by api" };
            assert_eq!(
                verdict(&policy, "GET", &format!("https://api.iaas.test/v1/s/{path}")),
                expected,
                "{fields} {path}"
            );
        }
        for path in ["1", "1(2)", "a=b"] {
            assert_eq!(
                verdict(&policy, "GET", &format!("https://api.iaas.test/v1/s/{path}")),
                "allowed by api",
                "{path}"
            );
        }
    }
}

#[test]
fn fields_for_a_get_are_for_a_head_as_well() {
    let fields = json!({"fields": [{"method": "GET", "path": "/v1/search", "places": {"query:user_data": "absent"}}]});
    let mut grant = grant("api", "/v1/**", fields);
    grant["methods"] = json!(["GET", "HEAD", "POST"]);
    let policy = policy_of(&json!([grant]), Some(&any_needs()));
    for method in ["GET", "HEAD"] {
        assert_eq!(verdict(&policy, method, "https://api.iaas.test/v1/search?user_data=a"), "operation", "{method}");
        assert_eq!(verdict(&policy, method, "https://api.iaas.test/v1/Search"), "path", "{method}");
        assert_eq!(verdict(&policy, method, "https://api.iaas.test/v1/search"), "allowed by api", "{method}");
    }
    assert_eq!(verdict(&policy, "POST", "https://api.iaas.test/v1/search?user_data=a"), "allowed by api");
}

#[test]
fn a_guest_does_not_choose_a_wider_grant_by_leaving_out_a_need() {
    let file = json!({"version": 1,
        "logins": {"main": {"to": "https://login.iaas.test", "path": "/token", "body": {"p": "${password}"}, "token": "json:/t", "send": {"header": "X-T"}}},
        "http": [grant("wide", "/v1/**", json!({})), grant("keys", "/v1/keys", json!({"auth": {"login": "main"}}))]});
    let need = json!({"id": "n", "to": "*", "methods": "*", "paths": "*"});
    for (logins, expected) in [(json!([]), "undeclared"), (json!(["main"]), "allowed by keys")] {
        let needs = needs(&json!({"version": 1, "logins": logins, "http": [need]}));
        let policy = resolve(&file, &json!({"password": "p"}), &json!({}), Some(&needs)).unwrap();
        assert_eq!(verdict(&policy, "GET", "https://api.iaas.test/v1/keys"), expected);
        assert_eq!(verdict(&policy, "GET", "https://api.iaas.test/v1/other"), "allowed by wide");
    }
    // A grant that lists operations is more specific than one for the same path that does not.
    let listed = json!({"operations": {"in": "json", "allow": ["grow"]}});
    let grants = json!([grant("all", "/v1/act", json!({})), grant("one", "/v1/act", listed)]);
    let policy = policy_of(&grants, Some(&needs(&json!({"version": 1, "http": [need]}))));
    let denial = post(&policy, "https://api.iaas.test/v1/act", r#"{"grow": 1}"#).unwrap_err();
    assert_eq!(denial.check, Check::NeedsOperation);
}

#[test]
fn a_slot_does_not_take_a_name_that_two_secrets_have() {
    let slot = |name: &str| json!([{"method": "POST", "path": "/v1/x", "place": "json:/a", "takes": [name]}]);
    let policy = |name: &str, takes: &str| {
        let capture = json!([{"method": "POST", "path": "/v1/y", "place": "json:/k", "as": name}]);
        json!({"version": 1, "http": [grant("g", "/v1/**", json!({"slots": slot(takes), "captures": capture}))]})
    };
    for (job, capture, takes, expected) in [
        (json!({"password": "p"}), "password", "password", true),
        (json!({"net": {"key": "p"}}), "net.key", "net.key", true),
        (json!({"agent": "p"}), "key", "agent", false),
        (json!({"key": {"x": "p"}}), "key", "key", false),
        (json!({"password": "p"}), "key", "password", false),
        (json!({"password": "p"}), "password", "agent", false),
        (json!({"password": "p"}), "key", "key", false),
    ] {
        let found = resolve(&policy(capture, takes), &job, &json!({}), None);
        let problems = found.err().unwrap_or_default();
        let twice = problems.iter().any(|problem| problem.check == Some(Check::SlotNameTwice));
        assert_eq!((twice, problems.len()), (expected, usize::from(expected)), "{job} {capture} {takes}: {problems:?}");
    }
}
