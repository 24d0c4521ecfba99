//! Many calls at once, as a Director makes them: no line is lost or mixed with
//! another, and files that are full are put aside once.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use tests::Job;
use tests::audit::{audited, last_call, lines_of, path, talkative};

const CALLS: usize = 40;

/// Runs calls at once, each with this many uses; each is told apart by its VM.
fn run(job: &Job, uses: usize) {
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..CALLS)
            .map(|call| {
                scope.spawn(move || {
                    let key = format!("vm-{call}");
                    talkative(job, &key, uses).run().result().clone()
                })
            })
            .collect();
        for call in started {
            assert!(call.join().is_ok_and(|result| result.is_string()));
        }
    });
}

/// Each call has all of its lines, the last of them its own.
#[track_caller]
fn are_complete(lines: &[Value], uses: usize) {
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
fn lines_of_many_calls_are_whole_and_all_there() {
    let job = audited(Job::default());
    run(&job, 100);
    are_complete(&lines_of(&path(&job)), 100);
}

#[test]
fn files_are_put_aside_while_many_write_and_nothing_is_lost() {
    let job = Job::default().configure(|config| config["audit"] = json!({"path": "../audit.log", "max_bytes": 65_536}));
    // A full file, and fewer bytes after it than the other four hold, so that none of them has to go.
    talkative(&job, "vm-first", 250).run().result();
    let first = last_call(&job)["call"].clone();
    run(&job, 12);
    let files: Vec<PathBuf> =
        [".4", ".3", ".2", ".1", ""].iter().map(|end| job.path(&format!("audit.log{end}"))).collect();
    let there: Vec<&PathBuf> = files.iter().filter(|path| path.exists()).collect();
    assert!(there.len() >= 2, "nothing was put aside: {there:?}");
    let sizes: Vec<u64> = there.iter().map(|path| path.metadata().unwrap().len()).collect();
    let (last, aside) = sizes.split_last().unwrap();
    assert!(aside.iter().all(|size| *size >= 65_536), "{sizes:?}");
    assert!(sizes.iter().sum::<u64>() < 5 * 65_536, "{sizes:?}, last {last}");
    let of_many = there.iter().flat_map(|path| lines_of(path)).filter(|line| line["call"] != first);
    are_complete(&of_many.collect::<Vec<Value>>(), 12);
}

#[test]
fn the_oldest_files_go() {
    let job = Job::default().configure(|config| config["audit"] = json!({"path": "../audit.log", "max_bytes": 65_536}));
    for _ in 0..8 {
        talkative(&job, "vm-1", 250).run().result();
    }
    let names: Vec<String> = std::fs::read_dir(job.path(""))
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("audit"))
        .collect();
    assert_eq!(names.len(), 6, "the log, four that were put aside, and the lock: {names:?}");
    for end in ["", ".1", ".2", ".3", ".4"] {
        assert_eq!(lines_of(&job.path(&format!("audit.log{end}"))).len(), 251);
    }
}
