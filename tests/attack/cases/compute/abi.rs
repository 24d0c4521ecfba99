//! Core code that breaks the canonical ABI, which compilers never do: each is
//! stopped at the border, and says what was wrong.

use super::{CLASS, call, job};
use crate::case::Case;
use tests::{CLOUD_ERROR, Job, hostile};

type Row = (&'static str, &'static [&'static str], &'static str, &'static str);

/// Name; guests, each of which does it; the method; what is said.
const ROWS: &[Row] = &[
    (
        "a result behind the end of memory",
        &["result-out-of-bounds"],
        "has_vm",
        "failed in has_vm: pointer out of bounds",
    ),
    ("a result where no record can begin", &["result-misaligned"], "has_vm", "return pointer not aligned"),
    ("a result that is neither ok nor error", &["unknown-discriminant"], "has_vm", "invalid expected discriminant"),
    ("an option that is neither there nor absent", &["option-of-two"], "create_vm", "invalid option discriminant"),
    ("an error of an unknown kind", &["unknown-error-kind"], "has_vm", "unexpected discriminant: 99"),
    ("a disk hint of an unknown kind", &["unknown-hint"], "attach_disk", "unexpected discriminant: 9"),
    (
        "a string that is longer than memory or wraps around",
        &["string-out-of-bounds", "string-wraps-around"],
        "create_disk",
        "string pointer/length out of bounds of memory",
    ),
    ("a list that is longer than memory", &["list-without-end"], "create_vm", "list pointer/length out of bounds"),
    ("memory for the host that is not there", &["allocator-out-of-bounds"], "has_vm", "beyond end of memory"),
    ("memory for the host that is misaligned", &["allocator-misaligned"], "create_vm", "result not aligned"),
    ("an allocator that traps", &["allocator-that-traps"], "has_vm", "`unreachable` instruction executed"),
    (
        "an allocator that calls the host back",
        &["allocator-that-calls-the-host"],
        "has_vm",
        "cannot leave component instance",
    ),
    (
        "cleaning up after an answer calls the host",
        &["afterwards-calls-the-host"],
        "has_vm",
        "cannot leave component instance",
    ),
    (
        "a message, headers and a body that are not there",
        &["says-what-is-not-there", "sends-endless-headers", "sends-two-gigabytes"],
        "has_vm",
        "pointer/length out of bounds of memory",
    ),
    ("a message that is no text", &["says-no-text"], "has_vm", "invalid utf-8 sequence"),
    ("a message at no level", &["says-at-no-level"], "has_vm", "unexpected discriminant: 9"),
    ("an answer that is wanted where there is no memory", &["wants-the-answer-nowhere"], "has_vm", "out of bounds"),
    ("an answer that is wanted askew", &["wants-the-answer-askew"], "has_vm", "pointer not aligned"),
    ("a resource that is dropped twice", &["handle-dropped-twice"], "has_vm", "unknown handle index 1"),
    ("a resource of the host that was never given", &["handle-out-of-nowhere"], "has_vm", "unknown handle index 12345"),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = ROWS.iter().map(|row| case(*row)).collect();
    cases.push(Case::silent(CLASS, "cloud IDs that are no UTF-8", &[], || {
        for bytes in
            ["\\ff", "\\c0\\af", "\\e2\\82", "\\ed\\a0\\80", "\\ed\\bf\\bf", "\\f4\\90\\80\\80", "\\f8\\88\\80\\80\\80"]
        {
            let text = format!(
                "(module (data (i32.const 0x2000) \"\\00\\00\\00\\00\\00\\30\\00\\00\\{:02x}\\00\\00\\00\")
                 (data (i32.const 0x3000) \"{bytes}\")
                 (func (export \"bosh:cpi/disks@0.1.0#create-disk\") (param i64 i32 i32 i32 i32 i32) (result i32)
                   (i32.const 0x2000)))",
                bytes.len() / 3
            );
            let guest = hostile::component(&text).unwrap_or_else(|error| panic!("{error}"));
            call(&Job::new().guest_bytes(&guest), "create_disk")
                .fails(CLOUD_ERROR, &["guest: failed in create_disk: ", "utf-8"]);
        }
    }));
    cases
}

fn case((name, guests, method, said): Row) -> Case {
    Case::silent(CLASS, name, &[], move || {
        for guest in guests {
            call(&job(guest), method).fails(CLOUD_ERROR, &["guest: ", &format!(" in {method}: "), said]);
        }
    })
}
