//! Which settings a guest may read and change, and which parts of them.

use super::{CLASS, attach_outcomes, expect_errors, expect_requests, job, serve, settings, stored};
use crate::case::Case;
use serde_json::{Value, json};
use tests::cloud::probe_with_needs;

fn get(id: &str) -> Value {
    json!({"op": "registry.get", "id": id})
}

fn put(id: &str, settings: &Value) -> Value {
    json!({"op": "registry.put", "id": id, "settings": settings})
}

/// Returns every operation on the settings of a VM.
fn everything(id: &str) -> Value {
    json!([
        get(id), put(id, &json!({"disks": {}})), {"op": "registry.delete", "id": id},
        {"op": "agent.attached", "key": id, "disk": "disk-1", "hint": "/dev/sdx"},
        {"op": "agent.detached", "key": id, "disk": "disk-1"}, {"op": "agent.deleted", "key": id},
    ])
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(CLASS, "settings of another VM", &["registry-ids"], |world| {
            serve(world, &stored(&settings()), &stored(&settings()))?;
            let outcomes = attach_outcomes(&job(world, &Value::Null), &everything("vm-2"));
            expect_errors(&outcomes[..3], "denied")?;
            expect_errors(&outcomes[3..], "refused")?;
            expect_requests(world, &[])
        }),
        Case::new(CLASS, "settings of VMs that the granted patterns do not match", &["registry-ids"], |world| {
            let job =
                job(world, &json!({"policy": {"version": 1, "http": [], "registry": {"keys": ["vm-3*", "x-*-y"]}}}));
            serve(world, &stored(&settings()), &stored(&settings()))?;
            let script = json!(["vm-2", "vm-30", "vm-", "avm-3", "x--", "x-1-y", "x-1-yy"].map(get));
            let outcomes = attach_outcomes(&job, &script);
            for (outcome, granted) in outcomes.iter().zip([false, true, false, false, false, true, false]) {
                if outcome["error"].is_null() != granted {
                    return Err(format!("{outcome}"));
                }
            }
            expect_requests(world, &["GET vm-30", "GET x-1-y"])
        }),
        Case::new(CLASS, "IDs that would change the path in the registry", &["registry-id-form"], |world| {
            let job = job(world, &json!({"policy": {"version": 1, "http": [], "registry": {"keys": ["*"]}}}));
            let long = "x".repeat(256);
            for id in [
                "",
                ".",
                "..",
                "../vm-2",
                "vm-1/../vm-2",
                "vm-1/",
                "/vm-1",
                "vm%2f2",
                "%2e%2e",
                "vm-1?x",
                "vm-1#x",
                "vm\0",
                "vm 1",
                "vm-1\r\nX-Evil: 1",
                "vm-1\\..",
                "vä",
                "vm;1",
                "vm@evil.test",
                "*",
                &long,
            ] {
                serve(world, &stored(&settings()), &stored(&settings()))?;
                let outcomes = attach_outcomes(&job, &everything(id));
                expect_errors(&outcomes[..3], "invalid")
                    .and_then(|()| expect_errors(&outcomes[3..], "refused"))
                    .map_err(|why| format!("{id:?}: {why}"))?;
                expect_requests(world, &[]).map_err(|why| format!("{id:?}: {why}"))?;
            }
            Ok(())
        }),
        Case::new(CLASS, "the registry for a guest that does not declare it", &["needs-registry"], |world| {
            let job = job(world, &Value::Null).guest_bytes(&probe_with_needs(&json!({"version": 1})));
            serve(world, &stored(&settings()), &Value::Null)?;
            let outcomes = attach_outcomes(
                &job,
                &json!([get("vm-1"), put("vm-1", &json!({})), {"op": "registry.delete", "id": "vm-1"}]),
            );
            expect_errors(&outcomes, "denied")?;
            expect_requests(world, &[])
        }),
        Case::new(CLASS, "secrets in settings that a guest may see", &["sealed-registry"], |world| {
            serve(world, &stored(&settings()), &Value::Null)?;
            // Reversed, as the script itself is in memory and must not hold the secret.
            let script = json!([get("vm-1"), {"op": "find", "reversed": "subm-terces7YrAnAc"}, {"op": "find", "reversed": "vne-terces7YrAnAc"}]);
            let outcomes = attach_outcomes(&job(world, &Value::Null), &script);
            let mut seen = settings();
            seen["mbus"] = json!("<sealed:registry:mbus>");
            seen["env"] = json!({"bosh": {"password": "<sealed:registry:env.bosh.password>"}});
            if outcomes[0]["ok"] != seen || outcomes[1]["ok"]["count"] != 0 || outcomes[2]["ok"]["count"] != 0 {
                return Err(format!("{outcomes:?}"));
            }
            expect_requests(world, &["GET vm-1"])
        }),
        Case::new(CLASS, "changes beyond disks and networks", &["registry-changeable"], |world| {
            let job = job(world, &Value::Null);
            for given in [
                json!({"mbus": "nats://evil.test"}),
                json!({"agent_id": "agent-2"}),
                json!({"env": null}),
                json!({"env": {"bosh": {"password": "mine"}}}),
                json!({"vm": {"name": "other"}}),
                json!({"new": 1}),
                json!({"__proto__": {}}),
                json!({"Mbus": "x"}),
                json!({"disks": {}, "ntp": ["evil.test"]}),
            ] {
                serve(world, &stored(&settings()), &Value::Null)?;
                expect_errors(&attach_outcomes(&job, &json!([put("vm-1", &given)])), "invalid")
                    .map_err(|why| format!("{given}: {why}"))?;
                expect_requests(world, &["GET vm-1"])?;
            }
            Ok(())
        }),
        Case::new(CLASS, "disks and networks that no Agent can read", &["registry-shapes"], |world| {
            let job = job(world, &Value::Null);
            for given in [
                json!({"disks": []}),
                json!({"disks": {"system": {"path": "/dev/sda"}}}),
                json!({"disks": {"ephemeral": 7}}),
                json!({"disks": {"persistent": []}}),
                json!({"disks": {"persistent": {"d": 1}}}),
                json!({"disks": {"persistent": {"d": {"lun": 1}}}}),
                json!({"disks": {"raw_ephemeral": [{"path": 1}]}}),
                json!({"networks": []}),
                json!({"networks": {"net": "x"}}),
            ] {
                serve(world, &stored(&settings()), &Value::Null)?;
                expect_errors(&attach_outcomes(&job, &json!([put("vm-1", &given)])), "invalid")
                    .map_err(|why| format!("{given}: {why}"))?;
                expect_requests(world, &["GET vm-1"])?;
            }
            Ok(())
        }),
        Case::new(
            CLASS,
            "settings that are not a JSON object, or that parsers read differently",
            &["json-duplicate-key"],
            |world| {
                let job = job(world, &Value::Null);
                for text in ["", "x", "[]", "null", "{\"disks\":{},\"disks\":{}}", "{} {}", "{\"disks\":{\"a\":NaN}}"] {
                    serve(world, &stored(&settings()), &Value::Null)?;
                    expect_errors(&attach_outcomes(&job, &json!([put("vm-1", &json!(text))])), "invalid")
                        .map_err(|why| format!("{text}: {why}"))?;
                }
                Ok(())
            },
        ),
        Case::new(CLASS, "settings that a guest makes too large", &["limit-registry_kib"], |world| {
            let job = job(world, &json!({"config": {"limits": {"registry_kib": 4}}}));
            serve(world, &json!([stored(&settings()), {"status": 200}]), &Value::Null)?;
            let padded = json!({"networks": {"net": {"padding": "x".repeat(5000)}}});
            let outcomes = attach_outcomes(&job, &json!([put("vm-1", &padded)]));
            match outcomes[0]["error"]["message"].as_str().is_some_and(|message| message.contains("`registry_kib`")) {
                true => expect_requests(world, &[]),
                false => Err(format!("{}", outcomes[0])),
            }
        }),
    ]
}
