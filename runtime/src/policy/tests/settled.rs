//! A policy whose settled grants stayed in its text, beside the same one read as a whole.

use proptest::prelude::*;

use super::generate::{asked, grants, needs as any_section, policy as policy_file, properties};
use super::*;

/// As whoever keeps a policy would: its rest, and texts by origin.
fn rest(text: &str) -> PolicyFile {
    let spots = PolicyFile::parse(text).unwrap().settled(text);
    let mut rest = String::new();
    let mut from = 0;
    for (start, end, count) in Spot::cuts(&spots) {
        rest += &format!("{}{count}", &text[from..start]);
        from = end;
    }
    rest += &text[from..];
    let ports = spots.iter().map(|spot| spot.port).collect();
    let text = text.to_owned();
    let fetch = move |origin: Option<&str>| {
        let wanted = spots.iter().filter(|spot| origin.is_none_or(|own| own == spot.origin));
        let fetched = |spot: &Spot| Fetched {
            origin: spot.origin.clone(),
            order: spot.order,
            text: text[spot.start..spot.end].to_owned(),
        };
        Ok(wanted.map(fetched).collect())
    };
    PolicyFile::parse_rest(&rest, &|_, _| Err(String::new()), Settled::new(ports, fetch)).unwrap()
}

fn resolved(file: &PolicyFile, needs: Option<&Needs>) -> Policy {
    Policy::resolve(file, &Properties::merge(object(&properties()), Map::new()), needs, &[], false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_stays_in_the_file_is_judged_as_if_it_had_been_read(
        mut grants in grants(0..9), section in any_section(), many in proptest::collection::vec(asked(), 20),
        odd in any::<u16>(), pretty in any::<bool>(), trust in proptest::option::of(any::<bool>())
    ) {
        // Some that are bound to a call's properties, between the others.
        for (at, grant) in grants.iter_mut().enumerate() {
            let to = grant["to"].as_str().unwrap_or_default();
            if odd >> at & 1 == 1 && !to.contains('*') && !to.starts_with("http:") {
                grant["auth"] = json!({"bearer": "${zone}"});
            }
        }
        let mut written = policy_file(&grants);
        written["trust_undeclared"] = json!(trust == Some(true));
        let text = if pretty { format!("{written:#}") } else { written.to_string() };
        let needs = trust.is_none().then(|| needs(&section));
        let whole = resolved(&PolicyFile::parse(&text).unwrap(), needs.as_ref());
        let kept = resolved(&rest(&text), needs.as_ref());
        let ports = |policy: &Policy| policy.ports().collect::<std::collections::BTreeSet<u16>>();
        prop_assert_eq!(ports(&kept), ports(&whole));
        for asked in &many {
            let headers = asked.headers();
            let destination = Destination::parse(&asked.url(), 8192).unwrap();
            let verdict = |policy: &Policy| {
                match policy.judge(&destination, asked.method, &Message { headers: &headers, body: b"" }) {
                    Verdict::Allowed(grant) => Ok(format!("{grant:?}")),
                    Verdict::Denied(denial) => Err(denial),
                    Verdict::Unknown(why) => panic!("{why}"),
                }
            };
            prop_assert_eq!(verdict(&kept), verdict(&whole));
        }
    }
}

#[test]
fn only_what_means_the_same_in_every_call_stays_in_the_file() {
    let grant = |to: &str, more: Value| {
        let mut grant = json!({"id": "g", "to": to, "methods": ["GET"], "paths": ["/**"]});
        grant.as_object_mut().unwrap().extend(object(&more));
        grant
    };
    let slot = json!([{"method": "GET", "path": "/a", "place": "header:x-a", "takes": ["zone"]}]);
    let capture = json!([{"method": "GET", "path": "/a", "place": "header:x-a", "as": "a"}]);
    for (expected, grant) in [
        (true, grant("https://a.test", json!({}))),
        (true, grant("https://a.test:8443", json!({"addresses": ["10.0.0.0/8"]}))),
        (true, grant("http://a.test", json!({"operations": {"in": "header:x-op", "allow": ["Run"]}}))),
        (false, grant("https://*.a.test", json!({}))),
        (false, grant("${url}", json!({}))),
        (false, grant("https://${zone}.a.test", json!({}))),
        (false, grant("https://a.test", json!({"auth": {"bearer": "${zone}"}}))),
        (false, grant("https://a.test", json!({"slots": slot}))),
        (false, grant("https://a.test", json!({"captures": capture}))),
        (false, grant("https://a.test", json!({"tls": {"ca": "ca.pem"}}))),
        (false, grant("https://a.test", json!({"tls": {"ca": "${pem}"}}))),
    ] {
        let text = json!({"version": 1, "http": [grant]}).to_string();
        assert_eq!(!file(&serde_json::from_str(&text).unwrap()).settled(&text).is_empty(), expected, "{text}");
    }
}

#[test]
fn a_text_that_became_another_grant_allows_nothing() {
    let grant = |to: &str| json!({"id": "b", "to": to, "methods": ["GET"], "paths": ["/**"]});
    let mut secret = grant("https://a.test");
    secret["auth"] = json!({"bearer": "${x}"});
    let texts = [grant("https://b.test"), grant("https://*.a.test"), grant("${url}"), secret, json!(7), json!({})];
    for now in texts.map(|text| text.to_string()).into_iter().chain(["{".to_owned()]) {
        let text = now.clone();
        let fetch = move |_: Option<&str>| {
            Ok(vec![Fetched { origin: "https://a.test".to_owned(), order: 0, text: text.clone() }])
        };
        let rest = r#"{"version": 1, "http": [1]}"#;
        let settled = Settled::new(vec![443], fetch);
        let kept = PolicyFile::parse_rest(rest, &|_, _| Err(String::new()), settled).unwrap();
        for url in ["https://a.test/x", "https://b.test/x"] {
            let verdict = verdict(&resolved(&kept, Some(&any_needs())), "GET", url);
            assert_eq!(verdict, "unknown: what was kept of it is damaged", "{now}");
        }
    }
}

#[test]
fn a_problem_is_told_at_the_place_where_its_grant_stands() {
    let plain =
        |at: usize| json!({"id": format!("g{at}"), "to": "https://a.test", "methods": ["GET"], "paths": ["/**"]});
    let mut all: Vec<Value> = (0..6).map(plain).collect();
    all[4]["to"] = json!("${unset}");
    let text = json!({"version": 1, "http": all}).to_string();
    let problems = |file: &PolicyFile| Policy::resolve(file, &Properties::default(), None, &[], false).unwrap_err();
    assert_eq!(problems(&rest(&text)), problems(&PolicyFile::parse(&text).unwrap()));
    assert!(problems(&rest(&text))[0].key.starts_with("http[4]"), "{:?}", problems(&rest(&text)));
}

#[test]
fn a_number_stands_for_grants_only_where_some_were_left() {
    let problems = PolicyFile::parse(r#"{"version": 1, "http": [3]}"#).unwrap_err();
    assert_eq!((problems[0].key.as_str(), problems[0].what.as_str()), ("http[0]", "is a number"));
}
