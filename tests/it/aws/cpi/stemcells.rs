//! Stemcells on the simulator: light ones, encrypted copies, and heavy ones that are written by EBS direct.

use super::Cpi;
use serde_json::{Value, json};
use std::path::PathBuf;
use tests::aws::{Gateway, Rule, Service, Simulator, service_error, throttled};
use tests::gateway::Fault;
use tests::{archive, job};

const BLOCK: usize = 512 << 10;

/// The blocks of the root disk: numbers are their bytes, and zeros are left out.
const BLOCKS: [u8; 40] = {
    let mut blocks = [0; 40];
    let mut at = 0;
    while at < 40 {
        if at % 3 != 1 {
            blocks[at] = 1 + at as u8;
        }
        at += 1;
    }
    blocks
};

fn root_image() -> Vec<u8> {
    BLOCKS.iter().flat_map(|byte| vec![*byte; BLOCK]).collect()
}

/// Writes the image file of a stemcell, as a client unpacks it, and returns its path.
fn image(cpi: &Cpi<'_>) -> PathBuf {
    let path = cpi.job.path("image");
    job::write(&path, &archive::gzip(&archive::tar(&[("root.img", &root_image())])));
    path
}

fn heavy(cpi: &Cpi<'_>, more: Value) -> Value {
    let mut properties = json!({
        "name": "bosh-aws-xen-hvm-ubuntu-noble", "version": "1.5", "infrastructure": "aws", "disk": 5120, "disk_format": "raw",
        "architecture": "x86_64", "root_device_name": "/dev/sda1", "virtualization_type": "hvm", "boot_mode": "uefi-preferred",
    });
    more.as_object().into_iter().flatten().for_each(|(key, value)| properties[key] = value.clone());
    json!([image(cpi), properties, {"tags": {"team": "a"}}])
}

fn light(cpi: &Cpi<'_>, more: Value) -> Value {
    let region = cpi.cloud["region"].as_str().unwrap_or_default();
    let mut properties = json!({"name": "n", "version": "1", "ami": {region: cpi.cloud["image"]}});
    more.as_object().into_iter().flatten().for_each(|(key, value)| properties[key] = value.clone());
    json!([image(cpi), properties, {"tags": {"team": "a"}}])
}

/// Returns the texts of an image's elements with this name.
fn of_image(cpi: &Cpi<'_>, id: &str, name: &str) -> Vec<String> {
    cpi.listed("DescribeImages", &[("ImageId.1", id)], name)
}

/// Sends a request of EBS direct.
fn ebs(cpi: &Cpi<'_>, target: &str) -> tests::gateway::Response {
    let request = cpi.client.signed(Service::Ebs, "GET", target, &[], b"");
    cpi.client.send(Service::Ebs, &request, b"").unwrap_or_else(|error| panic!("{target}: {error}"))
}

#[test]
fn a_light_stemcell_is_tagged_and_never_deleted() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::with(&gateway, 3, &json!({}));
    let before = cpi.contents();
    let id = cpi.ok("create_stemcell", light(&cpi, json!({})));
    assert_eq!(id, cpi.stemcell());
    let ami = cpi.cloud["image"].as_str().unwrap_or_default();
    assert!(of_image(&cpi, ami, "key").contains(&"team".to_owned()));
    cpi.ok("delete_stemcell", json!([id]));
    assert_eq!((cpi.contents(), of_image(&cpi, ami, "imageState")), (before, vec!["available".to_owned()]));
    cpi.run("create_stemcell", light(&cpi, json!({"ami": {"eu-west-9": "ami-1"}})))
        .fails("Bosh::Clouds::CloudError", &["no image in region", "eu-west-9"]);
    cpi.run("create_stemcell", light(&cpi, json!({"ami": {"us-east-1": "ami-0123456789abcdef0"}})))
        .fails("Bosh::Clouds::CloudError", &["ami-0123456789abcdef0", "was not found"]);
    // The Director does not know the error StemcellNotFound.
    cpi.ok("delete_stemcell", json!(["ami-0123456789abcdef0"]));
}

#[test]
fn an_encrypted_stemcell_is_a_copy_that_is_deleted_with_its_snapshots() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::with(&gateway, 3, &json!({"encrypted": true, "kms_key_arn": gateway.cloud()["kms_key_arn"]}));
    let before = cpi.contents();
    for fault in [None, Some(Fault::ResetAfter)] {
        gateway.clear_faults();
        if let Some(fault) = fault {
            gateway.inject(Rule::operation(Service::Ec2, "CopyImage").times(1), fault);
        }
        let id = cpi.ok("create_stemcell", light(&cpi, json!({})));
        let ami = id.as_str().unwrap_or_default();
        assert!(ami.starts_with("ami-") && !ami.ends_with("light"));
        assert!(of_image(&cpi, ami, "encrypted").contains(&"true".to_owned()));
        assert_eq!(cpi.contents().difference(&before).count(), 2, "an image and its snapshot");
        cpi.ok("delete_stemcell", json!([id]));
        assert_eq!(cpi.contents(), before);
    }
}

#[test]
fn a_heavy_stemcell_is_written_block_by_block_and_can_be_read_back() {
    let simulator = Simulator::new();
    simulator.set_hidden_lookups(1);
    let gateway = Gateway::start(simulator);
    let cpi = Cpi::with(&gateway, 3, &json!({}));
    let before = cpi.contents();
    let id = cpi.ok("create_stemcell", heavy(&cpi, json!({})));
    let ami = id.as_str().unwrap_or_default();
    for (name, value) in [
        ("imageState", "available"),
        ("description", "bosh-aws-xen-hvm-ubuntu-noble 1.5"),
        ("architecture", "x86_64"),
        ("virtualizationType", "hvm"),
        ("rootDeviceName", "/dev/xvda"),
        ("bootMode", "uefi-preferred"),
        ("enaSupport", "true"),
        ("volumeSize", "5"),
    ] {
        assert_eq!(of_image(&cpi, ami, name).first().map(String::as_str), Some(value), "{name}");
    }
    assert!(of_image(&cpi, ami, "key").contains(&"team".to_owned()));
    let snapshot = of_image(&cpi, ami, "snapshotId").concat();
    assert_eq!(cpi.listed("DescribeSnapshots", &[("SnapshotId.1", &snapshot)], "key"), ["team"]);
    let blocks = ebs(&cpi, &format!("/snapshots/{snapshot}/blocks")).value();
    let mut read = vec![0; BLOCKS.len() * BLOCK];
    for block in blocks["Blocks"].as_array().into_iter().flatten() {
        let index = block["BlockIndex"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
        let token = tests::aws::escape(block["BlockToken"].as_str().unwrap_or_default());
        let content = ebs(&cpi, &format!("/snapshots/{snapshot}/blocks/{index}?blockToken={token}")).body;
        read[index * BLOCK..][..BLOCK].copy_from_slice(&content);
    }
    assert!(read == root_image(), "the snapshot has other bytes than the root disk");
    let sent = blocks["Blocks"].as_array().map_or(0, Vec::len);
    assert_eq!(sent, BLOCKS.iter().filter(|byte| **byte != 0).count(), "blocks of zeros are not sent");
    cpi.ok("delete_stemcell", json!([id]));
    assert_eq!(cpi.contents(), before);
}

#[test]
fn a_heavy_stemcell_is_encrypted_as_the_properties_say() {
    let gateway = Gateway::start(Simulator::new());
    let key = gateway.cloud()["kms_key_arn"].clone();
    let cpi = Cpi::with(&gateway, 3, &json!({"encrypted": true, "kms_key_arn": key}));
    let id = cpi.ok("create_stemcell", heavy(&cpi, json!({})));
    let snapshot = of_image(&cpi, id.as_str().unwrap_or_default(), "snapshotId").concat();
    let own = [("SnapshotId.1", snapshot.as_str())];
    assert_eq!(cpi.listed("DescribeSnapshots", &own, "encrypted"), ["true"]);
    assert_eq!(json!(cpi.listed("DescribeSnapshots", &own, "kmsKeyId")), json!([key]));
    cpi.ok("delete_stemcell", json!([id]));
}

#[test]
fn no_stemcell_is_left_or_created_twice_if_every_request_fails_once() {
    let simulator = Simulator::new();
    simulator.set_reads_before_change(0);
    let gateway = Gateway::start(simulator);
    let cpi = Cpi::with(&gateway, 3, &json!({}));
    let before = cpi.contents();
    let operations = [
        (Service::Ebs, "StartSnapshot"),
        (Service::Ebs, "PutSnapshotBlock"),
        (Service::Ebs, "CompleteSnapshot"),
        (Service::Ec2, "RegisterImage"),
        (Service::Ec2, "DeregisterImage"),
        (Service::Ec2, "DeleteSnapshot"),
    ];
    let kinds: [fn(Service) -> Fault; 4] = [
        |_| Fault::ResetAfter,
        |_| Fault::ResetBefore,
        |service| service_error(service, 500, "InternalError", "An internal error."),
        throttled,
    ];
    for fault in kinds {
        gateway.clear_faults();
        for (service, operation) in operations {
            gateway.inject(Rule::operation(service, operation).times(1), fault(service));
        }
        let kind = fault(Service::Ec2);
        let id = cpi.ok("create_stemcell", heavy(&cpi, json!({})));
        assert_eq!(cpi.contents().difference(&before).count(), 2, "an image and its snapshot: {kind:?}");
        cpi.ok("delete_stemcell", json!([id]));
        assert_eq!(cpi.contents(), before, "{kind:?}");
    }
    for (service, operation) in &operations[..4] {
        let refused = service_error(*service, 403, "UnauthorizedOperation", "You are not authorized.");
        gateway.clear_faults();
        gateway.inject(Rule::operation(*service, operation), refused);
        cpi.run("create_stemcell", heavy(&cpi, json!({}))).fails("Bosh::Clouds::CloudError", &[operation]);
        gateway.clear_faults();
        assert_eq!(cpi.contents(), before, "{operation}");
    }
}
