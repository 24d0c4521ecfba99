//! An API with one path for all of its operations: one grant on one origin is enough.

use super::*;
use crate::place::Place;
use wasm_cpi_checks::Check;

const FORM: &str = "application/x-www-form-urlencoded";

/// A grant with everything that is for single operations.
fn grant() -> Value {
    json!({"id": "compute", "to": "https://compute.${region}.iaas.test", "methods": ["POST"], "paths": ["/"],
        "operations": {"in": "form:Action", "allow": ["DescribeServers", "DescribeImages", "GetQuota", "RunServers", "TagServers"],
                       "read_only": ["Describe*", "GetQuota"]},
        "slots": [{"method": "POST", "path": "/", "operation": "RunServers", "place": "form:UserData",
                   "show": ["xml:serverId"], "max_bytes": 16384}],
        "fields": [{"method": "POST", "path": "/", "operation": "RunServers", "places": {"form:Profile.Name": "absent"}},
                   {"method": "POST", "path": "/", "operation": "TagServers", "others": "deny",
                    "places": {"form:Action": "any", "form:Id.*": {"pattern": "i-[0-9a-f]+"}, "form:Tag.*.Key": "any"}}],
        "drop": ["xml:userData"]})
}

/// The needs of a guest for these operations, with a slot in `RunServers` if that is one of them.
fn section(allow: &[&str]) -> Needs {
    let slots = if allow.contains(&"RunServers") {
        json!([{"method": "POST", "path": "/", "operation": "RunServers", "place": "form:UserData", "show": ["xml:serverId"]}])
    } else {
        json!([])
    };
    needs(&json!({"version": 1, "http": [
        {"id": "compute", "to": "https://compute.${region}.iaas.test", "methods": ["POST"], "paths": ["/"],
         "operations": {"in": "form:Action", "allow": allow}, "slots": slots}]}))
}

fn policy_for(grant: Value, needs: Option<&Needs>) -> Policy {
    resolve(&json!({"version": 1, "http": [grant]}), &json!({"region": "eu-1"}), &json!({}), needs).unwrap()
}

fn judge(policy: &Policy, url: &str, method: &str, body: &str) -> Verdict {
    let headers = [("Content-Type".to_owned(), FORM.to_owned())];
    let destination = Destination::parse(url, 8192).unwrap();
    policy.judge(&destination, method, &Message { headers: &headers, body: body.as_bytes() })
}

const URL: &str = "https://compute.eu-1.iaas.test/";

/// The operation of an allowed request, or the reason of a denial.
fn operation(policy: &Policy, body: &str) -> Result<Operation, (DenialReason, Check)> {
    match judge(policy, URL, "POST", body) {
        Verdict::Allowed { operation, .. } => Ok(operation.expect("an operation")),
        Verdict::Denied(denial) => Err((denial.reason, denial.check)),
    }
}

#[test]
fn only_the_policy_says_which_operations_read() {
    let policy = policy_for(grant(), Some(&any_needs()));
    for (body, name, reads) in [
        ("Action=DescribeServers", "DescribeServers", true),
        ("Action=GetQuota&Version=1", "GetQuota", true),
        ("Version=1&Action=RunServers", "RunServers", false),
        // Nothing else in the request plays a part.
        ("Action=RunServers&Describe=1&DryRun=true", "RunServers", false),
        ("Action=TagServers&Id.1=i-1", "TagServers", false),
    ] {
        let found = operation(&policy, body).unwrap_or_else(|denied| panic!("{body}: {denied:?}"));
        assert_eq!((found.name.as_str(), found.is_read_only, found.plain_name()), (name, reads, Some(name)), "{body}");
    }
    // Without the list, every operation may change something.
    let mut silent = grant();
    silent["operations"].as_object_mut().unwrap().remove("read_only");
    let found = operation(&policy_for(silent, Some(&any_needs())), "Action=DescribeServers").unwrap();
    assert!(!found.is_read_only);
    // If two grants find operations in a request, both must be ones that read.
    let with = |id: &str, place: &str, allow: Value, read_only: Value| {
        json!({"id": id, "to": "https://compute.${region}.iaas.test", "methods": ["POST"], "paths": ["/"],
            "operations": {"in": place, "allow": allow, "read_only": read_only}})
    };
    let by_key = with("key", "json", json!(["ask"]), json!(["ask"]));
    let by_value = with("value", "json:/ask/for", json!(["Stop", "List"]), json!(["List"]));
    let grants = json!({"version": 1, "http": [by_key, by_value]});
    let both = resolve(&grants, &json!({"region": "eu-1"}), &json!({}), Some(&any_needs())).unwrap();
    for (target, reads) in [("List", true), ("Stop", false)] {
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let body = json!({"ask": {"for": target}}).to_string();
        let message = Message { headers: &headers, body: body.as_bytes() };
        let Verdict::Allowed { operation, .. } = both.judge(&Destination::parse(URL, 8192).unwrap(), "POST", &message)
        else {
            panic!("it is denied")
        };
        assert_eq!(operation.unwrap().is_read_only, reads, "{target}");
    }
    // The guest's needs cannot say so, and neither can they widen anything.
    let claim = br#"{"version": 1, "http": [{"id": "a", "to": "*", "methods": "*", "paths": "*",
        "operations": {"in": "form:Action", "allow": ["Run"], "read_only": ["Run"]}}]}"#;
    let problems = Needs::parse(claim).unwrap_err();
    assert_eq!(
        (problems[0].key.as_str(), problems[0].what.as_str()),
        ("http[0].operations.read_only", "is an unknown key")
    );
}

#[test]
fn a_name_for_logs_is_a_plain_one() {
    for (name, plain) in [("Run", true), ("urn:x.Run_1-a", true), ("urn:x#Run", false), ("a b", false), ("Rün", false)]
    {
        let operation = Operation { name: name.to_owned(), is_read_only: false };
        assert_eq!(operation.plain_name().is_some(), plain, "{name}");
    }
    let policy = policy_for(grant(), Some(&any_needs()));
    for (body, shown) in [
        ("Action=Terminate", Some("Terminate")),
        ("Action=Terminate%0aforged", None),
        ("Action=%1b%5b31m", None),
        ("Action=Run&Action=Terminate", None),
        ("Version=1", None),
    ] {
        let Verdict::Denied(denial) = judge(&policy, URL, "POST", body) else { panic!("{body} is allowed") };
        assert_eq!((denial.reason, denial.operation.as_deref()), (DenialReason::Operation, shown), "{body}");
    }
    let Verdict::Denied(denial) =
        judge(&policy_for(grant(), Some(&section(&["GetQuota"]))), URL, "POST", "Action=RunServers")
    else {
        panic!("it is allowed")
    };
    assert_eq!((denial.reason, denial.operation.as_deref()), (DenialReason::Undeclared, Some("RunServers")));
}

#[test]
fn fields_are_for_single_operations() {
    let policy = policy_for(grant(), Some(&any_needs()));
    for (body, expected) in [
        ("Action=RunServers&Image=x", Ok(())),
        ("Action=RunServers&Profile.Name=admin", Err(Check::FieldAbsent)),
        ("Action=RunServers&Profile.Name.1=admin", Err(Check::FieldAbsent)),
        ("Action=RunServers&profile.Name=admin", Err(Check::FieldAlike)),
        ("Action=RunServers&Profile.name=admin", Err(Check::FieldAlike)),
        ("Action=DescribeServers&Profile.Name=admin", Ok(())),
        ("Action=TagServers&Id.1=i-1&Tag.1.Key=a", Ok(())),
        ("Action=TagServers&Id.1=i-1&Other=a", Err(Check::FieldOthers)),
        ("Action=TagServers&Id.1=vpc-1", Err(Check::FieldValue)),
    ] {
        let found = operation(&policy, body).map(drop).map_err(|(_, check)| check);
        assert_eq!(found, expected, "{body}");
    }
}

#[test]
fn names_of_a_form_with_an_operation_have_one_form_with_fields_and_without() {
    let mut without = grant();
    without.as_object_mut().unwrap().remove("fields");
    for grant in [grant(), without] {
        let policy = policy_for(grant.clone(), Some(&any_needs()));
        let found = |body: &str| {
            operation(&policy, body).map(drop).map_err(|(reason, check)| {
                assert_eq!(reason, DenialReason::Operation, "{body}");
                check
            })
        };
        let plain = "Action=DescribeServers&Filter.1.Name=a&Filter.1.Value.1=b&Filter.10.Name=c&Max_Results=5";
        assert_eq!(found(plain), Ok(()));
        for (field, check) in [
            ("Filter.01.Name", Check::FieldName),
            ("Filter.1.Value.00", Check::FieldName),
            ("Filter.0.Name", Check::FieldName),
            ("Filter..Name", Check::FieldName),
            ("Filter.1.", Check::FieldName),
            ("Filter%5B1%5D", Check::FieldName),
            ("1Filter", Check::FieldName),
            ("_Filter", Check::FieldName),
            ("Filter-1", Check::FieldName),
            ("Fi%6ctert%c3%a9", Check::FieldName),
            ("Version", Check::FieldTwice),
            ("version", Check::FieldAlike),
            ("VERSION", Check::FieldAlike),
        ] {
            let body = format!("Action=DescribeServers&Version=1&{field}=x");
            assert_eq!(found(&body), Err(check), "{body}: {grant}");
        }
        for (query, check) in [
            ("Action=Terminate", Check::OperationInQuery),
            ("Version=1", Check::OperationInQuery),
            ("Filter.1.Name=x", Check::OperationInQuery),
            ("x", Check::OperationInQuery),
            ("x=1;y=2", Check::OperationInQuery),
        ] {
            let url = format!("{URL}?{query}");
            let Verdict::Denied(denial) = judge(&policy, &url, "POST", "Action=DescribeServers") else {
                panic!("{url}")
            };
            assert!([check, Check::GrantQuery].contains(&denial.check), "{url}: {denial:?}");
        }
        for body in [
            "Action=DescribeServers&Action=RunServers",
            "Action=DescribeServers&Action=DescribeServers",
            "Action=DescribeServers&action=RunServers",
            "Action=DescribeServers&+Action=RunServers",
            "Action.1=RunServers&Action=DescribeServers;Action=RunServers",
        ] {
            assert!(found(body).is_err(), "{body}");
        }
        assert_eq!(
            operation(&policy, "Action=DescribeServers&X=Action%3DRun").map(|found| found.is_read_only),
            Ok(true)
        );
    }
}

#[test]
fn parameters_in_the_path_are_refused_as_those_of_the_query_are() {
    let mut wide = grant();
    wide["paths"] = json!(["/**"]);
    let policy = policy_for(wide, Some(&any_needs()));
    for path in ["x;Action=Terminate", "x%3BAction=Terminate"] {
        let Verdict::Denied(denial) = judge(&policy, &format!("{URL}{path}"), "POST", "Action=DescribeServers") else {
            panic!("{path} is allowed")
        };
        assert_eq!(denial.check, Check::GrantQuery, "{path}");
    }
}

#[test]
fn a_slot_of_an_operation_is_a_slot_of_no_other_one() {
    let policy = policy_for(grant(), Some(&any_needs()));
    let slots = &policy.http[0].slots;
    let filled = |operation: Option<&str>| slots.iter().any(|slot| slot.applies_to("POST", "/", operation));
    assert!(filled(Some("RunServers")));
    for other in [Some("TagServers"), Some("runservers"), Some("RunServers "), Some(""), None] {
        assert!(!filled(other), "{other:?}");
    }
    assert!(!slots.iter().any(|slot| slot.applies_to("PUT", "/", Some("RunServers"))));
    assert!(!slots.iter().any(|slot| slot.applies_to("POST", "/x", Some("RunServers"))));
}

#[test]
fn slots_of_operations_are_limited_to_those_that_the_guest_declares() {
    let effective = |granted: Value, declared: Value, operations: Value| {
        let mut policy = grant();
        for (key, value) in object(&granted) {
            policy["slots"][0][key] = value;
        }
        policy["slots"][0].as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let mut slot = object(&json!({"method": "POST", "path": "/", "place": "form:UserData"}));
        slot.extend(object(&declared));
        let needs = needs(&json!({"version": 1, "http": [{"id": "n", "to": "*", "methods": "*", "paths": "*",
            "operations": operations, "slots": [slot]}]}));
        let policy = policy_for(policy, Some(&needs));
        policy.http[0].slots.iter().map(|slot| slot.operation.clone().unwrap_or_default()).collect::<Vec<_>>()
    };
    let (run, tag, all) =
        (json!({"operation": "RunServers"}), json!({"operation": "TagServers"}), json!({"operation": null}));
    let (any, none) = (json!("*"), json!({}));
    assert_eq!(effective(run.clone(), run.clone(), any.clone()), ["RunServers"]);
    assert_eq!(effective(run.clone(), none.clone(), any.clone()), ["RunServers"]);
    assert_eq!(effective(all.clone(), tag.clone(), any.clone()), ["TagServers"]);
    assert_eq!(effective(all, none, any.clone()), [""]);
    assert_eq!(effective(run, tag, any), Vec::<String>::new());
    // A grant without operations cannot tell them apart.
    let mut open = grant();
    open.as_object_mut().unwrap().retain(|key, _| !["operations", "fields"].contains(&key.as_str()));
    open["slots"][0].as_object_mut().unwrap().remove("operation");
    let policy = policy_for(open, Some(&section(&["RunServers"])));
    assert!(policy.http[0].slots.is_empty(), "{:?}", policy.http[0].slots);
    assert!(
        policy.compare_needs(&section(&["RunServers"])).http[0].missing[0].contains("a slot in POST / (RunServers)")
    );
}

#[test]
fn a_wrong_grant_for_operations_is_refused() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut grant = grant();
        change(&mut grant);
        PolicyFile::parse(&json!({"version": 1, "http": [grant]}).to_string()).err().unwrap_or_default()
    };
    let set = |pointer: &'static str, value: Value| {
        with(&move |grant: &mut Value| {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            grant.pointer_mut(parent).unwrap()[key] = value.clone();
        })
    };
    for (problems, key, what) in [
        (set("/slots/0/operation", json!("Terminate")), "slots[0].operation", "not one of the grant's"),
        (set("/slots/0/operation", json!("Run*")), "slots[0].operation", "not a valid name"),
        (set("/slots/0/operation", json!(["RunServers"])), "slots[0].operation", "is a list"),
        (set("/fields/0/operation", json!("Terminate")), "fields[0].operation", "not one of the grant's"),
        (set("/operations/allow", json!(["Describe*"])), "operations.allow[0]", "not a valid name"),
        (set("/operations/read_only", json!(["Terminate"])), "operations.read_only[0]", "names none"),
        (set("/operations/read_only", json!(["Terminate*"])), "operations.read_only[0]", "names none"),
        (set("/operations/read_only", json!(["describe*"])), "operations.read_only[0]", "names none"),
        (set("/operations/read_only", json!(["*"])), "operations.read_only[0]", "is not a name"),
        (set("/operations/read_only", json!(["*Servers"])), "operations.read_only[0]", "is not a name"),
        (set("/operations/read_only", json!(["Describe*s"])), "operations.read_only[0]", "is not a name"),
        (set("/operations/read_only", json!(["Describe**"])), "operations.read_only[0]", "is not a name"),
        (set("/operations/read_only", json!("Describe*")), "operations.read_only", "is a string"),
        (set("/query", json!(["Version"])), "query", "has no query"),
    ] {
        let found =
            problems.iter().any(|problem| problem.key == format!("http[0].{key}") && problem.what.contains(what));
        assert!(found, "{key} {what}: {problems:#?}");
    }
    assert_eq!(set("/query", json!([])), Vec::new());
    let undeclared = br#"{"version": 1, "http": [{"id": "a", "to": "*", "methods": "*", "paths": "*",
        "operations": {"in": "form:Action", "allow": ["Run"]},
        "slots": [{"method": "POST", "path": "/", "operation": "Tag", "place": "form:UserData"}]}]}"#;
    assert_eq!(Needs::parse(undeclared).unwrap_err()[0].key, "http[0].slots[0].operation");
}

#[test]
fn needs_are_compared_by_operations() {
    let needed = section(&["DescribeServers", "RunServers", "Terminate", "Reboot"]);
    let compared = policy_for(grant(), Some(&needed)).compare_needs(&needed).http.remove(0);
    assert_eq!(compared.granted_by, ["compute"]);
    assert_eq!(compared.missing, ["POST / (Terminate, Reboot)"]);
    let line: Value = serde_json::from_str(compared.grant_line.as_deref().unwrap()).unwrap();
    assert_eq!(line["operations"], json!({"in": "form:Action", "allow": ["Terminate", "Reboot"]}));
    assert_eq!((&line["id"], &line["to"]), (&json!("compute-2"), &json!("https://compute.${region}.iaas.test")));
    // With the line, nothing is missing, although no grant by itself has all operations.
    let both = json!({"version": 1, "http": [grant(), line]});
    let full = resolve(&both, &json!({"region": "eu-1"}), &json!({}), Some(&needed)).unwrap().compare_needs(&needed);
    assert_eq!((full.http[0].missing.clone(), &full.http[0].grant_line), (Vec::new(), &None));
    // An empty policy lacks everything, and the suggested grant has the slot of its operation.
    let empty = Policy::resolve(&PolicyFile::default(), &Properties::default(), Some(&needed), &[], false).unwrap();
    let compared = empty.compare_needs(&needed).http.remove(0);
    let line: Value = serde_json::from_str(compared.grant_line.as_deref().unwrap()).unwrap();
    assert_eq!(line["slots"][0]["operation"], json!("RunServers"), "{line}");
    assert!(compared.slot_lines.is_empty(), "{compared:?}");
    // A grant with the operation and without its slot.
    let mut bare = grant();
    bare["slots"] = json!([]);
    let compared =
        policy_for(bare, Some(&section(&["RunServers"]))).compare_needs(&section(&["RunServers"])).http.remove(0);
    assert_eq!(compared.missing, ["a slot in POST / (RunServers) at `form:UserData`"]);
    let line: Value = serde_json::from_str(&compared.slot_lines[0]).unwrap();
    assert_eq!(line["operation"], json!("RunServers"));
}

#[test]
fn a_newer_guest_wants_operations_and_their_slots_in_addition() {
    let (old, new) = (section(&["DescribeServers"]), section(&["DescribeServers", "RunServers"]));
    let more: Vec<String> = added_needs(Some(&new), Some(&old)).iter().map(ToString::to_string).collect();
    let to = "https://compute.${region}.iaas.test";
    assert_eq!(
        more,
        [
            format!("need `compute`: the operations RunServers in POST / at {to}, at `form:Action`"),
            format!("need `compute`: agent in POST / (RunServers) at {to}, at `form:UserData`"),
            format!("need `compute`: to see xml:serverId of the response to POST / (RunServers) at {to}"),
        ]
    );
    assert_eq!(added_needs(Some(&new), Some(&new)), vec![]);
    let json: Vec<Value> = added_needs(Some(&new), Some(&old)).iter().map(AddedNeed::to_json).collect();
    assert_eq!((&json[1]["operation"], &json[2]["operation"]), (&json!("RunServers"), &json!("RunServers")));
    // A slot for all operations covers those for one, and not the other way round.
    let slot = |operation: Value| {
        let mut slot = object(&json!({"method": "POST", "path": "/", "place": "form:UserData"}));
        if !operation.is_null() {
            slot.insert("operation".to_owned(), operation);
        }
        needs(
            &json!({"version": 1, "http": [{"id": "a", "to": "*", "methods": "*", "paths": "*", "operations": "*", "slots": [slot]}]}),
        )
    };
    assert_eq!(added_needs(Some(&slot(json!("Run"))), Some(&slot(json!(null)))), vec![]);
    for (new, old) in [(json!(null), json!("Run")), (json!("Tag"), json!("Run"))] {
        assert_eq!(added_needs(Some(&slot(new.clone())), Some(&slot(old))).len(), 1, "{new}");
    }
}

#[test]
fn a_missing_slot_is_suggested_for_its_operation() {
    let mut bare = grant();
    bare["slots"] = json!([]);
    let needed = section(&["RunServers"]);
    let policy = policy_for(bare.clone(), Some(&needed));
    let destination = Destination::parse(URL, 8192).unwrap();
    let place: Place = "form:UserData".parse().unwrap();
    let missing =
        |operation: &str| policy.missing_slot(&policy.http[0], &destination, "POST", Some(operation), &place, AGENT);
    let found = missing("RunServers");
    assert!(found.declared, "{found:?}");
    let hint = found.hint.unwrap();
    let line: Value = serde_json::from_str(&hint[hint.find('{').unwrap()..]).unwrap();
    bare["slots"] = json!([line]);
    assert_eq!(policy_for(bare, Some(&needed)).http[0].slots.len(), 1, "{hint}");
    assert!(!missing("TagServers").declared);
}

#[test]
fn a_preset_grants_operations_and_the_operator_lists_the_regions() {
    let preset = json!({"version": 1, "http": [grant()]}).to_string();
    let resolve = |own: Value, job: Value, context: Value| {
        let file = PolicyFile::parse_with(&own.to_string(), &|_, _| Ok(preset.clone()))?;
        Policy::resolve(&file, &Properties::merge(object(&job), object(&context)), Some(&any_needs()), &[], false)
    };
    let own = json!({"version": 1, "presets": [{"file": "cloud.json"}], "regions": ["eu-1"]});
    let policy = resolve(own.clone(), json!({}), json!({"region": "eu-1"})).unwrap();
    assert!(operation(&policy, "Action=DescribeServers").unwrap().is_read_only);
    assert_eq!(policy.http[0].slots[0].operation.as_deref(), Some("RunServers"));
    let problems = resolve(own, json!({"region": "eu-1"}), json!({"region": "s3"})).unwrap_err();
    assert_eq!(problems[0].check, Some(Check::RegionListed));
}

#[test]
fn reading_back_settings_by_operations_is_a_warning() {
    let warned = |change: &dyn Fn(&mut Value)| {
        let mut grant = grant();
        change(&mut grant);
        let policy = policy_for(grant, Some(&any_needs()));
        policy.warnings().iter().map(|warning| warning.key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(warned(&|_| {}), Vec::<String>::new());
    assert_eq!(warned(&|grant| grant["drop"] = json!([])), ["http[0].drop"]);
    assert_eq!(
        warned(&|grant| {
            grant["operations"]["allow"].as_array_mut().unwrap().push(json!("GetConsoleOutput"));
            grant["drop"] = json!(["header:x"]);
        }),
        ["http[0].drop"]
    );
}
