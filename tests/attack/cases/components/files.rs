//! Files that are not a component, or a component that is damaged.

use super::{CLASS, assert_refused, component, has_vm};
use crate::case::Case;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tests::job::make_dir;
use tests::{CLOUD_ERROR, CPI_ERROR, Job, dist, hostile};

pub(super) fn cases() -> Vec<Case> {
    let other_file = |name: &str, bytes: fn() -> Vec<Vec<u8>>, said: &'static str| {
        Case::offline(CLASS, name, &[], move || {
            for bytes in bytes() {
                let job = Job::new().guest_bytes(&bytes);
                assert_refused(&job, &["guest.wasm: ", said]);
                let (passed, text) = job.check();
                assert!(!passed && text.contains(said), "check: {text}");
            }
        })
    };
    vec![
        other_file("an empty file", || vec![Vec::new()], "is empty"),
        other_file(
            "a core module",
            || vec![b"\0asm\x01\0\0\0".to_vec(), wat("(module (func (export \"run\")))")],
            "is a core module, not a component: build it for wasm32-wasip2",
        ),
        other_file(
            "WebAssembly as text",
            || vec![b"(component)".to_vec(), b"(module (func))".to_vec()],
            "is WebAssembly text",
        ),
        other_file(
            "native code and compiled code",
            || vec![read(&dist::hot())[..4096].to_vec(), read(&artifact())],
            "(ELF); use the .wasm component itself",
        ),
        other_file(
            "scripts, archives and noise",
            || {
                vec![
                    b"#!/bin/sh\necho '{}'\n".to_vec(),
                    b"\x1f\x8b\x08\0\0\0\0\0".to_vec(),
                    b"PK\x03\x04".to_vec(),
                    vec![0; 4096],
                    vec![0xff; 4096],
                ]
            },
            "is not WebAssembly",
        ),
        Case::offline(CLASS, "a component that is cut off at any place", &[], || {
            let small = hostile::guest("small");
            for part in 1..40 {
                assert_refused(&Job::new().guest_bytes(&small[..small.len() * part / 40]), &["guest.wasm: the guest "]);
            }
        }),
        Case::offline(CLASS, "garbage after a component", &[], || {
            for garbage in [&b"\0"[..], b"garbage", b"\0asm\x0d\0\x01\0", &[0xff; 100]] {
                assert_refused(
                    &Job::new().guest_bytes(&[&hostile::guest("small"), garbage].concat()),
                    &["guest.wasm: the guest "],
                );
            }
        }),
        Case::offline(CLASS, "flipped bits", &[], || {
            let small = hostile::guest("small");
            for at in (8..small.len()).step_by(211) {
                let mut bytes = small.clone();
                bytes[at] ^= 0x11;
                // The file may still be a component, which then answers or traps.
                let response = has_vm(&Job::new().guest_bytes(&bytes));
                let error = response.json["error"]["type"].as_str();
                assert!(
                    error.is_none_or(|error| [CPI_ERROR, CLOUD_ERROR, tests::NOT_IMPLEMENTED].contains(&error)),
                    "{at}: {}",
                    response.json
                );
            }
        }),
        Case::offline(CLASS, "a guest of 200 MiB", &["limit-wasm_mib"], || {
            let job = Job::new();
            let (large, file) = (job.path("large.wasm"), fs::File::create(job.path("large.wasm")));
            file.and_then(|file| file.set_len(200 << 20)).unwrap_or_else(|error| panic!("{error}"));
            let job = job.configure(|config| config["guest"]["path"] = json!(large));
            super::info(&job).reaches("wasm_mib");
        }),
        Case::offline(CLASS, "a directory, a pipe or a device in place of a guest", &[], || {
            let job = Job::new();
            make_dir(&job.path("directory"));
            let pipe = job.path("pipe");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
            symlink(&pipe, job.path("link")).unwrap_or_else(|error| panic!("{error}"));
            let places =
                [job.path("directory"), pipe, job.path("link"), "/dev/zero".into(), "/dev/stdin".into(), "/".into()];
            for path in places {
                let job = Job::new().configure(|config| config["guest"]["path"] = json!(path));
                assert_refused(
                    &job,
                    &["is not a regular file; check `guest.path`, or `guest.package` and `guest.file`"],
                );
            }
        }),
        Case::offline(CLASS, "a component of another world", &[], || {
            for bytes in [component("(component)"), hostile::guest("other-world")] {
                assert_refused(
                    &Job::new().guest_bytes(&bytes),
                    &["guest.wasm: the guest does not fit the world bosh:cpi"],
                );
            }
        }),
        Case::offline(CLASS, "exports that are not part of the world", &[], || {
            assert_eq!(*has_vm(&Job::new().guest_bytes(&hostile::guest("extra-exports"))).result(), true);
        }),
    ]
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn read(path: &PathBuf) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the path of the prepared probe's machine code.
fn artifact() -> PathBuf {
    let entries = fs::read_dir(dist::shared_cache()).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut artifacts = entries.filter(|path| path.extension().is_some_and(|extension| extension == "cwasm"));
    artifacts.next().unwrap_or_else(|| panic!("the probe is not prepared"))
}
