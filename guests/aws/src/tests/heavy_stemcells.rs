//! Heavy stemcells: EBS direct, and the image that is registered.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};
use wasm_cpi_sdk::bindings::bosh::cpi::http::{Body, ErrorKind as Transport, Request};
use wasm_cpi_sdk::fake::{Answer, Fake, Installed};
use wasm_cpi_sdk::{Cpi, ErrorKind, Json};

use super::storage_answers::{broken, done, image, lost, no_images, refused, snapshots, with_id};
use super::{cpi, properties};

const BLOCK: usize = 4;
const EBS: &str = "https://ebs.us-east-1.amazonaws.com/snapshots";

/// Requests that fail: the operation of EBS direct, and the answers of its first requests.
type Faults = Vec<(&'static str, Answer)>;

/// What EBS got.
type Received = Rc<RefCell<Vec<Request>>>;

fn ebs_error(status: u16, code: &str) -> Answer {
    let answer = Answer::json(status, json!({"Message": "A message of EBS."}));
    answer.header("x-amzn-errortype", code).header("x-amzn-requestid", "req-2")
}

fn operation(request: &Request) -> &'static str {
    match request.url.strip_prefix(EBS) {
        Some("") => "StartSnapshot",
        Some(path) if path.starts_with("/completion/") => "CompleteSnapshot",
        Some(_) => "PutSnapshotBlock",
        None => "other",
    }
}

/// Starts a call with an archive, EBS direct with these faults, and these answers of EC2.
fn start(root: &[u8], more: Value, mut faults: Faults, answers: &[(&str, Answer)]) -> (Installed, Received) {
    let mut all = properties();
    more.as_object().unwrap().iter().for_each(|(name, value)| all[name] = value.clone());
    let received = Received::default();
    let log = Rc::clone(&received);
    let fake = Fake::new().properties(all).image_member("stemcell.MF", "x").image_member("./root.img", root);
    let fake = fake.serve(move |request| {
        log.borrow_mut().push(request.clone());
        if let Some(at) = faults.iter().position(|(name, _)| *name == operation(request)) {
            return faults.remove(at).1;
        }
        match operation(request) {
            "StartSnapshot" => {
                Answer::json(201, json!({"SnapshotId": "snap-1", "BlockSize": BLOCK, "Status": "pending"}))
            }
            "CompleteSnapshot" => Answer::json(202, json!({"Status": "pending"})),
            "PutSnapshotBlock" => Answer::json(201, json!({})),
            other => panic!("{other}: {}", request.url),
        }
    });
    let fake = answers.iter().cloned().fold(fake, |fake, (operation, answer)| fake.on_operation(operation, answer));
    (fake.install(), received)
}

/// The answers of EC2 if everything works.
fn works() -> Vec<(&'static str, Answer)> {
    vec![
        ("DescribeSnapshots", refused("InvalidSnapshot.NotFound")),
        ("DescribeSnapshots", snapshots(&["snap-1"], "pending")),
        ("DescribeSnapshots", snapshots(&["snap-1"], "completed")),
        ("RegisterImage", with_id("imageId", "ami-2")),
        ("DescribeImages", image("ami-2", "available", &["snap-1"])),
    ]
}

fn heavy() -> Json {
    let properties = json!({
        "name": "bosh-aws-xen-hvm-ubuntu", "version": 1.5, "disk": 5120, "architecture": "arm64", "boot_mode": "uefi",
        "root_device_name": "/dev/sda1", "virtualization_type": "hvm", "tags": {"distro": "ubuntu"},
    });
    Json::named("cloud_properties", properties.to_string())
}

fn team() -> Vec<(String, String)> {
    vec![("team".to_owned(), "a".to_owned())]
}

fn sent(received: &Received, name: &str) -> Vec<Request> {
    received.borrow().iter().filter(|request| operation(request) == name).cloned().collect()
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

fn json_body(request: &Request) -> Value {
    let Body::Bytes(bytes) = &request.body else { panic!("{request:?}") };
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_root_disk_becomes_a_snapshot_and_the_snapshot_an_image() {
    let (host, received) = start(b"aaaa\0\0\0\0bbbb", json!({}), vec![], &works());
    assert_eq!(cpi().create_stemcell(heavy(), team()), Ok("ami-2".into()));
    let body = json_body(&sent(&received, "StartSnapshot")[0]);
    assert_eq!((&body["VolumeSize"], &body["Timeout"]), (&json!(5), &json!(60)));
    assert_eq!(body["Description"], "bosh-aws-xen-hvm-ubuntu 1.5");
    assert_eq!(body["Tags"], json!([{"Key": "distro", "Value": "ubuntu"}, {"Key": "team", "Value": "a"}]));
    assert!(body["ClientToken"].as_str().unwrap().starts_with("cpi-000001-") && body.get("Encrypted").is_none());
    let blocks = sent(&received, "PutSnapshotBlock");
    let urls: Vec<&str> = blocks.iter().map(|block| block.url.as_str()).collect();
    assert_eq!(urls, [format!("{EBS}/snap-1/blocks/0"), format!("{EBS}/snap-1/blocks/2")]);
    assert_eq!(header(&blocks[0], "x-amz-data-length"), Some("4"));
    assert_eq!(header(&blocks[0], "x-amz-checksum-algorithm"), Some("SHA256"));
    assert_eq!(header(&blocks[0], "x-amz-checksum"), Some("Yb5VqOL2tOFyM4vd8YTW2+4pyYhT4KBIXs7n8nua8LQ="));
    let complete = &sent(&received, "CompleteSnapshot")[0];
    assert_eq!(complete.url, format!("{EBS}/completion/snap-1"));
    assert_eq!(header(complete, "x-amz-changedblockscount"), Some("2"));
    assert_eq!(header(complete, "x-amz-checksum-aggregation-method"), Some("LINEAR"));
    assert_eq!(header(complete, "x-amz-checksum").map(str::len), Some(44));
    let form = form_of_ec2(&host, "RegisterImage");
    for (name, value) in [
        ("Description", "bosh-aws-xen-hvm-ubuntu 1.5"),
        ("Architecture", "arm64"),
        ("VirtualizationType", "hvm"),
        ("RootDeviceName", "/dev/xvda"),
        ("BootMode", "uefi"),
        ("EnaSupport", "true"),
        ("SriovNetSupport", "simple"),
        ("BlockDeviceMapping.1.DeviceName", "/dev/xvda"),
        ("BlockDeviceMapping.1.Ebs.SnapshotId", "snap-1"),
        ("BlockDeviceMapping.2.DeviceName", "/dev/sdb"),
        ("BlockDeviceMapping.2.VirtualName", "ephemeral0"),
        ("TagSpecification.1.ResourceType", "image"),
        ("TagSpecification.1.Tag.1.Key", "Name"),
        ("TagSpecification.1.Tag.1.Value", "bosh-aws-xen-hvm-ubuntu 1.5"),
        ("TagSpecification.1.Tag.3.Value", "a"),
    ] {
        assert_eq!(form.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(form["Name"].starts_with("BOSH-") && form["Name"].len() == 41);
}

/// Returns the form of the first request to EC2 with this operation.
fn form_of_ec2(host: &Installed, operation: &str) -> BTreeMap<String, String> {
    let all = (0..host.requests().len()).filter_map(|index| host.request_form(index));
    let mut own = all.filter(|form| form["Action"] == operation);
    own.next().unwrap_or_else(|| panic!("{operation} was not sent"))
}

fn operations(host: &Installed) -> Vec<String> {
    let all = (0..host.requests().len()).filter_map(|index| host.request_form(index));
    all.map(|form| form["Action"].clone()).collect()
}

#[test]
fn the_snapshot_is_encrypted_as_the_properties_say_and_as_large_as_the_disk() {
    let (_host, received) = start(b"aaaa", json!({"encrypted": true, "kms_key_arn": "arn:1"}), vec![], &works());
    cpi().create_stemcell(Json::default(), vec![]).unwrap();
    let body = json_body(&sent(&received, "StartSnapshot")[0]);
    assert_eq!(
        (&body["Encrypted"], &body["KmsKeyArn"], &body["VolumeSize"]),
        (&json!(true), &json!("arn:1"), &json!(2))
    );
    assert_eq!(body.get("Tags"), None);
}

#[test]
fn an_archive_that_does_not_fit_is_refused() {
    let (host, _) = start(b"aaaaa", json!({}), vec![], &[("DeleteSnapshot", done())]);
    let error = cpi().create_stemcell(heavy(), vec![]).unwrap_err();
    assert!(error.message.contains("has 5 bytes, but EBS takes whole blocks of 4 bytes"), "{error}");
    assert_eq!(operations(&host), ["DeleteSnapshot"]);
    let _host = Fake::new().properties(properties()).image_member("disk.img", "x").install();
    let error = cpi().create_stemcell(heavy(), vec![]).unwrap_err();
    assert_eq!((error.kind, error.message.contains("has no file root.img")), (ErrorKind::Cpi, true));
    let (host, received) = start(b"aaaa", json!({}), vec![], &[]);
    let paravirtual = Json::named("cloud_properties", json!({"virtualization_type": "paravirtual"}).to_string());
    let error = cpi().create_stemcell(paravirtual, vec![]).unwrap_err();
    assert!(error.message.contains("`paravirtual` is not supported"), "{error}");
    assert!(host.requests().is_empty() && received.borrow().is_empty());
}

#[test]
fn requests_of_ebs_direct_are_repeated() {
    let dropped = || Answer::fail(Transport::Timeout, "no answer", true);
    for (name, fault) in [
        ("StartSnapshot", dropped()),
        ("StartSnapshot", ebs_error(500, "InternalServerException")),
        ("StartSnapshot", ebs_error(400, "RequestThrottledException")),
        ("PutSnapshotBlock", dropped()),
        ("PutSnapshotBlock", ebs_error(404, "ResourceNotFoundException")),
        ("PutSnapshotBlock", ebs_error(429, "ThrottlingException")),
        ("PutSnapshotBlock", Answer::json(400, json!({"Message": null, "Reason": "ACCOUNT_THROTTLED"}))),
        ("PutSnapshotBlock", Answer::json(400, json!({"Message": "Rate exceeded"}))),
        ("CompleteSnapshot", ebs_error(404, "ResourceNotFoundException")),
        ("CompleteSnapshot", ebs_error(400, "ThrottlingException")),
        ("CompleteSnapshot", dropped()),
    ] {
        let (host, received) = start(b"aaaabbbb", json!({}), vec![(name, fault)], &works());
        assert_eq!(cpi().create_stemcell(heavy(), team()), Ok("ami-2".into()), "{name}");
        assert!(!operations(&host).contains(&"DeleteSnapshot".to_owned()), "{name}");
        let starts: Vec<Value> = sent(&received, "StartSnapshot").iter().map(json_body).collect();
        assert!(starts.iter().all(|start| *start == starts[0]), "{name}");
        assert_eq!(header(&sent(&received, "CompleteSnapshot")[0], "x-amz-changedblockscount"), Some("2"), "{name}");
    }
}

#[test]
fn after_a_lost_answer_the_state_of_the_snapshot_decides() {
    let refusal = || ebs_error(400, "ValidationException");
    let dropped = || Answer::fail(Transport::Timeout, "no answer", true);
    let faults = vec![("CompleteSnapshot", dropped()), ("CompleteSnapshot", refusal())];
    let (_host, _) = start(b"aaaa", json!({}), faults, &works());
    assert_eq!(cpi().create_stemcell(heavy(), vec![]), Ok("ami-2".into()));
    let (host, _) = start(b"aaaa", json!({}), vec![("CompleteSnapshot", refusal())], &[("DeleteSnapshot", done())]);
    let error = cpi().create_stemcell(heavy(), vec![]).unwrap_err();
    assert_eq!(
        error.message,
        "creating a stemcell: CompleteSnapshot failed with ValidationException: A message of EBS (request ID req-2)"
    );
    assert_eq!(form_of_ec2(&host, "DeleteSnapshot")["SnapshotId"], "snap-1");
}

#[test]
fn a_snapshot_whose_answer_cannot_be_read_is_found_by_its_token_and_deleted() {
    let faults = || vec![("StartSnapshot", Answer::json(201, json!("nonsense")))];
    let (host, received) = start(b"aaaa", json!({}), faults(), &[("DeleteSnapshot", done())]);
    let error = cpi().create_stemcell(heavy(), vec![]).unwrap_err();
    assert!(error.message.contains("the response's body") && !error.message.contains("left"), "{error}");
    let starts: Vec<Value> = sent(&received, "StartSnapshot").iter().map(json_body).collect();
    assert!(starts.len() == 2 && starts[0] == starts[1], "{starts:?}");
    assert_eq!(form_of_ec2(&host, "DeleteSnapshot")["SnapshotId"], "snap-1");
    let refusal = [("DeleteSnapshot", refused("UnauthorizedOperation"))];
    let (_host, _) = start(b"aaaa", json!({}), faults(), &refusal);
    let error = cpi().create_stemcell(heavy(), vec![]).unwrap_err();
    assert!(
        error.message.contains("a snapshot may be left in the cloud, which EBS cancels after 60 minutes"),
        "{error}"
    );
}

#[test]
fn a_missing_right_is_named() {
    let denied = || ebs_error(403, "AccessDeniedException");
    let (host, _) = start(b"aaaa", json!({}), vec![("StartSnapshot", denied())], &[]);
    let error = cpi().create_stemcell(heavy(), vec![]).unwrap_err();
    assert!(error.message.contains(r#""Action": "ebs:StartSnapshot""#), "{error}");
    assert!(operations(&host).is_empty());
    let (_host, _) = start(b"aaaa", json!({}), vec![("PutSnapshotBlock", denied())], &[("DeleteSnapshot", done())]);
    let error = cpi().create_stemcell(heavy(), vec![]).unwrap_err();
    assert!(error.message.contains("PutSnapshotBlock failed with AccessDeniedException: A message of EBS"), "{error}");
    assert!(error.message.contains(r#""Action": "ebs:PutSnapshotBlock""#), "{error}");
}

#[test]
fn a_stemcell_that_fails_leaves_nothing() {
    type Case = (&'static str, Vec<(&'static str, Answer)>, &'static [&'static str]);
    let cases: [Case; 4] = [
        ("its status is `error`", vec![("DescribeSnapshots", snapshots(&["snap-1"], "error"))], &["DeleteSnapshot"]),
        (
            "UnauthorizedOperation",
            vec![
                ("RegisterImage", refused("UnauthorizedOperation")),
                ("DescribeSnapshots", snapshots(&["snap-1"], "completed")),
            ],
            &["RegisterImage", "DeleteSnapshot"],
        ),
        (
            "found `failed`",
            vec![
                ("DescribeSnapshots", snapshots(&["snap-1"], "completed")),
                ("RegisterImage", with_id("imageId", "ami-2")),
                ("DescribeImages", image("ami-2", "failed", &["snap-1"])),
            ],
            &["RegisterImage", "DescribeImages", "DeregisterImage", "DeleteSnapshot"],
        ),
        (
            "InternalError",
            vec![
                ("DescribeSnapshots", snapshots(&["snap-1"], "completed")),
                ("RegisterImage", broken()),
                ("DescribeImages", no_images()),
            ],
            &["DescribeImages", "DeleteSnapshot"],
        ),
    ];
    for (part, mut answers, expected) in cases {
        answers.extend([("DeregisterImage", done()), ("DeleteSnapshot", done())]);
        let (host, _) = start(b"aaaa", json!({}), vec![], &answers);
        let error = cpi().create_stemcell(heavy(), vec![]).unwrap_err();
        assert!(error.message.starts_with("creating a stemcell: ") && error.message.contains(part), "{error}");
        assert!(!error.message.contains("left in the cloud"), "{error}");
        let sent = operations(&host);
        assert!(sent.ends_with(&expected.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()), "{sent:?}");
    }
}

#[test]
fn a_snapshot_that_cannot_be_deleted_is_cancelled_by_ebs() {
    let answers = [("DeleteSnapshot", refused("UnauthorizedOperation"))];
    let (_host, _) =
        start(b"aaaa", json!({}), vec![("CompleteSnapshot", ebs_error(400, "ValidationException"))], &answers);
    let error = cpi().create_stemcell(heavy(), vec![]).unwrap_err();
    assert!(error.message.contains("EBS cancels snapshot `snap-1` after 60 minutes"), "{error}");
}

#[test]
fn an_image_whose_answer_was_lost_is_found_by_its_name() {
    for (first, second) in
        [(lost(), refused("InvalidAMIName.Duplicate")), (broken(), refused("InvalidAMIName.Duplicate"))]
    {
        let (host, _) = start(
            b"aaaa",
            json!({}),
            vec![],
            &[
                ("DescribeSnapshots", snapshots(&["snap-1"], "completed")),
                ("RegisterImage", first),
                ("RegisterImage", second),
                ("DescribeImages", no_images()),
                ("DescribeImages", image("ami-2", "available", &["snap-1"])),
            ],
        );
        assert_eq!(cpi().create_stemcell(heavy(), vec![]), Ok("ami-2".into()));
        let search = form_of_ec2(&host, "DescribeImages");
        assert_eq!((&*search["Filter.1.Name"], &*search["Owner.1"]), ("name", "self"));
        assert_eq!(search["Filter.1.Value.1"], form_of_ec2(&host, "RegisterImage")["Name"]);
    }
}
