//! Calls at the same time, and calls that are killed.

use super::{Cloud, TOKEN, forge, issue_tokens, received, record, token_file};
use rustix::fs::{FlockOperation, flock};
use serde_json::json;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tests::servers::{Answer, Server, TIMEOUT};
use tests::{Call, Job};

const CALLS: usize = 50;

/// The logins that many calls at the same time may make.
const MAX_LOGINS: usize = 8;

/// Makes many calls at the same time, which must all succeed.
fn send_in_parallel(cloud: &Cloud, job: &Job) {
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..CALLS).map(|_| scope.spawn(|| drop(cloud.send(job)))).collect();
        for call in calls {
            assert!(call.join().is_ok());
        }
    });
}

#[test]
fn many_calls_at_the_same_time_share_a_login() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job();
    // The first ones make the key and the file, too.
    send_in_parallel(&cloud, &job);
    assert!(cloud.logins() <= MAX_LOGINS, "{} logins", cloud.logins());
    assert_eq!(fs::metadata(super::key_file(&job)).unwrap().len(), 32);
    cloud.check_logins(&job, 1, 0, "the file is valid afterwards");
    let before = cloud.logins();
    send_in_parallel(&cloud, &job);
    assert_eq!(cloud.logins(), before);
}

#[test]
fn many_calls_whose_token_is_refused_share_a_new_login() {
    let api = Server::start(|seen| {
        let known = seen.header("x-auth-token").is_some_and(|token| token.starts_with(TOKEN));
        if known { Answer::ok("in") } else { Answer::new(401, "who?") }
    });
    let cloud = Cloud { api, ..Cloud::new(json!(3600)) };
    let job = cloud.job_with_token();
    forge(&job, &record(json!({})));
    send_in_parallel(&cloud, &job);
    assert_eq!(cloud.logins(), 2);
    cloud.check_logins(&job, 1, 0, "the file is valid afterwards");
}

/// Waits until another process has the file open.
fn wait_until_opened(path: &Path) {
    let until = Instant::now() + TIMEOUT;
    let opened = || {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        let others = processes.filter(|process| !process.ends_with(std::process::id().to_string()));
        let mut files = others.filter_map(|process| fs::read_dir(process.join("fd")).ok()).flatten().flatten();
        files.any(|file| fs::read_link(file.path()).is_ok_and(|target| target == path))
    };
    while !opened() {
        assert!(Instant::now() < until, "no call opens {}", path.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_call_waits_for_the_login_of_another_one() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    let path = token_file(&job);
    let kept = fs::read(&path).unwrap();
    // This process has the lock, like a call that logs in.
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(0).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| cloud.send(&job));
        wait_until_opened(&path);
        // A call that does not wait would log in now.
        std::thread::sleep(Duration::from_millis(500));
        (&file).write_all(&kept).unwrap();
        flock(&file, FlockOperation::Unlock).unwrap();
        assert!(waiting.join().is_ok());
    });
    assert_eq!((cloud.logins(), received(&cloud.api).len()), (1, 2));
}

#[test]
fn a_call_does_not_wait_for_ever_for_the_login_of_another_one() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    let file = File::options().write(true).open(token_file(&job)).unwrap();
    file.set_len(0).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    cloud.check_logins(&job, 1, 1, "the lock is never released");
    // Only who has the lock may write.
    assert_eq!(file.metadata().unwrap().len(), 0);
    flock(&file, FlockOperation::Unlock).unwrap();
    cloud.check_logins(&job, 2, 1, "the lock is released");
}

/// Kills the call some time after the condition has become true.
fn kill_after(call: &Call<'_>, happened: impl Fn() -> bool, pause: Duration) {
    let mut child = call.command().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(call.request().as_bytes()).unwrap();
    let until = Instant::now() + TIMEOUT;
    while !happened() && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "the call does nothing");
        std::thread::yield_now();
    }
    std::thread::sleep(pause);
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn a_call_that_is_killed_while_it_keeps_a_token_hinders_no_other() {
    // A large record takes some time to write.
    let issue = issue_tokens(json!(3600));
    let identity = Server::start(move |seen| match issue(seen) {
        Answer::Whole { status, headers, .. } => {
            let body = json!({"expires": 3600, "catalog": "x".repeat(500_000)}).to_string().into_bytes();
            Answer::Whole { status, headers, body }
        }
        other => other,
    });
    let cloud = Cloud { identity, ..Cloud::new(json!(3600)) };
    let job = cloud.job_with_token();
    for round in 0..30 {
        // The old record is still there, but it has expired.
        forge(&job, &record(json!({"expires": 1})));
        let before = cloud.logins();
        let pause = Duration::from_micros(200 * round);
        kill_after(&cloud.call(&job), || cloud.logins() > before, pause);
        cloud.send(&job);
        cloud.check_logins(&job, 1, 0, "the file is valid after the next call");
    }
    assert!(received(&cloud.api).iter().all(|token| token.starts_with(TOKEN)));
}

#[test]
fn a_call_that_is_killed_while_it_makes_the_key_hinders_no_other() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job();
    let cache = job.cache_dir();
    let made = || {
        let names = fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with("tokens.key"))
    };
    for round in 0..20 {
        super::commands::forget_tokens(&["--cache".as_ref(), cache.as_os_str()]);
        kill_after(&cloud.call(&job), made, Duration::from_micros(20 * round));
        cloud.send(&job);
        cloud.check_logins(&job, 1, 0, "the key is valid after the next call");
    }
    super::commands::forget_tokens(&["--cache".as_ref(), cache.as_os_str()]);
    assert!(!made(), "half a key is left");
}
