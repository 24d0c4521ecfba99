//! The pin and the signatures: only the pinned and signed bytes are compiled.

use super::{CLASS, assert_refused, has_vm};
use crate::case::Case;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use tests::job::write;
use tests::signing::{line, public};
use tests::{CPI_ERROR, Job, Response, hostile};

const REFUSED: [&str; 2] = ["guest.wasm: its sha256 is ", "but `guest.sha256` pins "];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "another guest than the pinned one", &["pin"], || {
            let job = Job::new().guest_bytes(&hostile::guest("small"));
            write(&job.path("guest.wasm"), &hostile::small_without_vm());
            assert_refused(&job, &REFUSED);
            let (passed, text) = job.check();
            assert!(!passed && text.contains(REFUSED[1]), "check: {text}");
        }),
        Case::offline(CLASS, "a file that is replaced while it is hashed and compiled", &["pin"], || {
            replace_during_calls(false)
        }),
        Case::offline(CLASS, "a file that is overwritten while it is hashed and compiled", &["pin"], || {
            replace_during_calls(true)
        }),
        Case::offline(CLASS, "signatures by too few keys or of another guest", &["signature"], || {
            let (small, other) = (hostile::guest("small"), hostile::small_without_vm());
            for (threshold, lines, said) in [
                (1, vec![], "is empty"),
                (1, vec![line(9, &small)], "0 of 1 needed signatures"),
                (1, vec![line(1, &other)], "0 of 1 needed signatures"),
                (2, vec![line(1, &small)], "1 of 2 needed signatures"),
                (2, vec![line(1, &small), line(1, &small)], "1 of 2 needed signatures"),
                (3, vec![line(1, &small), line(2, &small), line(9, &small)], "2 of 3 needed signatures"),
            ] {
                assert_refused(&signed(threshold, &keys(), &lines), &[said]);
            }
            assert_eq!(*has_vm(&signed(2, &keys(), &[line(3, &small), line(1, &small)])).result(), true);
        }),
        Case::offline(CLASS, "a key that accepts forged signatures", &["signature-key"], || {
            // The key is the neutral element, for which this signature fits any text.
            let mut neutral = [0; 32];
            neutral[0] = 1;
            let mut forged = [0; 64];
            forged[0] = 1;
            let job = signed(1, &[json!(STANDARD.encode(neutral))], &[format!("{}\n", STANDARD.encode(forged))]);
            assert_refused(&job, &["`guest.signature.ed25519[0]` is a key with which anyone can sign"]);
        }),
        Case::offline(CLASS, "a key that is listed twice", &["signature-twice"], || {
            let small = hostile::guest("small");
            let job = signed(2, &[json!(public(1)), json!(public(1))], &[line(1, &small), line(1, &small)]);
            assert_refused(&job, &["`guest.signature.ed25519[1]` is listed twice"]);
        }),
    ]
}

/// Runs calls while the guest's file alternates between two modules. There is no
/// cache, so that every call reads and compiles the file.
fn replace_during_calls(in_place: bool) {
    let (pinned, other) = (hostile::guest("small"), hostile::small_without_vm());
    let job = Job::new().guest_bytes(&pinned).configure(|config| config["cache"] = json!("../no/such/dir"));
    let (guest, next, stop) = (job.path("guest.wasm"), job.path("next.wasm"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for bytes in [&other, &pinned].into_iter().cycle().take(100_000) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let path = if in_place { &guest } else { &next };
                write(path, bytes);
                if !in_place {
                    let _ = fs::rename(&next, &guest);
                }
            }
        });
        let answers: Vec<Response> = (0..20).map(|_| has_vm(&job)).collect();
        stop.store(true, Ordering::Relaxed);
        for answer in answers {
            match answer.json["error"].is_null() {
                true => assert_eq!(answer.json["result"], true, "the other guest ran"),
                false => drop(answer.fails(CPI_ERROR, &REFUSED)),
            }
        }
    });
}

fn keys() -> Vec<Value> {
    [1, 2, 3].map(|seed| json!(public(seed))).to_vec()
}

fn signed(threshold: usize, keys: &[Value], lines: &[String]) -> Job {
    let job = Job::new().guest_bytes(&hostile::guest("small"));
    write(&job.path("guest.wasm.sig"), lines.concat().as_bytes());
    job.configure(|config| config["guest"]["signature"] = json!({"ed25519": keys, "threshold": threshold}))
}
