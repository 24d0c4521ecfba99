//! Credentials of signed requests: what resolves, and which layer decides about region, role and origin.

use super::file::{keys, role, signed};
use super::*;
use crate::addresses::Addresses;
use crate::secret::Layer;
use wasm_cpi_checks::Check;

const KEYS: &str = r#"{"id": "AKID", "key": "hunter2"}"#;

fn job(more: Value) -> Value {
    let mut job: Map<String, Value> = serde_json::from_str(KEYS).unwrap();
    job.extend(object(&more));
    Value::Object(job)
}

/// Returns the keys and codes of the problems.
fn problems(policy: &Value, job: &Value, context: &Value) -> Vec<(String, Option<&'static str>)> {
    let problems = resolve(policy, job, context, None).err().unwrap_or_default();
    assert!(problems.iter().all(|problem| !problem.to_string().contains("hunter2")), "{problems:?}");
    problems.into_iter().map(|problem| (problem.key, problem.check.map(Check::code))).collect()
}

fn found(key: &str, code: Option<&'static str>) -> Vec<(String, Option<&'static str>)> {
    vec![(key.to_owned(), code)]
}

#[test]
fn static_keys_come_from_properties_and_the_token_is_optional() {
    let policy = signed(keys(json!({"session_token": "${token}"})), json!({}));
    for (token, expected) in [
        (json!({"token": "t"}), Some("t")),
        (json!({"token": ""}), None),
        (json!({"token": null}), None),
        (json!({}), None),
    ] {
        let policy = resolve(&policy, &job(token.clone()), &json!({}), None).unwrap();
        let main = &policy.credentials["main"];
        let CredentialSource::Static { access_key_id, secret_access_key, session_token } = &main.source else {
            panic!()
        };
        assert_eq!((access_key_id.secret.reveal(), secret_access_key.secret.reveal()), ("AKID", "hunter2"));
        assert_eq!(session_token.as_ref().map(|token| token.secret.reveal()), expected, "{token}");
        assert_eq!((main.layer, main.are_temporary()), (Layer::Job, false));
        assert!(!format!("{policy:?}").contains("hunter2"));
        let Some(Auth::SigV4(sigv4)) = &policy.http[0].auth else { panic!() };
        assert_eq!((sigv4.service.as_str(), sigv4.region.as_str()), ("compute", "us-east-1"));
    }
    assert_eq!(
        problems(&policy, &json!({"id": "AKID"}), &json!({})),
        found("credentials.main.static.secret_access_key", None)
    );
    let empty = job(json!({"key": ""}));
    assert_eq!(problems(&policy, &empty, &json!({})), found("credentials.main.static.secret_access_key", None));
}

#[test]
fn the_parts_of_static_keys_come_from_one_layer() {
    let policy = signed(keys(json!({"session_token": "${token}"})), json!({}));
    let with_token = job(json!({"token": "t"}));
    for (job, context, whole) in [
        (&with_token, json!({"id": "A", "key": "B", "token": "T"}), true),
        (&with_token, json!({"id": "A", "key": "B", "token": ""}), true),
        (&with_token, json!({"id": "A", "key": "B"}), false),
        (&with_token, json!({"id": "A"}), false),
        (&job(json!({})), json!({"id": "A", "key": "B"}), true),
    ] {
        let expected = if whole { Vec::new() } else { found("credentials.main.static", None) };
        assert_eq!(problems(&policy, job, &context), expected, "{context}");
        if whole {
            assert_eq!(resolve(&policy, job, &context, None).unwrap().credentials["main"].layer, Layer::Context);
        }
    }
}

/// Adds `regions` to a policy.
fn with_regions(mut policy: Value, regions: &[&str]) -> Value {
    policy["regions"] = json!(regions);
    policy
}

#[test]
fn a_context_chooses_only_listed_regions() {
    const REGION: &str = "http[0].auth.sigv4.region";
    let by_region = signed(keys(json!({})), json!({"region": "${region}"}));
    let listed = with_regions(by_region.clone(), &["eu-central-1", "us-east-1", "s3"]);
    let unlisted = by_region;
    for (policy, job_has, context, expected) in [
        (&listed, json!({"region": "us-west-2"}), json!({}), None),
        (&listed, json!({}), json!({"region": "eu-central-1"}), None),
        (&listed, json!({}), json!({"region": "us-west-2"}), Some("region-listed")),
        (&listed, json!({}), json!({"region": "s3"}), Some("region-form")),
        // The list is the policy's alone.
        (&unlisted, json!({}), json!({"region": "us-east-1", "regions": ["us-east-1"]}), Some("region-listed")),
        (&unlisted, json!({"region": "us-east-1"}), json!({"region": "us-east-1"}), Some("region-listed")),
        (&unlisted, json!({"region": "us-east-1"}), json!({}), None),
        (&unlisted, json!({"region": "s3"}), json!({}), Some("region-form")),
        (&unlisted, json!({"region": "us-east-1.evil"}), json!({}), Some("region-form")),
    ] {
        let expected = expected.map(|code| found(REGION, Some(code))).unwrap_or_default();
        assert_eq!(problems(policy, &job(job_has), &context), expected, "{context}");
    }
}

#[test]
fn a_service_is_never_the_contexts_and_never_issues_credentials() {
    const SERVICE: &str = "http[0].auth.sigv4.service";
    let policy = signed(keys(json!({})), json!({"service": "${service}"}));
    assert_eq!(problems(&policy, &job(json!({"service": "compute"})), &json!({})), []);
    let chosen = problems(&policy, &job(json!({})), &json!({"service": "compute"}));
    assert_eq!(chosen, found(SERVICE, Some("service-of-context")));
    for service in ["sts", "iam", "cognito-identity", "sso-oauth"] {
        let refused = found(SERVICE, Some("service-issuer"));
        assert_eq!(problems(&policy, &job(json!({"service": service})), &json!({})), refused, "{service}");
        assert_eq!(
            problems(&signed(keys(json!({})), json!({"service": service})), &job(json!({})), &json!({})),
            refused
        );
    }
    let odd = problems(&policy, &job(json!({"service": "STS"})), &json!({}));
    assert_eq!(odd, found(SERVICE, Some("service-form")));
}

#[test]
fn an_origin_of_the_context_gets_only_signatures_of_the_context_unless_only_a_region_is_chosen() {
    let context_keys = json!({"id": "A", "key": "B"});
    let with = |context: Value, more: &Value| {
        let mut context = object(&context);
        context.extend(object(more));
        Value::Object(context)
    };
    let policy = |to: &str, region: &str| {
        let mut policy = with_regions(signed(keys(json!({})), json!({"region": region})), &["eu-central-1"]);
        policy["http"][0]["to"] = json!(to);
        policy
    };
    let refused = found("http[0].auth.sigv4.credentials", Some("layer-signature"));
    for (to, region, context, signs) in [
        // Only the region of the host is chosen, and it is on the list.
        ("https://compute.${region}.iaas.test", "${region}", json!({"region": "eu-central-1"}), true),
        ("https://compute.${zone}.iaas.test", "eu-central-1", json!({"zone": "eu-central-1"}), true),
        // The whole host.
        ("https://${host}", "eu-central-1", json!({"host": "evil.test"}), false),
        // The whole origin.
        ("${url}", "eu-central-1", json!({"url": "https://evil.test"}), false),
        ("${region_url}", "${region}", json!({"region_url": "https://evil.test", "region": "eu-central-1"}), false),
    ] {
        let policy = policy(to, region);
        let expected = if signs { Vec::new() } else { refused.clone() };
        assert_eq!(problems(&policy, &job(json!({})), &context), expected, "{to} {context}");
        let own = with(context, &context_keys);
        assert_eq!(problems(&policy, &job(json!({})), &own), [], "{to} {own}");
    }
    // A label that is not listed, whoever has set the keys.
    let unlisted = found("http[0].to", Some("region-listed"));
    let policy_by_zone = policy("https://compute.${zone}.iaas.test", "${region}");
    let evil = json!({"zone": "evil", "region": "eu-central-1"});
    assert_eq!(problems(&policy_by_zone, &job(json!({})), &evil), unlisted);
    assert_eq!(problems(&policy_by_zone, &job(json!({})), &with(evil, &context_keys)), unlisted);
    // The keys of the machine are the job's.
    let mut machine = policy("${url}", "eu-central-1");
    machine["credentials"]["main"] = json!({"metadata": {}});
    assert_eq!(problems(&machine, &json!({}), &json!({"url": "https://evil.test"})), refused);
    assert_eq!(problems(&machine, &json!({"url": "https://api.iaas.test"}), &json!({})), []);
}

#[test]
fn a_context_chooses_only_listed_roles_and_the_token_service_follows_the_same_rule() {
    let (one, other) = ("arn:cloud:iam::123456789012:role/one", "arn:cloud:iam::123456789012:role/other");
    let listed = role(json!({"role": "${role}", "roles": [one]}));
    assert_eq!(problems(&listed, &json!({"role": other}), &json!({})), []);
    assert_eq!(problems(&listed, &json!({}), &json!({"role": one})), []);
    const ROLE: &str = "credentials.main.assume_role.role";
    assert_eq!(problems(&listed, &json!({}), &json!({"role": other})), found(ROLE, Some("role-of-context")));
    assert_eq!(problems(&listed, &json!({"role": "x"}), &json!({})), found(ROLE, Some("role-form")));
    let by_property = role(json!({"role": "${role}", "roles": "${roles}"}));
    let list = json!({"roles": [one]});
    assert_eq!(problems(&by_property, &list, &json!({"role": one})), []);
    let not_listed = found(ROLE, Some("role-of-context"));
    assert_eq!(problems(&by_property, &list, &json!({"role": other})), not_listed);
    assert_eq!(problems(&by_property, &json!({}), &json!({"role": one})), not_listed);
    // The list itself is the job's alone.
    assert_eq!(problems(&by_property, &list, &json!({"role": other, "roles": [other]})), not_listed);
    let wrong = problems(&by_property, &json!({"roles": one}), &json!({"role": one}));
    assert_eq!(wrong[0], ("credentials.main.assume_role.roles".to_owned(), None));
    let to = role(json!({"to": "${sts}"}));
    let refused = found("credentials.main.assume_role.to", Some("layer-signature"));
    assert_eq!(problems(&to, &json!({}), &json!({"sts": "https://evil.test"})), refused);
    assert_eq!(problems(&to, &json!({"sts": "https://tokens.iaas.test/base"}), &json!({})), []);
    let by_region = role(json!({"to": "https://tokens.${region}.iaas.test", "region": "${region}"}));
    let by_region = with_regions(by_region, &["us-east-1"]);
    let policy = resolve(&by_region, &json!({}), &json!({"region": "us-east-1"}), None).unwrap();
    let main = &policy.credentials["main"];
    let assumed = main.assumed_role().unwrap();
    assert_eq!(
        (assumed.destination.to_string().as_str(), assumed.region.as_str()),
        ("https://tokens.us-east-1.iaas.test/", "us-east-1")
    );
    assert_eq!((main.layer, main.are_temporary(), assumed.session_name.as_str()), (Layer::Job, true, "wasm-cpi"));
    let mut ports: Vec<u16> = policy.ports().collect();
    ports.sort_unstable();
    assert_eq!(ports, [80, 443]);
}

#[test]
fn credentials_must_be_defined_used_and_no_chain_of_roles() {
    let mut policy = role(json!({}));
    policy["credentials"]["spare"] = json!({"metadata": {}});
    let parsed = |policy: &Value| {
        let problems = PolicyFile::parse(&policy.to_string()).err().unwrap_or_default();
        problems.into_iter().map(|problem| (problem.key, problem.check.map(Check::code))).collect::<Vec<_>>()
    };
    assert_eq!(parsed(&policy), found("credentials.spare", Some("unused-credentials")));
    let unknown = signed(keys(json!({})), json!({"credentials": "other"}));
    let keys_of_both = ["http[0].auth.sigv4.credentials", "credentials.main"];
    let both: Vec<_> = keys_of_both.map(|key| (key.to_owned(), Some("unused-credentials"))).into();
    assert_eq!(parsed(&unknown), both);
    assert_eq!(
        parsed(&role(json!({"with": "nobody"}))),
        [
            ("credentials.main.assume_role.with".to_owned(), Some("unused-credentials")),
            ("credentials.machine".to_owned(), Some("unused-credentials")),
        ]
    );
    let mut chain = role(json!({}));
    chain["credentials"]["machine"] = json!({"assume_role": {"role": "arn:cloud:iam::123456789012:role/x", "with": "keys",
        "to": "https://tokens.iaas.test", "region": "us-east-1"}});
    chain["credentials"]["keys"] = json!({"metadata": {}});
    assert_eq!(parsed(&chain), found("credentials.main.assume_role.with", None));
}

#[test]
fn a_signed_grant_has_no_slots_in_headers_of_signatures() {
    for (header, refused) in
        [("authorization", true), ("X-Amz-Security-Token", true), ("x_amz_date", true), ("x-key", false)]
    {
        let mut policy = signed(keys(json!({})), json!({}));
        policy["http"][0]["slots"] = json!([{"method": "POST", "path": "/", "place": format!("header:{header}")}]);
        let problems = PolicyFile::parse(&policy.to_string()).err().unwrap_or_default();
        let beside = problems.iter().any(|problem| problem.check == Some(Check::SlotBesideAuth));
        assert_eq!((beside, problems.len()), (refused, usize::from(refused)), "{header}: {problems:?}");
    }
}

#[test]
fn the_settings_of_a_preset_are_laid_over_its_roles() {
    let preset = role(json!({})).to_string();
    let own =
        json!({"version": 1, "presets": [{"file": "p.json", "addresses": ["10.0.0.0/8"], "tls": {"ca": "ca.pem"}}]});
    let file = PolicyFile::parse_with(&own.to_string(), &|_, _| Ok(preset.clone())).unwrap();
    let policy = Policy::resolve(&file, &Properties::default(), None, &[], false).unwrap();
    let assumed = policy.credentials["main"].assumed_role().unwrap();
    assert_eq!(assumed.tls.ca, Some(Pem::File("ca.pem".into())));
    assert!(matches!(&assumed.addresses, Addresses::Cidrs(nets) if nets.len() == 1));
    // The operator may define the credentials that the grants of a preset name.
    let mut without: Value = serde_json::from_str(&preset).unwrap();
    without.as_object_mut().unwrap().remove("credentials");
    let own = json!({"version": 1, "presets": [{"file": "p.json"}], "credentials": {"main": {"metadata": {}}}});
    PolicyFile::parse_with(&own.to_string(), &|_, _| Ok(without.to_string())).unwrap();
    let twice = json!({"version": 1, "presets": [{"file": "p.json"}], "credentials": {"main": {"metadata": {}}}});
    assert!(PolicyFile::parse_with(&twice.to_string(), &|_, _| Ok(preset.clone())).is_err());
}
