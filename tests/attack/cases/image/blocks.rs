//! Uploads of the image in blocks, and bodies with an image among their parts.

use super::{CLASS, outcomes};
use crate::case::{self, Case};
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use tests::archive::{gzip, tar};
use tests::job::write;
use tests::rows::fill_placeholders;

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

/// Expects that a body of these parts is rejected, and that nothing is sent.
fn expect_invalid_parts(world: &World, parts: Value) -> Result<(), String> {
    let operation = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/x", "parts": parts});
    let (outcome, arrived) = attempt(world, &json!({}), operation)?;
    match outcome["error"]["kind"] == "invalid-request" && arrived == 0 {
        true => Ok(()),
        false => Err(format!("expected invalid-request and no request, got {arrived}: {outcome}")),
    }
}

/// Returns a grant for the operation `Run`, which the header `X-Op` names, with nothing in it but these places.
fn limited_by_header(method: &str, path: &str, places: &Value) -> Value {
    json!({"grant": {"blocks": true, "operations": {"in": "header:X-Op", "allow": ["Run"]},
        "fields": [{"method": method, "path": path, "operation": "Run", "others": "deny", "places": places}]}})
}

/// Types of bodies in which servers look for parameters.
const FORMS: [&str; 5] = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=b",
    "application/json",
    "application/octet-stream, application/x-www-form-urlencoded",
    "",
];

/// Sends an image that is the head of a request to a server that leaves bodies unread, and then a request with the
/// host's credentials. Fails if the server could take both for one request.
fn smuggled(world: &World, upload: &Value) -> Result<(), String> {
    let put = SPELLINGS.map(|head| ("PUT", head));
    for (method, head) in [("POST", SMUGGLED)].into_iter().chain(put) {
        let arrived = upload_and_get(world, upload, method, head.as_bytes(), true)?;
        let sent = arrived.iter().filter(|one| one.contains("/v1/")).count();
        // Not every spelling is one for the server of this test.
        if arrived.iter().any(|one| one.contains("/v2/")) || sent != 2 || world.connections() != 2 {
            let connections = world.connections();
            return Err(format!(
                "{method} of {head:?} on {connections} connections: these requests arrived: {arrived:?}"
            ));
        }
    }
    Ok(())
}

/// Sends an ordinary image and then another request. Fails if they do not share a connection.
fn shared(world: &World, upload: &Value) -> Result<(), String> {
    let request = b"\r\nGET /v2/x HTTP/1.1\r\n";
    for beginning in [&b"\x7fELF\x02\n"[..], b"QFI\xfb\0\0\x03", b"some text\n", b"\xeb\x63\x90\r\n"] {
        let image = [beginning, &[b'a'; 300_000], request].concat();
        let arrived = upload_and_get(world, upload, "PUT", &image, false)?;
        if world.connections() != 1 {
            let connections = world.connections();
            return Err(format!("{connections} connections for an ordinary image, and these requests: {arrived:?}"));
        }
    }
    Ok(())
}

/// Sends an image with this content, and then a GET with the host's credentials. Returns what the server saw.
fn upload_and_get(
    world: &World,
    upload: &Value,
    method: &str,
    content: &[u8],
    ignores_bodies: bool,
) -> Result<Vec<String>, String> {
    let row = json!({
        "grant": {"methods": ["GET", "PUT", "POST"], "blocks": true, "auth": {"bearer": "${password}"}},
        "serve": {"api.iaas.test": {"status": 200, "body": "ok", "ignores_bodies": ignores_bodies}},
    });
    let job = row::job(world, &row);
    let image = job.path("image");
    let is_member = !upload["image_member"].is_null();
    write(&image, &if is_member { gzip(&tar(&[("m", content)])) } else { content.to_vec() });
    world.reset(row::names(&Value::Null), Served::new(&row["serve"]))?;
    let upload = fill_placeholders(upload, method);
    outcomes(&job, &image, &json!([upload, {"op": "http", "url": "https://api.iaas.test/v1/b"}]));
    Ok(world.requests().iter().map(|arrived| arrived.summary()).collect())
}

const SMUGGLED: &str = "DELETE /v2/other HTTP/1.1\r\nHost: x\r\nX: ";

/// What servers take for a request line: with other blanks, blanks before it, a bare carriage return, no version, zero
/// bytes, and one that the next request completes.
const SPELLINGS: [&str; 8] = [
    SMUGGLED,
    "DELETE /v2/other?x=",
    "DELETE\u{1f}/v2/other\u{1f}HTTP/1.1\r\nX: ",
    "\u{85}DELETE\u{a0}/v2/other HTTP/1.1\r\nX: ",
    "GET /v2/other\rHTTP/1.1\r\nX: ",
    "GET /v2/other\r\nX: ",
    "GET /v2/other?\0 HTTP/1.1\r\nX: ",
    "DELETE\0/v2/other\0HTTP/1.1\r\nX: ",
];

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
        Case::new(
            CLASS,
            "an image as the body of a method whose body servers leave unread",
            &["image-method"],
            |world| {
                let changes = json!({"grant": {"methods": ["GET", "HEAD", "OPTIONS", "DELETE"]}});
                for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
                    let image =
                        json!({"op": "http", "method": method, "url": "https://api.iaas.test/v1/x", "image": true});
                    expect_refused(attempt(world, &changes, image)?, "denied", ("reason", "method"))?;
                }
                Ok(())
            },
        ),
        Case::new(CLASS, "an image in which a server would look for parameters", &["image-type"], |world| {
            for kind in FORMS {
                let image = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/x",
                    "headers": {"content-type": kind}, "image": true});
                expect_refused(attempt(world, &json!({}), image)?, "denied", ("reason", "header"))?;
            }
            Ok(())
        }),
        Case::new(
            CLASS,
            "an image whose content is the head of a request, which the server leaves unread",
            &["kept-body"],
            |world| {
                smuggled(
                    world,
                    &json!({"op": "http", "method": "{}", "url": "https://api.iaas.test/v1/a", "image": true}),
                )
            },
        )
        .may_contact(case::API),
        Case::new(
            CLASS,
            "a member of the image that is the head of a request, which the server leaves unread",
            &["kept-body"],
            |world| {
                smuggled(
                    world,
                    &json!({"op": "http", "method": "{}", "url": "https://api.iaas.test/v1/a", "image_member": "m"}),
                )
            },
        )
        .may_contact(case::API),
        Case::new(
            CLASS,
            "a block that is the head of a request, which the server leaves unread",
            &["kept-body"],
            |world| {
                smuggled(
                    world,
                    &json!({"op": "http.blocks", "url": "https://api.iaas.test/v1/{index}", "block_bytes": 65536, "image_member": "m"}),
                )
            },
        )
        .may_contact(case::API),
        Case::new(CLASS, "an ordinary image, of which nothing could be a request, keeps its connection", &[], |world| {
            let upload = json!({"op": "http", "method": "{}", "url": "https://api.iaas.test/v1/a"});
            for part in [
                json!({"image": true}),
                json!({"image_member": "m"}),
                json!({"parts": ["", {"image": true}]}),
            ] {
                let mut upload = upload.clone();
                tests::rows::merge_patch(&mut upload, &part);
                shared(world, &upload)?;
            }
            Ok(())
        })
        .may_contact(case::API),
        Case::new(CLASS, "a body of very many parts", &["body-parts"], |world| {
            let many = (0..100_000).map(|_| json!("a")).chain([json!({"image": true})]).collect();
            expect_invalid_parts(world, many)
        }),
        Case::new(CLASS, "a body with the image in several parts", &["body-parts"], |world| {
            expect_invalid_parts(world, json!([{"image": true}, "a", {"image": true}]))
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
        Case::new(CLASS, "an image where fields limit the body of an operation in a header", &["field-body"], |world| {
            let granted = limited_by_header("POST", "/v1/x", &json!({"json:/Name": {"is": "ok"}, "header:x-op": "any"}));
            let upload = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/x"});
            let around = json!({"parts": ["{\"Name\":\"evil\",\"Other\":", {"image": true}, "}"]});
            for (content_type, body) in [
                ("application/octet-stream", json!({"image": true})),
                ("application/octet-stream", around.clone()),
                ("application/x-amz-cbor-1.1", around),
            ] {
                let mut upload = upload.clone();
                tests::rows::merge_patch(&mut upload, &body);
                upload["headers"] = json!({"X-Op": "Run", "Content-Type": content_type});
                expect_refused(attempt(world, &granted, upload)?, "denied", ("reason", "operation"))?;
            }
            Ok(())
        }),
        Case::new(CLASS, "a block where fields limit an operation in a header", &["field-others"], |world| {
            let granted = limited_by_header("PUT", "/v1/blocks/*", &json!({"header:x-op": "any"}));
            let upload = blocks(&json!({"headers": {"X-Op": "Run", "X-Extra": "1"}}));
            expect_refused(attempt(world, &granted, upload)?, "denied", ("reason", "operation"))
        }),
    ]
}
