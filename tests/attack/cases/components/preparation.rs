//! Attacks during preparation, when a guest's code runs for the first time, started by
//! the user that installs it.

use super::{CLASS, has_vm, info};
use crate::case::Case;
use serde_json::json;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tests::job::write;
use tests::users::{NOBODY, is_root};
use tests::{CLOUD_ERROR, Job, hostile};

fn job(name: &str) -> Job {
    Job::new().guest_bytes(&hostile::guest(name))
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "`describe` that uses the host", &[], || {
            for name in ["describe-calls-host", "describe-sends"] {
                let response = info(&job(name));
                assert_eq!(response.result()["stemcell_formats"], json!(["hostile-raw"]));
                assert_eq!(response.stderr, "");
            }
        }),
        Case::offline(CLASS, "`describe` that calls exit with success", &["exit-is-failure"], || {
            let job = job("describe-exits");
            has_vm(&job).fails(CLOUD_ERROR, &["guest.wasm: called exit(0) in describe"]);
            assert!(job.cached("").is_empty());
        }),
        Case::offline(CLASS, "invalid names, versions and formats", &["description-form"], || {
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
                response.fails(CLOUD_ERROR, &["guest.wasm: `describe` returns "]);
                assert!(
                    response.message().len() < 2000 && !response.message().contains('\u{1b}'),
                    "{:?}",
                    response.message()
                );
                assert!(job.cached("").is_empty());
            }
        }),
        Case::offline(CLASS, "methods that do not exist", &["description-form"], || {
            for method in ["fly", "", "__proto__", "ping", "\u{1b}[2J"] {
                let guest = hostile::describing("n", "1", &["f"], &["has_vm", method]);
                let response = has_vm(&Job::new().guest_bytes(&guest));
                response.fails(CLOUD_ERROR, &["`describe` lists the method "]);
                assert!(!response.message().contains('\u{1b}'), "{:?}", response.message());
            }
        }),
        Case::offline(CLASS, "`describe` that does not end", &["describe-time"], || {
            let job = job("describe-loops").limits(json!({"compile_seconds": 15}));
            has_vm(&job).fails(CLOUD_ERROR, &["guest.wasm: ", "describe"]);
        }),
        Case::offline(
            CLASS,
            "the rights of the compiling child",
            &["child-user", "child-environment", "child-privileges"],
            check_compiling_child,
        ),
        Case::offline(CLASS, "an answer of the compiling child that is too large", &["child-answer"], || {
            let job = job("small").with_compiler("#!/bin/sh\nexec cat \"${0%/*}/../answer\"\n");
            let length: u32 = 2 << 20;
            let answer = [b"S", &u64::from(length).to_le_bytes()[..], &vec![b' '; length as usize]].concat();
            write(&job.path("answer"), &answer);
            has_vm(&job).fails(CLOUD_ERROR, &["the process that compiles the guest sent a malformed answer"]);
        }),
        Case::offline(CLASS, "a guest that needs more memory to compile than allowed", &["limit-compile_mib"], || {
            let job = Job::new().limits(json!({"compile_mib": 60}));
            info(&job).reaches("compile_mib");
            assert!(job.cached(".json").is_empty());
        }),
    ]
}

/// Checks the rights of the compiling child, as the kernel shows them while it runs a
/// guest's code.
fn check_compiling_child() {
    if !is_root("the compiling child's rights") {
        return;
    }
    // Without the lock-down, which also drops privileges.
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
    // The request is written first, as a dropped stdin would be an empty request.
    let written = parent.stdin.take().map(|mut stdin| std::io::Write::write_all(&mut stdin, call.request().as_bytes()));
    assert!(matches!(written, Some(Ok(()))));
    let until = Instant::now() + Duration::from_secs(10);
    let mut last = String::from("no compiling child was seen");
    let found = loop {
        if Instant::now() > until || parent.try_wait().is_ok_and(|status| status.is_some()) {
            break Err(last);
        }
        match child_rights(&parent) {
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

/// Returns what is wrong with the rights of the compiling child, or None if there is
/// no such child.
fn child_rights(parent: &Child) -> Option<Result<(), String>> {
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
        Err(format!("the child compiles as {} and {}", field("Uid:"), field("Gid:")))
    } else if field("NoNewPrivs:") != "1" {
        Err("the child can gain privileges".to_owned())
    } else if of("environ")?.contains("BOSH_JOBS_DIR") {
        Err("the child has the caller's environment".to_owned())
    } else {
        Ok(())
    })
}
