//! WebAssembly proposals that no guest needs and that had vulnerabilities in other
//! engines. A guest that uses one is refused when it is compiled.

use super::CLASS;
use crate::case::Case;
use serde_json::json;
use tests::{CPI_ERROR, Job, hostile};

/// The name of the case, its checks, parts of components, and a part of the message.
const ROWS: &[(&str, &[&str], &[&str], &str)] = &[
    (
        "memories and tables of 64 bits",
        &["engine-memory64"],
        &["(core module (memory i64 1))", "(core module (table i64 1 funcref))"],
        "memory64 must be enabled",
    ),
    (
        "more than one memory in a module",
        &["multi-memory"],
        &[
            "(core module (memory 1) (memory 1))",
            "(core module (import \"\" \"\" (memory 1)) (memory 1))",
            "(component (core module (import \"\" \"a\" (memory 1)) (import \"\" \"b\" (memory 1))))",
        ],
        "has a core module with several memories",
    ),
    (
        "memory that threads share, and atomic access",
        &[],
        &[
            "(core module (memory 1 1 shared))",
            "(core module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))",
        ],
        "threads",
    ),
    (
        "garbage-collected types",
        &[],
        &[
            "(core module (type (struct (field i32))))",
            "(core module (type (array i8)))",
            "(core module (func (param anyref)))",
            "(core module (func (drop (ref.i31 (i32.const 1)))))",
        ],
        "gc",
    ),
    ("exceptions", &[], &["(core module (tag (param i32)))", "(core module (func (param exnref)))"], "exception"),
    ("continuations", &[], &["(core module (type (func)) (type (cont 0)))"], "stack switching is disabled"),
    (
        "tail calls",
        &["engine-proposals"],
        &["(core module (func $f (return_call $f)))"],
        "tail calls support is not enabled",
    ),
    (
        "relaxed vector instructions",
        &["engine-proposals"],
        &["(core module (func (param v128) (drop (i32x4.relaxed_trunc_f32x4_s (local.get 0)))))"],
        "relaxed SIMD support is not enabled",
    ),
    (
        "pages of another size",
        &["engine-proposals"],
        &["(core module (memory 1 (pagesize 1)))"],
        "custom page sizes proposal must be enabled",
    ),
    (
        "arithmetic of 128 bits",
        &["engine-proposals"],
        &["(core module (func (result i64 i64) (i64.add128 (i64.const 1) (i64.const 1) (i64.const 1) (i64.const 1))))"],
        "wide arithmetic support is not enabled",
    ),
    (
        "asynchronous components",
        &[],
        &["(type (future u32))", "(type (stream u8))", "(core func (canon task.cancel))", "(type (func async))"],
        "component model async feature",
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let case = |(name, mutants, modules, said): &(&str, &[&str], &'static [&'static str], &'static str)| {
        let (modules, said) = (*modules, *said);
        Case::offline(CLASS, name, mutants, move || {
            for module in modules {
                let guest = hostile::component(&format!("(component {module})"))
                    .unwrap_or_else(|error| panic!("{module}: {error}"));
                let response = Job::new().guest_bytes(&guest).call("info", json!([])).run();
                response.fails(CPI_ERROR, &["guest.wasm: the guest ", said]);
            }
        })
    };
    ROWS.iter().map(case).collect()
}
