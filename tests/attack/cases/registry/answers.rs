//! Registries that misbehave. Each call fails with an error that names the registry and
//! says what to do, and shows nothing of what was sent or stored.

use super::{CLASS, expect_requests, job, serve, settings, stored};
use crate::case::Case;
use crate::world::World;
use serde_json::{Value, json};
use tests::{CLOUD_ERROR, Job, Response, probe};

/// Calls `attach_disk`, which reads settings before it writes them.
fn attach(job: &Job) -> Response {
    job.call("attach_disk", json!(["vm-1", "disk-1"])).api_version(1).run()
}

/// Fails unless each answer makes the call fail with this text, after one request.
fn expect_failures(world: &World, answers: &[Value], said: &str) -> Result<(), String> {
    let job =
        job(world, &json!({"config": {"limits": {"connect_seconds": 1, "first_byte_seconds": 1, "idle_seconds": 1}}}));
    for answer in answers {
        serve(world, answer, &Value::Null)?;
        let response = attach(&job);
        response.fails(CLOUD_ERROR, &["registry http://registry.test:25777", said]);
        expect_requests(world, &["GET vm-1"]).map_err(|why| format!("{answer}: {why}"))?;
    }
    Ok(())
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(
            CLASS,
            "proxies in the environment of a call that uses the registry",
            &["proxy-environment"],
            |world| {
                serve(world, &stored(&settings()), &Value::Null)?;
                let job = job(world, &Value::Null);
                let script = json!([{"op": "registry.get", "id": "vm-1"}]);
                let call = job.call("attach_disk", json!(["vm-1", probe::cid(&script)])).api_version(1);
                let proxies = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
                let call = proxies.into_iter().fold(call, |call, name| call.env(name, "http://5.6.7.66:80"));
                let outcome = probe::outcomes_in(call.run().message()).remove(0);
                if outcome["ok"].is_null() {
                    return Err(format!("the registry was not read: {outcome}"));
                }
                expect_requests(world, &["GET vm-1"])
            },
        ),
        Case::new(CLASS, "a registry that redirects", &["redirects"], |world| {
            let to = |status: u16, location: &str| json!({"status": status, "headers": {"Location": location}});
            let answers = [
                to(302, "http://evil.test:25777/"),
                to(307, "http://169.254.169.254/latest/meta-data/"),
                to(301, "/instances/vm-2/settings"),
                to(308, "file:///etc/passwd"),
            ];
            expect_failures(world, &answers, "to the URL that it redirects to")
        }),
        Case::new(CLASS, "a registry that refuses the credentials, or fails", &[], |world| {
            expect_failures(
                world,
                &[json!({"status": 401, "echo": true}), json!({"status": 403, "echo": true})],
                "check `registry.user` and `registry.password`",
            )?;
            expect_failures(
                world,
                &[
                    json!({"status": 500, "echo": true}),
                    json!({"status": 418, "echo": true}),
                    json!({"status": 201, "echo": true}),
                ],
                "read the registry's log",
            )
        }),
        Case::new(CLASS, "a registry that answers without settings", &[], |world| {
            let body = |text: &str| json!({"status": 200, "body": text});
            let answers =
                ["", "nonsense", "[]", "null", "{\"status\":\"ok\"}", "{\"settings\":{\"a\":1}}", "{\"settings\":7}"]
                    .map(body);
            expect_failures(world, &answers, "something other than settings")
        }),
        Case::new(CLASS, "malformed settings in the registry", &["json-duplicate-key", "json-depth"], |world| {
            let text = |text: &str| json!({"status": 200, "body": {"settings": text}});
            let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
            let answers =
                [text("nonsense"), text("[]"), text("{\"disks\":{},\"disks\":{}}"), text(&deep), text("{} x")];
            expect_failures(world, &answers, "not a JSON object; fix or delete them")
        }),
        Case::new(CLASS, "settings of thousands of values", &["registry-values"], |world| {
            let many: Vec<String> = (0..5000).map(|number| format!("{number}")).collect();
            expect_failures(world, &[stored(&json!({"a": many}))], "with more than 2000 values")
        }),
        Case::new(CLASS, "settings that are too large", &["limit-registry_kib"], |world| {
            let job = job(world, &Value::Null);
            let mut large = settings();
            large["padding"] = json!("x".repeat(300 << 10));
            for answer in [
                stored(&large),
                json!({"flood": ["HTTP/1.1 200 OK\r\n\r\n", "{"]}),
                json!({"flood": ["HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "{"]}),
            ] {
                serve(world, &answer, &Value::Null)?;
                attach(&job).fails(CLOUD_ERROR, &["the settings of `vm-1` reached `registry_kib` (256)"]);
                expect_requests(world, &["GET vm-1"])?;
            }
            Ok(())
        }),
        Case::new(CLASS, "a registry that never answers, stops halfway, or does not speak HTTP", &[], |world| {
            expect_failures(world, &[json!({"stall": ""})], "`limits.first_byte_seconds`")?;
            expect_failures(
                world,
                &[json!({"stall": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"})],
                "`limits.idle_seconds`",
            )?;
            expect_failures(
                world,
                &[json!({"raw": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"})],
                "ended before the response was complete",
            )?;
            expect_failures(
                world,
                &[json!({"raw": "SSH-2.0\r\n"}), json!({"raw": "HTTP/2 200\r\n\r\n"})],
                "did not answer GET",
            )
        }),
        Case::new(CLASS, "a registry with an invalid certificate", &["tls-issuer", "tls-name"], |world| {
            let secure = |ca: bool| {
                let registry = json!({"endpoint": "https://registry.test:25777", "ca": if ca { json!(world.authority()) } else { Value::Null }});
                job(world, &json!({"config": {"registry": registry}}))
            };
            for (handshake, ca) in
                [("other-authority", true), ("other-name", true), ("self-signed", true), ("expired", true), ("", false)]
            {
                let answer = if handshake.is_empty() { json!({"status": 200}) } else { json!({"tls": handshake}) };
                let names = crate::row::names(&json!({"registry.test": ["5.6.7.77"]}));
                world.reset(names, crate::world::Served::new(&json!({"registry.test": answer})))?;
                attach(&secure(ca)).fails(CLOUD_ERROR, &["registry https://registry.test:25777", "TLS failed"]);
                expect_requests(world, &[]).map_err(|why| format!("{handshake}: {why}"))?;
            }
            Ok(())
        }),
        Case::new(CLASS, "a registry whose name does not exist", &[], |world| {
            let job = job(world, &Value::Null);
            world.reset(crate::row::names(&json!({"registry.test": "nxdomain"})), crate::world::Served::default())?;
            attach(&job).fails(CLOUD_ERROR, &["registry http://registry.test:25777", "check that it runs"]);
            expect_requests(world, &[])
        }),
        Case::new(CLASS, "settings that cannot be undone are reported", &[], |world| {
            let job = job(world, &Value::Null);
            serve(world, &json!([{"status": 404}, {"status": 200}, {"status": 500}]), &Value::Null)?;
            let script = json!([{"op": "agent.bootstrap"}, {"op": "agent.created", "vm": "vm-1", "key": "vm-1"}, {"op": "error", "kind": "cloud", "message": "no"}]);
            let response = tests::cloud::create_vm(&job, &script).stemcell_api_version(1).run();
            match response.log().contains("settings for `vm-1` are left in the registry; delete them there") {
                true => expect_requests(world, &["GET vm-1", "PUT vm-1", "DELETE vm-1"]),
                false => Err(format!("{}", response.json)),
            }
        }),
    ]
}
