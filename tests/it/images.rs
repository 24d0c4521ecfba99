//! The image of `create_stemcell`: which paths are opened, and what a guest sees of the
//! file.

use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use tests::job::{make_dir, write};
use tests::users::{NOBODY, give, is_root};
use tests::{CPI_ERROR, Job, Response, dist, probe};

fn create(job: &Job, path: &Path) -> Response {
    job.call("create_stemcell", json!([path, {}])).run()
}

#[test]
fn only_regular_files_are_opened_and_links_are_not_followed() {
    let job = Job::default();
    write(&job.path("image"), b"image");
    make_dir(&job.path("dir"));
    symlink(job.path("image"), job.path("link")).unwrap();
    symlink("/etc/passwd", job.path("dir/elsewhere")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(job.path("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()));
    for (path, expected) in [
        (job.path("nothing"), "cannot be opened (No such file"),
        (job.path("no/such/dir"), "cannot be opened (No such file"),
        (job.path("image/below"), "cannot be opened"),
        (job.path("dir"), "is a directory"),
        (job.path("link"), "is a symbolic link, and links are not followed"),
        (job.path("dir/elsewhere"), "is a symbolic link"),
        (job.path("pipe"), "is a named pipe"),
        ("/dev/zero".into(), "is a device"),
        ("/".into(), "names no file"),
        ("..".into(), "names no file"),
        ("image".into(), "cannot be opened"),
        ("x\0y".into(), "stemcell image"),
        ("x".repeat(5000).into(), "cannot be opened"),
    ] {
        create(&job, &path).fails(CPI_ERROR, &["request: stemcell image `", expected]);
    }
}

#[test]
fn an_image_that_this_user_may_not_read_is_refused() {
    if !is_root("a file that the caller may not read") {
        return;
    }
    let job = Job::default();
    tests::job::set_mode(&job.path(""), 0o755);
    give(&job.path("config"), NOBODY);
    write(&job.path("image"), b"image");
    tests::job::set_mode(&job.path("image"), 0o600);
    let response = job.call("create_stemcell", json!([job.path("image"), {}])).user(NOBODY).run();
    response.fails(CPI_ERROR, &["cannot be opened (Permission denied", "readable by the user that runs the CPI"]);
}

#[test]
fn images_outside_of_image_dirs_are_refused() {
    let job = Job::default().configure(|config| config["image_dirs"] = json!(["../images", "/no/such/dir"]));
    for directory in ["images", "images/deep", "images2", "other"] {
        make_dir(&job.path(directory));
        write(&job.path(directory).join("image"), b"image");
    }
    symlink(job.path("other"), job.path("images/out")).unwrap();
    for inside in ["images/image", "images/deep/image", "other/../images/image"] {
        create(&job, &job.path(inside)).result();
    }
    for outside in ["other/image", "images2/image", "images/../other/image", "images/out/image"] {
        create(&job, &job.path(outside)).fails(CPI_ERROR, &["is outside of `image_dirs`", "add its directory"]);
    }
}

#[test]
fn a_guest_can_read_the_image_but_does_not_learn_its_path() {
    let job = Job::default();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    write(&job.path("image"), &bytes);
    let script = json!([
        {"op": "image.size"},
        {"op": "image.sha256"},
        {"op": "image.read", "offset": 250, "length": 3},
        {"op": "image.read", "offset": 2_999_999, "length": 100},
        {"op": "image.read", "offset": 3_000_000, "length": 1},
        {"op": "image.read", "offset": 0, "length": u32::MAX},
        {"op": "image.read", "offset": u64::MAX, "length": u32::MAX},
        {"op": "image.members"},
        {"op": "image.read_member", "name": "../../etc/passwd", "length": 10},
        {"op": "fs", "path": job.path("image")},
    ]);
    let response = job.call("create_stemcell", json!([job.path("image"), {"probe": script}])).run();
    let outcomes = probe::outcomes(response.result());
    let ok = |index: usize| &outcomes[index]["ok"];
    assert_eq!((ok(0), ok(1)), (&json!(3_000_000), &json!(dist::sha256(&bytes))));
    assert_eq!((&ok(2)["bytes"], &ok(3)["bytes"]), (&json!(3), &json!(1)));
    // A read returns at most 1 MiB, and nothing after the end of the file.
    assert!(ok(5)["bytes"] == 1 << 20 || outcomes[5]["error"]["kind"] == "invalid", "{}", outcomes[5]);
    for index in [4, 6] {
        assert!(ok(index)["bytes"] == 0 || outcomes[index]["error"]["kind"] == "invalid", "{}", outcomes[index]);
    }
    for index in [7, 8] {
        assert_eq!(outcomes[index]["error"]["kind"], "invalid", "{}", outcomes[index]);
    }
    let visible = Value::from(outcomes[..9].to_vec()).to_string();
    assert!(!visible.contains(&*job.path("").to_string_lossy()), "{visible}");
}
