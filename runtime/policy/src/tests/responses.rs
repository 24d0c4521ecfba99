//! What grants say about responses and queries, and how it acts together.

use super::*;

fn grant(id: &str, more: Value) -> Value {
    let mut grant =
        object(&json!({"id": id, "to": "https://a.iaas.test", "methods": ["GET", "POST"], "paths": ["/a"]}));
    grant.extend(object(&more));
    Value::Object(grant)
}

fn slot(more: Value) -> Value {
    let mut slot = object(&json!({"method": "POST", "path": "/a", "place": "json:/data"}));
    slot.extend(object(&more));
    Value::Object(slot)
}

/// Returns the policy of these grants for a guest that declares no slots.
fn policy(grants: &Value) -> Policy {
    let needs = needs(
        &json!({"version": 1, "http": [{"id": "any", "to": "*", "methods": ["*"], "paths": ["/**"], "slots": []}]}),
    );
    policy_of(grants, Some(&needs))
}

#[test]
fn a_grant_that_lists_query_parameters_allows_no_others() {
    let policy = policy(&json!([grant("a", json!({"query": ["name", "tag:Name"]}))]));
    for (query, expected) in [
        ("", "allowed by a"),
        ("?", "allowed by a"),
        ("?name=x", "allowed by a"),
        ("?name=x&name=y&tag%3AName=z", "allowed by a"),
        ("?Name=x", "query"),
        ("?name=x&user_data=y", "query"),
        ("?user_data", "query"),
        ("?name=x;user_data=y", "query"),
        ("?name=x%3By", "allowed by a"),
        ("?name[]=x", "query"),
        ("?na%6de=x", "allowed by a"),
        ("?=x", "query"),
    ] {
        assert_eq!(verdict(&policy, "GET", &format!("https://a.iaas.test/a{query}")), expected, "{query}");
    }
    let (_, message) = verdict_on(&policy, "GET", "https://a.iaas.test/a?user_data=y", &NOTHING);
    for part in ["`a` name tag:Name, not `user_data`", "add it to the grant's `query`"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn where_answers_are_cleaned_no_parameter_is_allowed_by_default() {
    let login = json!([{"method": "POST", "path": "/a", "place": "json:/token", "as": "token"}]);
    for hides in [
        json!({"drop": ["json:/data"]}),
        json!({"captures": login}),
        // The guest does not declare the slot, and another one may have filled it.
        json!({"slots": [slot(json!({}))]}),
    ] {
        let one = policy(&json!([grant("a", hides.clone())]));
        assert_eq!(verdict(&one, "GET", "https://a.iaas.test/a?name=x"), "query", "{hides}");
        assert_eq!(verdict(&one, "GET", "https://a.iaas.test/a"), "allowed by a");
        let mut other = grant("b", json!({"paths": ["/b"]}));
        let two = policy(&json!([grant("a", hides.clone()), other.clone()]));
        assert_eq!(verdict(&two, "GET", "https://a.iaas.test/b?name=x"), "query", "{hides}");
        other["query"] = json!(["name"]);
        let two = policy(&json!([grant("a", hides.clone()), other.clone()]));
        assert_eq!(verdict(&two, "GET", "https://a.iaas.test/b?name=x"), "allowed by b");
        other["to"] = json!("https://b.test");
        other["query"].take();
        other.as_object_mut().unwrap().shift_remove("query");
        let apart = policy(&json!([grant("a", hides), other]));
        assert_eq!(verdict(&apart, "GET", "https://b.test/b?name=x"), "allowed by b");
    }
    let open = policy(&json!([grant("a", json!({}))]));
    assert_eq!(verdict(&open, "GET", "https://a.iaas.test/a?name=x"), "allowed by a");
}

#[test]
fn parameters_in_the_path_are_refused_where_parameters_are_limited() {
    let with = |paths: Value, more: Value| {
        let mut all = object(&json!({"paths": paths}));
        all.extend(object(&more));
        policy(&json!([grant("a", Value::Object(all))]))
    };
    let url = "https://a.iaas.test/a/x;user_data=h";
    for hides in [json!({"query": ["limit"]}), json!({"drop": ["json:/user_data"]})] {
        for paths in [json!(["/a/*"]), json!(["/a/**"]), json!(["/**"])] {
            let policy = with(paths.clone(), hides.clone());
            assert_eq!(verdict(&policy, "GET", url), "query", "{paths}");
            assert_eq!(verdict(&policy, "GET", "https://a.iaas.test/a/x%3Buser_data=h"), "query", "{paths}");
            assert_eq!(verdict(&policy, "GET", "https://a.iaas.test/a/x"), "allowed by a", "{paths}");
        }
    }
    assert_eq!(verdict(&with(json!(["/a/*"]), json!({})), "GET", url), "allowed by a");
    assert_eq!(verdict(&with(json!(["/a/x;user_data=h"]), json!({"query": []})), "GET", url), "allowed by a");
}

#[test]
fn the_smallest_max_bytes_of_declared_slots_for_agent_settings_counts() {
    let slots = json!([
        slot(json!({"max_bytes": 900})),
        slot(json!({"place": "json:/b", "max_bytes": 700})),
        slot(json!({"place": "json:/c"}))
    ]);
    let all = policy_of(&json!([grant("a", json!({"slots": slots}))]), Some(&any_needs()));
    assert_eq!(all.agent_max_bytes(), Some(700));
    assert_eq!(policy(&json!([grant("a", json!({"slots": slots}))])).agent_max_bytes(), None);
    assert_eq!(
        policy_of(&json!([grant("a", json!({"slots": [slot(json!({}))]}))]), Some(&any_needs())).agent_max_bytes(),
        None
    );
}

#[test]
fn settings_that_a_later_call_could_read_back_are_a_warning() {
    let warnings = |grants: Value| -> Vec<String> {
        policy_of(&grants, Some(&any_needs())).warnings().iter().map(|problem| problem.key.clone()).collect()
    };
    let writer = || grant("w", json!({"methods": ["POST"], "slots": [slot(json!({}))]}));
    let reader = |more: Value| {
        let mut all = object(&json!({"methods": ["GET"], "paths": ["/b"]}));
        all.extend(object(&more));
        grant("r", Value::Object(all))
    };
    assert_eq!(warnings(json!([writer(), reader(json!({}))])), ["http[0].drop"]);
    assert_eq!(warnings(json!([reader(json!({"to": "https://*.iaas.test"})), writer()])), ["http[1].drop"]);
    assert_eq!(warnings(json!([grant("both", json!({"slots": [slot(json!({}))]}))])), ["http[0].drop"]);
    // The grant of another path drops something, but not what these paths show.
    let dropping = || grant("d", json!({"methods": ["GET"], "paths": ["/b"], "drop": ["json:/server/data"]}));
    let reads = |path: &str, more: Value| {
        let mut all = object(&json!({"paths": [path]}));
        all.extend(object(&more));
        reader(Value::Object(all))
    };
    for path in ["/a/*/console", "/b/logs", "/os-console-output/*", "/a/**", "/a", "/**"] {
        assert_eq!(warnings(json!([writer(), reads(path, json!({})), dropping()])), ["http[1].drop"], "{path}");
    }
    let console = json!({"drop": ["json:/server/data"]});
    assert_eq!(warnings(json!([writer(), reads("/a/*/console", console)])), ["http[1].drop"]);
    let fine = [
        json!([writer(), reads("/a/*/console", json!({"drop": ["json:/output", "json:/server/data"]}))]),
        json!([writer(), reads("/a/**", json!({"drop": ["json:/server/data"]})), dropping()]),
        json!([writer(), reads("/other/*", json!({})), dropping()]),
        json!([writer()]),
        json!([writer(), reader(json!({"to": "https://b.test"}))]),
        json!([writer(), reader(json!({"drop": ["json:/data"]}))]),
        json!([writer(), reader(json!({})), grant("d", json!({"methods": ["DELETE"], "drop": ["json:/data"]}))]),
        json!([writer(), reader(json!({"methods": ["DELETE"]}))]),
    ];
    for grants in fine {
        assert!(warnings(grants.clone()).is_empty(), "{grants}");
    }
}
