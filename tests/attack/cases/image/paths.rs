//! Paths that are not an image. Nothing is opened for the guest, and the guest does not
//! run.

use super::{CLASS, create, unwrap_io};
use crate::case::Case;
use crate::watch::DirectoryWatch;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use tests::job::{make_dir, set_mode, write};
use tests::users::{NOBODY, give, is_root};
use tests::{CPI_ERROR, Job, dist, probe};

/// Asserts that the call fails as the caller's mistake, and that the guest does not run.
#[track_caller]
fn assert_refused(job: &Job, path: &Path, said: &str) {
    let response = create(job, path, &json!([{"op": "log", "message": "the guest runs"}]));
    response.fails(CPI_ERROR, &["request: ", said]);
    assert!(!response.stderr.contains("the guest runs"), "{}", response.stderr);
}

/// Returns a job that accepts images from two directories, of which one exists.
fn with_image_dirs() -> Job {
    let job = Job::default().configure(|config| config["image_dirs"] = json!(["../images", "/no/such/dir"]));
    for directory in ["images", "images/deep", "images2", "other"] {
        make_dir(&job.path(directory));
        write(&job.path(directory).join("image"), directory.as_bytes());
    }
    job
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "files outside the directories for images", &["image-dirs"], || {
            let job = with_image_dirs();
            unwrap_io(symlink(job.path("other"), job.path("images/out")));
            let outside =
                ["other/image", "images2/image", "images/../other/image", "images/out/image", "config/cpi.json"];
            for path in
                outside.map(|path| job.path(path)).into_iter().chain(["/etc/shadow".into(), "/etc/passwd".into()])
            {
                assert_refused(&job, &path, "is outside of `image_dirs`");
            }
            for path in ["images/image", "images/deep/image", "other/../images/image"] {
                create(&job, &job.path(path), &json!([])).result();
            }
        }),
        Case::offline(CLASS, "symbolic links", &["image-link"], || {
            let job = Job::default();
            write(&job.path("image"), b"image");
            for (name, target) in [
                ("link", job.path("image")),
                ("passwd", "/etc/passwd".into()),
                ("loop", job.path("loop")),
                ("nowhere", job.path("x")),
            ] {
                unwrap_io(symlink(target, job.path(name)));
                assert_refused(&job, &job.path(name), "is a symbolic link, and links are not followed");
            }
        }),
        Case::offline(CLASS, "directories, pipes, sockets and devices", &["image-regular"], || {
            let job = Job::default();
            make_dir(&job.path("images"));
            make_dir(&job.path("images/directory"));
            let pipe = job.path("images/pipe");
            assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
            let socket = UnixListener::bind(job.path("images/socket"));
            let watch = DirectoryWatch::new(&job.path("images"));
            assert_refused(&job, &job.path("images/directory"), "is a directory");
            assert_refused(&job, &pipe, "is a named pipe");
            assert_refused(&job, &job.path("images/socket"), "is not a regular file");
            // The files were inspected, but not opened.
            watch.assert_no_events();
            drop(unwrap_io(socket));
            for device in ["/dev/zero", "/dev/full", "/dev/tty", "/dev/urandom"]
                .map(Path::new)
                .iter()
                .filter(|path| path.exists())
            {
                assert_refused(&job, device, "is a device");
            }
        }),
        Case::offline(CLASS, "files of /proc, /sys and /dev", &["image-kernel"], || {
            let job = Job::default();
            for path in [
                "/proc/self/environ",
                "/proc/self/maps",
                "/proc/self/mem",
                "/proc/self/cmdline",
                "/proc/kcore",
                "/proc/cpuinfo",
                "/sys/kernel/notes",
            ] {
                if Path::new(path).exists() {
                    assert_refused(&job, Path::new(path), "stemcell image `");
                }
            }
            for path in
                ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/proc/self/exe", "/proc/self/cwd", "/proc/self/root"]
            {
                assert_refused(&job, Path::new(path), "stemcell image `");
            }
        }),
        Case::offline(CLASS, "invalid paths", &[], || {
            let job = Job::default();
            write(&job.path("image"), b"image");
            let paths: [PathBuf; 8] = [
                "/".into(),
                "..".into(),
                ".".into(),
                "image".into(),
                "x\0y".into(),
                "x".repeat(5000).into(),
                job.path("image/below"),
                job.path("no/such/image"),
            ];
            for path in paths {
                assert_refused(&job, &path, "stemcell image `");
            }
            // A path is a text that is not empty.
            for argument in [json!(""), json!(null), json!(7), json!(["/etc/passwd"]), json!({"path": "/etc/passwd"})] {
                let response = job.call("create_stemcell", json!([argument, {}])).run();
                response.fails(CPI_ERROR, &["request: `create_stemcell`: argument 1 (`"]);
            }
        }),
        Case::offline(CLASS, "a file that this user may not read", &[], || {
            if is_root("a file that the caller may not read") {
                let job = Job::default();
                set_mode(&job.path(""), 0o755);
                give(&job.path("config"), NOBODY);
                write(&job.path("image"), b"image");
                set_mode(&job.path("image"), 0o600);
                let response = job.call("create_stemcell", json!([job.path("image"), {}])).user(NOBODY).run();
                response.fails(CPI_ERROR, &["request: ", "cannot be opened (Permission denied"]);
            }
        }),
        Case::offline(CLASS, "a directory that becomes a link while it is checked", &["image-dirs"], || {
            let job = with_image_dirs();
            swap_during_calls(&job, &job.path("images/deep"), &job.path("other"));
        }),
        Case::offline(CLASS, "a file that becomes a link while it is checked", &["image-link"], || {
            let job = with_image_dirs();
            swap_during_calls(&job, &job.path("images/deep/image"), &job.path("other/image"));
        }),
    ]
}

/// Calls with `images/deep/image` while that file, or its directory, alternates with a
/// link to a file outside.
fn swap_during_calls(job: &Job, path: &Path, outside: &Path) {
    let (link, stop) = (job.path("link"), AtomicBool::new(false));
    unwrap_io(symlink(outside, &link));
    let image = job.path("images/deep/image");
    let (inside, secret) = (dist::sha256(b"images/deep"), dist::sha256(b"other"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..10_000_000 {
                let _ = renameat_with(CWD, &link, CWD, path, RenameFlags::EXCHANGE);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let responses: Vec<_> = (0..60).map(|_| create(job, &image, &json!([{"op": "image.sha256"}]))).collect();
        stop.store(true, Ordering::Relaxed);
        for response in responses {
            if response.json["error"].is_null() {
                let digest: Value = probe::outcomes(response.result())[0]["ok"].clone();
                assert_ne!(digest, json!(secret), "a file outside was opened");
                assert_eq!(digest, json!(inside));
            } else {
                response.fails(CPI_ERROR, &["request: stemcell image `"]);
            }
        }
    });
    let _ = fs::remove_file(&link);
}
