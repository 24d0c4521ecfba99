//! The presets grant exactly what the needs declare. They differ only in credentials and origins. The IAM policy for
//! operators has the same operations.

use serde_json::{Value, json};

use crate::NEEDS;
use crate::properties::{SPEC, Treatment};

/// The presets with credentials, each complete for one kind of partition.
const COMPLETE: [(&str, &str); 5] = [
    ("policy.json", include_str!("../../policy.json")),
    ("policy-instance-profile.json", include_str!("../../policy-instance-profile.json")),
    ("policy-assumed-role.json", include_str!("../../policy-assumed-role.json")),
    ("policy-assumed-role-of-instance.json", include_str!("../../policy-assumed-role-of-instance.json")),
    ("policy-china-assumed-role.json", include_str!("../../policy-china-assumed-role.json")),
];

/// The presets for other hosts, each used together with one of the others.
const MORE: [(&str, &str); 6] = [
    ("policy-china.json", include_str!("../../policy-china.json")),
    ("policy-europe.json", include_str!("../../policy-europe.json")),
    ("policy-dualstack.json", include_str!("../../policy-dualstack.json")),
    ("policy-ec2-endpoint.json", include_str!("../../policy-ec2-endpoint.json")),
    ("policy-elb-endpoint.json", include_str!("../../policy-elb-endpoint.json")),
    ("policy-ebs-endpoint.json", include_str!("../../policy-ebs-endpoint.json")),
];

/// The IAM policy for the credentials.
const IAM_POLICY: &str = include_str!("../../iam-policy.json");

/// Everything that names operations of query APIs.
const SOURCES: &str = concat!(
    include_str!("../api/ec2/images.rs"),
    include_str!("../api/ec2/instance_types.rs"),
    include_str!("../api/ec2/instances.rs"),
    include_str!("../api/ec2/interfaces.rs"),
    include_str!("../api/ec2/modifications.rs"),
    include_str!("../api/ec2/networks.rs"),
    include_str!("../api/ec2/registration.rs"),
    include_str!("../api/ec2/routes.rs"),
    include_str!("../api/ec2/snapshots.rs"),
    include_str!("../api/ec2/tags.rs"),
    include_str!("../api/ec2/volumes.rs"),
    include_str!("../api/ec2/zones.rs"),
    include_str!("../api/elb.rs"),
    include_str!("../api/elbv2.rs"),
);

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Returns the operations that the needs declare for an ID.
fn declared(id: &str) -> Vec<String> {
    let needs = parsed(NEEDS);
    let need = needs["http"].as_array().unwrap().iter().find(|need| need["id"] == id).unwrap().clone();
    texts(&need["operations"]["allow"])
}

/// Returns the need for a grant: its ID without the name of the variant.
fn need_of(grant: &Value) -> Value {
    let id = grant["id"].as_str().unwrap();
    let needs = parsed(NEEDS);
    let all = needs["http"].as_array().unwrap().iter();
    let longest = all.filter(|need| id.starts_with(need["id"].as_str().unwrap()));
    longest.max_by_key(|need| need["id"].as_str().unwrap().len()).unwrap_or_else(|| panic!("{id}")).clone()
}

#[test]
fn presets_grant_exactly_what_the_needs_declare() {
    for (name, text) in COMPLETE.into_iter().chain(MORE) {
        let policy = parsed(text);
        for grant in policy["http"].as_array().unwrap() {
            let (need, id) = (need_of(grant), &grant["id"]);
            for key in ["methods", "paths"] {
                assert_eq!(grant[key], need[key], "{name}: {id}");
            }
            for key in ["in", "allow"] {
                assert_eq!(grant["operations"][key], need["operations"][key], "{name}: {id}");
            }
            assert_eq!(grant["auth"]["sigv4"]["credentials"], "aws", "{name}: {id}");
            assert_eq!(grant["auth"]["sigv4"]["region"], "${region}", "{name}: {id}");
            assert_eq!(grant["slots"].is_array(), need["slots"].is_array(), "{name}: {id}");
        }
    }
    for (name, text) in COMPLETE {
        let policy = parsed(text);
        let mut exposed = texts(&parsed(NEEDS)["expose"]);
        // A preset that assumes a role keeps its name from the guest, which refuses one that it can read.
        if policy["credentials"]["aws"].get("assume_role").is_some() {
            exposed.retain(|name| name != "role_arn");
        }
        assert_eq!(texts(&policy["expose"]), exposed, "{name}");
        assert_eq!(policy["http"].as_array().unwrap().len(), parsed(NEEDS)["http"].as_array().unwrap().len(), "{name}");
        assert!(policy["credentials"]["aws"].is_object(), "{name}");
    }
    for (name, text) in MORE {
        let mut keys: Vec<String> = parsed(text).as_object().unwrap().keys().cloned().collect();
        keys.sort();
        assert_eq!(keys, ["http", "version"], "{name}");
    }
}

#[test]
fn grants_for_other_hosts_differ_in_nothing_else() {
    let first = parsed(COMPLETE[0].1);
    let without_host = |grant: &Value| {
        let mut grant = grant.clone();
        grant["to"].take();
        grant["id"].take();
        grant
    };
    for (name, text) in COMPLETE.into_iter().chain(MORE) {
        for grant in parsed(text)["http"].as_array().unwrap() {
            let service = need_of(grant)["id"].clone();
            let own = first["http"].as_array().unwrap().iter().find(|own| own["id"] == service).unwrap();
            assert_eq!(without_host(grant), without_host(own), "{name}: {}", grant["id"]);
        }
    }
}

#[test]
fn every_host_belongs_to_its_service() {
    for (name, text) in COMPLETE.into_iter().chain(MORE) {
        for grant in parsed(text)["http"].as_array().unwrap() {
            let (to, service) = (grant["to"].as_str().unwrap(), grant["auth"]["sigv4"]["service"].as_str().unwrap());
            let property = match service {
                "elasticloadbalancing" => "elb_endpoint",
                "ec2" => "ec2_endpoint",
                _ => "ebs_endpoint",
            };
            let is_region = to.starts_with(&format!("https://{service}.${{region}}."));
            assert!(is_region || to == format!("https://${{{property}}}"), "{name}: {to}");
        }
    }
}

#[test]
fn only_a_launch_has_a_slot_for_the_agents_settings() {
    for (name, text) in COMPLETE.into_iter().chain(MORE) {
        for grant in parsed(text)["http"].as_array().unwrap() {
            let Some(slots) = grant["slots"].as_array() else { continue };
            let [slot] = slots.as_slice() else { panic!("{name}") };
            assert_eq!(
                (&slot["operation"], &slot["place"]),
                (&json!("RunInstances"), &json!("form:UserData")),
                "{name}"
            );
            // All that the guest reads of the answer, and the most that EC2 accepts, in Base64.
            assert_eq!(slot["show"], json!(["xml:instanceId", "xml:Code", "xml:RequestID"]));
            assert_eq!((&slot["takes"], &slot["max_bytes"]), (&json!(["agent"]), &json!(16_384_u32.div_ceil(3) * 4)));
            // A later call must not read the settings of another VM.
            assert_eq!(grant["drop"], json!(["xml:userData"]), "{name}");
            assert!(
                !texts(&grant["operations"]["allow"])
                    .iter()
                    .any(|name| name.contains("Attribute") && name.starts_with("Describe"))
            );
        }
    }
}

#[test]
fn every_operation_of_the_api_is_declared() {
    let named = |start: &str| {
        SOURCES
            .split(start)
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let declared = [declared("ec2"), declared("elb")].concat();
    let starts = ["operation(\"", "Operation::new(\"", "route(\"", "self.change(\""];
    let used: Vec<String> = starts.into_iter().flat_map(named).collect();
    for name in &used {
        assert!(declared.contains(name), "{name} is not in needs.json");
    }
    for name in declared {
        assert!(used.contains(&name), "{name} is in needs.json and unused");
    }
}

#[test]
fn reading_operations_are_those_that_describe() {
    for grant in
        parsed(COMPLETE[0].1)["http"].as_array().unwrap().iter().filter(|grant| grant["operations"].is_object())
    {
        assert_eq!(grant["operations"]["read_only"], json!(["Describe*"]));
    }
}

/// An operation that creates or changes something with many parameters has its fields limited.
#[test]
fn fields_are_limited_where_one_operation_can_do_more_than_the_cpi() {
    let policy = parsed(COMPLETE[0].1);
    let limited: Vec<&Value> = policy["http"][0]["fields"].as_array().unwrap().iter().collect();
    for name in [
        "RunInstances",
        "CreateNetworkInterface",
        "AssignPrivateIpAddresses",
        "AssignIpv6Addresses",
        "ModifyNetworkInterfaceAttribute",
        "RegisterImage",
        "CopyImage",
        "ModifyVolume",
    ] {
        let own = limited.iter().find(|fields| fields["operation"] == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(own["others"], "deny", "{name}");
    }
}

#[test]
fn every_property_that_the_guest_reads_is_exposed_and_no_secret() {
    let exposed = texts(&parsed(NEEDS)["expose"]);
    for (name, treatment) in SPEC {
        let Some(name) = name.strip_prefix("aws.") else { continue };
        let top = name.split('.').next().unwrap().to_owned();
        match treatment {
            Treatment::Read => assert!(exposed.contains(&top), "{name}"),
            Treatment::Host => assert!(!exposed.contains(&top), "{name}"),
            _ => {}
        }
    }
}

/// Renew the file with `UPDATE_EXPECT=1`.
#[test]
fn the_iam_policy_allows_exactly_what_the_needs_declare() {
    let expected = format!("{:#}\n", iam_policy());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("iam-policy.json");
        std::fs::write(file, &expected).unwrap();
        return;
    }
    assert_eq!(IAM_POLICY, expected);
}

fn iam_policy() -> Value {
    let actions =
        |prefix: &str, names: Vec<String>| names.into_iter().map(|name| format!("{prefix}:{name}")).collect::<Vec<_>>();
    let statement = |id: &str, actions: Vec<String>, condition: Option<Value>| {
        let mut statement = json!({"Sid": id, "Effect": "Allow", "Action": actions, "Resource": "*"});
        if let Some(condition) = condition {
            statement["Condition"] = condition;
        }
        statement
    };
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let direct = owned(&["StartSnapshot", "PutSnapshotBlock", "CompleteSnapshot"]);
    let kms = owned(&[
        "CreateGrant",
        "Decrypt",
        "DescribeKey",
        "GenerateDataKeyWithoutPlaintext",
        "ReEncryptFrom",
        "ReEncryptTo",
    ]);
    let by_ec2 = json!({"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}});
    let for_aws = json!({"StringLike": {"kms:ViaService": "ec2.*"}});
    json!({"Version": "2012-10-17", "Statement": [
        statement("Compute", actions("ec2", declared("ec2")), None),
        statement("LoadBalancers", actions("elasticloadbalancing", declared("elb")), None),
        statement("HeavyStemcells", actions("ebs", direct), None),
        statement("InstanceProfiles", owned(&["iam:PassRole"]), Some(by_ec2)),
        statement("EncryptedDisksWithOwnKeys", actions("kms", kms), Some(for_aws)),
    ]})
}

/// The table in README.md has every property of the job's spec.
#[test]
fn the_readme_has_every_property_with_what_becomes_of_it() {
    let readme = include_str!("../../README.md");
    let rows: Vec<(&str, &str)> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .filter_map(|(name, rest)| Some((name, rest.split_once(" |")?.0)))
        .collect();
    for (name, treatment) in SPEC {
        let own = rows.iter().find(|(row, _)| *row == name).unwrap_or_else(|| panic!("{name} is not in the table"));
        let expected: &[&str] = match treatment {
            Treatment::Read => &["same", "same, but", "same, and"],
            Treatment::Host => &["same", "same, but"],
            Treatment::WithoutEffect => &["no effect"],
            Treatment::Moved => &["without BOSH, in cpi.json"],
        };
        assert!(expected.contains(&own.1), "{name}: {}", own.1);
    }
}
