use super::*;
use crate::needs::ResolvedNeed;
use crate::regions::Regions;

/// Judges the same cases as the SDK's fake, which denies undeclared requests in native tests.
#[test]
fn exactly_the_declared_requests_of_the_shared_cases_are_declared() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../../tests/cases/declared-requests.json")).unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let need = json!({"id": "a", "to": case["to"], "methods": case["methods"], "paths": case["paths"]});
        let needs = Needs::parse(json!({"version": 1, "http": [need]}).to_string().as_bytes()).unwrap();
        let properties = case["properties"].as_object().cloned().unwrap_or_default();
        let properties = Properties::merge(properties, Map::new());
        let resolved = ResolvedNeed::resolve(&needs.http[0], &properties, &Regions::default());
        for (key, declared) in [("declared", true), ("undeclared", false)] {
            for request in case[key].as_array().unwrap() {
                let (method, url) = request.as_str().unwrap().split_once(' ').unwrap();
                let destination = Destination::parse(url, 2048).unwrap();
                let found = resolved.declares(&destination, method).next().is_some();
                assert_eq!(found, declared, "{need}: {request}");
            }
        }
    }
}

/// Judges the same cases as the SDK's fake.
#[test]
fn exactly_the_declared_operations_of_the_shared_cases_are_declared() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../../tests/cases/declared-operations.json")).unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let operations = &case["operations"];
        let need = json!({"id": "a", "to": "*", "methods": ["POST"], "paths": ["/"], "operations": operations});
        let needs = Needs::parse(json!({"version": 1, "http": [need]}).to_string().as_bytes()).unwrap();
        let resolved =
            ResolvedNeed::resolve(&needs.http[0], &Properties::merge(Map::new(), Map::new()), &Regions::default());
        let destination = Destination::parse("https://api.test/", 2048).unwrap();
        for (key, declared) in [("declared", true), ("undeclared", false)] {
            for sent in case[key].as_array().unwrap() {
                let headers = sent["headers"].as_object().unwrap();
                let headers: Vec<(String, String)> =
                    headers.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
                let message = Message { headers: &headers, body: sent["body"].as_str().unwrap().as_bytes() };
                let found = resolved.declares_operation(&destination, &message, true);
                assert_eq!(found, declared, "{operations}: {sent}");
            }
        }
    }
}
