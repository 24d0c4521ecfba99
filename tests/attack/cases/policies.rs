//! The operator's config and policy as files: files that other users could have
//! written, other kinds of files in their place, and malformed contents. The guest
//! does not run, `check` reports the same, and no content of a file is shown.

use crate::case::Case;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use tests::job::{make_dir, set_mode, write};
use tests::response::CANARY;
use tests::servers::{Authority, Validity};
use tests::users::{NOBODY, give, is_root};
use tests::{CPI_ERROR, Job, probe};

const CLASS: &str = "policy and config files";

/// The paths of both files.
const FILES: [fn(&Job) -> PathBuf; 2] = [Job::config_file, Job::policy_file];

/// Asserts that a call and `check` fail with these texts, and that the guest does not
/// run.
#[track_caller]
fn assert_refused(job: &Job, said: &[&str]) {
    let script = json!([{"op": "log", "message": "the guest runs"}]);
    let response = job.call("has_vm", json!([probe::cid(&script)])).run();
    response.fails(CPI_ERROR, &["config: "]).fails(CPI_ERROR, said);
    assert!(!response.stderr.contains("the guest runs"), "{}", response.stderr);
    let (passed, text) = job.check();
    assert!(!passed, "check passes: {text}");
    for part in said {
        assert!(text.contains(part), "check does not say `{part}`: {text}");
    }
    assert!(!text.contains(CANARY), "check shows a secret: {text}");
}

#[track_caller]
fn unwrap_io<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn cases() -> Vec<Case> {
    [writers(), places(), contents(), changes()].into_iter().flatten().collect()
}

fn writers() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "files that group or others can write", &["trusted-file"], || {
            for file in FILES {
                for mode in [0o620, 0o602, 0o660, 0o666, 0o777] {
                    let job = Job::default();
                    set_mode(&file(&job), mode);
                    assert_refused(
                        &job,
                        &[&format!("is writable by group or others (mode {mode:o}); run `chmod go-w` on it")],
                    );
                }
            }
        }),
        Case::offline(CLASS, "files of another user", &["trusted-file"], || {
            if is_root("giving files away") {
                for file in FILES {
                    let job = Job::default();
                    give(&file(&job), NOBODY);
                    assert_refused(&job, &["belongs to user 65534, neither to this user (0) nor to root"]);
                }
            }
        }),
        Case::offline(CLASS, "links to files that others can write", &["trusted-file"], || {
            for file in FILES {
                let job = Job::default();
                let (path, theirs) = (file(&job), job.path("theirs.json"));
                unwrap_io(fs::rename(&path, &theirs));
                unwrap_io(symlink(&theirs, &path));
                set_mode(&theirs, 0o666);
                assert_refused(&job, &["is writable by group or others (mode 666)"]);
            }
        }),
        Case::offline(CLASS, "a private key that all users can read", &["key-file"], || {
            let client = Authority::new().issue(&["client.test"], Validity::Now);
            let job = Job::default();
            write(&job.path("client.pem"), client.certificate.as_bytes());
            write(&job.path("client.key"), client.key.as_bytes());
            set_mode(&job.path("client.key"), 0o644);
            let tls = json!({"client": {"cert": job.path("client.pem"), "key": job.path("client.key")}});
            let job = job.policy(json!({"version": 1, "http": [{
                "id": "api", "to": "https://5.6.7.10", "methods": ["GET"], "paths": ["/**"], "tls": tls,
            }]}));
            let said = "can be read by all users; run `chmod o-r` on it";
            let script = json!([{"op": "http", "url": "https://5.6.7.10/"}]);
            let response = job.call("has_vm", json!([probe::cid(&script)])).run();
            assert!(response.message().contains(said), "{}", response.message());
            let (passed, text) = job.check();
            assert!(!passed && text.contains(said), "{text}");
        }),
        Case::offline(CLASS, "a warning about files that all users can read", &[], || {
            // Only a warning, as jobs are often rendered this way and not every file holds secrets.
            for file in FILES {
                let job = Job::default();
                set_mode(&file(&job), 0o644);
                let (passed, text) = job.check();
                assert!(passed && text.contains("is readable by every user; run `chmod o-r` on it"), "{text}");
            }
        }),
    ]
}

fn places() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "missing files", &[], || {
            for file in FILES {
                let job = Job::default();
                unwrap_io(fs::remove_file(file(&job)));
                assert_refused(&job, &["cannot be read (No such file"]);
            }
        }),
        Case::offline(CLASS, "directories, pipes and devices in place of the files", &[], || {
            for file in FILES {
                let job = Job::default();
                let path = file(&job);
                unwrap_io(fs::remove_file(&path));
                make_dir(&path);
                assert_refused(&job, &["is not a regular file"]);
                unwrap_io(fs::remove_dir(&path));
                assert!(Command::new("mkfifo").arg(&path).status().is_ok_and(|status| status.success()));
                assert_refused(&job, &["is not a regular file"]);
                for target in ["/dev/zero", "/dev/stdin", "/"] {
                    unwrap_io(fs::remove_file(&path));
                    unwrap_io(symlink(target, &path));
                    assert_refused(&job, &["is not a regular file"]);
                }
            }
        }),
        Case::offline(CLASS, "links to themselves", &[], || {
            for file in FILES {
                let job = Job::default();
                let path = file(&job);
                unwrap_io(fs::remove_file(&path));
                unwrap_io(symlink(&path, &path));
                assert_refused(&job, &["cannot be read ("]);
            }
        }),
        Case::offline(CLASS, "another file in place of the policy", &[], || {
            for path in ["../secret.txt", "../config/../secret.txt"] {
                let job = Job::default().configure(|config| config["policy"] = json!(path));
                write(&job.path("secret.txt"), format!("{CANARY}-of-a-file: 7\n").as_bytes());
                assert_refused(&job, &["secret.txt: the policy is not valid JSON"]);
            }
        }),
        Case::offline(CLASS, "invalid paths of a guest and a policy", &[], || {
            let long = "x".repeat(5000);
            for path in ["", "x\u{0}y", "/proc/self/mem", &long, "https://evil.test/policy.json"] {
                assert_refused(&Job::default().configure(|config| config["policy"] = json!(path)), &[]);
            }
            for path in [
                "",
                "x\u{0}y",
                "https://evil.test/guest.wasm",
                "/proc/self/exe\u{0}",
                "~/guest.wasm",
                "$HOME/guest.wasm",
            ] {
                assert_refused(&Job::default().configure(|config| config["guest"]["path"] = json!(path)), &["guest "]);
            }
        }),
    ]
}

fn contents() -> Vec<Case> {
    let text = |name: &str, mutants: &[&str], said: &'static str, make: fn(&str) -> Vec<Vec<u8>>| {
        Case::offline(CLASS, name, mutants, move || {
            for file in FILES {
                let job = Job::default();
                let valid = fs::read_to_string(file(&job)).unwrap_or_default();
                for bytes in make(&valid) {
                    write(&file(&job), &bytes);
                    assert_refused(&job, &[said]);
                }
            }
        })
    };
    vec![
        text("files that are not JSON", &[], "JSON", |valid| {
            let cut = valid.as_bytes()[..valid.len() - 2].to_vec();
            vec![
                Vec::new(),
                b"version: 1\n".to_vec(),
                b"\0".to_vec(),
                cut,
                format!("\u{feff}{valid}").into_bytes(),
                format!("// x\n{valid}").into_bytes(),
            ]
        }),
        text("two documents in one file", &["json-trailing"], "JSON", |valid| {
            vec![
                format!("{valid}{valid}").into_bytes(),
                format!("{valid} x").into_bytes(),
                format!("{valid}\0").into_bytes(),
            ]
        }),
        text("duplicate keys", &["json-duplicate-key"], "occurs twice", |valid| {
            let again = |key: &str| valid.replacen('{', &format!("{{\"{key}\":1,"), 1).into_bytes();
            vec![again("version"), again("\\u0076ersion")]
        }),
        text("deep nesting", &["json-depth"], "JSON", |valid| {
            let deep = |count: usize| {
                valid.replacen('{', &format!("{{\"x\":{}{},", "[".repeat(count), "]".repeat(count)), 1).into_bytes()
            };
            vec![deep(70), deep(9999), vec![b'['; 2 << 20]]
        }),
        text("text that is not UTF-8", &[], "is not UTF-8 text; save it as UTF-8", |_| {
            vec![b"{\"version\":1,\"a\":\"\xff\"}".to_vec(), b"\xff\xfe{\0}\0".to_vec()]
        }),
        text("files of five megabytes", &[], "is larger than 4 MiB", |valid| {
            vec![format!("{valid}{}", " ".repeat(5 << 20)).into_bytes()]
        }),
        text("files that do not hold an object", &[], "object", |_| {
            vec![b"[]".to_vec(), b"7".to_vec(), b"null".to_vec(), b"\"x\"".to_vec()]
        }),
        Case::offline(CLASS, "secrets of the wrong type, or under a wrong key", &[], || {
            let secret = |n: u8| json!(format!("{CANARY}-{n}"));
            let changes: [(&str, Value); 6] = [
                ("allow_local", secret(1)),
                ("agent", json!({"mbus": [secret(2)]})),
                ("agent", json!({"ntp": secret(3)})),
                ("registry", json!({"endpoint": format!("http://u:{CANARY}@h"), "user": "u", "password": secret(4)})),
                ("registry", json!({"endpoint": "http://h", "user": "u", "pasword": secret(5)})),
                ("limits", json!({"wall_seconds": secret(6)})),
            ];
            for (key, value) in changes {
                assert_refused(
                    &Job::default().configure(|config| config[key] = value),
                    &[&format!("`{key}` is invalid")],
                );
            }
        }),
    ]
}

/// Every call reads the current policy.
fn changes() -> Vec<Case> {
    vec![Case::offline(CLASS, "a long policy that becomes invalid between two calls", &[], || {
        let grant = |at: usize| tests::servers::grant(&format!("grant-{at}"), &format!("https://api-{at}.iaas.test"));
        let grants: Vec<Value> = (0..30).map(grant).collect();
        let job = Job::new().policy(json!({"version": 1, "http": grants}));
        for _ in 0..2 {
            assert_eq!(*job.call("has_vm", json!(["vm-1"])).run().result(), true);
        }
        let text = unwrap_io(fs::read_to_string(job.policy_file()));
        // The file is changed in place, and keeps its length.
        for (from, to, said) in [
            (r#""id":"grant-11""#, r#""id":"grant-12""#, "the id of an earlier grant"),
            ("https://api-13.iaas.test", "https://api-13.iaas.te*t", "is not an origin"),
            (r#""paths":["/**"]"#, r#""paths":["**/"]"#, "`http[0].paths[0]`"),
        ] {
            assert_eq!((from.len(), text.contains(from)), (to.len(), true));
            write(&job.policy_file(), text.replacen(from, to, 1).as_bytes());
            assert_refused(&job, &[said]);
        }
    })]
}
