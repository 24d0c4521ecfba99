//! Disks that are full or read-only: calls work and log in, without a warning for each.

use super::{Cloud, name_of, token_files};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use tests::Job;
use tests::job::{copy_prepared, make_dir, prepared_bytes};
use tests::users::{SmallDisk, is_root};

/// Returns a job whose cache is a disk of its own with the prepared probe. The disk must be dropped first.
fn job_on_disk(cloud: &Cloud) -> Option<(Job, SmallDisk)> {
    let job = cloud.job();
    fs::remove_dir_all(job.cache_dir()).unwrap();
    make_dir(&job.cache_dir());
    let size = prepared_bytes() + (16 << 20);
    let disk = SmallDisk::mount(&job.cache_dir(), &format!("size={size},mode=755"))?;
    copy_prepared(&job.cache_dir());
    Some((job, disk))
}

/// Writes a file until the disk has no space left.
fn fill(directory: &Path) {
    let filler = fs::File::create(directory.join("filler")).unwrap();
    let _ = std::io::copy(&mut std::io::repeat(7), &mut &filler);
}

fn remount(directory: &Path, options: &str) {
    let mounted = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(directory).status();
    assert!(mounted.is_ok_and(|status| status.success()), "{options}");
}

/// Checks that calls log in, with one warning at most.
#[track_caller]
fn check_without_tokens(cloud: &Cloud, job: &Job, what: &str) {
    for _ in 0..2 {
        let before = cloud.logins();
        let response = cloud.send(job);
        assert_eq!(cloud.logins() - before, 1, "{what}");
        let warnings = response.stderr.lines().filter(|line| line.contains(" warn: ") || line.contains(" error: "));
        // These two are about other files of the cache.
        let others = ["the new time stamp of the prepared guest", "a leak would not be remembered"];
        let unexpected = warnings.filter(|line| !others.iter().any(|other| line.contains(other)));
        assert_eq!(unexpected.count(), 0, "{what}: {}", response.stderr);
    }
}

#[test]
fn a_full_disk_costs_logins_only() {
    if !is_root("a disk of its own") {
        return;
    }
    // Neither the key nor a record can be written.
    let cloud = Cloud::new(json!(3600));
    let Some((job, _disk)) = job_on_disk(&cloud) else { return };
    fill(&job.cache_dir());
    check_without_tokens(&cloud, &job, "no space for the key");
    let names = fs::read_dir(job.cache_dir()).unwrap().map(|entry| name_of(&entry.unwrap().path()));
    let left: Vec<String> = names.filter(|name| name.starts_with("token")).collect();
    assert!(left.is_empty(), "half a key is left: {left:?}");
    fs::remove_file(job.cache_dir().join("filler")).unwrap();
    cloud.check_logins(&job, 2, 1, "there is space again");

    // There is a key, and no record can be written.
    let cloud = Cloud::new(json!(3600));
    let Some((job, _disk)) = job_on_disk(&cloud) else { return };
    cloud.send(&job);
    fs::remove_file(&token_files(&job)[0]).unwrap();
    fill(&job.cache_dir());
    check_without_tokens(&cloud, &job, "no space for the record");
    fs::remove_file(job.cache_dir().join("filler")).unwrap();
    cloud.check_logins(&job, 2, 1, "there is space again");
    // A disk that is full now does not hinder the use of a token that is there.
    fill(&job.cache_dir());
    cloud.check_logins(&job, 2, 0, "the token was kept before");
}

#[test]
fn a_read_only_disk_costs_logins_only() {
    if !is_root("a disk of its own") {
        return;
    }
    let cloud = Cloud::new(json!(3600));
    let Some((job, _disk)) = job_on_disk(&cloud) else { return };
    remount(&job.cache_dir(), "ro");
    check_without_tokens(&cloud, &job, "no key");
    remount(&job.cache_dir(), "rw");
    cloud.check_logins(&job, 2, 1, "the disk can be written again");
    remount(&job.cache_dir(), "ro");
    check_without_tokens(&cloud, &job, "a key and a token");
    remount(&job.cache_dir(), "rw");
    cloud.check_logins(&job, 1, 0, "the token is still there");
}
