//! EBS direct: snapshots that clients write block by block.

use super::clock;
use super::ec2::{Call, add_snapshot, merge_tags};
use super::error::Error;
use super::idempotency;
use super::kind::Kind;
use super::parameters::{flag, list, number, only, text};
use super::state::{Effect, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{self, SHA256};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

pub(super) const BLOCK_SIZE: usize = 512 << 10;

/// How long the tokens of a list of blocks are valid.
const TOKEN_LIFETIME: Duration = Duration::from_secs(7 * 86_400);

/// The content of a snapshot.
pub(super) struct Blocks {
    /// The blocks that were written, by their index.
    written: BTreeMap<i64, Vec<u8>>,
    is_open: bool,
    /// When the snapshot is given up unless it is complete.
    deadline: SystemTime,
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new("ValidationException", message)
}

/// Runs an operation. `block` is the body of `PutSnapshotBlock`. Returns the members of
/// the result, and the block that is the body.
pub(super) fn answer(state: &mut State, call: &Call<'_>, block: Vec<u8>) -> Result<(Value, Vec<u8>), Error> {
    let only_json = |result| (result, Vec::new());
    match call.operation {
        "StartSnapshot" => start(state, call).map(only_json),
        "PutSnapshotBlock" => put(state, call, block).map(only_json),
        "CompleteSnapshot" => complete(state, call).map(only_json),
        "ListSnapshotBlocks" => list_blocks(state, call).map(only_json),
        "GetSnapshotBlock" => get(state, call),
        other => Err(Error::new("UnknownOperationException", format!("There is no operation {other}"))),
    }
}

fn start(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    only(given, &["VolumeSize", "Tags", "Description", "ClientToken", "Encrypted", "KmsKeyArn", "Timeout"])?;
    let known = idempotency::once(state, call, |state| {
        let size = number(given, "VolumeSize").filter(|size| (1..=65_536).contains(size));
        let size = size.ok_or_else(|| invalid("VolumeSize must be between 1 and 65536."))?;
        let minutes = number(given, "Timeout").unwrap_or(60);
        if !(10..=4320).contains(&minutes) {
            return Err(invalid("Timeout must be between 10 and 4320."));
        }
        if given.get("KmsKeyArn").is_some() && !flag(given, "Encrypted") {
            return Err(invalid("KmsKeyArn requires Encrypted."));
        }
        let tags: Vec<Value> =
            list(given, "Tags").iter().map(|tag| json!({"key": tag["Key"], "value": tag["Value"]})).collect();
        let tags =
            merge_tags(Vec::new(), &tags, state.limit("tags-per-resource")).map_err(|error| invalid(error.message))?;
        let mut view = json!({
            "volumeId": "vol-ffffffff", "volumeSize": size, "encrypted": flag(given, "Encrypted"), "tagSet": tags,
            "description": text(given, "Description").unwrap_or_default(),
        });
        if let Some(key) = given.get("KmsKeyArn") {
            view["kmsKeyId"] = key.clone();
        }
        let id = add_snapshot(state, call.account, view)
            .map_err(|error| Error::with_status(402, "ServiceQuotaExceededException", error.message))?;
        let minutes = u64::try_from(minutes).unwrap_or_default();
        let deadline = state.now() + Duration::from_secs(60 * minutes);
        state.blocks.insert(id.clone(), Blocks { written: BTreeMap::new(), is_open: true, deadline });
        Ok(json!({"id": id, "time": clock::seconds(state.now())}))
    });
    let known = known.map_err(|error| match error.code.as_str() {
        "IdempotentParameterMismatch" => Error::with_status(409, "ConflictException", error.message),
        "InvalidParameterValue" => invalid(error.message),
        _ => error,
    })?;
    let mut result = json!({
        "SnapshotId": known["id"], "OwnerId": call.account, "Status": "pending", "StartTime": known["time"],
        "VolumeSize": given["VolumeSize"], "BlockSize": BLOCK_SIZE,
    });
    for name in ["Description", "Tags", "KmsKeyArn"] {
        if let Some(value) = given.get(name) {
            result[name] = value.clone();
        }
    }
    Ok(result)
}

/// Returns the id and the size in GiB of the snapshot of a request.
fn find(state: &mut State, call: &Call<'_>) -> Result<(String, i64), Error> {
    let id = text(call.parameters, "snapshotId").unwrap_or_default();
    let found = state.find(Kind::Snapshot, call.account, id);
    let missing =
        || Error::with_status(404, "ResourceNotFoundException", format!("The snapshot '{id}' does not exist."));
    let snapshot = found.ok().filter(|_| state.blocks.contains_key(id)).ok_or_else(missing)?;
    Ok((snapshot.id, snapshot.view["volumeSize"].as_i64().unwrap_or_default()))
}

/// Returns the blocks of a snapshot that can still be written.
fn open<'a>(state: &'a mut State, id: &str) -> Result<&'a mut Blocks, Error> {
    let now = state.now();
    if state.blocks.get(id).is_some_and(|blocks| blocks.is_open && blocks.deadline <= now) {
        state.resources.set(id, "status", json!("error"));
        state.blocks.entry(id.to_owned()).and_modify(|blocks| blocks.is_open = false);
    }
    let closed = || invalid(format!("The snapshot '{id}' is not in the pending state."));
    state.blocks.get_mut(id).filter(|blocks| blocks.is_open).ok_or_else(closed)
}

fn put(state: &mut State, call: &Call<'_>, block: Vec<u8>) -> Result<Value, Error> {
    let (id, size) = find(state, call)?;
    let index = number(call.parameters, "blockIndex").unwrap_or(-1);
    let blocks_per_gib = (1 << 30) / i64::try_from(BLOCK_SIZE).unwrap_or(i64::MAX);
    if !(0..size * blocks_per_gib).contains(&index) {
        return Err(invalid(format!("The block index {index} is outside of the volume.")));
    }
    let announced = number(call.parameters, "x-amz-Data-Length");
    if block.len() != BLOCK_SIZE || announced != i64::try_from(BLOCK_SIZE).ok() {
        return Err(invalid(format!("A block has {BLOCK_SIZE} bytes, got {}.", block.len())));
    }
    let checksum = checksum(&block);
    if text(call.parameters, "x-amz-Checksum") != Some(checksum.as_str()) {
        return Err(invalid("The checksum does not match the block."));
    }
    open(state, &id)?.written.insert(index, block);
    Ok(json!({"x-amz-Checksum": checksum, "x-amz-Checksum-Algorithm": "SHA256"}))
}

fn complete(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    let (id, _) = find(state, call)?;
    let blocks = open(state, &id)?;
    let written = i64::try_from(blocks.written.len()).unwrap_or(i64::MAX);
    if number(given, "x-amz-ChangedBlocksCount") != Some(written) {
        return Err(invalid(format!("The snapshot has {written} changed blocks.")));
    }
    if let Some(expected) = text(given, "x-amz-Checksum") {
        if given.get("x-amz-Checksum-Aggregation-Method").is_none() || given.get("x-amz-Checksum-Algorithm").is_none() {
            return Err(invalid("A checksum needs an algorithm and an aggregation method."));
        }
        // The digest over the digests of all blocks, in the order of their index.
        let digests: Vec<u8> =
            blocks.written.values().flat_map(|block| digest::digest(&SHA256, block).as_ref().to_vec()).collect();
        if checksum(&digests) != expected {
            return Err(invalid("The checksum does not match the blocks."));
        }
    }
    blocks.is_open = false;
    state.schedule(&[&id], Effect::SnapshotCompleted { snapshot: id.clone() });
    Ok(json!({"Status": "pending"}))
}

/// Returns the blocks of a completed snapshot.
fn completed<'a>(state: &'a State, id: &str) -> Result<&'a Blocks, Error> {
    let done = state.resources.get(id).is_some_and(|snapshot| snapshot.view["status"] == "completed");
    state.blocks.get(id).filter(|_| done).ok_or_else(|| invalid(format!("The snapshot '{id}' is not completed.")))
}

/// Returns the token with which a block can be read.
fn token(id: &str, index: i64) -> String {
    STANDARD.encode(digest::digest(&SHA256, format!("{id}/{index}").as_bytes()))
}

fn list_blocks(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    only(given, &["snapshotId", "startingBlockIndex", "maxResults", "pageToken"])?;
    let (id, size) = find(state, call)?;
    let most = number(given, "maxResults").unwrap_or(10_000);
    if !(100..=10_000).contains(&most) {
        return Err(invalid("maxResults must be between 100 and 10000."));
    }
    let first = match text(given, "pageToken") {
        Some(token) => token.parse().map_err(|_| invalid("The page token is invalid."))?,
        None => number(given, "startingBlockIndex").unwrap_or_default(),
    };
    let most = usize::try_from(most).unwrap_or_default();
    let blocks = completed(state, &id)?;
    let found: Vec<i64> = blocks.written.range(first..).map(|(index, _)| *index).take(most + 1).collect();
    let shown: Vec<Value> =
        found.iter().take(most).map(|index| json!({"BlockIndex": index, "BlockToken": token(&id, *index)})).collect();
    let mut result = json!({
        "Blocks": shown, "ExpiryTime": clock::seconds(state.now() + TOKEN_LIFETIME), "VolumeSize": size,
        "BlockSize": BLOCK_SIZE,
    });
    if let Some(next) = found.get(most) {
        result["NextToken"] = json!(next.to_string());
    }
    Ok(result)
}

fn get(state: &mut State, call: &Call<'_>) -> Result<(Value, Vec<u8>), Error> {
    let (id, _) = find(state, call)?;
    let index = number(call.parameters, "blockIndex").unwrap_or(-1);
    if text(call.parameters, "blockToken") != Some(token(&id, index).as_str()) {
        return Err(invalid("The block token is invalid."));
    }
    let blocks = completed(state, &id)?;
    let missing = || Error::with_status(404, "ResourceNotFoundException", "The block was not written.");
    let block = blocks.written.get(&index).ok_or_else(missing)?;
    let result = json!({
        "x-amz-Data-Length": block.len(), "x-amz-Checksum": checksum(block), "x-amz-Checksum-Algorithm": "SHA256",
    });
    Ok((result, block.clone()))
}

fn checksum(content: &[u8]) -> String {
    STANDARD.encode(digest::digest(&SHA256, content))
}
