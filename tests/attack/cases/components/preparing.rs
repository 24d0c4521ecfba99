//! While a guest is prepared its code runs for the first time, for whoever
//! installed it.

use super::{CLASS, has_vm, info};
use crate::case::Case;
use serde_json::json;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tests::users::{NOBODY, is_root};
use tests::{CLOUD_ERROR, Job, hostile};

fn job(name: &str) -> Job {
    Job::new().guest_bytes(&hostile::guest(name))
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::silent(CLASS, "`describe` that uses the host", &[], || {
            for name in ["describe-calls-the-host", "describe-sends"] {
                let response = info(&job(name));
                assert_eq!(response.result()["stemcell_formats"], json!(["hostile-raw"]));
                assert_eq!(response.stderr, "");
            }
        }),
        Case::silent(CLASS, "`describe` that leaves with success", &["exit-is-failure"], || {
            let job = job("describe-exits");
            has_vm(&job).fails(CLOUD_ERROR, &["`describe` failed: called exit(0)"]);
            assert!(job.cached("").is_empty());
        }),
        Case::silent(CLASS, "names and formats that are not plain", &["description-form"], || {
            let (long, megabyte) = ("x".repeat(65), "x".repeat(1 << 20));
            for (name, version, format) in [
                ("", "1", "f"),
                ("Upper", "1", "f"),
                ("a\nb", "1", "f"),
                ("\u{1b}[2J", "1", "f"),
                ("../../etc", "1", "f"),
                ("wasm-cpi", "1", "f"),
                (&long, "1", "f"),
                (&megabyte, "1", "f"),
                ("n", "1\u{1b}[2J", "f"),
                ("n", &megabyte, "f"),
                ("n", "1", "\u{202e}"),
                ("n", "1", &megabyte),
            ] {
                let guest = hostile::describing(name, version, &[format], &["has_vm"]);
                let job = Job::new().guest_bytes(&guest);
                let response = has_vm(&job);
                response.fails(CLOUD_ERROR, &["guest.wasm: `describe` answers "]);
                assert!(
                    response.message().len() < 2000 && !response.message().contains('\u{1b}'),
                    "{:?}",
                    response.message()
                );
                assert!(job.cached("").is_empty());
            }
        }),
        Case::silent(CLASS, "methods that the contract does not have", &["description-form"], || {
            for method in ["fly", "", "__proto__", "ping", "\u{1b}[2J"] {
                let guest = hostile::describing("n", "1", &["f"], &["has_vm", method]);
                let response = has_vm(&Job::new().guest_bytes(&guest));
                response.fails(CLOUD_ERROR, &["`describe` lists the method "]);
                assert!(!response.message().contains('\u{1b}'), "{:?}", response.message());
            }
        }),
        Case::silent(CLASS, "`describe` that takes its time", &["describe-time"], || {
            let job = job("describe-loops").limits(json!({"compile_seconds": 15}));
            has_vm(&job).fails(CLOUD_ERROR, &["guest.wasm: `describe` failed: "]);
        }),
        Case::silent(
            CLASS,
            "the rights of whoever compiles",
            &["child-user", "child-environment", "child-privileges"],
            compiling,
        ),
        Case::silent(CLASS, "a module that needs more memory than compiling may take", &["limit-compile_mib"], || {
            let job = Job::new().limits(json!({"compile_mib": 60}));
            info(&job).reaches("compile_mib");
            assert!(job.cached(".json").is_empty());
        }),
    ]
}

/// What the kernel tells of the compiling child while it runs a guest's code.
fn compiling() {
    if !is_root("the compiling child's rights") {
        return;
    }
    // Without the lock-down, which takes privileges as well.
    let job = job("describe-loops").limits(json!({"compile_seconds": 3}));
    let job = job.configure(|config| config["hardening"] = json!("off"));
    let call = job.call("info", json!([])).cli();
    let mut parent = call
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{error}"));
    // Its stdin is empty when this is dropped, which is an answer, too: so the request goes in first.
    let fed = parent.stdin.take().map(|mut stdin| std::io::Write::write_all(&mut stdin, call.request().as_bytes()));
    assert!(matches!(fed, Some(Ok(()))));
    let until = Instant::now() + Duration::from_secs(10);
    let mut last = String::from("no compiling child was seen");
    let found = loop {
        if Instant::now() > until || parent.try_wait().is_ok_and(|status| status.is_some()) {
            break Err(last);
        }
        match child(&parent) {
            Some(rights) if rights.is_ok() => break Ok(()),
            Some(Err(wrong)) => last = wrong,
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let _ = parent.kill();
    let _ = parent.wait();
    found.unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// What is wrong with the rights of the compiling child, if there is one.
fn child(parent: &Child) -> Option<Result<(), String>> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", parent.id())).ok()?;
    let child = children.split_whitespace().next()?.to_owned();
    let of = |file: &str| fs::read_to_string(format!("/proc/{child}/{file}")).ok();
    let status = of("status")?;
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
    let nobody = [NOBODY.to_string().as_str(); 4].join("\t");
    if !of("cmdline")?.contains("compile-guest") {
        return None;
    }
    Some(if field("Uid:") != nobody || field("Gid:") != nobody {
        Err(format!("it compiles as {} and {}", field("Uid:"), field("Gid:")))
    } else if field("NoNewPrivs:") != "1" {
        Err("it can get new privileges".to_owned())
    } else if of("environ")?.contains("BOSH_JOBS_DIR") {
        Err("it has the caller's environment".to_owned())
    } else {
        Ok(())
    })
}
