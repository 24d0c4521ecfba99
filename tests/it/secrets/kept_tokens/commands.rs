//! `wasm-cpi check` shows what is kept, and `wasm-cpi forget-tokens` deletes it.

use super::{Cloud, forge, key_file, now, record, token_files};
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use tests::job::make_dir;
use tests::users::{NOBODY, give, is_root};
use tests::{Job, dist};

/// Runs `wasm-cpi forget-tokens` and returns what it prints.
#[track_caller]
pub(super) fn forget_tokens(arguments: &[&OsStr]) -> String {
    let output = Command::new(dist::tool()).arg("forget-tokens").args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn check_shows(job: &Job, expected: Option<&str>) {
    let (_, checked) = job.check();
    match expected {
        Some(text) => assert!(checked.contains(text), "no `{text}` in {checked}"),
        None => assert!(!checked.contains("forget-tokens"), "{checked}"),
    }
    assert!(!checked.contains(super::TOKEN) && !checked.contains("a-forged-token"), "{checked}");
}

#[test]
fn check_shows_how_many_tokens_are_kept_and_forget_tokens_deletes_them() {
    let cloud = Cloud::new(json!(3600));
    let mut job = cloud.job();
    let config = job.config_file();
    let cache = job.cache_dir();
    let by_config = ["--config".as_ref(), config.as_os_str()];
    let by_cache = ["--cache".as_ref(), cache.as_os_str()];
    check_shows(&job, None);
    assert!(forget_tokens(&by_config).contains("no token is kept"));
    for (arguments, passwords) in [(by_config, 1), (by_cache, 2)] {
        for number in 0..passwords {
            job = job.properties(json!({"user": "admin", "password": format!("password number {number}")}));
            cloud.check_logins(&job, 2, 1, "a new login");
            check_shows(&job, Some(&format!("tokens kept for later calls: {}; `wasm-cpi forget-tokens`", number + 1)));
        }
        let expected = match passwords {
            1 => "deleted 1 token; the next call logs in again".to_owned(),
            _ => format!("deleted {passwords} tokens; the next calls log in again"),
        };
        let printed = forget_tokens(&arguments);
        assert!(printed.contains(&expected), "{printed}");
        assert!(token_files(&job).is_empty() && !key_file(&job).exists());
        check_shows(&job, None);
        assert!(forget_tokens(&arguments).contains("no token is kept"));
    }
    cloud.check_logins(&job, 2, 1, "after forget-tokens");
    // Tokens stay when the operator turns this off, and `check` warns about it.
    job = job.configure(|config| config["keep_tokens"] = json!(false));
    check_shows(&job, Some("`keep_tokens` is false, but tokens are still in "));
    // Prepared guests stay.
    let prepared = job.cached(".cwasm");
    let printed = forget_tokens(&by_config);
    assert!(printed.contains("deleted 1 token"), "{printed}");
    assert!(!prepared.is_empty() && prepared.iter().all(|file| file.exists()), "{prepared:?}");
    check_shows(&job, None);
}

#[test]
fn expired_tokens_and_files_without_a_token_do_not_count() {
    let cloud = Cloud::new(json!(null));
    let job = cloud.job();
    cloud.send(&job);
    assert_eq!(token_files(&job).len(), 1);
    check_shows(&job, None);
    for (expires, kept) in [(now() + 3600, true), (now() - 1, false)] {
        forge(&job, &record(json!({"expires": expires})));
        check_shows(&job, kept.then_some("tokens kept for later calls: 1;"));
    }
    assert!(forget_tokens(&["--config".as_ref(), job.config_file().as_os_str()]).contains("no token is kept"));
    assert!(token_files(&job).is_empty());
}

#[test]
fn root_deletes_the_tokens_of_the_user_who_runs_calls() {
    if !is_root("files of another user") {
        return;
    }
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    let cache = job.cache_dir();
    give(&cache, NOBODY);
    let printed = forget_tokens(&["--cache".as_ref(), cache.as_os_str()]);
    assert!(printed.contains("deleted 1 token; the next call logs in again"), "{printed}");
    assert!(token_files(&job).is_empty() && !key_file(&job).exists());
}

#[test]
fn tokens_beside_a_file_that_cannot_be_deleted_are_gone() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    let obstacle = job.cache_dir().join("token-0");
    make_dir(&obstacle);
    let output = Command::new(dist::tool()).arg("forget-tokens").arg("--cache").arg(job.cache_dir()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let expected = format!("these files were not deleted: {} (", obstacle.display());
    assert!(output.status.code() == Some(1) && printed.contains(&expected), "{output:?}");
    assert!(token_files(&job) == [obstacle.clone()] && !key_file(&job).exists());
    fs::remove_dir(&obstacle).unwrap();
    cloud.check_logins(&job, 1, 1, "a new login");
}
