//! The cache of prepared guests, which holds native code. A file is used only if no
//! other user could have written it and its content has the right hash. Otherwise
//! the guest is prepared again, and a warning says why.

use crate::case::Case;
use serde_json::{Value, json};
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tests::job::{make_dir, set_mode, write};
use tests::prepared_guest::{
    artifact, assert_cache_ignored, assert_prepared_again, change_engine_version, has_vm, info, manifest, prepared,
    small,
};
use tests::users::{NOBODY, SmallDisk, give, is_root};
use tests::{CPI_ERROR, Job, dist, hostile};

const CLASS: &str = "prepared guests";

/// The two files of a prepared guest.
const PARTS: [fn(&Job) -> PathBuf; 2] = [artifact, manifest];

pub(super) fn cases() -> Vec<Case> {
    [contents(), trust(), places(), disks()].into_iter().flatten().collect()
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn unwrap_io<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Asserts that a call succeeds, and that stderr says this.
#[track_caller]
fn assert_answers(job: &Job, said: &str) {
    let response = has_vm(job);
    assert_eq!(*response.result(), true);
    assert!(response.stderr.contains(said), "no `{said}` in {}", response.stderr);
}

/// Attacks on the contents of the files.
fn contents() -> Vec<Case> {
    vec![
        Case::offline(
            CLASS,
            "machine code that was changed at any place",
            &["cache-artifact-stamp", "cache-digest"],
            || {
                let job = prepared();
                let whole = read(&artifact(&job));
                // The headers, the code that a call runs first, and some data.
                for at in
                    [0, 4, 24, 0x40, 0x200, whole.len() / 4, whole.len() / 2, whole.len() * 3 / 4, whole.len() - 1]
                {
                    let mut bytes = whole.clone();
                    bytes[at] ^= 0x10;
                    write(&artifact(&job), &bytes);
                    assert_prepared_again(&job, ".cwasm in the cache is damaged");
                }
            },
        ),
        Case::offline(CLASS, "machine code that was cut or grew", &["cache-digest"], || {
            let job = prepared();
            let whole = read(&artifact(&job));
            for bytes in
                [Vec::new(), whole[..100].to_vec(), whole[..whole.len() - 1].to_vec(), [&whole[..], b"\0"].concat()]
            {
                write(&artifact(&job), &bytes);
                assert_prepared_again(&job, ".cwasm in the cache is damaged");
            }
        }),
        Case::offline(CLASS, "another guest's machine code under this guest's name", &["cache-digest"], || {
            let (job, other) = (prepared(), Job::new().guest_bytes(&hostile::small_without_vm()));
            assert_eq!(*has_vm(&other).result(), false);
            write(&artifact(&job), &read(&artifact(&other)));
            assert_prepared_again(&job, ".cwasm in the cache is damaged");
        }),
        Case::offline(CLASS, "another guest's manifest under this guest's name", &["cache-manifest"], || {
            let (job, other) = (prepared(), Job::new().guest_bytes(&hostile::small_without_vm()));
            assert_eq!(*has_vm(&other).result(), false);
            let code = artifact(&other);
            unwrap_io(fs::copy(&code, job.cache_dir().join(code.file_name().unwrap_or_default())));
            write(&manifest(&job), &read(&manifest(&other)));
            let first = has_vm(&job);
            assert_eq!(*first.result(), true, "the other guest ran");
            assert!(
                first.stderr.contains("was written by another version of wasm-cpi, or for another guest"),
                "{}",
                first.stderr
            );
        }),
        Case::offline(CLASS, "machine code of another engine", &[], || {
            let job = prepared();
            change_engine_version(&job);
            assert_prepared_again(&job, "the prepared guest was compiled by another version or with other settings");
        }),
        Case::offline(CLASS, "manifests of other versions", &["cache-manifest"], || {
            let job = prepared();
            let right = read(&manifest(&job));
            for (key, value) in [
                ("format", json!(0)),
                ("format", json!(1)),
                ("format", json!(999)),
                ("wasm_sha256", json!("0".repeat(64))),
            ] {
                let mut changed: Value = serde_json::from_slice(&right).unwrap_or_default();
                changed[key] = value;
                write(&manifest(&job), changed.to_string().as_bytes());
                assert_prepared_again(&job, "was written by another version of wasm-cpi, or for another guest");
            }
        }),
        Case::offline(CLASS, "manifests that name a file outside the cache", &["cache-manifest"], || {
            let job = prepared();
            write(&job.path("evil.cwasm"), &read(&artifact(&job)));
            let right = read(&manifest(&job));
            for name in ["../evil.cwasm", "/etc/passwd", ".", "", "x/y.cwasm", "..cwasm", "\0.cwasm", "evil.so"] {
                let mut changed: Value = serde_json::from_slice(&right).unwrap_or_default();
                changed["artifact"] = json!(name);
                write(&manifest(&job), changed.to_string().as_bytes());
                assert_prepared_again(&job, "does not name an artifact");
            }
        }),
        Case::offline(CLASS, "malformed manifests", &[], || {
            let job = prepared();
            let right = read(&manifest(&job));
            let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
            for bytes in [
                Vec::new(),
                b"null".to_vec(),
                right[..right.len() / 2].to_vec(),
                vec![0xff; 100],
                deep,
                [b" ".repeat(2 << 20), right.clone()].concat(),
            ] {
                write(&manifest(&job), &bytes);
                assert_prepared_again(&job, "is damaged");
            }
        }),
        Case::offline(
            CLASS,
            "a guest's file that was replaced by one with the same size and times",
            &["cache-stamp"],
            || {
                let job = prepared();
                let guest = job.path("guest.wasm");
                let before = unwrap_io(fs::metadata(&guest));
                write(&guest, &hostile::small_without_vm());
                let times = FileTimes::new()
                    .set_modified(unwrap_io(before.modified()))
                    .set_accessed(unwrap_io(before.accessed()));
                unwrap_io(File::options().write(true).open(&guest).and_then(|file| file.set_times(times)));
                for response in [info(&job), has_vm(&job)] {
                    response.fails(CPI_ERROR, &["guest.wasm: its sha256 is ", "but `guest.sha256` pins "]);
                }
            },
        ),
    ]
}

/// Files that another user could have written.
fn trust() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "files that group or others can write", &["cache-file"], || {
            let job = prepared();
            for part in PARTS {
                for mode in [0o664, 0o646, 0o666, 0o602] {
                    set_mode(&part(&job), mode);
                    assert_prepared_again(&job, &format!("is writable by group or others (mode {mode:o})"));
                }
            }
        }),
        Case::offline(CLASS, "a lock for preparing that others can write", &["cache-file"], || {
            let job = small();
            make_dir(&job.cache_dir());
            let lock = job.cache_dir().join(format!("{}.lock", dist::sha256_of(&job.path("guest.wasm"))));
            write(&lock, b"");
            set_mode(&lock, 0o666);
            assert_eq!(*has_vm(&job).result(), true);
            // The process that gets a lock deletes its file afterwards.
            assert!(lock.exists(), "the lock was used");
        }),
        Case::offline(CLASS, "a directory that group or others can write", &["cache-directory"], || {
            let job = prepared();
            for mode in [0o775, 0o757, 0o777, 0o1777] {
                set_mode(&job.cache_dir(), mode);
                assert_cache_ignored(&job, "is writable by group or others (mode ");
            }
        }),
        Case::offline(CLASS, "files of another user", &["cache-file"], || {
            if is_root("files of other users") {
                let job = prepared();
                for part in PARTS {
                    give(&part(&job), NOBODY);
                    assert_prepared_again(&job, "belongs to user 65534, neither to this user (0) nor to root");
                }
            }
        }),
        Case::offline(CLASS, "a directory of another user", &["cache-directory"], || {
            if is_root("files of other users") {
                let job = prepared();
                give(&job.cache_dir(), NOBODY);
                assert_cache_ignored(&job, "belongs to user 65534, neither to this user (0) nor to root");
            }
        }),
        Case::offline(CLASS, "hard links to another user's files", &["cache-file"], || {
            if is_root("files of other users") {
                let job = prepared();
                for part in PARTS {
                    let (path, theirs) = (part(&job), job.path("theirs"));
                    unwrap_io(fs::rename(&path, &theirs));
                    give(&theirs, NOBODY);
                    unwrap_io(fs::hard_link(&theirs, &path));
                    assert_prepared_again(&job, "belongs to user 65534");
                    assert_eq!(unwrap_io(fs::metadata(&theirs)).len(), unwrap_io(fs::metadata(&path)).len());
                    unwrap_io(fs::remove_file(&theirs));
                }
            }
        }),
    ]
}

/// Returns attacks with other kinds of files in place of the cache's.
fn places() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "files that are links", &["cache-file-link"], || {
            let job = prepared();
            for part in PARTS {
                let (path, elsewhere) = (part(&job), job.path("elsewhere"));
                unwrap_io(fs::rename(&path, &elsewhere));
                unwrap_io(symlink(&elsewhere, &path));
                assert_prepared_again(&job, " in the cache cannot be opened: ");
                assert!(elsewhere.exists() && !path.is_symlink(), "the link's target was touched");
            }
        }),
        Case::offline(CLASS, "a directory that is a link", &["cache-directory-link"], || {
            let job = prepared();
            unwrap_io(fs::rename(job.cache_dir(), job.path("elsewhere")));
            for target in [job.path("elsewhere"), "/".into(), job.path("nowhere")] {
                unwrap_io(symlink(target, job.cache_dir()));
                assert_answers(&job, "cache: ");
                unwrap_io(fs::remove_file(job.cache_dir()));
            }
        }),
        Case::offline(CLASS, "pipes and directories in place of the files", &[], || {
            for part in PARTS {
                let job = prepared();
                let path = part(&job);
                unwrap_io(fs::remove_file(&path));
                assert!(
                    Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().is_ok_and(|status| status.success())
                );
                assert_prepared_again(&job, "is not a regular file");
                unwrap_io(fs::remove_file(&path));
                make_dir(&path);
                assert_answers(&job, "is not a regular file");
            }
        }),
        Case::offline(CLASS, "a file or a pipe in place of the directory", &[], || {
            let job = small();
            write(&job.cache_dir(), b"a file where a directory should be");
            assert_cache_ignored(&job, "cache: ");
            unwrap_io(fs::remove_file(job.cache_dir()));
            assert!(Command::new("mkfifo").arg(job.cache_dir()).status().is_ok_and(|status| status.success()));
            assert_cache_ignored(&job, "cache: ");
        }),
        Case::offline(CLASS, "a link at the name of a temporary file", &[], || {
            // A link is not followed, even if another user guesses the name of a temporary file.
            let job = small();
            make_dir(&job.cache_dir());
            for name in [".tmp", ".0000000000000000.tmp", "x.cwasm"] {
                unwrap_io(symlink(job.config_file(), job.cache_dir().join(name)));
            }
            let config = read(&job.config_file());
            assert_eq!(*has_vm(&job).result(), true);
            assert_eq!(read(&job.config_file()), config);
        }),
    ]
}

/// Disks that fail, and processes that use the cache at the same time.
fn disks() -> Vec<Case> {
    let disk = |name: &str, options: &'static str, said: &'static str| {
        Case::offline(CLASS, name, &[], move || {
            let job = small();
            make_dir(&job.cache_dir());
            if is_root("a disk of its own")
                && let Some(disk) = SmallDisk::mount(&job.cache_dir(), options)
            {
                for _ in 0..2 {
                    assert_answers(&job, said);
                    assert!(job.cached(".tmp").is_empty(), "{:?}", job.cached(""));
                }
                drop(disk);
            }
        })
    };
    vec![
        disk("a full disk", "size=8k,mode=755", "cannot be stored, so every call compiles it again: "),
        disk("a read-only disk", "ro,mode=755", "Read-only file system"),
        Case::offline(CLASS, "calls that prepare one guest at the same time", &[], || {
            let job = small();
            std::thread::scope(|scope| {
                let call = || {
                    let response = has_vm(&job);
                    assert_eq!((response.result(), response.stderr.as_str()), (&json!(true), ""));
                };
                let running: Vec<_> = (0..12).map(|_| scope.spawn(call)).collect();
                for thread in running {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                }
            });
            assert_eq!((job.cached(".json").len(), job.cached(".tmp").len()), (1, 0));
            assert_eq!(has_vm(&job).stderr, "");
        }),
        Case::offline(CLASS, "files that are damaged during calls", &["cache-digest"], || {
            let job = prepared();
            let (code, whole) = (artifact(&job), read(&artifact(&job)));
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    for at in 0..200 {
                        let mut bytes = whole.clone();
                        bytes[whole.len() * at / 200] ^= 0xff;
                        // By renaming, so that a mapping of the checked file does not change.
                        write(&job.path("next"), &bytes);
                        unwrap_io(fs::rename(job.path("next"), &code));
                    }
                });
                for _ in 0..20 {
                    assert_eq!(*has_vm(&job).result(), true);
                }
                writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            });
        }),
    ]
}
