//! Guests as compilers of other languages and tools of components make them: large files, large
//! tables, and components that nest others.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::Command;
use tests::hostile::binary::{leb, section};
use tests::job::{set_mode, write};
use tests::{CLOUD_ERROR, CPI_ERROR, Job, hostile};

fn info(job: &Job) -> tests::Response {
    job.call("info", json!([])).run()
}

fn has_vm(job: &Job) -> Value {
    job.call("has_vm", json!(["vm-1"])).run().result().clone()
}

/// The answer `true` of `has_vm`, at 0x2000.
const TRUE: &str = r#"(data (i32.const 0x2000) "\00\00\00\00\01")"#;

fn guest(code: &str) -> Job {
    let guest = hostile::component(&format!("(module {code})")).unwrap();
    Job::new().guest_bytes(&guest)
}

/// The default limits used to apply to `describe`, so that raising a limit had no effect.
#[test]
fn the_operators_limits_apply_to_the_description_as_well() {
    let recursion = r#"
        (func $down (param i32) (result i32)
          (if (result i32) (local.get 0)
            (then (i32.add (call $down (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
            (else (i32.const 0))))
        (func (export "bosh:cpi/describe@0.1.0#describe") (result i32)
          (drop (call $down (i32.const 60000))) (i32.const 0x1000))"#;
    for (code, limit, default, needed) in [
        ("(table 200000 funcref)", "tables", 100_000, 200_000),
        ("(memory (export \"memory\") 4800)", "memory_mib", 256, 320),
        (recursion, "stack_kib", 1024, 8192),
    ] {
        info(&guest(code)).fails(CLOUD_ERROR, &["limit: ", "`describe` failed: ", &format!("`{limit}` ({default})")]);
        let raised = guest(code).limits(json!({limit: needed}));
        assert_eq!(info(&raised).result()["stemcell_formats"], json!(["hostile-raw"]), "{limit}");
    }
}

/// A Go module has an element in its table for each of its functions.
#[test]
fn a_guest_of_20_mib_with_60_000_functions_runs_within_the_default_limits() {
    let (mut functions, mut elements) = (String::new(), String::new());
    for number in 0..60_000 {
        let _ = writeln!(functions, "(func (result i32) (i32.const {number}))");
        let _ = write!(elements, " {number}");
    }
    let code = format!(
        r#"(type $number (func (result i32)))
        (memory (export "memory") 800)
        (table 60000 funcref)
        (elem (i32.const 0) func {elements})
        (data (i32.const 0x100000) "{}")
        {TRUE}
        {functions}
        (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
          (if (i32.ne (call_indirect (type $number) (i32.const 59999)) (i32.const 59999)) (then unreachable))
          (i32.const 0x2000))"#,
        "data".repeat(5 << 20),
    );
    let job = guest(&code);
    assert!(std::fs::metadata(job.path("guest.wasm")).unwrap().len() > 20 << 20);
    assert_eq!(has_vm(&job), true);
}

/// A component that nests two others, of which one passes a string to the other when it is created.
const NESTED: &str = r#"(component
  (component $callee
    (core module $m
      (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64))
      (func (export "f") (param i32 i32)
        (if (i32.ne (local.get 1) (i32.const 5)) (then unreachable))
        (if (i32.ne (i32.load8_u (local.get 0)) (i32.const 0x68)) (then unreachable))))
    (core instance $i (instantiate $m))
    (func (export "f") (param "s" string)
      (canon lift (core func $i "f") (memory $i "memory") (realloc (func $i "realloc")))))
  (component $caller
    (import "f" (func $f (param "s" string)))
    (core module $libc (memory (export "memory") 1) (data (i32.const 0) "hello"))
    (core instance $libc (instantiate $libc))
    (core func $lowered (canon lower (func $f) (memory $libc "memory")))
    (core module $m
      (import "" "f" (func $f (param i32 i32)))
      (start $s)
      (func $s (call $f (i32.const 0) (i32.const 5))))
    (core instance (instantiate $m (with "" (instance (export "f" (func $lowered)))))))
  (instance $callee (instantiate $callee))
  (instance (instantiate $caller (with "f" (func $callee "f")))))"#;

/// The engine's adapters between such components have two memories. They used to make the compiler panic.
#[test]
fn a_guest_that_nests_components_which_pass_strings_runs() {
    let small = hostile::guest("small");
    let own = wasm_sections(&small).filter(|kind| *kind == 4).count();
    let nested = hostile::with_component(small, &wat::parse_str(NESTED).unwrap());
    // Instantiates the appended component, without arguments.
    let instance = [&[1, 0][..], &leb(own), &[0]].concat();
    let guest = [nested, section(5, &instance)].concat();
    assert_eq!(has_vm(&Job::new().guest_bytes(&guest)), true);
}

/// Returns the kinds of a component's own sections.
fn wasm_sections(component: &[u8]) -> impl Iterator<Item = u8> {
    let mut at = 8;
    std::iter::from_fn(move || {
        let kind = *component.get(at)?;
        at += 1;
        let (mut length, mut shift) = (0_usize, 0);
        loop {
            let byte = *component.get(at)?;
            at += 1;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        at += length;
        Some(kind)
    })
}

/// A child that dies is not always out of memory, which used to be the message for all of these.
#[test]
fn the_end_of_the_compiling_child_is_reported_as_what_it_is() {
    for (script, kind, said) in [
        ("kill -SEGV $$", CLOUD_ERROR, "ended with signal: 11 (SIGSEGV"),
        ("exit 3", CLOUD_ERROR, "ended with exit status: 3 and without an answer; install wasm-cpi and wasm-cpi-run"),
        ("kill -ABRT $$", CLOUD_ERROR, "most likely because it reached `compile_mib` (2048)"),
        ("kill -KILL $$", CLOUD_ERROR, "was killed, most likely because this machine has too little memory"),
        ("kill -XCPU $$", CLOUD_ERROR, "compiling the guest reached `compile_seconds` (120)"),
        ("echo nonsense-that-is-no-frame", CLOUD_ERROR, "sent a malformed answer; this is a bug in wasm-cpi"),
        (r#"printf 'E\052\000\000\000\000\000\000\000{"who":"Config","message":"m","detail":""}'"#, CPI_ERROR, "m"),
    ] {
        let job = Job::new().guest_bytes(&hostile::guest("small")).own_hot_program();
        let text = job.path("tool.sh");
        write(&text, format!("#!/bin/sh\n{script}\n").as_bytes());
        set_mode(&text, 0o755);
        // A file that this process wrote may still be open in a process that another test forks.
        assert!(Command::new("cp").args([&text, &job.path("bin/wasm-cpi")]).status().unwrap().success());
        info(&job).fails(kind, &["guest.wasm: ", said]);
    }
}
