//! `create_vm` adds settings only for the VM that it returns.

use super::{CLASS, expect_requests, job, serve, settings, stored};
use crate::case::Case;
use crate::world::World;
use serde_json::{Value, json};
use tests::cloud::create_vm;
use tests::{CLOUD_ERROR, Job, Response};

fn run(job: &Job, script: &Value) -> Response {
    create_vm(job, script).stemcell_api_version(1).run()
}

fn created(vm: &str, key: &str) -> Value {
    json!({"op": "agent.created", "vm": vm, "key": key})
}

/// Returns an operation that fails with the message of operation N.
fn fail_with_message_of(operation: usize) -> Value {
    json!({"op": "error", "kind": "cloud", "message": format!("{{{{{operation}.error.message}}}}")})
}

/// Sets up a registry that has no settings for `vm-1`, and accepts all.
fn serve_empty(world: &World) -> Result<(), String> {
    serve(world, &json!([{"status": 404}, {"status": 200}]), &Value::Null)
}

pub(super) fn cases() -> Vec<Case> {
    let bootstrap = || json!({"op": "agent.bootstrap"});
    vec![
        Case::new(CLASS, "settings that exist already", &["registry-create-only"], move |world| {
            let job = job(world, &Value::Null);
            for operation in [created("vm-1", "vm-1"), json!({"op": "registry.put", "id": "vm-1", "settings": {}})] {
                serve(world, &stored(&settings()), &Value::Null)?;
                run(&job, &json!([bootstrap(), operation, fail_with_message_of(1)]))
                    .fails(CLOUD_ERROR, &["the registry already has settings for `vm-1`"]);
                expect_requests(world, &["GET vm-1"])?;
            }
            Ok(())
        }),
        Case::new(CLASS, "settings that `create_vm` did not write", &["registry-own-writes"], move |world| {
            let job = job(world, &json!({"policy": {"version": 1, "http": [], "registry": {"keys": ["*"]}}}));
            for operation in [
                json!({"op": "registry.delete", "id": "vm-1"}),
                json!({"op": "agent.deleted", "key": "vm-1"}),
                json!({"op": "agent.attached", "key": "vm-1", "disk": "disk-1", "hint": "/dev/sdx"}),
            ] {
                serve(world, &stored(&settings()), &Value::Null)?;
                run(&job, &json!([bootstrap(), operation, fail_with_message_of(1)]))
                    .fails(CLOUD_ERROR, &["`create_vm` may change only settings that it wrote itself"]);
                expect_requests(world, &[])?;
            }
            Ok(())
        }),
        Case::new(CLASS, "settings of a VM whose creation fails", &["registry-undo"], move |world| {
            let job = job(world, &Value::Null);
            for end in [
                json!({"op": "error", "kind": "vm-creation-failed", "message": "no room"}),
                json!({"op": "trap"}),
                json!({"op": "exit", "code": 0}),
            ] {
                serve_empty(world)?;
                run(&job, &json!([bootstrap(), created("vm-1", "vm-1"), end])).error();
                expect_requests(world, &["GET vm-1", "PUT vm-1", "DELETE vm-1"])?;
            }
            Ok(())
        }),
        Case::new(CLASS, "settings for other VMs than the one that is returned", &["registry-undo"], move |world| {
            let job = job(world, &Value::Null);
            serve(
                world,
                &json!([{"status": 404}, {"status": 200}]),
                &json!([{"status": 404}, {"status": 200}, {"status": 200}]),
            )?;
            let script = json!([bootstrap(), created("vm-1", "vm-1"), created("vm-2", "vm-2"), {"op": "result", "json": "vm-1"}]);
            run(&job, &script).result();
            expect_requests(world, &["GET vm-1", "PUT vm-1", "GET vm-2", "PUT vm-2", "DELETE vm-2"])
        }),
        Case::new(CLASS, "a VM without settings", &["vm-unregistered"], move |world| {
            let job = job(world, &Value::Null);
            serve_empty(world)?;
            let response = run(&job, &json!([bootstrap(), created("vm-1", "vm-1"), {"op": "result", "json": "vm-9"}]));
            response.fails(CLOUD_ERROR, &["guest: ", "returned `vm-9` without calling `agent.created` for it"]);
            expect_requests(world, &["GET vm-1", "PUT vm-1", "DELETE vm-1"])
        }),
        Case::new(CLASS, "settings before `agent.bootstrap`", &[], move |world| {
            let job = job(world, &Value::Null);
            serve_empty(world)?;
            run(&job, &json!([created("vm-1", "vm-1"), fail_with_message_of(0)]))
                .fails(CLOUD_ERROR, &["settings are written after `agent.bootstrap`"]);
            expect_requests(world, &[])
        }),
        Case::new(CLASS, "a guest that is stopped leaves no settings behind", &["registry-undo"], move |world| {
            let job = job(world, &json!({"config": {"limits": {"wall_seconds": 1, "cleanup_seconds": 1}}}));
            serve_empty(world)?;
            run(&job, &json!([bootstrap(), created("vm-1", "vm-1"), {"op": "loop"}])).reaches("wall_seconds");
            expect_requests(world, &["GET vm-1", "PUT vm-1", "DELETE vm-1"])
        }),
    ]
}
