//! Two versions of a guest.

use proptest::prelude::*;

use super::generate::{asked, is_about, needs as any_section};
use super::*;

/// Returns what the needs of a new version add to those of an old one, as text.
fn more(old: &Value, new: &Value) -> Vec<String> {
    let whole = |http: &Value| needs(&json!({"version": 1, "http": http}));
    added_needs(Some(&whole(new)), Some(&whole(old))).iter().map(ToString::to_string).collect()
}

fn need(more: Value) -> Value {
    let mut need = object(&json!({"id": "api", "to": "https://api.test", "methods": ["GET"], "paths": ["/v1/**"]}));
    need.extend(object(&more));
    json!(need)
}

#[test]
fn only_what_the_older_needs_do_not_cover_is_added() {
    let star = json!({"id": "all", "to": "*", "methods": "*", "paths": "*", "slots": "*", "operations": "*"});
    let slot = |more: Value| {
        let mut slot = object(&json!({"method": "POST", "path": "/v1/vms", "place": "json:/data", "takes": ["agent"]}));
        slot.extend(object(&more));
        need(json!({"slots": [slot]}))
    };
    let nothing: &[&str] = &[];
    for (old, new, expected) in [
        // Paths.
        (need(json!({})), need(json!({})), nothing),
        (need(json!({})), need(json!({"id": "renamed"})), nothing),
        (need(json!({})), need(json!({"paths": ["/v1/x", "/v1/*/y", "/v1", "/v1/x/**"]})), nothing),
        (need(json!({})), need(json!({"paths": ["/v2/x"]})), &["need `api`: GET /v2/x at https://api.test"]),
        (need(json!({})), need(json!({"paths": ["/**"]})), &["need `api`: GET /** at https://api.test"]),
        (need(json!({})), need(json!({"paths": "*"})), &["need `api`: GET /** at https://api.test"]),
        (need(json!({"paths": ["/v1/*"]})), need(json!({"paths": ["/v1/x"]})), nothing),
        (
            need(json!({"paths": ["/v1/*"]})),
            need(json!({"paths": ["/v1/x", "/v1/**"]})),
            &["need `api`: GET /v1/** at https://api.test"],
        ),
        (
            need(json!({"paths": ["/v1/x"]})),
            need(json!({"paths": ["/v1/*"]})),
            &["need `api`: GET /v1/* at https://api.test"],
        ),
        (need(json!({"paths": "*"})), need(json!({"paths": ["/x/**"]})), nothing),
        // Methods.
        (need(json!({})), need(json!({"methods": ["GET", "POST"]})), &["need `api`: POST /v1/** at https://api.test"]),
        (
            need(json!({})),
            need(json!({"methods": "*"})),
            &["need `api`: HEAD POST PUT PATCH DELETE OPTIONS /v1/** at https://api.test"],
        ),
        (need(json!({"paths": ["/x"]})), need(json!({"methods": "*"})), &["need `api`: * /v1/** at https://api.test"]),
        (need(json!({"methods": "*"})), need(json!({"methods": ["GET", "DELETE"]})), nothing),
        (
            need(json!({"methods": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]})),
            need(json!({"methods": "*"})),
            nothing,
        ),
        // Origins.
        (need(json!({})), need(json!({"to": "https://api.test:443"})), nothing),
        (
            need(json!({})),
            need(json!({"to": "https://api.test:8443"})),
            &["need `api`: GET /v1/** at https://api.test:8443"],
        ),
        (need(json!({})), need(json!({"to": "http://api.test"})), &["need `api`: GET /v1/** at http://api.test"]),
        (need(json!({})), need(json!({"to": "*"})), &["need `api`: GET /v1/** at *"]),
        (need(json!({"to": "https://*.a.test"})), need(json!({"to": "https://x.a.test"})), nothing),
        (
            need(json!({"to": "https://x.a.test"})),
            need(json!({"to": "https://*.a.test"})),
            &["need `api`: GET /v1/** at https://*.a.test"],
        ),
        (need(json!({"to": "https://*.a.test"})), need(json!({"to": "https://*.a.test"})), nothing),
        (
            need(json!({"to": "https://*.a.test"})),
            need(json!({"to": "https://x.y.a.test"})),
            &["need `api`: GET /v1/** at https://x.y.a.test"],
        ),
        (need(json!({"to": "${url}"})), need(json!({"to": "${url}"})), nothing),
        (need(json!({"to": "${url}"})), need(json!({"to": "${uri}"})), &["need `api`: GET /v1/** at ${uri}"]),
        (need(json!({"to": "https://${host}"})), need(json!({"to": "https://${host}"})), nothing),
        (
            need(json!({"to": "https://${host}"})),
            need(json!({"to": "${host}"})),
            &["need `api`: GET /v1/** at ${host}"],
        ),
        (
            need(json!({"to": "https://*.a.test"})),
            need(json!({"to": "https://${host}"})),
            &["need `api`: GET /v1/** at https://${host}"],
        ),
        (need(json!({"to": "${url}"})), need(json!({})), &["need `api`: GET /v1/** at https://api.test"]),
        (need(json!({})), need(json!({"to": "${url}"})), &["need `api`: GET /v1/** at ${url}"]),
        (need(json!({"to": "https://*.a.test"})), need(json!({"to": "https://${zone}.a.test"})), nothing),
        (
            need(json!({"to": "https://a.a.test"})),
            need(json!({"to": "https://${zone}.a.test"})),
            &["need `api`: GET /v1/** at https://${zone}.a.test"],
        ),
        (
            need(json!({"to": "https://*.a.a.test"})),
            need(json!({"to": "https://x.${zone}.a.test"})),
            &["need `api`: GET /v1/** at https://x.${zone}.a.test"],
        ),
        (need(json!({"to": "https://${zone}.a.test"})), need(json!({"to": "https://${zone}.a.test"})), nothing),
        (
            need(json!({"to": "https://${zone}.a.test"})),
            need(json!({"to": "https://${area}.a.test"})),
            &["need `api`: GET /v1/** at https://${area}.a.test"],
        ),
        (
            need(json!({"to": "https://${zone}.a.test"})),
            need(json!({"to": "https://x.a.test"})),
            &["need `api`: GET /v1/** at https://x.a.test"],
        ),
        // `*` covers everything, and nothing but itself covers all of it.
        (star.clone(), need(json!({"to": "${x}", "methods": "*", "paths": "*", "slots": "*"})), nothing),
        (star.clone(), star.clone(), nothing),
        (
            need(json!({"slots": "*"})),
            star.clone(),
            &[
                "need `all`: * /** at *",
                "need `all`: every operation that is granted at *",
                "need `all`: every slot that is granted at *",
            ],
        ),
        // Operations.
        (need(json!({"operations": "*"})), need(json!({"operations": {"in": "json", "allow": ["a"]}})), nothing),
        (need(json!({"operations": "*"})), need(json!({})), nothing),
        (
            need(json!({"operations": {"in": "json", "allow": ["a"]}})),
            need(json!({"operations": {"in": "json", "allow": ["b", "a"]}})),
            &["need `api`: the operations b in GET /v1/** at https://api.test, at `json`"],
        ),
        (
            need(json!({"operations": {"in": "json", "allow": ["a"]}})),
            need(json!({"operations": {"in": "form:a", "allow": ["a"]}})),
            &["need `api`: the operations a in GET /v1/** at https://api.test, at `form:a`"],
        ),
        (
            need(json!({})),
            need(json!({"operations": {"in": "json", "allow": ["a"]}})),
            &["need `api`: the operations a in GET /v1/** at https://api.test, at `json`"],
        ),
        (
            need(json!({"operations": {"in": "json", "allow": ["a"]}})),
            need(json!({})),
            &["need `api`: GET /v1/** at https://api.test"],
        ),
        (
            need(json!({})),
            need(json!({"operations": "*"})),
            &["need `api`: every operation that is granted at https://api.test"],
        ),
        // Slots.
        (slot(json!({})), slot(json!({})), nothing),
        (slot(json!({})), need(json!({})), nothing),
        (need(json!({})), slot(json!({})), &["need `api`: agent in POST /v1/vms at https://api.test, at `json:/data`"]),
        (need(json!({"slots": "*"})), slot(json!({"takes": ["agent", "key"]})), nothing),
        (slot(json!({})), need(json!({"slots": "*"})), &["need `api`: every slot that is granted at https://api.test"]),
        (slot(json!({"path": "/v1/*"})), slot(json!({})), nothing),
        (slot(json!({"show": ["json:/id", "json:/name"]})), slot(json!({"show": ["json:/id"]})), nothing),
        (
            slot(json!({})),
            slot(json!({"show": ["json:/id"]})),
            &["need `api`: to see json:/id of the response to POST /v1/vms at https://api.test"],
        ),
        (
            slot(json!({})),
            slot(json!({"path": "/v1/*"})),
            &["need `api`: agent in POST /v1/* at https://api.test, at `json:/data`"],
        ),
        (
            slot(json!({})),
            slot(json!({"method": "PUT"})),
            &["need `api`: agent in PUT /v1/vms at https://api.test, at `json:/data`"],
        ),
        (
            slot(json!({})),
            slot(json!({"place": "body"})),
            &["need `api`: agent in POST /v1/vms at https://api.test, at `body`"],
        ),
        (
            slot(json!({})),
            slot(json!({"takes": ["agent", "key"]})),
            &["need `api`: key in POST /v1/vms at https://api.test, at `json:/data`"],
        ),
        (slot(json!({"takes": ["agent", "key"]})), slot(json!({"takes": ["key"]})), nothing),
    ] {
        assert_eq!(more(&json!([old]), &json!([new])), expected, "{old} to {new}");
    }
}

#[test]
fn several_older_needs_cover_together() {
    let old = json!([need(json!({})), need(json!({"methods": ["POST"]})), need(json!({"to": "https://b.test"}))]);
    let new = json!([need(json!({"methods": ["GET", "POST"]})), need(json!({"to": "https://b.test"}))]);
    assert_eq!(more(&old, &new), Vec::<String>::new());
    // Each by itself is not enough if they are about different origins.
    let old = json!([need(json!({"paths": ["/x"]})), need(json!({"to": "https://b.test"}))]);
    assert_eq!(more(&old, &json!([need(json!({}))])), ["need `api`: GET /v1/** at https://api.test"]);
}

#[test]
fn other_needs_are_compared_too() {
    let section = |more: Value| {
        let mut section = object(&json!({"version": 1}));
        section.extend(object(&more));
        Some(needs(&json!(section)))
    };
    let all = || section(json!({"registry": true, "image": true, "expose": ["net"], "http": [need(json!({}))]}));
    for (old, new, expected) in [
        (section(json!({})), section(json!({})), vec![]),
        (section(json!({})), section(json!({"registry": true})), vec!["the registry"]),
        (section(json!({"registry": true})), section(json!({})), vec![]),
        (section(json!({})), section(json!({"image": true})), vec!["the stemcell image"]),
        (section(json!({"image": true})), section(json!({"image": true, "registry": false})), vec![]),
        (section(json!({"logins": ["a"]})), section(json!({"logins": ["b", "a"]})), vec!["the login `b`"]),
        (
            section(json!({"logins": ["a"]})),
            section(json!({"logins": "*"})),
            vec!["every login that the policy describes"],
        ),
        (section(json!({"logins": "*"})), section(json!({"logins": ["a"]})), vec![]),
        (
            section(json!({"expose": ["net", "zone.name"]})),
            section(json!({"expose": ["net.zone", "network", "zone", "zone.name"]})),
            vec!["to see the property `network`", "to see the property `zone`"],
        ),
        // Without needs, a guest binds itself to nothing.
        (None, None, vec![]),
        (None, section(json!({})), vec![]),
        (
            None,
            all(),
            vec![
                "need `api`: GET /v1/** at https://api.test",
                "the registry",
                "the stemcell image",
                "to see the property `net`",
            ],
        ),
        (all(), None, vec!["declares no needs: with `trust_undeclared` in the policy it may use every grant"]),
        (
            section(json!({})),
            None,
            vec!["declares no needs: with `trust_undeclared` in the policy it may use every grant"],
        ),
    ] {
        let found: Vec<String> = added_needs(new.as_ref(), old.as_ref()).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{old:?} to {new:?}");
    }
}

#[test]
fn the_json_form_lists_the_same_needs_as_the_text() {
    let old = needs(&json!({"version": 1}));
    let slots = json!([{"method": "POST", "path": "/v1/x", "place": "body"}]);
    let new = needs(&json!({"version": 1, "registry": true, "image": true, "expose": ["zone"], "http": [
        need(json!({"slots": slots})), need(json!({"id": "b", "slots": "*"}))]}));
    let found: Vec<Value> = added_needs(Some(&new), Some(&old)).iter().map(AddedNeed::to_json).collect();
    let request =
        |id: &str| json!({"kind": "http", "need": id, "to": "https://api.test", "methods": ["GET"], "path": "/v1/**"});
    assert_eq!(
        json!(found),
        json!([
            request("api"),
            {"kind": "slot", "need": "api", "to": "https://api.test", "method": "POST", "path": "/v1/x", "place": "body", "takes": ["agent"]},
            request("b"),
            {"kind": "slot", "need": "b", "to": "https://api.test", "place": "*"},
            {"kind": "registry"}, {"kind": "image"}, {"kind": "property", "name": "zone"},
        ])
    );
    assert_eq!(AddedNeed::Undeclared.to_json(), json!({"kind": "undeclared"}));
}

proptest! {
    #[test]
    fn needs_without_additions_declare_no_further_request(old in any_section(), new in any_section(), asked in asked()) {
        let declares = |section: &Value| section["http"].as_array().unwrap().iter().any(|need| is_about(need, &asked));
        let is_more = declares(&new) && !declares(&old);
        let found = added_needs(Some(&needs(&new)), Some(&needs(&old)));
        if is_more {
            let is_request = |want: &AddedNeed| matches!(want, AddedNeed::Http { .. } | AddedNeed::Operations { .. });
            prop_assert!(found.iter().any(is_request), "{:?}", found);
        }
    }

    #[test]
    fn needs_add_nothing_to_themselves_or_to_a_superset(section in any_section(), other in any_section()) {
        let (one, other) = (needs(&section), needs(&other));
        prop_assert_eq!(added_needs(Some(&one), Some(&one)), vec![]);
        let both = Needs {
            http: one.http.iter().chain(&other.http).cloned().collect(),
            registry: one.registry || other.registry,
            image: one.image || other.image,
            expose: one.expose.iter().chain(&other.expose).cloned().collect(),
            logins: Restriction::default(),
        };
        prop_assert_eq!(added_needs(Some(&one), Some(&both)), vec![]);
        // What the whole has beyond one part is what the other part has.
        let of_both = added_needs(Some(&both), Some(&one));
        prop_assert_eq!(of_both, added_needs(Some(&other), Some(&one)));
    }

    #[test]
    fn needs_without_added_slots_get_no_further_slot(old in any_section(), new in any_section(), grant in generate::grant()) {
        let found = added_needs(Some(&needs(&new)), Some(&needs(&old)));
        let more = found.iter().any(|want| matches!(want, AddedNeed::Slot { .. } | AddedNeed::AnySlot { .. }));
        let exact = !grant["to"].as_str().unwrap().contains('*');
        if !more && exact && grant["to"] != "http://a.test" {
            let slots = json!([{"method": "POST", "path": "/a/b", "place": "json:/a", "takes": ["agent", "zone"]},
                               {"method": "PUT", "path": "/a", "place": "body", "takes": ["agent"]}]);
            let granted = json!({"version": 1, "http": [{"id": "g", "to": grant["to"], "methods": ["POST", "PUT"], "paths": ["/**"], "slots": slots}]});
            let effective = |section: &Value| {
                let policy = resolve(&granted, &generate::properties(), &json!({}), Some(&needs(section))).unwrap();
                let shown = |slot: &Slot| slot.takes.iter().map(|name| format!("{} {} {} {name}", slot.method, slot.path, slot.place)).collect::<Vec<_>>();
                policy.http[0].slots.iter().flat_map(shown).collect::<Vec<_>>()
            };
            let before = effective(&old);
            prop_assert!(effective(&new).iter().all(|slot| before.contains(slot)));
        }
    }
}
