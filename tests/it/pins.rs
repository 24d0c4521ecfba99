//! The pin: the runtime compiles and runs exactly the bytes that it hashed, whatever
//! happens to the guest's file before, during and after a call.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tests::job::write;
use tests::{CPI_ERROR, Job, Response, hostile};

fn info(job: &Job) -> Response {
    job.call("info", json!([])).run()
}

fn has_vm(job: &Job) -> Response {
    job.call("has_vm", json!(["vm-1"])).run()
}

/// Returns the guest that is pinned. Its `has_vm` returns true.
fn pinned() -> Vec<u8> {
    hostile::guest("small")
}

/// Returns a guest that differs in one byte. Its `has_vm` returns false.
fn other() -> Vec<u8> {
    let other = hostile::small_without_vm();
    assert_eq!(other.len(), pinned().len());
    other
}

fn job() -> Job {
    Job::new().guest_bytes(&pinned())
}

fn manifest(job: &Job) -> PathBuf {
    let mut found = job.cached(".json");
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Gives the file the times of the original, as far as a process can set them. The size must be
/// equal.
fn disguise(path: &Path, of: &fs::Metadata) {
    let times = fs::FileTimes::new().set_modified(of.modified().unwrap()).set_accessed(of.accessed().unwrap());
    File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    let now = fs::metadata(path).unwrap();
    assert_eq!((now.len(), now.modified().unwrap()), (of.len(), of.modified().unwrap()));
}

const REFUSED: [&str; 2] = ["guest.wasm: its sha256 is ", "but `guest.sha256` pins "];

/// Returns a job whose guest is prepared, and whose compiler is removed.
fn without_compiler() -> Job {
    let job = job().own_programs();
    assert_eq!(has_vm(&job).stderr, "");
    fs::remove_file(job.path("bin/wasm-cpi")).unwrap();
    job
}

#[test]
fn a_rewritten_guest_with_the_same_bytes_is_hashed_again_but_not_compiled() {
    let job = without_compiler();
    let guest = job.path("guest.wasm");
    let bytes = fs::read(&guest).unwrap();
    let before = fs::read(manifest(&job)).unwrap();
    write(&guest, &bytes);
    for _ in 0..2 {
        let response = has_vm(&job);
        assert_eq!((response.result(), response.stderr.as_str()), (&json!(true), ""));
    }
    assert_ne!(fs::read(manifest(&job)).unwrap(), before, "the new stamp must be stored");
}

#[test]
fn a_missing_guest_is_refused_although_it_is_prepared() {
    let job = without_compiler();
    fs::remove_file(job.path("guest.wasm")).unwrap();
    for response in [info(&job), has_vm(&job)] {
        response.fails(
            CPI_ERROR,
            &["guest.wasm: cannot be read", "No such file", "check `guest.path`, or `guest.package` and `guest.file`"],
        );
    }
}

#[test]
fn the_pinned_guest_and_the_other_guest_return_different_results() {
    assert_eq!(*has_vm(&Job::new().guest_bytes(&other())).result(), false);
    assert_eq!(*has_vm(&job()).result(), true);
}

/// Each row is a method to replace the file of a prepared guest.
#[test]
fn a_replaced_guest_is_refused_even_if_its_size_and_times_are_equal() {
    type Replace = fn(&Job, &Path);
    let methods: [(&str, Replace); 5] = [
        ("written over", |_, guest| write(guest, &other())),
        ("one byte of it", |_, guest| {
            use std::os::unix::fs::FileExt;
            let at = pinned().iter().zip(other()).position(|(a, b)| *a != b).unwrap();
            File::options().write(true).open(guest).unwrap().write_all_at(&[other()[at]], at as u64).unwrap();
        }),
        ("renamed into its place", |job, guest| {
            write(&job.path("new.wasm"), &other());
            fs::rename(job.path("new.wasm"), guest).unwrap();
        }),
        ("linked into its place", |job, guest| {
            write(&job.path("new.wasm"), &other());
            fs::remove_file(guest).unwrap();
            fs::hard_link(job.path("new.wasm"), guest).unwrap();
        }),
        ("a link to it", |job, guest| {
            write(&job.path("new.wasm"), &other());
            fs::remove_file(guest).unwrap();
            symlink(job.path("new.wasm"), guest).unwrap();
        }),
    ];
    for (method, replace) in methods {
        let job = without_compiler();
        let guest = job.path("guest.wasm");
        let before = fs::metadata(&guest).unwrap();
        replace(&job, &guest);
        disguise(&guest, &before);
        for response in [info(&job), has_vm(&job)] {
            assert!(response.json["error"].is_object(), "{method}: {}", response.json);
            response.fails(CPI_ERROR, &REFUSED);
        }
    }
}

#[test]
fn the_guest_is_hashed_again_if_any_part_of_the_stamp_differs() {
    let job = without_compiler();
    let right = fs::read(manifest(&job)).unwrap();
    let stamp: Value = serde_json::from_slice::<Value>(&right).unwrap()["stamp"].clone();
    let metadata = fs::metadata(job.path("guest.wasm")).unwrap();
    assert_eq!(
        (&stamp["dev"], &stamp["ino"], &stamp["size"]),
        (&json!(metadata.dev()), &json!(metadata.ino()), &json!(metadata.size()))
    );
    let parts: Vec<&String> = stamp.as_object().unwrap().keys().collect();
    assert_eq!(parts, ["dev", "ino", "size", "mtime_ns", "ctime_ns"]);
    for part in parts {
        let mut changed: Value = serde_json::from_slice(&right).unwrap();
        changed["stamp"][part] = json!(stamp[part].as_i64().unwrap() + 1);
        write(&manifest(&job), changed.to_string().as_bytes());
        // The file is hashed again, and it is still the pinned one.
        let response = has_vm(&job);
        assert_eq!((response.result(), response.stderr.as_str()), (&json!(true), ""));
        assert_eq!(fs::read(manifest(&job)).unwrap(), right, "{part} was not compared");
    }
}

/// A process cannot set the change time of a file, but clocks are coarse. Even if a stamp is
/// wrong, the code that runs is compiled from the pinned bytes.
#[test]
fn a_wrong_stamp_still_runs_the_pinned_guest() {
    let job = without_compiler();
    let guest = job.path("guest.wasm");
    write(&guest, &other());
    let metadata = fs::metadata(&guest).unwrap();
    let nanoseconds = |seconds: i64, rest: i64| seconds * 1_000_000_000 + rest;
    let changed = nanoseconds(metadata.ctime(), metadata.ctime_nsec());
    let mut forged: Value = serde_json::from_slice(&fs::read(manifest(&job)).unwrap()).unwrap();
    forged["stamp"] = json!({
        "dev": metadata.dev(), "ino": metadata.ino(), "size": metadata.size(),
        "mtime_ns": nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        "ctime_ns": changed,
    });
    let manifest = manifest(&job);
    // A stamp is used only if it is older than its manifest, and clocks of file systems are coarse.
    let is_newer = (0..1000).any(|_| {
        write(&manifest, forged.to_string().as_bytes());
        std::thread::sleep(Duration::from_millis(1));
        fs::metadata(&manifest).is_ok_and(|metadata| nanoseconds(metadata.mtime(), metadata.mtime_nsec()) > changed)
    });
    assert!(is_newer, "the clock of this file system does not advance");
    assert_eq!(*has_vm(&job).result(), true, "the replaced guest must not run");
}

#[test]
fn a_truncated_or_extended_guest_is_refused() {
    for bytes in [pinned()[..pinned().len() - 1].to_vec(), [pinned().as_slice(), b"\0"].concat(), Vec::new()] {
        let job = job();
        write(&job.path("guest.wasm"), &bytes);
        has_vm(&job).fails(CPI_ERROR, &REFUSED);
        assert!(job.cached("").is_empty());
    }
}
