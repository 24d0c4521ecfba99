//! Concurrent calls, as a Director makes them: no line is lost or mixed with another,
//! and a full file is rotated once.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use tests::Job;
use tests::audit::{audited, call_with_uses, last_call, lines_of, path};

const CALLS: usize = 40;

/// Runs concurrent calls, each with this many uses. The VM identifies the call.
fn run(job: &Job, uses: usize) {
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..CALLS)
            .map(|call| {
                scope.spawn(move || {
                    let key = format!("vm-{call}");
                    call_with_uses(job, &key, uses).run().result().clone()
                })
            })
            .collect();
        for call in started {
            assert!(call.join().is_ok_and(|result| result.is_string()));
        }
    });
}

/// Checks that each call has all of its lines, and that the last one is the line of the call.
#[track_caller]
fn check_complete(lines: &[Value], uses: usize) {
    let mut by_call: HashMap<&str, Vec<&Value>> = HashMap::new();
    for line in lines {
        by_call.entry(line["call"].as_str().unwrap()).or_default().push(line);
    }
    assert_eq!(by_call.len(), CALLS);
    for of_call in by_call.values() {
        assert_eq!(of_call.len(), uses + 1);
        assert_eq!(of_call[uses]["kind"], "call");
        assert!(of_call[..uses].iter().all(|line| line["target"] == of_call[0]["target"]));
    }
}

#[test]
fn concurrent_calls_write_complete_lines_and_lose_none() {
    let job = audited(Job::default());
    run(&job, 100);
    check_complete(&lines_of(&path(&job)), 100);
}

#[test]
fn rotation_during_concurrent_calls_loses_no_line() {
    let job = Job::default().configure(|config| config["audit"] = json!({"path": "../audit.log", "max_bytes": 65_536}));
    // One file is full, and the lines after it fit into the other four, so that no file is deleted.
    call_with_uses(&job, "vm-first", 250).run().result();
    let first = last_call(&job)["call"].clone();
    run(&job, 12);
    let files: Vec<PathBuf> =
        [".4", ".3", ".2", ".1", ""].iter().map(|end| job.path(&format!("audit.log{end}"))).collect();
    let existing: Vec<&PathBuf> = files.iter().filter(|path| path.exists()).collect();
    assert!(existing.len() >= 2, "no file was rotated: {existing:?}");
    let sizes: Vec<u64> = existing.iter().map(|path| path.metadata().unwrap().len()).collect();
    let (last, rotated) = sizes.split_last().unwrap();
    assert!(rotated.iter().all(|size| *size >= 65_536), "{sizes:?}");
    assert!(sizes.iter().sum::<u64>() < 5 * 65_536, "{sizes:?}, last {last}");
    let concurrent = existing.iter().flat_map(|path| lines_of(path)).filter(|line| line["call"] != first);
    check_complete(&concurrent.collect::<Vec<Value>>(), 12);
}

#[test]
fn rotation_deletes_the_oldest_files() {
    let job = Job::default().configure(|config| config["audit"] = json!({"path": "../audit.log", "max_bytes": 65_536}));
    for _ in 0..8 {
        call_with_uses(&job, "vm-1", 250).run().result();
    }
    let names: Vec<String> = std::fs::read_dir(job.path(""))
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("audit"))
        .collect();
    assert_eq!(names.len(), 6, "expected the log, four rotated files and the lock: {names:?}");
    for end in ["", ".1", ".2", ".3", ".4"] {
        assert_eq!(lines_of(&job.path(&format!("audit.log{end}"))).len(), 251);
    }
}
