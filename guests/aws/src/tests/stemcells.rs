//! Light stemcells, encrypted copies, and `delete_stemcell`.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::{Cpi, ErrorKind, Json};

use super::storage_answers::{broken, done, image, lost, no_images, refused, serve, serve_with, with_id};
use super::{cpi, form_of, operations};

fn light(more: Value) -> Json {
    let mut properties =
        json!({"name": "bosh-aws", "version": "1.5", "ami": {"eu-west-1": "ami-0", "us-east-1": "ami-1"}});
    for (key, value) in more.as_object().unwrap() {
        properties[key] = value.clone();
    }
    Json::named("cloud_properties", properties.to_string())
}

fn team() -> Vec<(String, String)> {
    vec![("team".to_owned(), "a".to_owned())]
}

#[test]
fn a_light_stemcell_is_the_image_of_the_region_and_gets_the_tags() {
    let host = serve(&[("DescribeImages", image("ami-1", "available", &["snap-1"])), ("CreateTags", done())]);
    assert_eq!(cpi().create_stemcell(light(json!({})), team()), Ok("ami-1 light".into()));
    let form = form_of(&host, "DescribeImages");
    assert_eq!((&*form["Filter.1.Value.1"], &*form["IncludeDeprecated"]), ("ami-1", "true"));
    let form = form_of(&host, "CreateTags");
    assert_eq!((&*form["ResourceId.1"], &*form["Tag.1.Key"], &*form["Tag.1.Value"]), ("ami-1", "team", "a"));
    let host = serve(&[("DescribeImages", image("ami-1", "available", &[]))]);
    cpi().create_stemcell(light(json!({})), vec![]).unwrap();
    assert_eq!(host.requests().len(), 1);
}

#[test]
fn an_image_that_cannot_be_used_is_an_error() {
    let _host = serve(&[]);
    let other = Json::named("cloud_properties", json!({"ami": {"eu-west-1": "ami-0"}}).to_string());
    let error = cpi().create_stemcell(other, vec![]).unwrap_err();
    assert!(error.message.contains("no image in region us-east-1, but in: eu-west-1; use a heavy stemcell"), "{error}");
    for (answer, part) in
        [(no_images(), "was not found in region us-east-1"), (image("ami-1", "failed", &[]), "found `failed`")]
    {
        let _host = serve(&[("DescribeImages", answer)]);
        let error = cpi().create_stemcell(light(json!({})), vec![]).unwrap_err();
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn an_encrypted_stemcell_is_a_copy_that_belongs_to_it() {
    for first in [with_id("imageId", "ami-2"), lost(), broken()] {
        let host = serve_with(
            json!({"encrypted": true, "kms_key_arn": "arn:1"}),
            &[
                ("DescribeImages", image("ami-1", "available", &[])),
                ("CopyImage", first),
                ("CopyImage", with_id("imageId", "ami-2")),
                ("DescribeImages", no_images()),
                ("DescribeImages", image("ami-2", "pending", &[])),
                ("DescribeImages", image("ami-2", "available", &["snap-2"])),
            ],
        );
        assert_eq!(cpi().create_stemcell(light(json!({})), team()), Ok("ami-2".into()));
        let form = form_of(&host, "CopyImage");
        for (name, value) in [
            ("SourceRegion", "us-east-1"),
            ("SourceImageId", "ami-1"),
            ("Name", "Copied from SourceAMI ami-1"),
            ("Encrypted", "true"),
            ("KmsKeyId", "arn:1"),
            ("TagSpecification.1.ResourceType", "image"),
            ("TagSpecification.2.ResourceType", "snapshot"),
            ("TagSpecification.2.Tag.1.Key", "team"),
        ] {
            assert_eq!(form.get(name).map(String::as_str), Some(value), "{name}");
        }
        let copies: Vec<_> = (0..host.requests().len()).filter_map(|index| host.request_form(index)).collect();
        assert!(copies.iter().filter(|form| form["Action"] == "CopyImage").all(|copy| *copy == form));
    }
    // The stemcell's own property comes before the operator's.
    let host = serve_with(json!({"encrypted": true}), &[("DescribeImages", image("ami-1", "available", &[]))]);
    assert_eq!(cpi().create_stemcell(light(json!({"encrypted": false})), vec![]), Ok("ami-1 light".into()));
    assert_eq!(host.requests().len(), 1);
    // And the property `stemcell` before the manifest.
    let _host = serve_with(
        json!({"stemcell": {"ami": {"us-east-1": "ami-9"}}}),
        &[("DescribeImages", image("ami-9", "available", &[]))],
    );
    assert_eq!(cpi().create_stemcell(light(json!({})), vec![]), Ok("ami-9 light".into()));
}

#[test]
fn a_copy_that_fails_is_deleted_with_its_snapshots() {
    let host = serve_with(
        json!({"encrypted": true}),
        &[
            ("DescribeImages", image("ami-1", "available", &[])),
            ("CopyImage", with_id("imageId", "ami-2")),
            ("DescribeImages", image("ami-2", "failed", &["snap-2"])),
            ("DeregisterImage", done()),
            ("DeleteSnapshot", done()),
        ],
    );
    let error = cpi().create_stemcell(light(json!({})), vec![]).unwrap_err();
    assert!(error.message.contains("check that its key exists") && !error.message.contains("is left"), "{error}");
    assert_eq!(form_of(&host, "DeregisterImage")["ImageId"], "ami-2");
    assert_eq!(form_of(&host, "DeleteSnapshot")["SnapshotId"], "snap-2");
}

#[test]
fn a_copy_whose_answer_cannot_be_read_is_found_by_its_token_and_deleted() {
    let answers = |deleted: Answer| {
        let available = image("ami-1", "available", &[]);
        let copy = image("ami-2", "available", &["snap-2"]);
        serve_with(
            json!({"encrypted": true}),
            &[
                ("DescribeImages", available),
                ("CopyImage", done()),
                ("CopyImage", with_id("imageId", "ami-2")),
                ("DescribeImages", copy),
                ("DeregisterImage", deleted),
                ("DeleteSnapshot", done()),
            ],
        )
    };
    let host = answers(done());
    let error = cpi().create_stemcell(light(json!({})), vec![]).unwrap_err();
    assert!(error.message.contains("the response's body") && !error.message.contains("left"), "{error}");
    assert_eq!(form_of(&host, "DeregisterImage")["ImageId"], "ami-2");
    assert_eq!(form_of(&host, "DeleteSnapshot")["SnapshotId"], "snap-2");
    let _host = answers(refused("UnauthorizedOperation"));
    let error = cpi().create_stemcell(light(json!({})), vec![]).unwrap_err();
    assert!(error.message.contains("; a copy may be left in the cloud: DeregisterImage failed"), "{error}");
}

#[test]
fn deleting_a_stemcell_deletes_its_image_and_its_snapshots() {
    let host = serve(&[
        ("DescribeImages", image("ami-1", "available", &["snap-1", "snap-2"])),
        ("DeregisterImage", done()),
        ("DeleteSnapshot", refused("InvalidSnapshot.InUse")),
        ("DeleteSnapshot", refused("InvalidSnapshot.NotFound")),
        ("DeleteSnapshot", done()),
    ]);
    cpi().delete_stemcell("ami-1".into()).unwrap();
    assert_eq!(operations(&host)[..2], ["DescribeImages", "DeregisterImage"]);
    assert_eq!(operations(&host).len(), 5);
}

#[test]
fn a_snapshot_that_cannot_be_deleted_is_named() {
    let answers = |code: &str| {
        serve(&[
            ("DescribeImages", image("ami-1", "available", &["snap-1"])),
            ("DeregisterImage", refused("InvalidAMIID.Unavailable")),
            ("DeleteSnapshot", refused(code)),
        ])
    };
    let _host = answers("UnauthorizedOperation");
    let error = cpi().delete_stemcell("ami-1".into()).unwrap_err();
    assert!(error.message.contains("snapshot `snap-1` is left in the cloud: DeleteSnapshot failed"), "{error}");
    // Another image may consist of it.
    let host = answers("InvalidSnapshot.InUse");
    cpi().delete_stemcell("ami-1".into()).unwrap();
    assert!(host.logs().iter().any(|(_, line)| line.starts_with("snapshot snap-1 is left in the cloud")));
}

#[test]
fn a_light_stemcell_is_never_deleted_and_a_missing_one_is_not_found() {
    let host = serve(&[]);
    cpi().delete_stemcell("ami-1 light".into()).unwrap();
    assert!(host.requests().is_empty());
    let _host = serve(&[("DescribeImages", no_images())]);
    assert_eq!(cpi().delete_stemcell("ami-1".into()).unwrap_err().kind, ErrorKind::StemcellNotFound);
    let _host =
        serve(&[("DescribeImages", image("ami-1", "available", &[])), ("DeregisterImage", refused("AuthFailure"))]);
    let error = cpi().delete_stemcell("ami-1".into()).unwrap_err();
    assert!(error.message.starts_with("deleting stemcell `ami-1`: DeregisterImage failed"), "{error}");
}
