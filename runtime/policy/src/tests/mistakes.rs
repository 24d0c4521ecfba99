//! More mistakes in a policy, by what is wrong rather than by key: every value of
//! another type, every part left out, every rule on secrets with each means of sending them.

use super::file::{grant, login};
use super::*;

/// Returns the keys of the problems of a policy.
fn wrong(policy: &Value) -> Vec<String> {
    let problems = PolicyFile::parse(&policy.to_string()).err().unwrap_or_else(|| panic!("{policy} was read"));
    problems.into_iter().map(|problem| problem.key).collect()
}

/// Returns a value of each type but strings. Lists and objects are not empty.
fn values_of_other_types() -> [Value; 6] {
    [json!(null), json!(true), json!(7), json!(["x"]), json!({"x": 1}), json!([{}])]
}

/// Returns policies with one value of a wrong type each, and its key.
pub(super) fn wrong_values() -> Vec<(Value, &'static str)> {
    let slot = json!({"method": "POST", "path": "/v1/x", "place": "body"});
    let with = |mut object: Value, key: &str, value: &Value| {
        object[key] = value.clone();
        object
    };
    let rows = |value: Value| {
        [
            (json!({"version": value}), "version"),
            (grant(json!({"id": value})), "http[0].id"),
            (grant(json!({"to": value})), "http[0].to"),
            (grant(json!({"methods": [value]})), "http[0].methods[0]"),
            (grant(json!({"paths": [value]})), "http[0].paths[0]"),
            (grant(json!({"addresses": [value]})), "http[0].addresses[0]"),
            (grant(json!({"operations": {"in": value, "allow": ["A"]}})), "http[0].operations.in"),
            (grant(json!({"operations": {"in": "body", "allow": [value]}})), "http[0].operations.allow[0]"),
            (
                grant(json!({"operations": {"in": "body", "allow": ["A"], "read_only": [value]}})),
                "http[0].operations.read_only[0]",
            ),
            (grant(json!({"slots": [with(slot.clone(), "operation", &value)]})), "http[0].slots[0].operation"),
            (grant(json!({"auth": {"bearer": value}})), "http[0].auth.bearer"),
            (grant(json!({"auth": {"basic": {"user": value, "password": "${p}"}}})), "http[0].auth.basic.user"),
            (grant(json!({"auth": {"basic": {"user": "u", "password": value}}})), "http[0].auth.basic.password"),
            (grant(json!({"auth": {"header": {"name": value, "value": "${p}"}}})), "http[0].auth.header.name"),
            (grant(json!({"auth": {"header": {"name": "X", "value": value}}})), "http[0].auth.header.value"),
            (grant(json!({"auth": {"login": value}})), "http[0].auth.login"),
            (grant(json!({"tls": {"ca": value}})), "http[0].tls.ca"),
            (grant(json!({"tls": {"client": {"cert": value, "key": "k.pem"}}})), "http[0].tls.client.cert"),
            (grant(json!({"tls": {"client": {"cert": "c.pem", "key": value}}})), "http[0].tls.client.key"),
            (grant(json!({"tls": {"pin_sha256": [value]}})), "http[0].tls.pin_sha256[0]"),
            (grant(json!({"slots": [with(slot.clone(), "method", &value)]})), "http[0].slots[0].method"),
            (grant(json!({"slots": [with(slot.clone(), "path", &value)]})), "http[0].slots[0].path"),
            (grant(json!({"slots": [with(slot.clone(), "place", &value)]})), "http[0].slots[0].place"),
            (grant(json!({"slots": [with(slot.clone(), "takes", &json!([value]))]})), "http[0].slots[0].takes[0]"),
            (grant(json!({"captures": [with(slot.clone(), "as", &value)]})), "http[0].captures[0].as"),
            (grant(json!({"slots": [with(slot.clone(), "show", &json!([value]))]})), "http[0].slots[0].show[0]"),
            (grant(json!({"drop": [value]})), "http[0].drop[0]"),
            (grant(json!({"query": [value]})), "http[0].query[0]"),
            (login(json!({"to": value})), "logins.main.to"),
            (login(json!({"method": value})), "logins.main.method"),
            (login(json!({"path": value})), "logins.main.path"),
            (login(json!({"headers": {"X": value}})), "logins.main.headers.X"),
            (login(json!({"body": "REMOVED", "form": {"x": value}})), "logins.main.form.x"),
            (login(json!({"token": value})), "logins.main.token"),
            (login(json!({"expires": {"at": value}})), "logins.main.expires.at"),
            (login(json!({"expires": {"in_seconds": value}})), "logins.main.expires.in_seconds"),
            (login(json!({"send": {"header": value}})), "logins.main.send.header"),
            (login(json!({"send": {"header": "X", "prefix": value}})), "logins.main.send.prefix"),
            (login(json!({"show": {"x": value}})), "logins.main.show.x"),
            (json!({"version": 1, "expose": [value]}), "expose[0]"),
            (json!({"version": 1, "regions": [value]}), "regions[0]"),
            (json!({"version": 1, "registry": {"keys": [value]}}), "registry.keys[0]"),
        ]
    };
    values_of_other_types().into_iter().flat_map(rows).collect()
}

/// Returns policies with something else in place of a list or an object, and its key.
pub(super) fn wrong_containers() -> Vec<(Value, &'static str)> {
    let rows = |value: Value| {
        [
            (json!({"version": 1, "http": value}), "http"),
            (json!({"version": 1, "http": [value]}), "http[0]"),
            (json!({"version": 1, "logins": value}), "logins"),
            (json!({"version": 1, "registry": value}), "registry"),
            (json!({"version": 1, "regions": value}), "regions"),
            (json!({"version": 1, "registry": {"keys": value}}), "registry.keys"),
            (json!({"version": 1, "expose": value}), "expose"),
            (grant(json!({"methods": value})), "http[0].methods"),
            (grant(json!({"drop": value})), "http[0].drop"),
            (grant(json!({"query": value})), "http[0].query"),
            (grant(json!({"paths": value})), "http[0].paths"),
            (grant(json!({"addresses": value})), "http[0].addresses"),
            (grant(json!({"operations": value})), "http[0].operations"),
            (grant(json!({"operations": {"in": "body", "allow": value}})), "http[0].operations.allow"),
            (
                grant(json!({"operations": {"in": "body", "allow": ["A"], "read_only": value}})),
                "http[0].operations.read_only",
            ),
            (grant(json!({"auth": value})), "http[0].auth"),
            (grant(json!({"auth": {"basic": value}})), "http[0].auth.basic"),
            (grant(json!({"auth": {"header": value}})), "http[0].auth.header"),
            (grant(json!({"tls": value})), "http[0].tls"),
            (grant(json!({"tls": {"client": value}})), "http[0].tls.client"),
            (grant(json!({"tls": {"pin_sha256": value}})), "http[0].tls.pin_sha256"),
            (grant(json!({"slots": value})), "http[0].slots"),
            (grant(json!({"slots": [value]})), "http[0].slots[0]"),
            (grant(json!({"captures": value})), "http[0].captures"),
            (login(json!({"headers": value})), "logins.main.headers"),
            (login(json!({"body": "REMOVED", "form": value})), "logins.main.form"),
            (login(json!({"expires": value})), "logins.main.expires"),
            (login(json!({"send": value})), "logins.main.send"),
            (login(json!({"show": value})), "logins.main.show"),
        ]
    };
    [json!("x"), json!(7), json!(null), json!(true)].into_iter().flat_map(rows).collect()
}

#[test]
fn a_value_of_another_type_is_a_problem() {
    for (policy, key) in wrong_values() {
        assert!(wrong(&policy).iter().any(|found| found == key), "{key} in {policy}: {:?}", wrong(&policy));
    }
}

#[test]
fn lists_objects_and_flags_accept_no_other_type() {
    for (policy, key) in wrong_containers() {
        assert!(wrong(&policy).iter().any(|found| found == key), "{key} in {policy}: {:?}", wrong(&policy));
    }
    for value in [json!("true"), json!(1), json!(null), json!([]), json!({})] {
        assert_eq!(wrong(&json!({"version": 1, "trust_undeclared": value})), ["trust_undeclared"]);
        assert_eq!(wrong(&grant(json!({"plain_http": value}))), ["http[0].plain_http"]);
        assert_eq!(wrong(&login(json!({"plain_http": value}))), ["logins.main.plain_http"]);
    }
}

/// Returns policies with one unknown key each, and its path.
pub(super) fn unknown_keys() -> Vec<(Value, &'static str)> {
    let slot = json!({"method": "POST", "path": "/v1/x", "place": "body"});
    let mut capture = slot.clone();
    capture["as"] = json!("t");
    let with = |mut object: Value| {
        object["hidden"] = json!(1);
        object
    };
    vec![
        (json!({"version": 1, "hidden": 1}), "hidden"),
        (json!({"version": 1, "registry": {"hidden": 1}}), "registry.hidden"),
        (grant(json!({"hidden": 1})), "http[0].hidden"),
        (grant(json!({"operations": {"in": "body", "allow": ["A"], "hidden": 1}})), "http[0].operations.hidden"),
        (
            grant(json!({"auth": {"basic": {"user": "u", "password": "${p}", "hidden": 1}}})),
            "http[0].auth.basic.hidden",
        ),
        (grant(json!({"auth": {"header": {"name": "X", "value": "${p}", "hidden": 1}}})), "http[0].auth.header.hidden"),
        (grant(json!({"tls": {"hidden": 1}})), "http[0].tls.hidden"),
        (
            grant(json!({"tls": {"client": {"cert": "c.pem", "key": "k.pem", "hidden": 1}}})),
            "http[0].tls.client.hidden",
        ),
        (grant(json!({"slots": [with(slot)]})), "http[0].slots[0].hidden"),
        (grant(json!({"captures": [with(capture)]})), "http[0].captures[0].hidden"),
        (login(json!({"hidden": 1})), "logins.main.hidden"),
        (login(json!({"send": {"header": "X", "hidden": 1}})), "logins.main.send.hidden"),
    ]
}

#[test]
fn unknown_keys_are_reported_in_every_object() {
    for (policy, key) in unknown_keys() {
        assert_eq!(wrong(&policy), [key], "{policy}");
    }
    // Where exactly one key is required, a second one is a mistake.
    assert_eq!(
        wrong(&login(json!({"expires": {"at": "json:/a", "hidden": 1}}))),
        ["logins.main.expires", "logins.main.expires.hidden"]
    );
}

/// A secret is bound to one host, over https, by whatever means it is sent.
#[test]
fn secrets_go_to_exact_hosts_over_https() {
    let slot = json!([{"method": "POST", "path": "/v1/x", "place": "body"}]);
    let capture = json!([{"method": "POST", "path": "/v1/x", "place": "json:/t", "as": "t"}]);
    for (key, value) in [
        ("auth", json!({"bearer": "${p}"})),
        ("auth", json!({"basic": {"user": "u", "password": "${p}"}})),
        ("auth", json!({"header": {"name": "X", "value": "${p}"}})),
        ("slots", slot),
        ("captures", capture),
    ] {
        let at = |to: &str, plain: bool| grant(json!({"to": to, "plain_http": plain, key: value}));
        file(&at("https://api.iaas.test", false));
        file(&at("http://api.iaas.test", true));
        for (to, plain) in
            [("http://api.iaas.test", false), ("https://*.iaas.test", false), ("https://*.iaas.test", true)]
        {
            assert_eq!(wrong(&at(to, plain)), ["http[0].to"], "{key} {to}");
        }
        assert_eq!(wrong(&at("http://*.iaas.test", false)), ["http[0].to", "http[0].to"], "{key}");
        // The same once a property has decided.
        for (url, fine) in [("https://api.iaas.test", true), ("http://api.iaas.test", false)] {
            let job = json!({"url": url, "p": "secret"});
            assert_eq!(resolve(&at("${url}", false), &job, &json!({}), None).is_ok(), fine, "{key} {url}");
        }
    }
    let client = json!({"client": {"cert": "c.pem", "key": "k.pem"}});
    assert_eq!(wrong(&grant(json!({"to": "https://*.iaas.test", "tls": client}))), ["http[0].to"]);
    assert_eq!(wrong(&grant(json!({"to": "http://api.iaas.test", "tls": client}))), ["http[0].tls", "http[0].to"]);
}

#[test]
fn no_credential_is_sent_in_a_header_of_the_connection() {
    let refused = [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "HTTP2-Settings",
        "Expect",
        "Proxy-Authorization",
        "Accept-Encoding",
        "content_length",
        "Transfer_Encoding",
        "http2_settings",
        "PROXY_AUTHORIZATION",
        "accept_encoding",
    ];
    let auth = |name: &str| grant(json!({"auth": {"header": {"name": name, "value": "${p}"}}}));
    for name in refused {
        assert_eq!(wrong(&auth(name)), ["http[0].auth.header.name"], "{name}");
        assert_eq!(wrong(&login(json!({"send": {"header": name}}))), ["logins.main.send.header"], "{name}");
        assert_eq!(wrong(&login(json!({"headers": {name: "x"}}))), [format!("logins.main.headers.{name}")], "{name}");
    }
    for name in ["X-Host", "X_Key", "Authorization", "Settings", "Proxied"] {
        file(&auth(name));
        file(&login(json!({"send": {"header": name}, "headers": {name: "x"}})));
    }
}

#[test]
fn a_slot_cannot_be_a_header_that_the_host_sets() {
    let slots = |header: &str| json!([{"method": "POST", "path": "/v1/x", "place": format!("header:{header}")}]);
    let basic = json!({"basic": {"user": "u", "password": "${p}"}});
    let own = json!({"header": {"name": "X-Key", "value": "${p}"}});
    for (auth, header, free) in [
        (basic, "Authorization", "X-Key"),
        (json!({"bearer": "${p}"}), "authorization", "X-Key"),
        (own.clone(), "x-KEY", "X-Other"),
        (own, "X_Key", "X-Other"),
    ] {
        assert_eq!(wrong(&grant(json!({"auth": auth, "slots": slots(header)}))), ["http[0].slots[0].place"]);
        file(&grant(json!({"auth": auth, "slots": slots(free)})));
    }
}

#[test]
fn names_are_plain_and_bounded() {
    let long = "x".repeat(65);
    for name in ["", " ", "a b", "é", "a/b", "a\u{1b}", "\u{202e}", long.as_str()] {
        assert_eq!(wrong(&grant(json!({"id": name}))), ["http[0].id"], "{name:?}");
        let capture = json!([{"method": "POST", "path": "/v1/x", "place": "json:/t", "as": name}]);
        assert_eq!(wrong(&grant(json!({"captures": capture}))), ["http[0].captures[0].as"], "{name:?}");
        let mut policy = login(json!({}));
        let main = policy["logins"]["main"].take();
        policy["logins"] = json!({name: main});
        policy["http"][0]["auth"]["login"] = json!(name);
        assert_eq!(wrong(&policy), [format!("logins.{name}")], "{name:?}");
    }
    for pattern in ["", "a b", "a/b", "é", &"x".repeat(256)] {
        assert_eq!(wrong(&json!({"version": 1, "registry": {"keys": [pattern]}})), ["registry.keys[0]"], "{pattern:?}");
    }
}

#[test]
fn addresses_that_can_never_be_granted_are_refused_as_origins_and_networks() {
    let metadata_v6 = concat!("https://[fd00:e", "c2::254]");
    for host in
        ["169.254.169.254", "169.254.0.1", "0.0.0.0", "0", "2852039166", "0xa9fea9fe", "255.255.255.255", "224.0.0.1"]
    {
        for to in [format!("https://{host}"), format!("http://{host}:8080")] {
            let found = wrong(&grant(json!({"to": to})));
            assert_eq!(found, ["http[0].to"], "{to}");
            let job = json!({"url": to});
            let problems = resolve(&grant(json!({"to": "${url}"})), &job, &json!({}), None).err().unwrap();
            assert!(problems[0].to_string().contains("can never be granted"), "{to}: {problems:?}");
        }
    }
    for to in
        [metadata_v6, "https://[fe80::1]", "https://[::]", "https://[ff02::1]", "https://[::ffff:169.254.169.254]"]
    {
        let job = json!({"url": to});
        let problems = resolve(&grant(json!({"to": "${url}"})), &job, &json!({}), None).err().unwrap();
        assert!(problems[0].to_string().contains("can never be granted"), "{to}: {problems:?}");
    }
    for net in ["169.254.0.0/16", "169.254.169.254/32", "fe80::/10", "ff00::/8", "0.0.0.0/8", "255.255.255.255/32"] {
        assert_eq!(wrong(&grant(json!({"addresses": ["10.0.0.0/8", net]}))), ["http[0].addresses[1]"], "{net}");
    }
}
