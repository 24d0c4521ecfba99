//! The pin: what is compiled and run is what was hashed, whatever happens to the
//! guest's file before, meanwhile and after.

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

/// Has every VM.
fn pinned() -> Vec<u8> {
    hostile::guest("small")
}

/// The same but for one byte: it has no VM.
fn other() -> Vec<u8> {
    let other = hostile::other();
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

/// Its size and all of its times that a process can set are those of `of`.
fn disguise(path: &Path, of: &fs::Metadata) {
    let times = fs::FileTimes::new().set_modified(of.modified().unwrap()).set_accessed(of.accessed().unwrap());
    File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    let now = fs::metadata(path).unwrap();
    assert_eq!((now.len(), now.modified().unwrap()), (of.len(), of.modified().unwrap()));
}

const REFUSED: [&str; 2] = ["guest.wasm: its sha256 is ", "but `guest.sha256` pins "];

/// A prepared guest, and no compiler.
fn without_compiler() -> Job {
    let job = job().own_binaries(true);
    assert_eq!(has_vm(&job).stderr, "");
    fs::remove_file(job.path("bin/wasm-cpi")).unwrap();
    job
}

#[test]
fn a_guest_that_was_touched_is_hashed_again_and_not_compiled() {
    let job = without_compiler();
    let guest = job.path("guest.wasm");
    let bytes = fs::read(&guest).unwrap();
    let before = fs::read(manifest(&job)).unwrap();
    write(&guest, &bytes);
    for _ in 0..2 {
        let response = has_vm(&job);
        assert_eq!((response.result(), response.stderr.as_str()), (&json!(true), ""));
    }
    assert_ne!(fs::read(manifest(&job)).unwrap(), before, "the new stamp is remembered");
}

#[test]
fn a_guest_that_is_gone_is_refused_although_it_is_prepared() {
    let job = without_compiler();
    fs::remove_file(job.path("guest.wasm")).unwrap();
    for response in [info(&job), has_vm(&job)] {
        response.fails(CPI_ERROR, &["guest.wasm: cannot be read", "No such file", "check `guest.path`"]);
    }
}

#[test]
fn the_other_guest_would_answer_otherwise() {
    assert_eq!(*has_vm(&Job::new().guest_bytes(&other())).result(), false);
    assert_eq!(*has_vm(&job()).result(), true);
}

/// Each way to put another file into the place of a prepared guest.
#[test]
fn a_file_of_the_same_size_and_time_is_told_from_the_pinned_one() {
    type Replace = fn(&Job, &Path);
    let ways: [(&str, Replace); 5] = [
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
    for (way, replace) in ways {
        let job = without_compiler();
        let guest = job.path("guest.wasm");
        let before = fs::metadata(&guest).unwrap();
        replace(&job, &guest);
        disguise(&guest, &before);
        for response in [info(&job), has_vm(&job)] {
            assert!(response.json["error"].is_object(), "{way}: {}", response.json);
            response.fails(CPI_ERROR, &REFUSED);
        }
    }
}

#[test]
fn every_part_of_the_stamp_counts() {
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
        // It is hashed again, which tells that it is still the pinned one.
        let response = has_vm(&job);
        assert_eq!((response.result(), response.stderr.as_str()), (&json!(true), ""));
        assert_eq!(fs::read(manifest(&job)).unwrap(), right, "{part} was not looked at");
    }
}

/// Nobody can forge the time of a file's change, but clocks are coarse. Were the
/// stamp deceived, the code that runs is still that of the pinned bytes.
#[test]
fn a_deceived_stamp_runs_what_was_pinned_all_the_same() {
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
    // A stamp counts only if it is older than its manifest, and clocks of file systems tick slowly.
    let kept = (0..1000).any(|_| {
        write(&manifest, forged.to_string().as_bytes());
        std::thread::sleep(Duration::from_millis(1));
        fs::metadata(&manifest).is_ok_and(|kept| nanoseconds(kept.mtime(), kept.mtime_nsec()) > changed)
    });
    assert!(kept, "the clock of this file system stands still");
    assert_eq!(*has_vm(&job).result(), true, "not the other guest's answer");
}

#[test]
fn a_digest_of_less_or_more_than_the_whole_file_is_another() {
    for bytes in [pinned()[..pinned().len() - 1].to_vec(), [pinned().as_slice(), b"\0"].concat(), Vec::new()] {
        let job = job();
        write(&job.path("guest.wasm"), &bytes);
        has_vm(&job).fails(CPI_ERROR, &REFUSED);
        assert!(job.cached("").is_empty());
    }
}
