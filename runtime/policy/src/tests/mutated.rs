//! Policies with random changes: a changed policy is refused, or it is read with one meaning.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::generate::{Asked, asked, grants, needs as any_section, policy as policy_file, properties};
use super::*;

/// Returns a policy that has every key.
pub(super) fn complete() -> Value {
    json!({
        "version": 1, "trust_undeclared": false, "expose": ["zone", "net.zone"], "registry": {"keys": ["vm-*"]},
        "regions": ["eu-west-1"],
        "logins": {"main": {
            "to": "https://id.a.test", "addresses": ["10.0.0.0/8"], "plain_http": false, "tls": {"pin_sha256": ["0f".repeat(32)]},
            "method": "PUT", "path": "/tokens", "headers": {"X-Project": "p-${zone}"},
            "body": {"user": "${zone}", "more": [1, null, {"deep": true}]},
            "token": "json:/token", "expires": {"at": "json:/expires"},
            "send": {"header": "Authorization", "prefix": "Bearer "}, "show": {"catalog": "json:/catalog"}}},
        "credentials": {
            "keys": {"static": {"access_key_id": "${zone}", "secret_access_key": "${zone}", "session_token": "${unset}"}},
            "machine": {"metadata": {"ipv6": true}},
            "role": {"assume_role": {
                "role": "arn:cloud:iam::123456789012:role/cpi", "roles": ["arn:cloud:iam::123456789012:role/x/y"], "with": "machine",
                "to": "https://tokens.a.test", "addresses": ["10.0.0.0/8"], "tls": {"ca": "ca.pem"}, "plain_http": false,
                "region": "us-east-1", "session_name": "me@here"}}},
        "http": [
            {"id": "a", "to": "https://a.test", "methods": ["GET", "POST"], "paths": ["/a/**", "/b/*"], "addresses": "public",
             "operations": {"in": "header:X-Op", "allow": ["Run"], "read_only": ["R*"]}, "auth": {"login": "main"},
             "tls": {"ca": "ca.pem", "client": {"cert": "c.pem", "key": "k.pem"}},
             "slots": [{"method": "POST", "path": "/a/b", "operation": "Run", "place": "json:/data", "takes": ["agent", "zone", "token"],
                        "show": ["json:/id", "json:/list/*/id", "header:Retry-After"], "max_bytes": 65535}],
             "fields": [{"method": "POST", "path": "/a/b", "operation": "Run", "others": "deny", "places": {
                 "json:/a/*/b": "absent", "json:/c": "any", "json:/d": {"is": 1},
                 "json:/f": {"one_of": ["g", 2], "required": true}, "json:/h": {"prefix": "i-"},
                 "query:j-k": {"pattern": "[a-z]{1,8}\\.x*"}, "header:X-L": {"required": true}}}],
             "captures": [{"method": "GET", "path": "/a/b", "place": "cookie:s", "as": "token"}],
             "drop": ["json:/Config/Env", "json:/list/*/Cmd", "xml:userData"], "query": ["name", "marker"]},
            {"id": "b", "to": "${url}", "methods": ["GET"], "paths": ["/**"], "auth": {"basic": {"user": "u", "password": "${zone}"}}},
            {"id": "c", "to": "https://${zone}.a.test", "methods": ["GET"], "paths": ["/**"], "auth": {"header": {"name": "X-K", "value": "${zone}"}}},
            {"id": "d", "to": "http://a.test", "plain_http": true, "methods": ["GET"], "paths": ["/**"], "auth": {"bearer": "${zone}"}},
            {"id": "e", "to": "https://*.a.test", "methods": ["GET"], "paths": ["/a"]},
            {"id": "f", "to": "https://${host}", "methods": ["GET"], "paths": ["/a"]},
            {"id": "g", "to": "https://g.a.test", "methods": ["POST"], "paths": ["/"], "auth": {"sigv4": {
                "service": "compute", "region": "us-east-1", "credentials": "keys"}}},
            {"id": "h", "to": "https://h.a.test", "methods": ["POST"], "paths": ["/"], "auth": {"sigv4": {
                "service": "compute", "region": "us-east-1", "credentials": "role"}}}]
    })
}

/// Needs that have every key there is.
pub(super) fn complete_needs() -> Value {
    json!({
        "version": 1, "registry": true, "image": true, "expose": ["zone", "net.zone"], "logins": ["main"],
        "http": [
            {"id": "a", "to": "https://a.test", "methods": ["GET", "POST"], "paths": ["/a/**"], "why": "\u{202e}why",
             "operations": {"in": "form:Action", "allow": ["Run"]}, "optional": true,
             "slots": [{"method": "POST", "path": "/a/b", "operation": "Run", "place": "json:/data", "takes": ["agent", "zone"]}]},
            {"id": "b", "to": "*", "methods": "*", "paths": "*", "slots": "*"},
            {"id": "c", "to": "${url}", "methods": ["*"], "paths": ["/x"]}]
    })
}

/// Returns true if a message must not show the character.
fn is_nasty(c: char) -> bool {
    c.is_control() || "\u{202e}\u{ad}\u{e0041}\u{200b}".contains(c)
}

/// Adds the JSON pointers of a value and of all that is in it.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{}", key.replace('/', "~1")), found));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| pointers(value, &format!("{at}/{i}"), found))
        }
        _ => {}
    }
}

/// Generates values that a file could have at any place.
fn odd_values() -> impl Strategy<Value = Value> {
    let texts = [
        "",
        "*",
        "**",
        "/",
        "/**",
        "/a/**/b",
        "//",
        "/../x",
        "https://",
        "https://*",
        "https://*.a.test",
        "http://a.test",
        "${zone}",
        "${",
        "${}",
        "${zone}.a.test",
        "${unset}",
        "GET",
        "get",
        "CONNECT",
        "public",
        "declared",
        "0.0.0.0/0",
        "169.254.0.0/16",
        "::/0",
        "::ffff:0:0/96",
        "body",
        "json:/",
        "json:",
        "header:",
        "header:host",
        "cookie:x",
        "form:x",
        "agent",
        "main",
        "a",
        "\u{0}",
        "\u{202e}",
        "\u{1b}[2J",
        "\u{9b}2J\u{ad}\u{e0041}",
        "-----BEGIN ",
        "https://[::1]",
        "https://169.254.169.254",
        "Authorization",
        "transfer-encoding",
        "Bearer \u{e9}",
    ];
    prop_oneof![
        select(texts.map(|text| json!(text)).to_vec()),
        select(vec![
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(1e300),
            json!([]),
            json!({}),
            json!([[]]),
            json!({"a": {}})
        ]),
        r"\PC{0,12}".prop_map(|text| json!(text)),
        proptest::collection::vec(r"[A-Z/*a-z$\{\}]{0,6}", 0..3).prop_map(|list| json!(list)),
    ]
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Replace(Index, Value),
    Remove(Index),
    Add(Index, String, Value),
    Copy(Index, Index),
}

pub(super) fn change() -> impl Strategy<Value = Change> {
    let index = || any::<Index>();
    prop_oneof![
        4 => (index(), odd_values()).prop_map(|(at, value)| Change::Replace(at, value)),
        2 => index().prop_map(Change::Remove),
        1 => (index(), r"[a-z_]{1,9}|\PC{1,3}|\x1b\[2J|\u{202e}", odd_values()).prop_map(|(at, key, value)| Change::Add(at, key, value)),
        2 => (index(), index()).prop_map(|(from, to)| Change::Copy(from, to)),
    ]
}

pub(super) fn apply(policy: &mut Value, change: Change) {
    let mut all = Vec::new();
    pointers(policy, "", &mut all);
    let pick = |at: Index| all[at.index(all.len())].as_str();
    match change {
        Change::Replace(at, value) => {
            if let Some(place) = policy.pointer_mut(pick(at)) {
                *place = value;
            }
        }
        Change::Remove(at) => {
            let Some((parent, key)) = pick(at).rsplit_once('/') else { return };
            match policy.pointer_mut(parent) {
                Some(Value::Object(map)) => drop(map.remove(key)),
                Some(Value::Array(list)) => {
                    drop(key.parse().ok().filter(|at| *at < list.len()).map(|at: usize| list.remove(at)))
                }
                _ => {}
            }
        }
        Change::Add(at, key, value) => match policy.pointer_mut(pick(at)) {
            Some(Value::Object(map)) => drop(map.insert(key, value)),
            Some(Value::Array(list)) => list.push(value),
            _ => {}
        },
        Change::Copy(from, to) => {
            let value = policy.pointer(pick(from)).cloned().unwrap_or_default();
            if let Some(place) = policy.pointer_mut(pick(to)) {
                *place = value;
            }
        }
    }
}

/// Returns the same JSON with the keys of each object in reverse order.
fn with_reversed_keys(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().rev().map(|(key, value)| (key.clone(), with_reversed_keys(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(with_reversed_keys).collect()),
        other => other.clone(),
    }
}

fn verdicts(file: &PolicyFile, needs: &Needs, requests: &[Asked]) -> Result<Vec<String>, Vec<PolicyProblem>> {
    let properties = Properties::merge(object(&properties()), Map::new());
    let policy = Policy::resolve(file, &properties, Some(needs), &[], false)?;
    let judge = |asked: &Asked| {
        let (headers, destination) = (asked.headers(), Destination::parse(&asked.url(), 8192).unwrap());
        match policy.judge(&destination, asked.method, &Message { headers: &headers, body: b"" }) {
            Verdict::Allowed { grant, .. } => grant.id.clone(),
            Verdict::Denied(denial) => denial.message,
        }
    };
    Ok(requests.iter().map(judge).collect())
}

fn many_requests() -> impl Strategy<Value = Vec<Asked>> {
    proptest::collection::vec(asked(), 12)
}

#[test]
fn the_complete_policy_is_valid() {
    assert!(verdicts(&file(&complete()), &any_needs(), &[]).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_changed_policy_is_refused_with_reasons_or_has_one_meaning(changes in proptest::collection::vec(change(), 1..4), requests in many_requests()) {
        let mut policy = complete();
        changes.into_iter().for_each(|change| apply(&mut policy, change));
        match PolicyFile::parse(&policy.to_string()) {
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    let said = problem.to_string();
                    prop_assert!(!problem.what.is_empty() && !problem.remedy.is_empty(), "{}", said);
                }
            }
            Ok(read) => {
                let again = PolicyFile::parse(&format!("{:#}", with_reversed_keys(&policy))).unwrap();
                prop_assert_eq!(verdicts(&read, &any_needs(), &requests), verdicts(&again, &any_needs(), &requests));
            }
        }
    }

    #[test]
    fn changed_needs_are_refused_with_printable_reasons_or_have_one_meaning(changes in proptest::collection::vec(change(), 1..4)) {
        let mut section = complete_needs();
        changes.into_iter().for_each(|change| apply(&mut section, change));
        match Needs::parse(section.to_string().as_bytes()) {
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    prop_assert!(!problem.to_string().contains(is_nasty), "{:?}", problem.to_string());
                }
            }
            Ok(read) => {
                prop_assert_eq!(&Needs::parse(format!("{:#}", with_reversed_keys(&section)).as_bytes()).unwrap(), &read);
                prop_assert!(read.http.iter().all(|need| !need.why.contains(is_nasty)));
                prop_assert_eq!(added_needs(Some(&read), Some(&read)), vec![]);
            }
        }
    }

    #[test]
    fn a_text_with_a_changed_character_is_refused_or_has_one_meaning(at in any::<Index>(), c in any::<char>(), cut in any::<bool>()) {
        let text = complete().to_string();
        let at = at.index(text.len());
        let changed = if cut { text[..at].to_owned() } else { format!("{}{c}{}", &text[..at], &text[at + 1..]) };
        if let (Ok(one), Ok(two)) = (PolicyFile::parse(&changed), PolicyFile::parse(&changed)) {
            prop_assert_eq!(format!("{one:?}"), format!("{two:?}"));
            let value: Value = serde_json::from_str(&changed).unwrap();
            prop_assert_eq!(format!("{:?}", PolicyFile::parse(&value.to_string()).unwrap()), format!("{one:?}"));
        }
    }

    #[test]
    fn a_parsed_policy_can_be_written_and_parsed_again(grants in grants(0..5), section in any_section(), requests in many_requests()) {
        let needs = needs(&section);
        let read = resolve(&policy_file(&grants), &properties(), &json!({}), Some(&needs)).unwrap();
        let written: Vec<Value> = read.http.iter().map(|grant| {
            let paths: Vec<String> = grant.paths.iter().map(ToString::to_string).collect();
            let mut one = json!({"id": grant.id, "to": grant.origin.to_string(), "methods": grant.methods, "paths": paths});
            if let Some(operations) = &grant.operations {
                one["operations"] = json!({"in": operations.place.to_string(), "allow": operations.allow});
            }
            if let Some(query) = &grant.query {
                one["query"] = json!(query);
            }
            one
        }).collect();
        let before = verdicts(&file(&policy_file(&grants)), &needs, &requests);
        prop_assert_eq!(verdicts(&file(&policy_file(&written)), &needs, &requests), before);
    }
}
