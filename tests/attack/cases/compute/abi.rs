//! Core code that breaks the canonical ABI, which compilers never do. The call fails,
//! and the error says what was wrong.

use super::{CLASS, call, job};
use crate::case::Case;
use tests::{CLOUD_ERROR, Job, hostile};

type Row = (&'static str, &'static [&'static str], &'static str, &'static str);

/// The name of the case, its guests, the method, and a part of the message.
const ROWS: &[Row] = &[
    (
        "a result beyond the end of memory",
        &["result-out-of-bounds"],
        "has_vm",
        "failed in has_vm: pointer out of bounds",
    ),
    ("a misaligned result", &["result-misaligned"], "has_vm", "return pointer not aligned"),
    ("a result that is neither ok nor error", &["unknown-discriminant"], "has_vm", "invalid expected discriminant"),
    ("an option that is neither some nor none", &["invalid-option"], "create_vm", "invalid option discriminant"),
    ("an error of an unknown kind", &["unknown-error-kind"], "has_vm", "unexpected discriminant: 99"),
    ("a disk hint of an unknown kind", &["unknown-hint"], "attach_disk", "unexpected discriminant: 9"),
    (
        "a string that is longer than memory or wraps around",
        &["string-out-of-bounds", "string-wraps-around"],
        "create_disk",
        "string pointer/length out of bounds of memory",
    ),
    ("a list that is longer than memory", &["list-out-of-bounds"], "create_vm", "list pointer/length out of bounds"),
    ("memory for the host beyond the end of memory", &["allocator-out-of-bounds"], "has_vm", "beyond end of memory"),
    ("memory for the host that is misaligned", &["allocator-misaligned"], "create_vm", "result not aligned"),
    ("an allocator that traps", &["allocator-traps"], "has_vm", "`unreachable` instruction executed"),
    ("an allocator that calls the host", &["allocator-calls-host"], "has_vm", "cannot leave component instance"),
    (
        "a post-return function that calls the host",
        &["post-return-calls-host"],
        "has_vm",
        "cannot leave component instance",
    ),
    (
        "a message, headers and a body beyond the end of memory",
        &["log-out-of-bounds", "send-headers-out-of-bounds", "send-body-out-of-bounds"],
        "has_vm",
        "pointer/length out of bounds of memory",
    ),
    ("a message that is not UTF-8", &["log-invalid-utf8"], "has_vm", "invalid utf-8 sequence"),
    ("a message at an unknown level", &["log-unknown-level"], "has_vm", "unexpected discriminant: 9"),
    ("a return area beyond the end of memory", &["return-area-out-of-bounds"], "has_vm", "out of bounds"),
    ("a misaligned return area", &["return-area-misaligned"], "has_vm", "pointer not aligned"),
    ("a resource that is dropped twice", &["handle-dropped-twice"], "has_vm", "unknown handle index 1"),
    (
        "a resource of the host that the guest never received",
        &["handle-unknown"],
        "has_vm",
        "unknown handle index 12345",
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = ROWS.iter().map(|row| case(*row)).collect();
    cases.push(Case::offline(CLASS, "cloud IDs that are not UTF-8", &[], || {
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
    Case::offline(CLASS, name, &[], move || {
        for guest in guests {
            call(&job(guest), method).fails(CLOUD_ERROR, &["guest: ", &format!(" in {method}: "), said]);
        }
    })
}
