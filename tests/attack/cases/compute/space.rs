//! Guests that use memory, tables, stack and handles without end, before and during a
//! call.

use super::{CLASS, call, job};
use crate::case::Case;
use serde_json::json;
use tests::{CLOUD_ERROR, Job, Response, hostile};

pub(super) fn cases() -> Vec<Case> {
    let grown = "a guest that allocates gigabytes of memory";
    vec![
        Case::offline(CLASS, grown, &["limit-memory_mib"], || {
            call(&job("memory-grows"), "has_vm").reaches("memory_mib");
            call(&job("allocator-grows-memory"), "has_vm").reaches("memory_mib");
            Job::default()
                .limits(json!({"memory_mib": 16}))
                .script(json!([{"op": "grow", "mib": 100}]))
                .run()
                .reaches("memory_mib");
        }),
        Case::offline(CLASS, "a gigabyte of memory before the first call", &["limit-memory_mib"], || {
            for name in ["large-memory", "describe-grows-memory"] {
                call(&job(name), "has_vm")
                    .fails(CLOUD_ERROR, &["guest.wasm: `describe` failed: ", "`memory_mib` (256)"]);
            }
        }),
        Case::offline(CLASS, "a table that grows to four billion elements", &["limit-tables"], || {
            call(&job("table-grows"), "has_vm").reaches("tables");
        }),
        Case::offline(CLASS, "a table of ten million elements from the start", &["limit-tables"], || {
            call(&job("large-table"), "has_vm").fails(CLOUD_ERROR, &["`describe` failed: ", "`tables` (100000)"]);
        }),
        Case::offline(CLASS, "a hundred memories, each in an instance of its own", &["instances"], || {
            instances("(memory 1)", 99).fails(CLOUD_ERROR, &[" in describe: ", "memory count too high"]);
        }),
        Case::offline(CLASS, "hundreds of instances of one module", &["instances"], || {
            instances("", 500).fails(CLOUD_ERROR, &[" in describe: ", "instance count too high"]);
        }),
        Case::offline(CLASS, "data outside of memory", &[], || {
            call(&job("data-out-of-bounds"), "has_vm").fails(CLOUD_ERROR, &[" in describe: ", "out of bounds"]);
        }),
        Case::offline(CLASS, "recursion without end", &["limit-stack_kib"], || {
            let recursing = |frames: &str| Job::default().script(json!([{"op": "recurse", "frames": frames}])).run();
            recursing("small").reaches("stack_kib");
            recursing("large").fails(CLOUD_ERROR, &["guest: trapped in create_disk: out of bounds memory access"]);
            call(&job("describe-recurses"), "has_vm")
                .fails(CLOUD_ERROR, &["`describe` failed: ", "`stack_kib` (1024)"]);
        }),
        Case::offline(CLASS, "a million resources of the guest", &["limit-handles"], || {
            call(&job("guest-handles-endless"), "has_vm").reaches("handles");
        }),
        Case::offline(CLASS, "a million resources of the host", &["limit-handles"], || {
            call(&job("host-handles-endless"), "has_vm").reaches("handles");
        }),
        Case::offline(CLASS, "a result of a gigabyte that repeats one megabyte", &["limit-hostcall_mib"], || {
            call(&job("result-repeats-megabyte"), "create_vm").reaches("hostcall_mib");
        }),
        Case::offline(CLASS, "sixty megabytes in one host call", &["limit-hostcall_mib"], || {
            call(&job("send-60-mib"), "has_vm").reaches("hostcall_mib");
        }),
    ]
}

/// Prepares a guest that instantiates a module with this content `count` times.
fn instances(content: &str, count: usize) -> Response {
    let guest = hostile::with_instances(hostile::guest("small"), content, count);
    call(&Job::new().guest_bytes(&guest), "has_vm")
}
