//! Uploads in blocks as twin runs: what the guest gets of the responses, and what they cost.

use crate::case::{API, Case};
use crate::row;
use crate::twins::{CLASS, Observation, observe_calls, observed, with_long_lines};
use crate::world::{Served, World};
use serde_json::{Value, json};
use tests::job::write;

const BLOCK: usize = 1000;
const BLOCKS: usize = 300;

/// The password of each run, and the validator that the server makes of it.
const RUNS: [[&str; 2]; 2] = [["k3x9Qz7mT5vW", "e7"], ["Zother-and-longer-password-Q81x", "validator-that-is-longer"]];

pub(super) fn cases() -> Vec<Case> {
    let name = "the validators of blocks, where the grant sends a credential";
    vec![Case::new(CLASS, name, &["response-digests"], compare_uploads).may_contact(API)]
}

/// Uploads blocks and then uses up the bytes that are left.
fn compare_uploads(world: &World) -> Result<(), String> {
    let first = upload(world, RUNS[0])?;
    let other = upload(world, RUNS[1])?;
    let all_sent = format!("\"sent\":{BLOCKS}");
    if let Some(text) = first.texts().first().filter(|text| !text.contains(&all_sent)) {
        return Err(format!("the upload failed: {text}"));
    }
    first.difference(&other).map_or(Ok(()), |difference| Err(format!("a guest can tell two runs apart: {difference}")))
}

fn upload(world: &World, [password, validator]: [&str; 2]) -> Result<Observation, String> {
    // Those of all blocks together are as long as several of the requests that use up the limit.
    let etag = format!("\"{}\"", validator.repeat(30));
    let row = json!({
        "grant": {"methods": ["PUT", "POST"], "blocks": true, "auth": {"bearer": "${password}"}},
        "config": {"properties": {"password": password}, "limits": {"http_total_mib": 1}},
        "serve": {"api.iaas.test": {"status": 200, "headers": {"ETag": etag}}},
    });
    let job = with_long_lines(row::job(world, &row));
    let image = job.path("image");
    write(&image, &[b'a'; BLOCKS * BLOCK]);
    world.reset(row::names(&Value::Null), Served::new(&row["serve"]))?;
    let rest = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/x", "body": "p".repeat(10_000), "repeat": 110});
    let script = json!([
        {"op": "http.blocks", "url": "https://api.iaas.test/v1/blocks/{index}", "block_bytes": BLOCK}, rest,
    ]);
    let script = observed(&row, &script);
    let call = job.call("create_stemcell", json!([image, {"probe": script}]));
    observe_calls(world, &job, std::iter::once(call), &[password.to_owned(), etag])
}
