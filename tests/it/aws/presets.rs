//! The shipped presets: `wasm-cpi check` accepts each of them with the properties that it is for.

use serde_json::{Value, json};
use tests::{Job, dist, job};

/// Returns what `check` says about a job with these presets and properties.
fn check(presets: &[&str], properties: Value) -> (bool, String) {
    let entries: Vec<Value> = presets.iter().map(|file| json!({"file": file})).collect();
    let job =
        Job::default().guest(&dist::aws()).properties(properties).policy(json!({"version": 1, "presets": entries}));
    for file in presets {
        let text = std::fs::read(dist::root().join("guests/aws").join(file)).unwrap_or_else(|error| panic!("{error}"));
        job::write(&job.path("config").join(file), &text);
    }
    job.check()
}

#[test]
fn every_preset_is_accepted_with_its_properties() {
    let keys = json!({"access_key_id": "AKIAEXAMPLEEXAMPLE00", "secret_access_key": "an-example-of-a-secret-key"});
    let role = json!({"role_arn": "arn:aws:iam::111122223333:role/bosh"});
    let machine = json!({"credentials_source": "env_or_profile"});
    let endpoints = json!({
        "ec2_endpoint": "ec2-fips.us-east-1.amazonaws.com", "elb_endpoint": "elb.example", "ebs_endpoint": "https://ebs.example",
    });
    for (presets, region, properties) in [
        (&["policy.json"][..], "us-east-1", vec![&keys]),
        (&["policy-instance-profile.json"], "us-gov-west-1", vec![&machine]),
        (&["policy-assumed-role.json"], "us-east-1", vec![&keys, &role]),
        (&["policy-assumed-role-of-instance.json"], "us-east-1", vec![&machine, &role]),
        (&["policy-china-assumed-role.json"], "cn-north-1", vec![&keys, &role]),
        (&["policy.json", "policy-china.json"], "cn-north-1", vec![&keys]),
        (&["policy-instance-profile.json", "policy-europe.json"], "eusc-de-east-1", vec![&machine]),
        (&["policy.json", "policy-dualstack.json"], "us-east-1", vec![&keys]),
        (
            &["policy.json", "policy-ec2-endpoint.json", "policy-elb-endpoint.json", "policy-ebs-endpoint.json"],
            "us-east-1",
            vec![&keys, &endpoints],
        ),
    ] {
        let mut all = json!({"region": region, "default_security_groups": ["bosh"], "default_key_name": "bosh"});
        for more in properties {
            more.as_object().into_iter().flatten().for_each(|(name, value)| all[name] = value.clone());
        }
        let (is_accepted, said) = check(presets, all);
        assert!(is_accepted, "{presets:?}: {said}");
    }
}

#[test]
fn a_preset_for_other_credentials_is_refused_by_name() {
    let (is_accepted, said) =
        check(&["policy.json"], json!({"region": "us-east-1", "credentials_source": "env_or_profile"}));
    assert!(!is_accepted && said.contains("access_key_id"), "{said}");
}
