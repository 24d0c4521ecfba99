//! EBS direct.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde_json::json;

const SIZE: usize = 512 << 10;

fn send(cloud: &Cloud, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let request = cloud.client.signed(Service::Ebs, method, target, headers, body);
    cloud.answer(Service::Ebs, &request, body)
}

fn start(cloud: &Cloud, body: &Value) -> Response {
    send(cloud, "POST", "/snapshots", &[("Content-Type", "application/json")], body.to_string().as_bytes())
}

fn checksum(content: &[u8]) -> String {
    STANDARD.encode(digest(&SHA256, content))
}

fn put(cloud: &Cloud, id: &str, index: usize, block: &[u8], checksum: &str) -> Response {
    let length = block.len().to_string();
    let headers =
        [("x-amz-Data-Length", length.as_str()), ("x-amz-Checksum", checksum), ("x-amz-Checksum-Algorithm", "SHA256")];
    send(cloud, "PUT", &format!("/snapshots/{id}/blocks/{index}"), &headers, block)
}

fn complete(cloud: &Cloud, id: &str, headers: &[(&str, &str)]) -> Response {
    send(cloud, "POST", &format!("/snapshots/completion/{id}"), headers, b"")
}

fn code(response: &Response) -> Option<&str> {
    response.header("x-amzn-ErrorType")
}

#[test]
fn a_snapshot_is_written_block_by_block_and_read_back() {
    let cloud = Cloud::new();
    let asked =
        json!({"VolumeSize": 1, "Description": "stemcell", "ClientToken": "s-1", "Tags": [{"Key": "a", "Value": "b"}]});
    let started = start(&cloud, &asked);
    assert_eq!(started.status, 201, "{}", text(&started));
    let id = started.value()["SnapshotId"].as_str().unwrap_or_default().to_owned();
    assert_eq!(start(&cloud, &asked).value()["SnapshotId"], id);
    assert_eq!(code(&start(&cloud, &json!({"VolumeSize": 2, "ClientToken": "s-1"}))), Some("ConflictException"));
    let blocks = [vec![7; SIZE], vec![9; SIZE]];
    let sums: Vec<String> = blocks.iter().map(|block| checksum(block)).collect();
    assert_eq!(code(&put(&cloud, &id, 0, &blocks[0], &sums[1])), Some("ValidationException"));
    assert_eq!(code(&put(&cloud, &id, 0, &blocks[0][1..], &checksum(&blocks[0][1..]))), Some("ValidationException"));
    assert_eq!(code(&put(&cloud, &id, 2048, &blocks[0], &sums[0])), Some("ValidationException"));
    assert_eq!(
        code(&put(&cloud, "snap-0123456789abcdef0", 0, &blocks[0], &sums[0])),
        Some("ResourceNotFoundException")
    );
    let written = put(&cloud, &id, 5, &blocks[1], &sums[1]);
    assert_eq!((written.status, written.header("x-amz-checksum")), (201, Some(sums[1].as_str())));
    assert_eq!(put(&cloud, &id, 0, &blocks[0], &sums[0]).status, 201);
    assert_eq!(code(&complete(&cloud, &id, &[("x-amz-ChangedBlocksCount", "1")])), Some("ValidationException"));
    let digests: Vec<u8> = blocks.iter().flat_map(|block| digest(&SHA256, block).as_ref().to_vec()).collect();
    let whole = checksum(&digests);
    let mut headers = vec![
        ("x-amz-ChangedBlocksCount", "2"),
        ("x-amz-Checksum", sums[0].as_str()),
        ("x-amz-Checksum-Algorithm", "SHA256"),
        ("x-amz-Checksum-Aggregation-Method", "LINEAR"),
    ];
    assert_eq!(code(&complete(&cloud, &id, &headers)), Some("ValidationException"));
    headers[1].1 = &whole;
    let done = complete(&cloud, &id, &headers);
    assert_eq!((done.status, &done.value()["Status"]), (202, &json!("pending")), "{}", text(&done));
    assert_eq!(code(&put(&cloud, &id, 1, &blocks[0], &sums[0])), Some("ValidationException"));
    let list = || send(&cloud, "GET", &format!("/snapshots/{id}/blocks"), &[], b"");
    for _ in 0..2 {
        cloud.done("DescribeSnapshots", &[("SnapshotId.1", &id)]);
    }
    let listed = list().value();
    let indexes: Vec<&Value> =
        listed["Blocks"].as_array().into_iter().flatten().map(|block| &block["BlockIndex"]).collect();
    assert_eq!(indexes, [0, 5]);
    let token = listed["Blocks"][1]["BlockToken"].as_str().unwrap_or_default();
    let token = token.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let read = send(&cloud, "GET", &format!("/snapshots/{id}/blocks/5?blockToken={token}"), &[], b"");
    assert!(read.status == 200 && read.body == blocks[1], "{:?}", read.headers);
    let read = send(&cloud, "GET", &format!("/snapshots/{id}/blocks/0?blockToken={token}"), &[], b"");
    assert_eq!(code(&read), Some("ValidationException"));
}

#[test]
fn parameters_that_the_api_does_not_have_are_refused() {
    let cloud = Cloud::new();
    for body in [
        json!({}),
        json!({"VolumeSize": "1"}),
        json!({"VolumeSize": 0}),
        json!({"VolumeSize": 1, "Timeout": 5}),
        json!({"VolumeSize": 1, "Size": 1}),
        json!({"VolumeSize": 1, "Tags": [{"key": "a"}]}),
        json!({"VolumeSize": 1, "KmsKeyArn": "k"}),
        json!([1]),
    ] {
        assert_eq!(code(&start(&cloud, &body)), Some("ValidationException"), "{body}");
    }
    let body = b"{\"VolumeSize\": 1}";
    let wrong = send(&cloud, "POST", "/snapshots", &[("Content-Type", "text/plain")], body);
    assert_eq!(code(&wrong), Some("ValidationException"));
    let headers = [("Content-Type", "application/json"), ("x-amz-Data-Length", "1")];
    assert_eq!(code(&send(&cloud, "POST", "/snapshots", &headers, body)), Some("ValidationException"));
    assert_eq!(send(&cloud, "GET", "/volumes", &[], b"").status, 404);
}

#[test]
fn a_snapshot_that_is_not_completed_in_time_is_given_up() {
    let cloud = Cloud::new();
    let id = start(&cloud, &json!({"VolumeSize": 1, "Timeout": 10})).value()["SnapshotId"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    cloud.simulator.set_clock_ahead(601);
    let client = Client { clock_ahead: 601, ..cloud.client.clone() };
    let cloud = Cloud { client, ..cloud };
    let block = vec![1; SIZE];
    assert_eq!(code(&put(&cloud, &id, 0, &block, &checksum(&block))), Some("ValidationException"));
    assert_eq!(cloud.get("DescribeSnapshots", &[("SnapshotId.1", &id)], "status"), "error");
}
