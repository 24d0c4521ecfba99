use super::*;
use crate::secret::Layer;
use wasm_cpi_checks::Check;

fn with_auth(to: &str, auth: Value) -> Value {
    json!({"version": 1, "http": [{"id": "api", "to": to, "methods": ["POST"], "paths": ["/**"], "auth": auth}]})
}

fn keys(result: Result<Policy, Vec<PolicyProblem>>) -> Vec<String> {
    result.err().unwrap_or_default().into_iter().map(|problem| problem.key).collect()
}

#[test]
fn properties_fill_origins_and_credentials() {
    let policy = with_auth("${url}", json!({"basic": {"user": "admin", "password": "${auth.password}"}}));
    let job = json!({"url": "https://api.iaas.test:5000/v3", "auth": {"password": "hunter2"}});
    let policy = resolve(&policy, &job, &json!({}), Some(&any_needs())).unwrap();
    let grant = &policy.http[0];
    assert_eq!((grant.origin.to_string().as_str(), grant.layer), ("https://api.iaas.test:5000", Layer::Job));
    let Some(Auth::Basic { user, password }) = &grant.auth else { panic!("{grant:?}") };
    assert_eq!((user.secret.reveal(), password.secret.reveal()), ("admin", "hunter2"));
    assert_eq!((password.name.as_str(), password.layer), ("auth.password", Layer::Job));
    assert!(!format!("{policy:?}").contains("hunter2"));
}

#[test]
fn a_secret_goes_only_to_an_origin_of_its_own_layer() {
    let url = json!({"url": "https://api.iaas.test"});
    let token = json!({"token": "hunter2"});
    let both = json!({"url": "https://api.iaas.test", "token": "hunter2"});
    let none = json!({});
    for (job, context, refused) in [
        (&both, &none, false),
        (&none, &both, false),
        (&both, &both, false),
        // The job's origin may get a secret of either layer.
        (&url, &token, false),
        (&both, &token, false),
        (&token, &url, true),
        (&both, &url, true),
    ] {
        let bearer = with_auth("${url}", json!({"bearer": "${token}"}));
        let slot = json!({"version": 1, "http": [{"id": "api", "to": "${url}", "methods": ["POST"], "paths": ["/**"],
            "slots": [{"method": "POST", "path": "/x", "place": "json:/a", "takes": ["token"]}]}]});
        let client = json!({"version": 1, "http": [{"id": "api", "to": "${url}", "methods": ["POST"], "paths": ["/**"],
            "tls": {"client": {"cert": "${token}", "key": "${token}"}}}]});
        for (policy, key) in
            [(&bearer, "http[0].auth.bearer"), (&slot, "http[0].slots[0].takes"), (&client, "http[0].tls.client.cert")]
        {
            let problems = resolve(policy, job, context, Some(&any_needs())).err().unwrap_or_default();
            let chosen =
                problems.iter().any(|problem| problem.key == key && problem.what.contains("the job's property"));
            assert_eq!(chosen, refused, "{key} {job} {context}: {problems:?}");
            assert!(problems.iter().all(|problem| !problem.to_string().contains("hunter2")));
        }
    }
}

#[test]
fn a_host_from_a_property_has_the_layer_of_the_property_and_the_scheme_of_the_policy() {
    let policy = with_auth("https://${endpoint}", json!({"bearer": "${token}"}));
    let (endpoint, token) = (json!({"endpoint": "api.iaas.test:8443"}), json!({"token": "hunter2"}));
    let both = json!({"endpoint": "api.iaas.test:8443", "token": "hunter2"});
    let resolved = resolve(&policy, &both, &json!({}), None).unwrap();
    assert_eq!(
        (resolved.http[0].origin.to_string().as_str(), resolved.http[0].layer),
        ("https://api.iaas.test:8443", Layer::Job)
    );
    let resolved = resolve(&policy, &json!({}), &both, None).unwrap();
    assert_eq!(resolved.http[0].layer, Layer::Context);
    assert!(resolve(&policy, &endpoint, &token, None).is_ok());
    assert_eq!(keys(resolve(&policy, &token, &endpoint, None)), ["http[0].auth.bearer"]);
    // A list of regions is for single labels, not for whole hosts.
    let mut listed = policy.clone();
    listed["regions"] = json!(["api"]);
    assert_eq!(keys(resolve(&listed, &token, &json!({"endpoint": "api"}), None)), ["http[0].auth.bearer"]);
    // The policy says https, with or without secrets.
    let plain = json!({"endpoint": "http://api.iaas.test", "token": "hunter2"});
    let open = json!({"version": 1, "http": [{"id": "api", "to": "https://${endpoint}", "methods": ["GET"], "paths": ["/**"]}]});
    for policy in [&policy, &open] {
        let problems = resolve(policy, &plain, &json!({}), None).unwrap_err();
        assert!(problems.iter().all(|problem| problem.check == Some(Check::PlainHttp)), "{problems:?}");
        let mut accepted = policy.clone();
        accepted["http"][0]["plain_http"] = json!(true);
        let resolved = resolve(&accepted, &plain, &json!({}), None).unwrap();
        assert_eq!(resolved.http[0].origin.to_string(), "http://api.iaas.test");
    }
}

#[test]
fn a_label_of_the_context_is_a_listed_region_and_then_the_jobs_own() {
    let policy = |regions: Value| {
        let mut policy = with_auth("https://api.${region}.iaas.test", json!({"bearer": "${token}"}));
        policy["regions"] = regions;
        policy
    };
    let (token, eu) = (json!({"token": "hunter2"}), json!({"region": "eu-1"}));
    let both = json!({"token": "hunter2", "region": "eu-1"});
    let resolved = resolve(&policy(json!(["eu-1"])), &token, &eu, None).unwrap();
    assert_eq!(
        (resolved.http[0].origin.to_string().as_str(), resolved.http[0].layer),
        ("https://api.eu-1.iaas.test", Layer::Job)
    );
    // The operator's own region needs no list.
    assert!(resolve(&policy(json!([])), &both, &json!({}), None).is_ok());
    for (regions, job, context) in [
        (json!([]), &token, &eu),
        (json!(["eu-2"]), &token, &eu),
        (json!(["eu-1"]), &token, &json!({"region": "s3"})),
        (json!(["eu-1"]), &token, &json!({"region": "EU-1"})),
        (json!(["eu-1"]), &both, &json!({"region": "s3"})),
        // Not even with the credentials of the cpi-config: whoever has that name would get them.
        (json!(["eu-1"]), &json!({}), &json!({"region": "s3", "token": "hunter2"})),
    ] {
        let problems = resolve(&policy(regions.clone()), job, context, None).unwrap_err();
        let found: Vec<_> = problems.iter().map(|problem| (problem.key.as_str(), problem.check)).collect();
        assert_eq!(found, [("http[0].to", Some(Check::RegionListed))], "{regions} {context}: {problems:?}");
        assert!(!problems[0].to_string().contains("s3"), "{}", problems[0]);
    }
}

/// Sends a secret by every means, to every kind of origin, from either layer.
#[test]
fn the_own_layer_rule_holds_for_every_means_and_origin() {
    let grant = |to: &str, more: Value| {
        let mut grant = object(&json!({"id": "api", "to": to, "methods": ["POST"], "paths": ["/**"]}));
        grant.extend(object(&more));
        json!({"version": 1, "regions": ["api"], "http": [grant]})
    };
    let login = |to: &str, more: Value| {
        let mut login = object(&json!({"to": to, "path": "/t", "token": "json:/t", "send": {"header": "X"}}));
        login.extend(object(&more));
        json!({"version": 1, "regions": ["api"], "logins": {"l": login}, "http": [
            {"id": "api", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/**"], "auth": {"login": "l"}}]})
    };
    type Means<'a> = (&'a str, &'a dyn Fn(&str) -> Value);
    let pem = json!({"cert": "${secret}", "key": "${secret}"});
    let slot = json!([{"method": "POST", "path": "/x", "place": "body", "takes": ["secret"]}]);
    let basic = |user: &str, password: &str| json!({"auth": {"basic": {"user": user, "password": password}}});
    let means: [Means<'_>; 11] = [
        ("http[0].auth.basic.user", &|to| grant(to, basic("${secret}", "${secret}"))),
        ("http[0].auth.basic.password", &|to| grant(to, basic("u", "p${secret}"))),
        ("http[0].auth.bearer", &|to| grant(to, json!({"auth": {"bearer": "${secret}"}}))),
        ("http[0].auth.header.value", &|to| {
            grant(to, json!({"auth": {"header": {"name": "X", "value": "k ${secret}"}}}))
        }),
        ("http[0].slots[0].takes", &|to| grant(to, json!({"slots": slot}))),
        ("http[0].tls.client.cert", &|to| grant(to, json!({"tls": {"client": pem}}))),
        ("logins.l.headers.x-key", &|to| login(to, json!({"headers": {"X-Key": "${secret}"}}))),
        ("logins.l.body.a[0]", &|to| login(to, json!({"body": {"a": ["${secret}"]}}))),
        ("logins.l.body.a", &|to| login(to, json!({"body": {"a": "x ${secret}"}}))),
        ("logins.l.form.a", &|to| login(to, json!({"form": {"a": "${secret}"}}))),
        ("logins.l.tls.client.cert", &|to| login(to, json!({"tls": {"client": pem}}))),
    ];
    let secret = json!({"secret": "-----BEGIN hunter2"});
    let origin = json!({"url": "https://api.iaas.test", "zone": "api"});
    for (key, policy) in means {
        for to in ["https://api.iaas.test", "${url}", "https://${zone}.iaas.test"] {
            for (of_origin, of_secret) in
                [("job", "job"), ("job", "context"), ("context", "job"), ("context", "context")]
            {
                let layer = |name: &str| {
                    let part = |from: &Value, of: &str| if of == name { object(from) } else { Map::new() };
                    let mut all = part(&origin, of_origin);
                    all.extend(part(&secret, of_secret));
                    json!(all)
                };
                let resolved = resolve(&policy(to), &layer("job"), &layer("context"), None);
                // A listed region is one that the job chose.
                let refused = to == "${url}" && of_origin == "context" && of_secret == "job";
                let problems = resolved.err().unwrap_or_default();
                let said = "the job's property `secret`";
                let named = problems.iter().any(|problem| problem.key == key && problem.what.contains(said));
                let context = format!("{key} {to}, {of_origin}'s, {of_secret}'s: {problems:?}");
                assert_eq!((named, problems.is_empty()), (refused, !refused), "{context}");
            }
        }
    }
}

#[test]
fn agent_settings_go_to_every_granted_slot() {
    let policy = json!({"version": 1, "http": [{"id": "api", "to": "${url}", "methods": ["POST"], "paths": ["/**"],
        "slots": [{"method": "POST", "path": "/x", "place": "json:/a"}]}]});
    assert!(resolve(&policy, &json!({}), &json!({"url": "https://api.iaas.test"}), Some(&any_needs())).is_ok());
}

fn login_policy(grant_to: &str) -> Value {
    json!({"version": 1,
        "logins": {"main": {"to": "${id_url}", "path": "/tokens", "headers": {"X-Project": "p-${project}"},
            "body": {"auth": {"user": "${user}", "port": "${port}", "plain": [1, null, "x"]}},
            "token": "json:/t", "send": {"header": "X-Token"}}},
        "http": [{"id": "api", "to": grant_to, "methods": ["GET"], "paths": ["/**"], "auth": {"login": "main"}}]})
}

#[test]
fn properties_are_filled_into_a_login_and_keep_their_types() {
    let job = json!({"id_url": "https://id.iaas.test:5000", "user": "u\"x", "port": 7, "project": "q"});
    let policy = resolve(&login_policy("https://api.iaas.test"), &job, &json!({}), None).unwrap();
    let login = &policy.logins["main"];
    assert_eq!(login.destination.to_string(), "https://id.iaas.test:5000/tokens");
    assert_eq!((login.method.as_str(), login.send.header.as_str(), login.token_layer), ("POST", "x-token", Layer::Job));
    assert_eq!((login.headers[0].0.as_str(), login.headers[0].1.secret.reveal()), ("x-project", "p-q"));
    let LoginBody::Json(body) = &login.body else { panic!("{login:?}") };
    let body: Value = serde_json::from_str(body.reveal()).unwrap();
    assert_eq!(body, json!({"auth": {"user": "u\"x", "port": 7, "plain": [1, null, "x"]}}));
}

#[test]
fn a_slot_cannot_be_the_header_that_a_login_sends() {
    let mut policy = login_policy("https://api.iaas.test");
    policy["http"][0]["slots"] = json!([{"method": "GET", "path": "/x", "place": "header:x-TOKEN"},
                                        {"method": "GET", "path": "/x", "place": "header:x-other"}]);
    let job = json!({"id_url": "https://id.iaas.test:5000", "user": "u", "port": 7, "project": "q"});
    assert_eq!(keys(resolve(&policy, &job, &json!({}), None)), ["http[0].slots[0].place"]);
}

#[test]
fn a_token_has_the_layer_of_the_credentials_of_its_login() {
    let job = json!({"id_url": "https://id.iaas.test", "user": "u", "port": 7, "project": "q"});
    let api = json!({"api": "https://api.iaas.test"});
    assert_eq!(keys(resolve(&login_policy("${api}"), &job, &api, None)), ["http[0].auth.login"]);
    // The context's credentials, at the job's login: the token is the context's.
    let origin = json!({"id_url": "https://id.iaas.test"});
    let context = json!({"user": "u", "port": 7, "project": "q", "api": "https://api.iaas.test"});
    assert_eq!(keys(resolve(&login_policy("${api}"), &origin, &context, None)), Vec::<String>::new());
    // The context's login gets none of the job's credentials.
    let refused =
        keys(resolve(&login_policy("https://api.iaas.test"), &job, &json!({"id_url": "https://evil.test"}), None));
    assert_eq!(refused, ["logins.main.headers.x-project", "logins.main.body.auth.user", "logins.main.body.auth.port"]);
}

#[test]
fn a_property_that_is_not_set_is_a_problem() {
    let secret_http = with_auth("${url}", json!({"bearer": "${token}"}));
    let slot = json!({"version": 1, "http": [{"id": "a", "to": "https://a.test", "methods": ["POST"], "paths": ["/**"],
        "slots": [{"method": "POST", "path": "/x", "place": "body", "takes": ["agent", "captured", "nothing"]}],
        "captures": [{"method": "POST", "path": "/y", "place": "json:/t", "as": "captured"}]}]});
    let client = |key: &str| {
        json!({"version": 1, "http": [{"id": "a", "to": "${url}", "methods": ["POST"], "paths": ["/**"],
            "tls": {"client": {"cert": "c.pem", "key": key}}}]})
    };
    let https = json!({"url": "https://a.test", "token": "t"});
    for (policy, job, context, expected) in [
        (&secret_http, json!({"token": "t"}), json!({}), vec!["http[0].to"]),
        (&secret_http, json!({"url": "https://a.test"}), json!({}), vec!["http[0].auth.bearer"]),
        (&secret_http, json!({"url": "http://a.test", "token": "t"}), json!({}), vec!["http[0].to"]),
        (&secret_http, json!({"url": "https://169.254.169.254", "token": "t"}), json!({}), vec!["http[0].to"]),
        (&slot, json!({}), json!({}), vec!["http[0].slots[0].takes"]),
        (&client("${token}"), https.clone(), json!({}), vec!["http[0].tls.client.key"]),
        (&client("k.pem"), https.clone(), json!({}), vec![]),
        (&client("k.pem"), json!({}), https.clone(), vec!["http[0].tls.client.cert", "http[0].tls.client.key"]),
    ] {
        assert_eq!(keys(resolve(policy, &job, &context, None)), expected, "{policy} {job} {context}");
    }
}

#[test]
fn a_property_holds_pem_and_never_a_file_name() {
    let policy = json!({"version": 1, "http": [{"id": "a", "to": "https://a.test", "methods": ["POST"], "paths": ["/**"],
        "tls": {"ca": "ca.pem", "client": {"cert": "-----BEGIN CERTIFICATE-----", "key": "${key}"}}}]});
    let pem = "\n-----BEGIN PRIVATE KEY-----";
    let resolved = resolve(&policy, &json!({"key": pem}), &json!({}), None).unwrap();
    let tls = &resolved.http[0].tls;
    assert_eq!(tls.ca, Some(Pem::File("ca.pem".into())));
    let Some(client) = &tls.client else { panic!("{tls:?}") };
    assert!(matches!(&client.cert, Pem::Inline(_)) && matches!(&client.key, Pem::Inline(key) if key.reveal() == pem));
    assert_eq!(keys(resolve(&policy, &json!({"key": "/etc/passwd"}), &json!({}), None)), ["http[0].tls.client.key"]);
}

#[test]
fn slots_are_limited_to_those_that_the_module_declares() {
    let slots = json!([{"method": "POST", "path": "/v1/*/servers", "place": "json:/user_data", "takes": ["agent", "key"]},
                       {"method": "POST", "path": "/v1/keys", "place": "body"}]);
    let grants = json!({"version": 1, "http": [
        {"id": "api", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/**"], "slots": slots}]});
    let effective = |to: &str, slots: Value| {
        let needs = needs(
            &json!({"version": 1, "http": [{"id": "n", "to": to, "methods": ["POST"], "paths": ["/**"], "slots": slots}]}),
        );
        let policy = resolve(&grants, &json!({"key": "k"}), &json!({}), Some(&needs)).unwrap();
        let show = |slot: &Slot| format!("{} {} {}", slot.path, slot.place, slot.takes.join(","));
        policy.http[0].slots.iter().map(show).collect::<Vec<_>>()
    };
    let all = ["/v1/*/servers json:/user_data agent,key", "/v1/keys body agent"];
    assert_eq!(effective("https://api.iaas.test", json!("*")), all);
    assert_eq!(effective("*", json!("*")), all);
    assert_eq!(effective("https://other.iaas.test", json!("*")), Vec::<String>::new());
    assert_eq!(effective("https://api.iaas.test", json!([])), Vec::<String>::new());
    for (declared, expected) in [
        (
            json!([{"method": "POST", "path": "/v1/*/servers", "place": "json:/user_data"}]),
            vec!["/v1/*/servers json:/user_data agent"],
        ),
        (
            json!([{"method": "POST", "path": "/v1/p/*", "place": "json:/user_data", "takes": ["key"]}]),
            vec!["/v1/p/servers json:/user_data key"],
        ),
        (json!([{"method": "POST", "path": "/**", "place": "json:/name"}]), vec![]),
        (json!([{"method": "PUT", "path": "/v1/keys", "place": "body"}]), vec![]),
        (json!([{"method": "POST", "path": "/v1/keys", "place": "body", "takes": ["key"]}]), vec![]),
    ] {
        assert_eq!(effective("https://api.iaas.test", declared.clone()), expected, "{declared}");
    }
}

#[test]
fn a_risky_setting_is_a_warning() {
    let policy = json!({"version": 1, "trust_undeclared": true,
        "logins": {"main": {"to": "http://id.test", "plain_http": true, "path": "/t", "token": "json:/t", "send": {"header": "X"}}},
        "http": [{"id": "a", "to": "http://a.test", "plain_http": true, "methods": ["GET"], "paths": ["/**"], "auth": {"login": "main"}},
                 {"id": "b", "to": "http://b.test", "plain_http": true, "methods": ["GET"], "paths": ["/**"], "addresses": ["127.0.0.0/8"]}]});
    let resolved = resolve(&policy, &json!({}), &json!({}), None).unwrap();
    let warned: Vec<&str> = resolved.warnings().iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(warned, ["http[0].plain_http", "http[1].addresses", "logins.main", "trust_undeclared"]);
    let local = Policy::resolve(&file(&policy), &Properties::default(), Some(&any_needs()), &[], true).unwrap();
    assert_eq!(local.warnings().len(), 2);
}

#[test]
fn a_login_without_its_property_names_the_alternatives() {
    let policy = |alternatives: &str| {
        let login = json!({
            "to": "https://api.iaas.test", "path": "/tokens", "body": {"project": "${project}"}, "token": "json:/token",
            "send": {"header": "X-Auth-Token"}, "alternatives": alternatives,
        });
        let mut policy = with_auth("https://api.iaas.test", json!({"login": "cloud"}));
        policy["logins"] = json!({"cloud": login});
        policy
    };
    let remedies = |policy: &Value, job: Value, context: Value| {
        let problems = resolve(policy, &job, &context, Some(&any_needs())).err().unwrap_or_default();
        problems.into_iter().map(|problem| problem.remedy).collect::<Vec<_>>()
    };
    let found = remedies(&policy("use the preset other.json"), json!({}), json!({}));
    assert_eq!(found, ["set it in the job's `properties` or in the cpi-config; use the preset other.json"]);
    // A named check has its own remedy, which alternatives would not change.
    let mut from_context = policy("use the preset other.json");
    from_context["logins"]["cloud"]["to"] = json!("${url}");
    let found = remedies(&from_context, json!({"project": "p"}), json!({"url": "https://api.iaas.test"}));
    assert!(found.len() == 1 && !found[0].contains("other.json"), "{found:?}");
}
