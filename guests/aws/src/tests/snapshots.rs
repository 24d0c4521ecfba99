//! `snapshot_disk` and `delete_snapshot`.

use wasm_cpi_sdk::{Cpi, ErrorKind, Metadata};

use super::storage_answers::{attached_volume, broken, done, lost, refused, serve, snapshots, volume, with_id};
use super::{cpi, form_of, operations};

fn metadata() -> Metadata {
    [
        ("deployment", "cf"),
        ("job", "db"),
        ("index", "0"),
        ("director_name", "bosh"),
        ("instance_id", "uuid-1"),
        ("team", "a"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

#[test]
fn a_snapshot_has_the_description_and_the_tags_of_bosh_aws_cpi() {
    let host = serve(&[
        ("DescribeVolumes", attached_volume("i-1", "attached")),
        ("CreateSnapshot", with_id("snapshotId", "snap-1")),
        ("DescribeSnapshots", refused("InvalidSnapshot.NotFound")),
        ("DescribeSnapshots", snapshots(&["snap-1"], "pending")),
        ("DescribeSnapshots", snapshots(&["snap-1"], "completed")),
    ]);
    assert_eq!(cpi().snapshot_disk("vol-1".into(), metadata()), Ok("snap-1".into()));
    let form = form_of(&host, "CreateSnapshot");
    assert_eq!((&*form["VolumeId"], &*form["Description"]), ("vol-1", "cf/db/0/sdf"));
    let number = |at: usize| format!("TagSpecification.1.Tag.{at}");
    let tags: Vec<(&str, &str)> = (1..)
        .map_while(|at| Some((&**form.get(&format!("{}.Key", number(at)))?, &*form[&format!("{}.Value", number(at))])))
        .filter(|(key, _)| *key != "bosh-cpi-request")
        .collect();
    assert_eq!(
        tags,
        [
            ("Name", "cf/db/0/sdf"),
            ("deployment", "cf"),
            ("device", "/dev/sdf"),
            ("director", "bosh"),
            ("instance_id", "uuid-1"),
            ("instance_index", "0"),
            ("instance_name", "db/uuid-1"),
            ("team", "a"),
        ]
    );
}

#[test]
fn a_snapshot_whose_answer_was_lost_is_found_by_its_tag() {
    for first in [lost(), broken()] {
        let host = serve(&[
            ("DescribeVolumes", volume("available", "")),
            ("CreateSnapshot", first),
            ("DescribeSnapshots", snapshots(&[], "")),
            ("DescribeSnapshots", snapshots(&["snap-1"], "pending")),
            ("DescribeSnapshots", snapshots(&["snap-1"], "completed")),
        ]);
        assert_eq!(cpi().snapshot_disk("vol-1".into(), metadata()), Ok("snap-1".into()));
        let sent = operations(&host);
        assert_eq!(sent.iter().filter(|name| *name == "CreateSnapshot").count(), 1);
        let (create, search) = (form_of(&host, "CreateSnapshot"), form_of(&host, "DescribeSnapshots"));
        assert_eq!((&*search["Filter.1.Name"], &*search["Owner.1"]), ("tag:bosh-cpi-request", "self"));
        assert!(create.values().any(|value| *value == search["Filter.1.Value.1"]));
    }
}

#[test]
fn a_snapshot_that_was_not_taken_is_requested_again_and_a_second_one_is_deleted() {
    let none = snapshots(&[], "");
    let host = serve(&[
        ("DescribeVolumes", volume("available", "")),
        ("CreateSnapshot", broken()),
        ("CreateSnapshot", with_id("snapshotId", "snap-2")),
        ("DescribeSnapshots", none.clone()),
        ("DescribeSnapshots", none.clone()),
        ("DescribeSnapshots", none),
        ("DescribeSnapshots", snapshots(&["snap-1", "snap-2"], "pending")),
        ("DescribeSnapshots", snapshots(&["snap-2"], "completed")),
        ("DeleteSnapshot", done()),
    ]);
    assert_eq!(cpi().snapshot_disk("vol-1".into(), metadata()), Ok("snap-2".into()));
    assert_eq!(form_of(&host, "DeleteSnapshot")["SnapshotId"], "snap-1");
}

#[test]
fn a_snapshot_that_may_exist_is_named_in_the_error() {
    let host = serve(&[
        ("DescribeVolumes", volume("available", "")),
        ("CreateSnapshot", broken()),
        ("DescribeSnapshots", snapshots(&[], "")),
    ]);
    let error = cpi().snapshot_disk("vol-1".into(), metadata()).unwrap_err();
    assert!(error.message.contains("a snapshot with the tag bosh-cpi-request=cpi-000001-"), "{error}");
    assert_eq!(operations(&host).iter().filter(|name| *name == "CreateSnapshot").count(), 3);
}

#[test]
fn a_snapshot_that_fails_is_deleted() {
    let host = serve(&[
        ("DescribeVolumes", volume("available", "")),
        ("CreateSnapshot", with_id("snapshotId", "snap-1")),
        ("DescribeSnapshots", snapshots(&["snap-1"], "error")),
        ("DeleteSnapshot", done()),
    ]);
    let error = cpi().snapshot_disk("vol-1".into(), metadata()).unwrap_err();
    assert!(error.message.starts_with("taking a snapshot of disk `vol-1`: snapshot `snap-1` failed"), "{error}");
    assert_eq!(form_of(&host, "DeleteSnapshot")["SnapshotId"], "snap-1");
    let _host = serve(&[
        ("DescribeVolumes", volume("available", "")),
        ("CreateSnapshot", with_id("snapshotId", "snap-1")),
        ("DescribeSnapshots", snapshots(&["snap-1"], "error")),
        ("DeleteSnapshot", refused("UnauthorizedOperation")),
    ]);
    let error = cpi().snapshot_disk("vol-1".into(), metadata()).unwrap_err();
    assert!(error.message.contains("snapshot `snap-1` is left in the cloud"), "{error}");
}

#[test]
fn a_refused_snapshot_is_not_searched_for() {
    let host =
        serve(&[("DescribeVolumes", volume("available", "")), ("CreateSnapshot", refused("SnapshotLimitExceeded"))]);
    let error = cpi().snapshot_disk("vol-1".into(), metadata()).unwrap_err();
    assert!(error.message.contains("Service Quotas"), "{error}");
    assert_eq!(host.requests().len(), 2);
    let _host = serve(&[("DescribeVolumes", refused("InvalidVolume.NotFound"))]);
    let error = cpi().snapshot_disk("vol-1".into(), metadata()).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::DiskNotFound(_)), "{error}");
}

#[test]
fn deleting_a_snapshot_succeeds_if_it_does_not_exist() {
    for answer in [done(), refused("InvalidSnapshot.NotFound")] {
        let host = serve(&[("DeleteSnapshot", answer)]);
        cpi().delete_snapshot("snap-1".into()).unwrap();
        assert_eq!(operations(&host), ["DeleteSnapshot"]);
    }
    let _host = serve(&[("DeleteSnapshot", refused("InvalidSnapshot.InUse"))]);
    let error = cpi().delete_snapshot("snap-1".into()).unwrap_err();
    assert!(error.message.starts_with("deleting snapshot `snap-1`: DeleteSnapshot failed"), "{error}");
}
