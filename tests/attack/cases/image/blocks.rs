//! Uploads of the image in blocks, and bodies with an image among their parts.

use super::{CLASS, outcomes};
use crate::case::Case;
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use tests::job::write;

const BLOCK: usize = 1000;

/// Runs one operation in a `create_stemcell` with an image of ten blocks. Returns its outcome, and how many
/// requests arrived.
fn attempt(world: &World, changes: &Value, operation: Value) -> Result<(Value, usize), String> {
    let mut row = json!({"grant": {"methods": ["GET", "PUT", "POST"]}});
    tests::rows::merge_patch(&mut row, changes);
    let job = row::job(world, &row);
    let image = job.path("image");
    write(&image, &[b'a'; 10 * BLOCK]);
    world.reset(row::names(&Value::Null), Served::default())?;
    let outcome = outcomes(&job, &image, &json!([operation])).remove(0);
    Ok((outcome, world.requests().len()))
}

fn blocks(more: &Value) -> Value {
    let mut upload =
        json!({"op": "http.blocks", "url": "https://api.iaas.test/v1/blocks/{index}", "block_bytes": BLOCK});
    tests::rows::merge_patch(&mut upload, more);
    upload
}

/// Expects this kind of error and nothing sent.
fn expect_refused(got: (Value, usize), kind: &str, more: (&str, &str)) -> Result<(), String> {
    let (outcome, arrived) = got;
    let error = &outcome["error"];
    match error["kind"] == kind && error[more.0] == more.1 && arrived == 0 {
        true => Ok(()),
        false => Err(format!("expected {kind} {more:?} and no request, got {arrived}: {outcome}")),
    }
}

pub(super) fn cases() -> Vec<Case> {
    let granted = json!({"grant": {"blocks": true, "block_headers": ["X-Checksum"]}});
    let limited = |name: &str, value: u64| {
        let mut changes = granted.clone();
        changes["config"] = json!({"limits": {name: value}});
        changes
    };
    let (few, small) = (limited("http_blocks", 9), limited("http_blocks_mib", 1));
    let (narrow, headers) = (granted.clone(), granted);
    vec![
        Case::new(CLASS, "blocks where the grant does not allow them", &["grant-blocks"], |world| {
            expect_refused(attempt(world, &json!({}), blocks(&json!({})))?, "denied", ("reason", "operation"))
        }),
        Case::new(CLASS, "a digest in a header that the grant does not list", &["block-header"], move |world| {
            let upload = blocks(&json!({"headers": {"x-checksum": "{length}", "x-other": "{sha256-base64}"}}));
            expect_refused(attempt(world, &headers, upload)?, "denied", ("reason", "header"))
        }),
        Case::new(CLASS, "blocks of which only some have a granted path", &["grant-path"], move |world| {
            let mut narrow = narrow.clone();
            narrow["grant"]["paths"] = json!(["/v1/blocks/9"]);
            expect_refused(attempt(world, &narrow, blocks(&json!({})))?, "denied", ("reason", "path"))
        }),
        Case::new(CLASS, "more blocks than the limit", &["limit-http_blocks"], move |world| {
            expect_refused(attempt(world, &few, blocks(&json!({})))?, "limit", ("limit", "http_blocks"))
        }),
        Case::new(CLASS, "a block that is larger than the limit", &["limit-http_blocks_mib"], move |world| {
            let large = blocks(&json!({"block_bytes": 2 << 20}));
            expect_refused(attempt(world, &small, large)?, "limit", ("limit", "http_blocks_mib"))
        }),
        Case::new(CLASS, "a seal beside an image in a body", &["seal-outside-slot"], |world| {
            let parts = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/x",
                "headers": {"content-type": "multipart/form-data; boundary=b"},
                "parts": ["--b\r\n\r\n{{props.password}}\r\n--b\r\n\r\n", {"image": true}, "\r\n--b--\r\n"]});
            expect_refused(attempt(world, &json!({}), parts)?, "denied", ("reason", "slot"))
        }),
        Case::new(CLASS, "another method beside an image in a body", &["method-parameter"], |world| {
            let parts = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/x",
                "headers": {"content-type": "multipart/form-data; boundary=b"},
                "parts": ["--b\r\nContent-Disposition: form-data; name=_method\r\n\r\nDELETE\r\n--b\r\n\r\n", {"image": true}, "\r\n--b--\r\n"]});
            expect_refused(attempt(world, &json!({}), parts)?, "denied", ("reason", "header"))
        }),
        Case::new(CLASS, "a body of very many parts", &[], |world| {
            let many: Vec<Value> = (0..100_000).map(|_| json!("a")).chain([json!({"image": true})]).collect();
            let parts = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/x", "parts": many});
            let (outcome, arrived) = attempt(world, &json!({}), parts)?;
            let error = &outcome["error"];
            match error["kind"] == "invalid-request" && arrived == 0 {
                true => Ok(()),
                false => Err(format!("expected invalid-request and no request, got {arrived}: {outcome}")),
            }
        }),
        Case::new(
            CLASS,
            "an operation around an image, where another grant limits its fields",
            &["field-operation"],
            |world| {
                let granted = json!({"grants": [
                    {"id": "actions", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/v1/x"],
                        "operations": {"in": "json", "allow": ["resize"]},
                        "fields": [{"method": "POST", "path": "/v1/x", "places": {"json:/resize/flavor": {"is": "small"}}}]},
                    {"id": "wide", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/**"]},
                ]});
                let parts = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/x",
                "headers": {"content-type": "application/json"},
                "parts": ["{\"resize\":{\"flavor\":\"huge\",\"x\":\"", {"image": true}, "\"}}"]});
                expect_refused(attempt(world, &granted, parts)?, "denied", ("reason", "operation"))
            },
        ),
        Case::new(CLASS, "an image where fields limit the body", &["field-body"], |world| {
            let fields = json!({"grant": {"fields": [{"method": "POST", "path": "/v1/x", "places": {"json:/Privileged": "absent"}}]}});
            let parts = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/x",
                "headers": {"content-type": "application/json"}, "parts": ["{\"a\":\"", {"image": true}, "\"}"]});
            expect_refused(attempt(world, &fields, parts)?, "denied", ("reason", "operation"))
        }),
    ]
}
