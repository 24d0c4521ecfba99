//! Rules for the fields of requests, against tables and an oracle.

mod query;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const URL: &str = "https://api.iaas.test/v1/x";

fn policy(entry: &Value) -> Policy {
    let mut entry = entry.clone();
    entry["method"] = json!("POST");
    entry["path"] = json!("/v1/x");
    let grant = json!([{"id": "api", "to": "https://api.iaas.test", "methods": ["GET", "POST"], "paths": ["/v1/**"], "fields": [entry]}]);
    policy_of(&grant, Some(&any_needs()))
}

fn headers(content_type: &str) -> Vec<(String, String)> {
    vec![("Content-Type".to_owned(), content_type.to_owned()), ("Accept".to_owned(), "*/*".to_owned())]
}

/// Returns the verdict on a request: `Ok`, or the code of the check that refused.
fn judged(policy: &Policy, url: &str, headers: &[(String, String)], body: &[u8]) -> Result<(), String> {
    let destination = Destination::parse(url, 8192).unwrap();
    match policy.judge(&destination, "POST", &Message { headers, body }) {
        Verdict::Allowed { .. } => Ok(()),
        Verdict::Denied(denial) => {
            assert_eq!(denial.reason, DenialReason::Operation, "{}", denial.message);
            Err(denial.check.to_string())
        }
    }
}

fn json_body(entry: &Value, body: &str) -> Result<(), String> {
    judged(&policy(entry), URL, &headers("application/json"), body.as_bytes())
}

#[test]
fn json_bodies_are_judged_by_their_rules() {
    let places = |places: Value| json!({"places": places});
    let deny = |places: Value| json!({"places": places, "others": "deny"});
    for (entry, body, expected) in [
        (places(json!({"json:/a": "absent"})), r#"{"b": 1}"#, ""),
        (places(json!({"json:/a": "absent"})), "", ""),
        (places(json!({"json:/a": "absent"})), r#"{"a": null}"#, "field-absent"),
        (places(json!({"json:/a": "absent"})), r#"{"a": {"b": 1}}"#, "field-absent"),
        (places(json!({"json:/a/*/p": "absent"})), r#"{"a": [{"q": 1}, {"p": 1}]}"#, "field-absent"),
        (places(json!({"json:/a/*/p": "absent"})), r#"{"a": {"x": {"p": 1}}}"#, "field-absent"),
        (places(json!({"json:/a": {"is": 1}})), r#"{"a": 1}"#, ""),
        (places(json!({"json:/a": {"is": 1}})), "{}", ""),
        (places(json!({"json:/a": {"is": 1}})), r#"{"a": "1"}"#, "field-value"),
        (places(json!({"json:/a": {"is": 1}})), r#"{"a": 1.0}"#, "field-value"),
        (places(json!({"json:/a": {"is": false, "required": true}})), "{}", "field-required"),
        (places(json!({"json:/a": {"is": false, "required": true}})), "", "field-required"),
        (places(json!({"json:/a": {"is": ["x", {"y": 1}]}})), r#"{"a": ["x", {"y": 1}]}"#, ""),
        (places(json!({"json:/a": {"is": ["x"]}})), r#"{"a": ["x", "y"]}"#, "field-value"),
        (places(json!({"json:/a": {"one_of": ["x", null]}})), r#"{"a": null}"#, ""),
        (places(json!({"json:/a": {"one_of": ["x", null]}})), r#"{"a": "y"}"#, "field-value"),
        (places(json!({"json:/a": {"prefix": "vm-"}})), r#"{"a": "vm-1"}"#, ""),
        (places(json!({"json:/a": {"prefix": "vm-"}})), r#"{"a": "xvm-1"}"#, "field-value"),
        (places(json!({"json:/a": {"prefix": "vm-"}})), r#"{"a": ["vm-1"]}"#, "field-value"),
        (places(json!({"json:/a/*": {"pattern": "[a-z]+"}})), r#"{"a": ["b", "c"]}"#, ""),
        (places(json!({"json:/a/*": {"pattern": "[a-z]+"}})), r#"{"a": ["b", "C"]}"#, "field-value"),
        (places(json!({"json:/a/*": {"pattern": "[a-z]+"}})), r#"{"a": ["b", {"x": "c"}]}"#, "field-value"),
        (deny(json!({"json:/a": "any"})), r#"{"a": {"x": [1, {"Y": 2, "y": 3, "ä": 4}]}}"#, ""),
        (deny(json!({"json:/a": "any"})), r#"{"a": 1, "b": 2}"#, "field-others"),
        (deny(json!({"json:/a/b": "any"})), r#"{"a": {}}"#, ""),
        (deny(json!({"json:/a/b": "any"})), r#"{"a": {"c": {}}}"#, "field-others"),
        (deny(json!({"json:/a/b": "any"})), r#"{"a": 1}"#, "field-others"),
        (deny(json!({"json:/a/b": "any"})), r#"{"a": null}"#, "field-others"),
        (deny(json!({"json:/a": "any", "json:/a/p": "absent"})), r#"{"a": {"q": 1}}"#, ""),
        (deny(json!({"json:/a": "any", "json:/a/p": "absent"})), r#"{"a": {"p": 1}}"#, "field-absent"),
        (deny(json!({"json:/a": {"is": {"x": 1}}})), r#"{"a": {"x": 1}}"#, ""),
        // What servers could read differently.
        (places(json!({"json:/Privileged": "absent"})), r#"{"privileged": true}"#, "field-alike"),
        (places(json!({"json:/a/Privileged": "absent"})), r#"{"a": {"PRIVILEGED": true}}"#, "field-alike"),
        (places(json!({"json:/a/Privileged": "absent"})), r#"{"A": {"Privileged": true}}"#, "field-alike"),
        (places(json!({"json:/a": "any"})), r#"{"a": 1, "A": 2}"#, "field-alike"),
        (places(json!({"json:/a": "any"})), r#"{"b": 1, "B": 2}"#, "field-alike"),
        (places(json!({"json:/k": "absent"})), "{\"\u{212a}\": 1}", "field-alike"),
        (places(json!({"json:/P": "absent"})), r#"{"P\u0000": true}"#, "field-alike"),
        (places(json!({"json:/P": "absent"})), r#"{"P\u0000x": true}"#, "field-alike"),
        (places(json!({"json:/P": "absent"})), r#"{"P ": true}"#, "field-alike"),
        (places(json!({"json:/P": "absent"})), r#"{"\tP": true}"#, "field-alike"),
        (places(json!({"json:/a/P": "absent"})), r#"{"a\u0000": {"P": true}}"#, "field-alike"),
        (places(json!({"json:/a/P": "absent"})), r#"{"a": {"P\u0001": true}}"#, "field-alike"),
        (places(json!({"json:/a/P": "absent"})), r#"{"a": {"with blanks": 1}, "b": {"P\u0000": 1, " ": 2}}"#, ""),
        (places(json!({"json:/a": "any", "json:/A": "any"})), r#"{"A": 1}"#, ""),
        (places(json!({"json:/a": "any"})), r#"{"a": 1, "a": 2}"#, "json-duplicate-key"),
        (places(json!({"json:/a": "any"})), r#"{"a": 1, "\u0061": 2}"#, "json-duplicate-key"),
        (places(json!({"json:/a": "any"})), "\u{feff}{\"a\": 1}", "field-body"),
        (places(json!({"json:/a": "any"})), r#"[{"a": 1}]"#, "field-body"),
        (places(json!({"json:/a": "any"})), r#""a""#, "field-body"),
        (places(json!({"json:/a": "any"})), "a=1", "field-body"),
        (places(json!({"json:/a": "any"})), r#"{"a": 9007199254740991, "b": -9007199254740991, "c": 1.5}"#, ""),
        (places(json!({"json:/a": "any"})), r#"{"a": 9007199254740992}"#, "field-number"),
        (places(json!({"json:/a": "any"})), r#"{"b": [-9007199254740992]}"#, "field-number"),
        (places(json!({"json:/a": "any"})), r#"{"b": 1e30}"#, "field-number"),
        (json!({"others": "deny"}), "", ""),
        (json!({"others": "deny"}), "{}", "field-body"),
        // Keys that lead below a limited place.
        (places(json!({"json:/a": "absent"})), r#"{"a.b": 1}"#, "field-alike"),
        (places(json!({"json:/a": "absent"})), r#"{"a[b]": 1}"#, "field-alike"),
        (places(json!({"json:/a": "absent"})), r#"{"a/b": 1}"#, "field-alike"),
        (places(json!({"json:/hostConfig": "absent"})), r#"{"host_config.b": 1}"#, "field-alike"),
        (places(json!({"json:/a/b": "absent"})), r#"{"a": {"b.c.d": 1}}"#, "field-alike"),
        (places(json!({"json:/a/b": {"is": 1}})), r#"{"a.b.c": 1}"#, "field-alike"),
        (places(json!({"json:/a/*/b": "absent"})), r#"{"a": {"0.b": 1}}"#, "field-alike"),
        (places(json!({"json:/a/*/*": "absent"})), r#"{"a": {"b.c": 1}}"#, "field-alike"),
        (places(json!({"json:/a": "any"})), r#"{"a.b": 1, "b.a": 1}"#, ""),
        (places(json!({"json:/a": "absent"})), r#"{"b.a": 1, "ab.c": 1}"#, ""),
        (places(json!({"json:/p/*/*/ip": {"is": "x"}})), r#"{"p": {"22/tcp": [{"ip": "x"}]}}"#, ""),
        (places(json!({"json:/p/*/*/ip": {"is": "x"}})), r#"{"p": {"22/tcp": [{"ip": "y"}]}}"#, "field-value"),
        (places(json!({"json:/p/*/*/ip": {"is": "x"}})), r#"{"p": {"22/tcp": {"ip": "y"}}}"#, "field-list"),
        (places(json!({"json:/p/*/*/ip": {"is": "x"}})), r#"{"p": {"22/tcp/ip": "y"}}"#, "field-alike"),
        // One element in place of a list.
        (places(json!({"json:/a/*/p": "absent"})), r#"{"a": {"p": 1}}"#, "field-list"),
        (places(json!({"json:/a/*/p": "absent"})), r#"{"a": {"P": 1}}"#, "field-list"),
        (places(json!({"json:/a/*/p/q": "absent"})), r#"{"a": {"p": {"q": 1}}}"#, "field-list"),
        (places(json!({"json:/a/*/p/q": "absent"})), r#"{"a": {"p.q": 1}}"#, "field-list"),
        (places(json!({"json:/a/0/p": {"is": false}})), r#"{"a": {"p": true}}"#, "field-list"),
        (places(json!({"json:/a/0/p": {"is": false}})), r#"{"a": {"0": {"p": false}}}"#, ""),
        (places(json!({"json:/a/*/p": "any"})), r#"{"a": {"p": 1}}"#, ""),
        (places(json!({"json:/a/*": {"pattern": "[a-z]+"}})), r#"{"a": "sh -c id"}"#, "field-list"),
        (places(json!({"json:/a/*": {"pattern": "[a-z]+"}})), r#"{"a": "b"}"#, "field-list"),
        (places(json!({"json:/a/0": {"is": 1}})), r#"{"a": 2}"#, "field-list"),
        (places(json!({"json:/a/*": "absent"})), r#"{"a": true}"#, "field-list"),
        (places(json!({"json:/a/*": "absent"})), r#"{"a": null, "b": []}"#, ""),
        (places(json!({"json:/a/*": "any"})), r#"{"a": "b"}"#, ""),
        (deny(json!({"json:/a": "any", "json:/a/m/*/t": {"is": 1}})), r#"{"a": {"m": {"t": 2}}}"#, "field-list"),
    ] {
        let expected = if expected.is_empty() { Ok(()) } else { Err(expected.to_owned()) };
        assert_eq!(json_body(&entry, body), expected, "{entry} {body}");
    }
}

#[test]
fn forms_queries_and_headers_are_judged_by_their_rules() {
    let places = |places: Value| json!({"places": places});
    let deny = |places: Value| json!({"places": places, "others": "deny"});
    for (entry, query, body, expected) in [
        (places(json!({"form:Role": "absent"})), "", "Action=Run&Name=x", ""),
        (places(json!({"form:Role": "absent"})), "", "Role=x", "field-absent"),
        (places(json!({"form:Role": "absent"})), "", "Role.Arn=x", "field-absent"),
        (places(json!({"form:Role": "absent"})), "", "%52ole=x", "field-absent"),
        (places(json!({"form:Role": "absent"})), "", "role=x", "field-alike"),
        (places(json!({"form:Role.Arn": "absent"})), "", "Role.ARN=x", "field-alike"),
        (places(json!({"form:Role": "absent"})), "?Role=x", "Action=Run", "field-absent"),
        (places(json!({"form:Role": "absent"})), "?Other=x", "Action=Run", "field-query"),
        (places(json!({"form:Role": "absent", "query:Version": "any"})), "?Version=1", "Action=Run", ""),
        (places(json!({"form:Filter.*.Name": {"one_of": ["vpc"]}})), "", "Filter.1.Name=vpc&Filter.2.Name=vpc", ""),
        (
            places(json!({"form:Filter.*.Name": {"one_of": ["vpc"]}})),
            "",
            "Filter.1.Name=vpc&Filter.2.Name=x",
            "field-value",
        ),
        (places(json!({"form:Filter.1.Name": {"is": "vpc"}})), "", "Filter.01.Name=x", "field-name"),
        (places(json!({"form:a": "any"})), "", "a=1&b[0]=2", "field-name"),
        (places(json!({"form:a": "any"})), "", "%EF%BB%BFb=1", "field-name"),
        (places(json!({"form:a": "any"})), "", "a=1&a=2", "field-twice"),
        (places(json!({"form:a": "any"})), "", "b=1&B=2", "field-alike"),
        (places(json!({"form:a": "any"})), "", "a=%zz", "field-body"),
        (places(json!({"form:a": "any"})), "", "a=1;b=2", "field-body"),
        (places(json!({"form:a": "any"})), "", "\u{feff}a=1", "field-body"),
        // Servers read `a.1` as an element of `a`.
        (places(json!({"form:a": {"is": "1"}})), "", "a=1&a.1=2", "field-value"),
        (places(json!({"form:a": {"is": "1"}})), "", "a.1=1", "field-value"),
        (places(json!({"form:a": {"is": "1"}, "form:a.1": "any"})), "", "a=1&a.1=2", ""),
        (places(json!({"form:a": {"is": "1"}})), "", "a=1&ab=2&b.a=3", ""),
        // Servers that split names elsewhere, or take one element for a list, read these as limited ones.
        (places(json!({"form:IamRole": "absent"})), "", "IamRole_Arn=x", "field-alike"),
        (places(json!({"form:IamRole": "absent"})), "", "iamRole_1=x", "field-alike"),
        (places(json!({"form:IamRole": "absent"})), "", "Iam.Role.Arn=x", "field-alike"),
        (places(json!({"form:IamRole": "absent"})), "", "IamRoles=x&Iam.Rol=y&My.IamRole=z", ""),
        (places(json!({"form:IamRole": "any"})), "", "IamRole_Arn=x", ""),
        (places(json!({"form:Nic.*.SubnetId": {"is": "1"}})), "", "Nic.SubnetId=2", "field-alike"),
        (places(json!({"form:NetNic.*.SubnetId": {"is": "1"}})), "", "Net.Nic.1.SubnetId=2", "field-alike"),
        (places(json!({"form:Nic.*.SubnetId": {"is": "1"}})), "", "Nic.1.Subnet.Id=2", "field-alike"),
        (places(json!({"form:Nic.*.SubnetId": {"is": "1"}})), "", "Nic.1.SubnetId=1&Nic.1.Name=x&Nic.Name=y", ""),
        (places(json!({"form:Nic.1.SubnetId": {"is": "1"}})), "", "Nic.SubnetId=2", "field-alike"),
        (places(json!({"form:Tag.1": {"is": "1"}})), "", "Tag.2=x&Tag.1=1", ""),
        (places(json!({"form:MinCount": {"is": "1"}})), "", "MinCount=1&Min.Count.1=5", "field-alike"),
        (places(json!({"form:MinCount": {"is": "1"}, "form:Min.Count": "any"})), "", "Min.Count.1=5", ""),
        (places(json!({"query:a": {"prefix": "1"}})), "?a.b=2", "", "field-value"),
        (deny(json!({"form:a": "any"})), "", "a=1&a.b=2", ""),
        (deny(json!({"form:a": {"is": "1"}})), "", "a=1&a.b=2", "field-others"),
        (places(json!({"query:limit": {"pattern": "[0-9]{1,3}"}})), "?limit=100&x=1", "whatever", ""),
        (places(json!({"query:limit": {"pattern": "[0-9]{1,3}"}})), "?limit=1000", "", "field-value"),
        (places(json!({"query:limit": {"pattern": "[0-9]{1,3}"}})), "?limit=1&limit=2", "", "field-twice"),
        (places(json!({"query:limit": {"pattern": "[0-9]{1,3}"}})), "?LIMIT=1", "", "field-alike"),
        (places(json!({"query:limit": {"pattern": "[0-9]{1,3}"}})), "?l%69mit=x", "", "field-value"),
        (deny(json!({"query:limit": "any"})), "?limit=1", "", ""),
        (deny(json!({"query:limit": "any"})), "?limit=1&all=1", "", "field-others"),
        (deny(json!({"query:limit": "any"})), "?;limit=1", "", "field-body"),
        (places(json!({"header:X-Op": {"is": "Run"}})), "", "", "field-value"),
        (places(json!({"header:X_Op": {"is": "Stop"}})), "", "", ""),
        (deny(json!({})), "", "", "field-others"),
        (deny(json!({"header:X-Op": "any"})), "", "", ""),
    ] {
        let mut headers = headers("application/x-www-form-urlencoded");
        if entry.to_string().contains("header:") || entry["places"] == json!({}) {
            headers.push(("X-Op".to_owned(), "Stop".to_owned()));
        }
        let expected = if expected.is_empty() { Ok(()) } else { Err(expected.to_owned()) };
        let found = judged(&policy(&entry), &format!("{URL}{query}"), &headers, body.as_bytes());
        // A query parameter with the name of a form's field is refused as any other one.
        let expected = if query == "?Role=x" { Err("field-query".to_owned()) } else { expected };
        assert_eq!(found, expected, "{entry} {query} {body}");
    }
    let twice = [headers("text/plain"), vec![("X-Op".into(), "Run".into()), ("x_op".into(), "Run".into())]].concat();
    let entry = places(json!({"header:X-Op": {"is": "Run"}}));
    assert_eq!(judged(&policy(&entry), URL, &twice, b""), Err("field-twice".to_owned()));
    let encoded = [headers("application/json"), vec![("content-encoding".into(), "gzip".into())]].concat();
    let entry = places(json!({"json:/a": "any"}));
    assert_eq!(judged(&policy(&entry), URL, &encoded, br#"{"a": 1}"#), Err("place-alike".to_owned()));
}

#[test]
fn rules_are_for_one_method_path_and_operation() {
    let entry = |more: Value| {
        let mut entry = object(&json!({"method": "POST", "path": "/v1/x", "places": {"json:/Run/a": "absent"}}));
        entry.extend(object(&more));
        json!([{"id": "api", "to": "https://api.iaas.test", "methods": ["PUT", "POST"], "paths": ["/v1/**"],
                "operations": {"in": "json", "allow": ["Run", "Stop"]}, "fields": [entry]}])
    };
    let headers = headers("application/json");
    let message = Message { headers: &headers, body: br#"{"Run": {"a": 1}}"# };
    let post =
        |grants: &Value, method, url| verdict_on(&policy_of(grants, Some(&any_needs())), method, url, &message).0;
    assert_eq!(post(&entry(json!({})), "POST", URL), "operation");
    assert_eq!(post(&entry(json!({})), "PUT", URL), "allowed by api");
    assert_eq!(post(&entry(json!({})), "POST", "https://api.iaas.test/v1/y"), "allowed by api");
    assert_eq!(post(&entry(json!({"operation": "Run"})), "POST", URL), "operation");
    assert_eq!(post(&entry(json!({"operation": "Stop"})), "POST", URL), "allowed by api");
    // Another grant that allows the request does not replace them.
    let mut two = entry(json!({}));
    two.as_array_mut()
        .unwrap()
        .push(json!({"id": "wide", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/**"]}));
    assert_eq!(post(&two, "POST", URL), "operation");
}

#[test]
fn a_denial_names_the_place_to_list() {
    let entry = json!({"places": {"json:/server/name": "any"}, "others": "deny"});
    let headers = headers("application/json");
    let said =
        |body: &str| verdict_on(&policy(&entry), "POST", URL, &Message { headers: &headers, body: body.as_bytes() }).1;
    let message = said(r#"{"server": {"host": "h"}}"#);
    assert!(
        message.contains("`json:/server/host` is not listed; the operator can list it in the grant's `fields`"),
        "{message}"
    );
    assert!(
        message.ends_with("to `places` in the `fields` of grant `api`: \"json:/server/host\": \"any\""),
        "{message}"
    );
    let message = said(r#"{"server": {"hunter2 \"quoted\"": "h"}}"#);
    assert!(!message.contains("hunter2") && message.contains("a field of the request is not listed"), "{message}");
}

#[test]
fn the_host_serialises_what_it_judged() {
    let entry = json!({"places": {"json:/a": "any", "query:q": "any"}});
    let policy = policy(&entry);
    let headers = headers("text/plain");
    let destination = Destination::parse(&format!("{URL}?q=a+b%2B&x"), 8192).unwrap();
    let message = Message { headers: &headers, body: b" { \"a\" : [ 1.50 , \"\\u00e4\" ] } " };
    let rewritten = |method: &str| match policy.judge(&destination, method, &message) {
        Verdict::Allowed { rewritten, .. } => rewritten,
        Verdict::Denied(denial) => panic!("{}", denial.message),
    };
    let judged = rewritten("POST").unwrap();
    let body = judged.body.unwrap();
    assert_eq!((body.content_type, body.bytes.as_slice()), ("application/json", r#"{"a":[1.5,"ä"]}"#.as_bytes()));
    assert_eq!(judged.query.as_deref(), Some("q=a%20b%2B&x="));
    assert_eq!(destination.with_query("q=1").to_url().as_str(), format!("{URL}?q=1"));
    assert_eq!(destination.with_query("").to_url().as_str(), URL);
    assert!(rewritten("GET").is_none());
}

#[test]
fn mistakes_in_fields_are_problems() {
    for (entry, key, what) in [
        (json!({"places": {"json:/a": "present"}}), "fields[0].places.json:/a", "is an unknown keyword"),
        (json!({"places": {"json:/a": 1}}), "fields[0].places.json:/a", "is a number"),
        (json!({"places": {"json:/a": {}}}), "fields[0].places.json:/a", "does not have exactly one rule"),
        (
            json!({"places": {"json:/a": {"is": 1, "prefix": "x"}}}),
            "fields[0].places.json:/a",
            "does not have exactly one rule",
        ),
        (json!({"places": {"json:/a": {"one_of": []}}}), "fields[0].places.json:/a.one_of", "is empty"),
        (json!({"places": {"json:/a": {"prefix": ""}}}), "fields[0].places.json:/a", "has an empty prefix"),
        (json!({"places": {"json:/a": {"pattern": "a.b"}}}), "fields[0].places.json:/a.pattern", "must be written as"),
        (json!({"places": {"json:/a": {"matches": "a"}}}), "fields[0].places.json:/a.matches", "is an unknown key"),
        (
            json!({"places": {"json:/a/*": {"is": 1, "required": true}}}),
            "fields[0].places.json:/a/*",
            "is required, and has a `*`",
        ),
        (json!({"places": {"form:a": {"is": 1}}}), "fields[0].places.form:a", "is not a string"),
        (json!({"places": {"form:a.01": "any"}}), "fields[0].places.form:a.01", "is not a name"),
        (json!({"places": {"body": "any"}}), "fields[0].places.body", "is not a place that can be judged"),
        (json!({"places": {"json:/a": "any", "form:a": "any"}}), "fields[0].places", "both JSON and a form"),
        (json!({"places": {}}), "fields[0].places", "has no effect"),
        (json!({}), "fields[0].places", "has no effect"),
        (json!({"others": "refuse"}), "fields[0].others", "is an unknown keyword"),
        (json!({"others": "deny", "path": "/v2"}), "fields[0].path", "not within the grant's `paths`"),
        (json!({"others": "deny", "method": "PUT"}), "fields[0].method", "do not list"),
        (
            json!({"others": "deny", "operation": "Run"}),
            "fields[0].operation",
            "is not one of the grant's `operations`",
        ),
    ] {
        let mut whole = object(&json!({"method": "POST", "path": "/v1/x"}));
        whole.extend(object(&entry));
        let grant =
            json!({"id": "a", "to": "https://a.test", "methods": ["POST"], "paths": ["/v1/**"], "fields": [whole]});
        let problems = PolicyFile::parse(&json!({"version": 1, "http": [grant]}).to_string()).unwrap_err();
        let found = problems.iter().any(|one| one.key == format!("http[0].{key}") && one.what.contains(what));
        assert!(found, "{entry}: {problems:?}");
    }
}

/// Generates JSON documents with few keys, some of which differ in case only.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(1)),
        Just(json!("x")),
        Just(json!("xy")),
        Just(json!(null)),
        Just(json!({})),
        Just(json!([]))
    ];
    let key = || prop_oneof![4 => Just("a"), 4 => Just("b"), 1 => Just("A"), 1 => Just("0")];
    let value = leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            proptest::collection::vec((key(), inner.clone()), 0..3).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
            proptest::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    });
    proptest::collection::vec((key(), value), 0..3)
        .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
}

fn entry() -> impl Strategy<Value = Value> {
    let place = proptest::collection::vec(select(vec!["a", "b", "*", "0"]), 1..4)
        .prop_map(|parts| format!("json:/{}", parts.join("/")));
    let rule = select(vec![
        json!("any"),
        json!("absent"),
        json!({"is": 1}),
        json!({"is": {"a": 1}}),
        json!({"one_of": ["x", null]}),
        json!({"prefix": "x"}),
        json!({"pattern": "x?y*"}),
    ]);
    (proptest::collection::btree_map(place, rule, 1..4), any::<bool>())
        .prop_map(|(places, deny)| json!({"places": places, "others": if deny { "deny" } else { "allow" }}))
}

/// Adds every value of a document, with the keys that lead to it.
fn values(value: &Value, path: Vec<String>, found: &mut Vec<(Vec<String>, Value)>) {
    found.push((path.clone(), value.clone()));
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in below {
        values(value, [path.clone(), vec![key]].concat(), found);
    }
}

/// Returns true if the entry, as it is written, allows the document.
fn oracle(entry: &Value, document: &Value) -> bool {
    let mut all = Vec::new();
    values(document, Vec::new(), &mut all);
    let rules: Vec<(Vec<&str>, &Value)> = entry["places"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(place, rule)| (place[6..].split('/').collect(), rule))
        .collect();
    let starts = |path: &[String], with: &[&str]| {
        path.len() >= with.len() && with.iter().zip(path).all(|(one, part)| *one == "*" || one == part)
    };
    let leads = |path: &[String], to: &[&str]| {
        to.len() > path.len() && to.iter().zip(path).all(|(one, part)| *one == "*" || one == part)
    };
    let fits = |rule: &Value, value: &Value| match rule {
        Value::String(word) => word == "any",
        rule if !rule["is"].is_null() => rule["is"] == *value,
        rule if !rule["one_of"].is_null() => rule["one_of"].as_array().unwrap().contains(value),
        rule if !rule["prefix"].is_null() => value.as_str().is_some_and(|text| text.starts_with('x')),
        _ => value.as_str().is_some_and(|text| ["", "x"].contains(&text.trim_end_matches('y'))),
    };
    all.iter().all(|(path, value)| {
        let obeys = rules
            .iter()
            .filter(|(at, _)| at.len() == path.len() && starts(path, at))
            .all(|(_, rule)| fits(rule, value));
        let listed = rules.iter().any(|(at, rule)| **rule != json!("absent") && starts(path, at));
        let led_into = rules.iter().any(|(at, _)| leads(path, at));
        let empty = *value == json!({}) || *value == json!([]);
        let is_leaf = empty || !(value.is_object() || value.is_array());
        let others = entry["others"] == "allow" || !is_leaf || listed || (empty && led_into);
        let keys: Vec<&String> = value.as_object().into_iter().flat_map(|map| map.keys()).collect();
        let next: Vec<&str> = rules.iter().filter(|(at, _)| leads(path, at)).map(|(at, _)| at[path.len()]).collect();
        let distinct = keys.iter().all(|key| keys.iter().filter(|other| other.eq_ignore_ascii_case(key)).count() == 1);
        let exact = keys
            .iter()
            .all(|key| next.contains(&key.as_str()) || !next.iter().any(|name| name.eq_ignore_ascii_case(key)));
        let limited = || rules.iter().filter(|(at, rule)| **rule != json!("any") && leads(path, at));
        let is_number = |name: &str| name.parse::<u32>().is_ok();
        let of_elements = || limited().filter(|(at, _)| at[path.len()] == "*" || is_number(at[path.len()]));
        let is_plain = !(value.is_object() || value.is_array() || value.is_null());
        let has_key =
            |name: &str| name != "*" && !is_number(name) && keys.iter().any(|key| key.eq_ignore_ascii_case(name));
        let of_element = |at: &[&str]| at.get(path.len() + 1).is_some_and(|name| has_key(name));
        let replaces_list = !path.is_empty() && of_elements().any(|(at, _)| is_plain || of_element(at));
        let replaces_object = value.is_array()
            && limited().map(|(at, _)| at[path.len()]).any(|name| name != "*" && name.parse::<u32>().is_err());
        obeys && others && !replaces_list && !replaces_object && (!led_into || (distinct && exact))
    })
}

#[test]
fn names_in_another_spelling_are_refused_and_other_names_are_not() {
    let limited = json!({"places": {"json:/hostConfig/privileged": {"is": false}, "json:/labels/*": {"prefix": "x"}}});
    for (document, code) in [
        (json!({"hostConfig": {"privileged": false}}), None),
        (json!({"host_config": {"privileged": true}}), Some("field-alike")),
        (json!({"host-config": 1}), Some("field-alike")),
        (json!({"hostConfig": {"Privileged": true}}), Some("field-alike")),
        (json!({"hostConfig.privileged": true}), Some("field-alike")),
        (json!({"host_config/privileged": true}), Some("field-alike")),
        (json!({"hostConfig": [{"privileged": true}]}), Some("field-list")),
        (json!({"labels": {"com.example.x": "xy", "a-b": "x", "a_b": "x"}, "hostConfigs": {}, "a.b": 1}), None),
    ] {
        assert_eq!(json_body(&limited, &document.to_string()).err(), code.map(str::to_owned), "{document}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_body_is_allowed_only_if_every_value_obeys_its_rules(entry in entry(), document in document()) {
        let found = json_body(&entry, &document.to_string());
        prop_assert_eq!(found.is_ok(), oracle(&entry, &document), "{:?}", found);
    }

    #[test]
    fn what_is_serialised_is_judged_as_before(entry in entry(), document in document()) {
        let policy = policy(&entry);
        let (headers, body) = (headers("application/json"), format!("{document:#}"));
        let destination = Destination::parse(URL, 8192).unwrap();
        let message = Message { headers: &headers, body: body.as_bytes() };
        if let Verdict::Allowed { rewritten, .. } = policy.judge(&destination, "POST", &message) {
            let judged = rewritten.unwrap().body.unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(&judged.bytes).unwrap(), document);
            let again = Message { headers: &headers, body: &judged.bytes };
            let allowed = matches!(policy.judge(&destination, "POST", &again), Verdict::Allowed { .. });
            prop_assert!(allowed);
        }
    }
}
