//! The cache of prepared guests: loading what lies there is running it. So it is
//! used if nobody else can have written it and it is what its name says; any
//! doubt only costs a new preparation, and is told.

use crate::case::Case;
use serde_json::{Value, json};
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tests::job::{make_dir, set_mode, write};
use tests::prepared::{
    artifact, becomes_another_engines, has_vm, info, is_not_used, is_prepared_anew, manifest, prepared, small,
};
use tests::users::{NOBODY, SmallDisk, give, is_root};
use tests::{CPI_ERROR, Job, hostile};

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
fn done<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Works, and says this.
#[track_caller]
fn answers(job: &Job, said: &str) {
    let response = has_vm(job);
    assert_eq!(*response.result(), true);
    assert!(response.stderr.contains(said), "no `{said}` in {}", response.stderr);
}

/// What is in the files.
fn contents() -> Vec<Case> {
    vec![
        Case::silent(
            CLASS,
            "machine code that was changed anywhere",
            &["cache-artifact-stamp", "cache-digest"],
            || {
                let job = prepared();
                let whole = read(&artifact(&job));
                // The code that a call runs first, some of its data, all headers.
                for at in
                    [0, 4, 24, 0x40, 0x200, whole.len() / 4, whole.len() / 2, whole.len() * 3 / 4, whole.len() - 1]
                {
                    let mut bytes = whole.clone();
                    bytes[at] ^= 0x10;
                    write(&artifact(&job), &bytes);
                    is_prepared_anew(&job, ".cwasm in the cache is damaged");
                }
            },
        ),
        Case::silent(CLASS, "machine code that was cut or grew", &["cache-digest"], || {
            let job = prepared();
            let whole = read(&artifact(&job));
            for bytes in
                [Vec::new(), whole[..100].to_vec(), whole[..whole.len() - 1].to_vec(), [&whole[..], b"\0"].concat()]
            {
                write(&artifact(&job), &bytes);
                is_prepared_anew(&job, ".cwasm in the cache is damaged");
            }
        }),
        Case::silent(CLASS, "another guest's machine code under this guest's name", &["cache-digest"], || {
            let (job, other) = (prepared(), Job::new().guest_bytes(&hostile::other()));
            assert_eq!(*has_vm(&other).result(), false);
            write(&artifact(&job), &read(&artifact(&other)));
            is_prepared_anew(&job, ".cwasm in the cache is damaged");
        }),
        Case::silent(CLASS, "another guest's manifest under this guest's name", &["cache-manifest"], || {
            let (job, other) = (prepared(), Job::new().guest_bytes(&hostile::other()));
            assert_eq!(*has_vm(&other).result(), false);
            let code = artifact(&other);
            done(fs::copy(&code, job.cache_dir().join(code.file_name().unwrap_or_default())));
            write(&manifest(&job), &read(&manifest(&other)));
            let first = has_vm(&job);
            assert_eq!(*first.result(), true, "the other guest ran");
            assert!(first.stderr.contains("is of another version"), "{}", first.stderr);
        }),
        Case::silent(CLASS, "machine code of another engine", &[], || {
            let job = prepared();
            becomes_another_engines(&job);
            is_prepared_anew(&job, "the prepared guest was made by another runtime");
        }),
        Case::silent(CLASS, "manifests of other versions", &["cache-manifest"], || {
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
                is_prepared_anew(&job, "is of another version");
            }
        }),
        Case::silent(CLASS, "manifests that name a file elsewhere", &["cache-manifest"], || {
            let job = prepared();
            write(&job.path("evil.cwasm"), &read(&artifact(&job)));
            let right = read(&manifest(&job));
            for name in ["../evil.cwasm", "/etc/passwd", ".", "", "x/y.cwasm", "..cwasm", "\0.cwasm", "evil.so"] {
                let mut changed: Value = serde_json::from_slice(&right).unwrap_or_default();
                changed["artifact"] = json!(name);
                write(&manifest(&job), changed.to_string().as_bytes());
                is_prepared_anew(&job, "names no artifact");
            }
        }),
        Case::silent(CLASS, "manifests that are none", &[], || {
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
                is_prepared_anew(&job, "is damaged");
            }
        }),
        Case::silent(
            CLASS,
            "a guest's file that was replaced and given the same size and times",
            &["cache-stamp"],
            || {
                let job = prepared();
                let guest = job.path("guest.wasm");
                let before = done(fs::metadata(&guest));
                write(&guest, &hostile::other());
                let times =
                    FileTimes::new().set_modified(done(before.modified())).set_accessed(done(before.accessed()));
                done(File::options().write(true).open(&guest).and_then(|file| file.set_times(times)));
                for response in [info(&job), has_vm(&job)] {
                    response.fails(CPI_ERROR, &["guest.wasm: its sha256 is ", "but `guest.sha256` pins "]);
                }
            },
        ),
    ]
}

/// Who can have written them.
fn trust() -> Vec<Case> {
    vec![
        Case::silent(CLASS, "files that group or others can write", &["cache-file"], || {
            let job = prepared();
            for part in PARTS {
                for mode in [0o664, 0o646, 0o666, 0o602] {
                    set_mode(&part(&job), mode);
                    is_prepared_anew(&job, &format!("is writable by group or others (mode {mode:o})"));
                }
            }
        }),
        Case::silent(CLASS, "a directory that group or others can write", &["cache-directory"], || {
            let job = prepared();
            for mode in [0o775, 0o757, 0o777, 0o1777] {
                set_mode(&job.cache_dir(), mode);
                is_not_used(&job, "is writable by group or others (mode ");
            }
        }),
        Case::silent(CLASS, "files of another user", &["cache-file"], || {
            if is_root("files of other users") {
                let job = prepared();
                for part in PARTS {
                    give(&part(&job), NOBODY);
                    is_prepared_anew(&job, "belongs to user 65534, neither to this user (0) nor to root");
                }
            }
        }),
        Case::silent(CLASS, "a directory of another user", &["cache-directory"], || {
            if is_root("files of other users") {
                let job = prepared();
                give(&job.cache_dir(), NOBODY);
                is_not_used(&job, "belongs to user 65534, neither to this user (0) nor to root");
            }
        }),
        Case::silent(CLASS, "hard links to another user's files", &["cache-file"], || {
            if is_root("files of other users") {
                let job = prepared();
                for part in PARTS {
                    let (path, theirs) = (part(&job), job.path("theirs"));
                    done(fs::rename(&path, &theirs));
                    give(&theirs, NOBODY);
                    done(fs::hard_link(&theirs, &path));
                    is_prepared_anew(&job, "belongs to user 65534");
                    assert_eq!(done(fs::metadata(&theirs)).len(), done(fs::metadata(&path)).len());
                    done(fs::remove_file(&theirs));
                }
            }
        }),
    ]
}

/// What stands in their places.
fn places() -> Vec<Case> {
    vec![
        Case::silent(CLASS, "files that are links", &["cache-file-link"], || {
            let job = prepared();
            for part in PARTS {
                let (path, elsewhere) = (part(&job), job.path("elsewhere"));
                done(fs::rename(&path, &elsewhere));
                done(symlink(&elsewhere, &path));
                is_prepared_anew(&job, " in the cache: ");
                assert!(elsewhere.exists() && !path.is_symlink(), "the link's target was touched");
            }
        }),
        Case::silent(CLASS, "a directory that is a link", &["cache-directory-link"], || {
            let job = prepared();
            done(fs::rename(job.cache_dir(), job.path("elsewhere")));
            for target in [job.path("elsewhere"), "/".into(), job.path("nowhere")] {
                done(symlink(target, job.cache_dir()));
                answers(&job, "cache: ");
                done(fs::remove_file(job.cache_dir()));
            }
        }),
        Case::silent(CLASS, "pipes and directories in the files' places", &[], || {
            for part in PARTS {
                let job = prepared();
                let path = part(&job);
                done(fs::remove_file(&path));
                assert!(
                    Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().is_ok_and(|status| status.success())
                );
                is_prepared_anew(&job, "is no regular file");
                done(fs::remove_file(&path));
                make_dir(&path);
                answers(&job, "is no regular file");
            }
        }),
        Case::silent(CLASS, "a file or a pipe in the directory's place", &[], || {
            let job = small();
            write(&job.cache_dir(), b"a file where a directory should be");
            is_not_used(&job, "cache: ");
            done(fs::remove_file(job.cache_dir()));
            assert!(Command::new("mkfifo").arg(job.cache_dir()).status().is_ok_and(|status| status.success()));
            is_not_used(&job, "cache: ");
        }),
        Case::silent(CLASS, "a file that lies where another is to be written", &[], || {
            // Whoever guesses the name of a temporary file cannot have it followed.
            let job = small();
            make_dir(&job.cache_dir());
            for name in [".tmp", ".0000000000000000.tmp", "x.cwasm"] {
                done(symlink(job.config_file(), job.cache_dir().join(name)));
            }
            let config = read(&job.config_file());
            assert_eq!(*has_vm(&job).result(), true);
            assert_eq!(read(&job.config_file()), config);
        }),
    ]
}

/// Disks and neighbours that do not help.
fn disks() -> Vec<Case> {
    let disk = |name: &str, options: &'static str, said: &'static str| {
        Case::silent(CLASS, name, &[], move || {
            let job = small();
            make_dir(&job.cache_dir());
            if is_root("a disk of its own")
                && let Some(disk) = SmallDisk::mount(&job.cache_dir(), options)
            {
                for _ in 0..2 {
                    answers(&job, said);
                    assert!(job.cached(".tmp").is_empty(), "{:?}", job.cached(""));
                }
                drop(disk);
            }
        })
    };
    vec![
        disk("a full disk", "size=8k,mode=755", "cannot be kept, every call compiles it again: "),
        disk("a read-only disk", "ro,mode=755", "Read-only file system"),
        Case::silent(CLASS, "calls that prepare one guest at the same time", &[], || {
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
        Case::silent(CLASS, "somebody who damages the files during calls", &["cache-digest"], || {
            let job = prepared();
            let (code, whole) = (artifact(&job), read(&artifact(&job)));
            std::thread::scope(|scope| {
                let vandal = scope.spawn(|| {
                    for at in 0..200 {
                        let mut bytes = whole.clone();
                        bytes[whole.len() * at / 200] ^= 0xff;
                        // As a whole, so that a mapping of what was checked stays what it was.
                        write(&job.path("next"), &bytes);
                        done(fs::rename(job.path("next"), &code));
                    }
                });
                for _ in 0..20 {
                    assert_eq!(*has_vm(&job).result(), true);
                }
                vandal.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            });
        }),
    ]
}
