//! How long a token is kept, and what a server's 401 does to it.

use super::{Cloud, TOKEN, forge, issue_tokens, key_file, now, received, record, token_file};
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tests::cloud::{answered, call, denied, get};
use tests::process::contains;
use tests::servers::{Answer, Server};
use tests::{Job, probe};

#[test]
fn only_a_token_that_says_when_it_expires_is_kept() {
    for (lifetime, expires, kept) in [
        (json!(3600), json!({"in_seconds": "json:/expires"}), true),
        (json!(1_000_000), json!({"in_seconds": "json:/expires"}), true),
        (json!("2999-01-01T00:00:00Z"), json!({"at": "json:/expires"}), true),
        (json!(3600), Value::Null, false),
        (json!(null), json!({"in_seconds": "json:/expires"}), false),
        (json!("soon"), json!({"in_seconds": "json:/expires"}), false),
        (json!(3600), json!({"in_seconds": "json:/elsewhere"}), false),
        (json!("some day"), json!({"at": "json:/expires"}), false),
        (json!("2020-01-01T00:00:00Z"), json!({"at": "json:/expires"}), false),
        (json!(0), json!({"in_seconds": "json:/expires"}), false),
        (json!(-5), json!({"in_seconds": "json:/expires"}), false),
        (json!(60), json!({"in_seconds": "json:/expires"}), false),
    ] {
        let cloud = Cloud::new(lifetime.clone());
        let mut policy = cloud.policy();
        match expires.clone() {
            Value::Null => drop(policy["logins"]["main"].as_object_mut().unwrap().remove("expires")),
            expires => policy["logins"]["main"]["expires"] = expires,
        }
        let job = cloud.job().policy(policy);
        cloud.check_logins(&job, 2, if kept { 1 } else { 2 }, &format!("{lifetime} {expires}"));
        let written = fs::read(token_file(&job)).unwrap();
        assert_eq!(contains(&written, TOKEN.as_bytes()), kept, "{lifetime} {expires}");
    }
}

/// The ages are far enough from each bound that a slow machine does not matter.
#[test]
fn a_token_is_used_for_an_hour_and_until_a_minute_before_it_expires() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    for (made, expires, used) in [
        (0, 7200, true),
        (0, 660, true),
        (-3000, 600, true),
        (-3000, 100_000, true),
        (0, 60, false),
        (0, 1, false),
        (0, -1, false),
        (-3600, 3600, false),
        (-3601, 100_000, false),
        (-1_000_000, 1_000_000, false),
        // The clock was set back.
        (600, 4200, false),
    ] {
        let at = |seconds: i64| now().saturating_add_signed(seconds);
        forge(&job, &record(json!({"made": at(made), "expires": at(expires)})));
        cloud.check_logins(&job, 1, usize::from(!used), &format!("{made} {expires}"));
        let last = received(&cloud.api).pop().unwrap();
        assert_eq!(last == "a-forged-token", used, "{made} {expires}");
    }
}

/// Returns servers, of which the API answers 401 to every token except those that `accepts` returns true for.
fn refusing(accepts: impl Fn(&str) -> bool + Send + Sync + 'static) -> Cloud {
    let api = Server::start(move |seen| {
        let known = seen.header("x-auth-token").is_some_and(&accepts);
        if known { Answer::ok("in") } else { Answer::new(401, "who?") }
    });
    Cloud { api, ..Cloud::new(json!(3600)) }
}

fn send(cloud: &Cloud, job: &Job) -> Value {
    probe::outcomes_in(call(job, &json!([get(&cloud.api.url("/"))])).message()).remove(0)
}

#[test]
fn a_401_removes_the_token_that_was_refused() {
    // During the new login, the file has the old token only among those that no response may show.
    let file: Arc<Mutex<Option<std::path::PathBuf>>> = Arc::default();
    let during = Arc::new(Mutex::new(Vec::new()));
    let identity = Server::start({
        let (issue, file, during) = (issue_tokens(json!(3600)), Arc::clone(&file), Arc::clone(&during));
        move |seen| {
            let path = file.lock().unwrap().clone();
            during.lock().unwrap().extend(path.map(|path| fs::read(path).unwrap()));
            issue(seen)
        }
    });
    let cloud = Cloud { identity, ..refusing(|token| token.starts_with(TOKEN)) };
    let job = cloud.job_with_token();
    *file.lock().unwrap() = Some(token_file(&job));
    forge(&job, &record(json!({})));
    answered(&send(&cloud, &job), 200);
    assert_eq!(received(&cloud.api)[1..], ["a-forged-token".to_owned(), format!("{TOKEN}2")]);
    let during = during.lock().unwrap().clone();
    assert!(during.len() == 1 && contains(&during[0], b"{\"token\":\"\","), "{during:?}");
    assert!(contains(&during[0], b"\"earlier\":[{\"token\":\"a-forged-token\""), "{during:?}");
    cloud.check_logins(&job, 2, 0, "the new token is kept");
}

#[test]
fn a_401_does_not_remove_the_token_of_another_call() {
    // While the first token is refused, another call has put its own into the file.
    let job: Arc<Mutex<Option<(std::path::PathBuf, std::path::PathBuf)>>> = Arc::default();
    let cloud = refusing({
        let job = Arc::clone(&job);
        move |token| {
            if token == "a-forged-token"
                && let Some((file, key)) = job.lock().unwrap().take()
            {
                super::forge_at(&file, &key, &record(json!({"token": "the-token-of-another-call"})));
            }
            token != "a-forged-token"
        }
    });
    let kept = cloud.job_with_token();
    forge(&kept, &record(json!({})));
    *job.lock().unwrap() = Some((token_file(&kept), key_file(&kept)));
    cloud.check_logins(&kept, 2, 0, "the token of another call is used and stays");
    assert_eq!(received(&cloud.api)[1..], ["a-forged-token", "the-token-of-another-call", "the-token-of-another-call"]);
}

#[test]
fn calls_make_one_new_login_per_minute_because_of_401() {
    let cloud = refusing(|_| false);
    let job = cloud.job();
    // The token of the first login is refused, and so is that of the second one.
    answered(&send(&cloud, &job), 401);
    assert_eq!(cloud.logins(), 2);
    for _ in 0..3 {
        denied_after_sending(&send(&cloud, &job));
    }
    assert_eq!(cloud.logins(), 2);
    for (refused, expected) in
        [(json!(now() - 30), 0), (json!(now() - 61), 1), (json!(now() + 1000), 1), (json!(null), 1)]
    {
        forge(&job, &record(json!({"refused": refused})));
        let before = cloud.logins();
        send(&cloud, &job);
        assert_eq!(cloud.logins() - before, expected, "{refused}");
    }
}

#[test]
fn a_login_that_fails_after_a_401_counts_as_the_one_of_that_minute() {
    let count = AtomicUsize::new(0);
    let issue = issue_tokens(json!(3600));
    let identity = Server::start(move |seen| match count.fetch_add(1, Ordering::SeqCst) {
        1 => Answer::new(503, "later"),
        _ => issue(seen),
    });
    let cloud = Cloud { identity, ..refusing(|_| false) };
    let job = cloud.job();
    assert_eq!(send(&cloud, &job)["error"]["kind"], "protocol");
    assert_eq!(cloud.logins(), 2);
    // There is no token any more, so the next call logs in, but not twice.
    denied_after_sending(&send(&cloud, &job));
    assert_eq!(cloud.logins(), 3);
}

/// Checks that a request was sent with a token, refused, and not sent again after a new login.
#[track_caller]
fn denied_after_sending(outcome: &Value) {
    let mut unsent = outcome.clone();
    assert_eq!(unsent["error"]["sent"].take(), json!(true), "{outcome}");
    unsent["error"]["sent"] = json!(false);
    denied(&unsent, "credential", &["a server refuses the tokens of login `main`", "less than a minute ago"]);
}
