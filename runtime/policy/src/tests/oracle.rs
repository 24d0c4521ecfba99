//! Verdicts against an oracle that shares no code with the policy.

use proptest::prelude::*;

use super::generate::{
    Asked, HOSTS, OF_NEEDS, ORIGINS, PORTS, asked, grant, grants, is_about, is_granted_by, needs as any_section,
    policy as policy_file, properties, rank,
};
use super::*;

fn resolved(grants: &[Value], section: &Value) -> Policy {
    resolve(&policy_file(grants), &properties(), &json!({}), Some(&needs(section))).unwrap()
}

/// Generates enough requests for some to be allowed.
fn many_requests() -> impl Strategy<Value = Vec<Asked>> {
    proptest::collection::vec(asked(), 20)
}

/// Returns the id of the grant that allows the request, or the denial.
fn judged(policy: &Policy, asked: &Asked) -> Result<String, Denial> {
    let headers = asked.headers();
    let destination = Destination::parse(&asked.url(), 8192).unwrap();
    match policy.judge(&destination, asked.method, &Message { headers: &headers, body: b"" }) {
        Verdict::Allowed { grant, .. } => Ok(grant.id.clone()),
        Verdict::Denied(denial) => Err(denial),
    }
}

fn declared(section: &Value, asked: &Asked) -> bool {
    section["http"].as_array().unwrap().iter().any(|need| is_about(need, asked))
}

/// Returns true if the section declares the request, for a grant that lists operations or not.
fn declared_for(section: &Value, asked: &Asked, grant: &Value) -> bool {
    let listed = !grant["operations"].is_null();
    let fits = |need: &Value| is_about(need, asked) && (!listed || !need["operations"].is_null());
    section["http"].as_array().unwrap().iter().any(fits)
}

/// Returns the policy as an operator who follows a denial writes it: its text, with the
/// grant at the end of the denial added to the list of grants.
fn with_suggested_grant(grants: &[Value], denial: &Denial) -> Option<String> {
    let (_, hint) = denial.hint.as_deref()?.split_once("add to \"http\" of the policy: ")?;
    let text = format!("{:#}", policy_file(grants));
    let (before, after) = text.split_once("\"http\": [").unwrap();
    let comma = if grants.is_empty() { "" } else { "," };
    Some(format!("{before}\"http\": [{hint}{comma}{after}"))
}

#[test]
fn every_pair_of_origins_is_judged_as_its_text_says() {
    let mut all = Vec::new();
    for scheme in ["https", "http"] {
        for (host, port) in HOSTS.into_iter().flat_map(|host| PORTS.map(|port| (host, port))) {
            all.push(Asked::get(scheme, host, port, "/a"));
        }
    }
    for granted in ORIGINS {
        let grant = json!({"id": "g", "to": granted, "methods": ["GET"], "paths": ["/**"]});
        for needed in ORIGINS.into_iter().chain(OF_NEEDS) {
            let need = json!({"id": "n", "to": needed, "methods": ["GET"], "paths": ["/**"]});
            let policy = resolved(std::slice::from_ref(&grant), &json!({"version": 1, "http": [need]}));
            for asked in &all {
                let expected = is_granted_by(&grant, asked) && is_about(&need, asked);
                assert_eq!(judged(&policy, asked).is_ok(), expected, "{granted} and {needed}: {}", asked.url());
            }
        }
    }
}

#[test]
fn every_pair_of_paths_is_judged_as_its_text_says() {
    let segments = ["*", "a", "b", ""];
    let mut patterns = vec!["/**".to_owned()];
    for first in segments {
        patterns.extend([format!("/{first}"), format!("/{first}/**")]);
        patterns
            .extend(segments.iter().flat_map(|second| [format!("/{first}/{second}"), format!("/{first}/{second}/**")]));
    }
    let paths: Vec<Asked> =
        ["/", "/a", "/b", "/c", "/a/", "/a/b", "/b/a", "/c/c", "/a/b/c", "/a//", "//", "//a", "//a/b", "/a/b/"]
            .iter()
            .map(|path| Asked::get("https", "a.test", 443, path))
            .collect();
    for granted in &patterns {
        let grant = json!({"id": "g", "to": "https://a.test", "methods": ["GET"], "paths": [granted]});
        for needed in &patterns {
            let need = json!({"id": "n", "to": "*", "methods": "*", "paths": [needed]});
            let policy = resolved(std::slice::from_ref(&grant), &json!({"version": 1, "http": [need]}));
            for asked in &paths {
                let expected = is_granted_by(&grant, asked) && is_about(&need, asked);
                assert_eq!(judged(&policy, asked).is_ok(), expected, "{granted} and {needed}: {}", asked.url());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_request_is_allowed_only_if_it_is_granted_and_declared(grants in grants(0..5), section in any_section(), requests in many_requests()) {
        let policy = resolved(&grants, &section);
        for asked in &requests {
            let granted: Vec<&Value> = grants.iter().filter(|grant| is_granted_by(grant, asked)).collect();
            // Of equals the first.
            let decides = granted.iter().rev().max_by_key(|grant| rank(grant, asked));
            let expected = decides.is_some_and(|grant| declared_for(&section, asked, grant));
            match judged(&policy, asked) {
                Ok(id) => {
                    prop_assert!(expected, "allowed by {}", id);
                    prop_assert_eq!(&decides.unwrap()["id"], &json!(id));
                }
                Err(denial) => {
                    prop_assert!(!expected, "{}", denial.message);
                    let undeclared = !granted.is_empty() || grants.is_empty();
                    prop_assert_eq!(denial.reason == DenialReason::Undeclared, undeclared);
                }
            }
        }
    }

    #[test]
    fn nothing_is_allowed_by_an_empty_policy(section in any_section(), asked in asked(), trust in any::<bool>()) {
        let empty = json!({"version": 1, "trust_undeclared": trust});
        for needs in [Some(needs(&section)), None] {
            let policy = resolve(&empty, &properties(), &json!({}), needs.as_ref()).unwrap();
            prop_assert!(judged(&policy, &asked).is_err());
        }
    }

    #[test]
    fn a_further_grant_denies_only_what_the_guest_does_not_declare_for_it(
        all in grants(1..5), section in any_section(), requests in many_requests(), at in any::<prop::sample::Index>()
    ) {
        let (mut fewer, mut reversed) = (all.clone(), all.clone());
        fewer.remove(at.index(all.len()));
        reversed.reverse();
        let [less, more, reversed] = [&fewer, &all, &reversed].map(|grants| resolved(grants, &section));
        for asked in &requests {
            // Unless it is more specific and the guest does not declare it.
            let undeclared = judged(&more, asked).is_err_and(|denial| denial.reason == DenialReason::Undeclared);
            prop_assert!(judged(&less, asked).is_err() || judged(&more, asked).is_ok() || undeclared);
            // Nor does it matter where in the file they stand.
            prop_assert_eq!(judged(&reversed, asked).is_ok(), judged(&more, asked).is_ok());
        }
    }

    #[test]
    fn a_further_need_never_denies_and_a_removed_need_never_allows(
        grants in grants(0..4), section in any_section(), requests in many_requests()
    ) {
        let mut fewer = section.clone();
        fewer["http"].as_array_mut().unwrap().pop();
        let (less, more) = (resolved(&grants, &fewer), resolved(&grants, &section));
        for asked in &requests {
            prop_assert!(judged(&less, asked).is_err() || judged(&more, asked).is_ok());
        }
    }

    #[test]
    fn the_grant_that_a_denial_shows_allows_the_denied_request(grants in grants(0..4), section in any_section(), requests in many_requests()) {
        let policy = resolved(&grants, &section);
        for asked in &requests {
            let Err(denial) = judged(&policy, asked) else { continue };
            let text = with_suggested_grant(&grants, &denial);
            // A request without an operation is not offered a grant that lists some.
            let listed = denial.reason == DenialReason::Operation;
            let operation = !listed || (asked.has_operation() && declared_for(&section, asked, &json!({"operations": {}})));
            let granted = grants.iter().any(|grant| is_granted_by(grant, asked));
            // Parameters are not in the guest's needs, and no grant for all of them is offered.
            let parameter = denial.reason == DenialReason::Query;
            let expected = declared(&section, asked) && operation && !granted && !parameter;
            prop_assert_eq!(text.is_some(), expected, "{}: {:?}", denial.message, denial.hint);
            prop_assert!(!denial.message.contains(['{', '[']), "{}", denial.message);
            let Some(text) = text else { continue };
            let file = PolicyFile::parse(&text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
            let properties = Properties::merge(object(&properties()), Map::new());
            let opened = Policy::resolve(&file, &properties, Some(&needs(&section)), &[], false).unwrap();
            let by = judged(&opened, asked);
            // The suggested grant does not list query parameters, which a grant with operations must list. The next
            // denial names them, unless another grant lists them and comes closer.
            let of_parameter = |reason| matches!(reason, DenialReason::Query | DenialReason::Operation);
            let parameter = by.as_ref().is_err_and(|denial| asked.has_parameter() && of_parameter(denial.reason));
            prop_assert!(by.is_ok() || parameter, "{:?}", by);
            // It opens what the guest declares, at that origin and for that method, and no more.
            for other in requests.iter().filter(|other| judged(&opened, other).is_ok() && judged(&policy, other).is_err()) {
                prop_assert!(declared(&section, other), "{:?}", other);
                prop_assert_eq!((other.method, other.origin()), (asked.method, asked.origin()));
            }
        }
    }

    #[test]
    fn a_denial_for_a_module_without_needs_shows_no_grant(grants in grants(0..4), asked in asked(), trust in any::<bool>()) {
        let mut file = policy_file(&grants);
        file["trust_undeclared"] = json!(trust);
        let policy = resolve(&file, &properties(), &json!({}), None).unwrap();
        let granted = grants.iter().any(|grant| is_granted_by(grant, &asked));
        match judged(&policy, &asked) {
            Ok(_) => prop_assert!(trust && granted),
            Err(denial) => {
                prop_assert!(!(trust && granted), "{}", denial.message);
                prop_assert!(!denial.message.contains(['{', '[']), "{}", denial.message);
            }
        }
    }

    #[test]
    fn settings_other_than_the_judged_ones_do_not_change_the_verdict(one in grant(), section in any_section(), asked in asked()) {
        let mut plain = one;
        plain["id"] = json!("g");
        let verdict = |grant: &Value| judged(&resolved(std::slice::from_ref(grant), &section), &asked).map_err(|denial| denial.reason);
        let expected = verdict(&plain);
        let exact = !plain["to"].as_str().unwrap().contains('*');
        let mut more = vec![("addresses", json!(["10.0.0.0/8"])), ("plain_http", json!(true))];
        if exact {
            more.push(("captures", json!([])));
            more.push(("slots", json!([])));
        }
        if exact && plain["to"].as_str().unwrap() != "http://a.test" {
            more.push(("tls", json!({"ca": "ca.pem", "client": {"cert": "c.pem", "key": "k.pem"}})));
            more.push(("auth", json!({"bearer": "${zone}"})));
        }
        for (key, value) in more {
            let mut changed = plain.clone();
            changed[key] = value;
            prop_assert_eq!(verdict(&changed), expected.clone(), "{}", key);
        }
    }
}
