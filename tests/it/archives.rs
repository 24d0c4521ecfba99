//! Members of an image that is an archive, and methods that have no image.

use serde_json::{Value, json};
use tests::cloud::outcomes;
use tests::{Job, job, probe};

#[test]
fn members_of_an_archive_are_listed_and_damaged_archives_are_rejected() {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = |name: &str, kind: tar::EntryType, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, content).unwrap();
    };
    let long = format!("{}/end", "deep/".repeat(40));
    header("dir", tar::EntryType::Directory, b"");
    header("root.img", tar::EntryType::Regular, b"the first");
    header("link", tar::EntryType::Symlink, b"");
    header("device", tar::EntryType::Char, b"");
    header(&long, tar::EntryType::Regular, b"long");
    header("root.img", tar::EntryType::Regular, b"the second");
    let archive = builder.into_inner().unwrap();
    let job = Job::default();
    let image = job.path("image");
    job::write(&image, &archive);
    let script = json!([{"op": "image.members"}, {"op": "image.read_member", "name": "root.img", "length": 100}, {"op": "image.read_member", "name": "root.img", "length": 3},
                        {"op": "image.read_member", "name": "link", "length": 1}, {"op": "image.read_member", "name": "../root.img", "length": 1}]);
    let run = |script: &Value| job.call("create_stemcell", json!([image, {"probe": script}])).run();
    let outcomes = probe::outcomes(run(&script).result());
    assert_eq!(
        outcomes[0]["ok"],
        json!([{"name": "root.img", "size": 9}, {"name": long, "size": 4}, {"name": "root.img", "size": 10}])
    );
    assert_eq!((&outcomes[1]["ok"]["text"], &outcomes[2]["ok"]["text"]), (&json!("the first"), &json!("the")));
    for outcome in &outcomes[3..] {
        assert_eq!(outcome["error"]["kind"], "invalid", "{outcome}");
        assert!(outcome["error"]["message"].as_str().unwrap().contains("its members are: `root.img`"), "{outcome}");
    }
    // One archive is cut off, and a header of the other has a size beyond the end.
    let mut lying = archive.clone();
    lying[512 + 124..512 + 135].copy_from_slice(b"77777777777");
    let sum: u64 = lying[512..1024]
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
        .sum();
    lying[512 + 148..512 + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    for bytes in [archive[..1030].to_vec(), lying] {
        job::write(&image, &bytes);
        let response =
            run(&json!([{"op": "image.members"}, {"op": "image.read_member", "name": "root.img", "length": 100}]));
        let outcomes = probe::outcomes(response.result());
        assert!(outcomes[0]["error"].is_object(), "{}", outcomes[0]);
    }
}

#[test]
fn methods_other_than_create_stemcell_have_no_image() {
    let operations = json!([{"op": "image.size"}, {"op": "image.sha256"}, {"op": "image.read", "offset": 0, "length": 1}, {"op": "image.members"}, {"op": "image.read_member", "name": "x", "length": 1}]);
    for outcome in outcomes(&Job::default(), &operations) {
        assert_eq!(
            outcome["error"],
            json!({"kind": "denied", "message": "the image is available in create_stemcell only"})
        );
    }
}
