//! The files of tokens and their key: only those are used that belong to the calls' user alone, and a
//! damaged record counts as none.

use super::{Cloud, TOKEN, forge, key_file, record, token_file, token_files};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use tests::Job;
use tests::job::{make_dir, set_mode, write};
use tests::users::{NOBODY, give, is_root};

#[test]
fn files_are_for_their_owner_alone_and_the_key_is_made_once() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    let key = fs::read(key_file(&job)).unwrap();
    assert_eq!(key.len(), 32);
    cloud.send(&job);
    let job = job.properties(json!({"user": "other", "password": "other"}));
    cloud.send(&job);
    assert_eq!(fs::read(key_file(&job)).unwrap(), key);
    assert_eq!(token_files(&job).len(), 2);
    for path in token_files(&job).iter().chain([&key_file(&job)]) {
        let metadata = fs::metadata(path).unwrap();
        assert_eq!((metadata.mode() & 0o7777, metadata.nlink()), (0o600, 1), "{}", path.display());
    }
    // The key of one job is not that of another.
    let other = cloud.job();
    cloud.send(&other);
    assert_ne!(fs::read(key_file(&other)).unwrap(), key);
}

/// Changes a file, which is then not trusted. Returns false if this user cannot do that.
type Change = fn(&Job, &Path) -> bool;

const CHANGES: [(&str, Change); 8] = [
    ("readable by its group", |_, path| mode(path, 0o640)),
    ("readable by others", |_, path| mode(path, 0o604)),
    ("writable by others", |_, path| mode(path, 0o602)),
    ("a symbolic link", |job, path| {
        fs::rename(path, job.path("elsewhere")).unwrap();
        symlink(job.path("elsewhere"), path).is_ok()
    }),
    ("a dangling link", |job, path| {
        fs::remove_file(path).unwrap();
        symlink(job.path("nothing"), path).is_ok()
    }),
    ("a hard link", |job, path| fs::hard_link(path, job.path("second-name")).is_ok()),
    ("a pipe", |_, path| {
        fs::remove_file(path).unwrap();
        Command::new("mkfifo").args(["-m", "600"]).arg(path).status().is_ok_and(|status| status.success())
    }),
    ("a directory", |_, path| {
        fs::remove_file(path).unwrap();
        make_dir(path);
        true
    }),
];

fn mode(path: &Path, mode: u32) -> bool {
    set_mode(path, mode);
    true
}

fn give_away(_: &Job, path: &Path) -> bool {
    give(path, NOBODY);
    true
}

#[test]
fn a_file_that_is_not_trusted_is_neither_used_nor_changed() {
    let other_user: &[(&str, Change)] =
        if is_root("files of other users") { &[("of another user", give_away)] } else { &[] };
    for (what, change) in CHANGES.iter().chain(other_user) {
        for find in [key_file, token_file] {
            let cloud = Cloud::new(json!(3600));
            let job = cloud.job_with_token();
            let path = find(&job);
            let what = format!("{} is {what}", path.display());
            forge(&job, &record(json!({})));
            assert!(change(&job, &path), "{what}");
            let read = |path: &Path| if path.is_file() { fs::read(path).ok() } else { None };
            let before = read(&path);
            cloud.check_logins(&job, 2, 2, &what);
            assert_eq!(read(&path), before, "{what}");
            assert!(!job.path("nothing").exists(), "{what}");
            let sent = super::received(&cloud.api);
            assert!(sent.iter().all(|token| token.starts_with(TOKEN)), "{what}: {sent:?}");
            let response = cloud.send(&job);
            assert!(
                response.stderr.contains("tokens are not kept: ") && !response.stderr.contains(" warn: "),
                "{what}"
            );
            let (_, checked) = job.check();
            assert!(checked.contains("tokens are not kept: "), "{what}: {checked}");
        }
    }
}

#[test]
fn a_cache_that_others_can_write_keeps_no_token() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    set_mode(&job.cache_dir(), 0o777);
    cloud.check_logins(&job, 2, 2, "a cache that others can write");
}

#[test]
fn a_key_that_was_not_written_completely_is_replaced_after_forget_tokens() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    write(&key_file(&job), b"short");
    cloud.check_logins(&job, 2, 2, "half a key");
    assert!(job.check().1.contains("tokens.key is damaged; run `wasm-cpi forget-tokens`"));
    super::commands::forget_tokens(&["--config".as_ref(), job.config_file().as_os_str()]);
    cloud.check_logins(&job, 2, 1, "a new key");
}

/// The unit tests damage every byte.
#[test]
fn a_torn_record_counts_as_none() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    let path = token_file(&job);
    let good = fs::read(&path).unwrap();
    let step = good.len() / 12;
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x20;
        bytes
    };
    let places = (0..good.len()).step_by(step);
    let torn = places.flat_map(|at| [good[..at].to_vec(), flipped(at)]);
    let other = [vec![0xff; good.len()], vec![0; 4096], b"{\"token\":\"a-forged-token\"}".to_vec()];
    for bytes in torn.chain(other) {
        write(&path, &bytes);
        cloud.check_logins(&job, 1, 1, &format!("{bytes:?}"));
    }
    let sent = super::received(&cloud.api);
    assert!(sent.iter().all(|token| token.starts_with(TOKEN)), "{sent:?}");
    cloud.check_logins(&job, 1, 0, "the last call has repaired the file");
    // What is behind a whole record does not matter.
    let whole = fs::read(&path).unwrap();
    write(&path, &[whole.as_slice(), b"more"].concat());
    cloud.check_logins(&job, 1, 0, "bytes behind the record");
}

#[test]
fn a_record_of_another_login_or_job_counts_as_none() {
    let cloud = Cloud::new(json!(3600));
    let (job, other) = (cloud.job_with_token(), cloud.job());
    let record = fs::read(token_file(&job)).unwrap();
    cloud.send(&other);
    write(&token_file(&other), &record);
    cloud.check_logins(&other, 1, 1, "the record of another key");
    let first = token_file(&job);
    let job = job.properties(json!({"user": "other", "password": "other"}));
    cloud.send(&job);
    let second = token_files(&job).into_iter().find(|path| *path != first).unwrap();
    write(&second, &record);
    cloud.check_logins(&job, 1, 1, "the record of another password");
}
