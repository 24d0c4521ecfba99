//! A test for every limit of the configuration: the error of the call that reaches it
//! names the limit and says how to raise it.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::registry::Registry;
use tests::{CPI_ERROR, Job, dist, hostile, job, probe};

/// Defines a test for each limit, and lists the limits that other modules test.
macro_rules! limit_tests {
    ($(fn $name:ident() $body:block)* elsewhere { $($other:ident: $module:literal,)* }) => {
        mod single_limits {
            use super::*;
            $(#[test] fn $name() $body)*
        }
        const TESTED_HERE: &[&str] = &[$(stringify!($name),)*];
        const TESTED_ELSEWHERE: &[(&str, &str)] = &[$((stringify!($other), $module),)*];
    };
}

#[test]
fn every_limit_has_a_test() {
    let source = std::fs::read_to_string(dist::root().join("runtime/src/limits.rs")).unwrap();
    let (_, list) = source.split_once("\nlimits! {\n").unwrap();
    let (list, _) = list.split_once("\n}\n").unwrap();
    let entries = list.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let names: BTreeSet<&str> = entries.filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
    assert!(
        names.contains("wall_seconds") && names.len() >= 30,
        "the test does not parse limits.rs correctly: {names:?}"
    );
    let tested: BTreeSet<&str> =
        TESTED_HERE.iter().copied().chain(TESTED_ELSEWHERE.iter().map(|(name, _)| *name)).collect();
    assert_eq!(names, tested, "a limit has no test, or a test has no limit");
}

#[test]
fn the_limits_listed_for_other_modules_are_tested_there() {
    for (name, module) in TESTED_ELSEWHERE {
        let directory = dist::root().join("tests/it");
        let parts = std::fs::read_dir(directory.join(module)).into_iter().flatten().flatten().map(|part| part.path());
        let mut files = parts.chain([directory.join(format!("{module}.rs"))]);
        let tested = files.any(|path| std::fs::read_to_string(path).unwrap_or_default().contains(name));
        assert!(tested, "the module {module} does not test {name}");
    }
}

fn with(limits: Value) -> Job {
    Job::default().limits(limits)
}

/// Returns a component that contains the code of the probe many times.
fn many_probes(copies: usize) -> Vec<u8> {
    let probe = std::fs::read(dist::probe()).unwrap();
    let mut component = probe[..8].to_vec();
    let module = core_module_section(&probe).expect("a component built by a compiler holds a core module");
    for _ in 0..copies {
        component.extend_from_slice(module);
    }
    // A component may declare its needs only once: rename all of these sections.
    let (name, at) = (b"bosh-cpi:needs", 0..component.len().saturating_sub(14));
    for at in at {
        if component[at..].starts_with(name) {
            component[at] = b'B';
        }
    }
    component
}

/// Returns the first section of a component that holds a core module, including its header.
fn core_module_section(component: &[u8]) -> Option<&[u8]> {
    let mut at = 8;
    loop {
        let start = at;
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
        if kind == 1 {
            return component.get(start..at);
        }
    }
}

limit_tests! {
    fn wall_seconds() {
        let response = with(json!({"wall_seconds": 1})).script(json!([{"op": "clock.sleep", "ms": 60_000, "on_cancel": []}])).run();
        response.reaches("wall_seconds").fails(tests::CLOUD_ERROR, &["`wall_seconds` (1)"]);
    }

    fn create_stemcell_wall_seconds() {
        let job = with(json!({"create_stemcell_wall_seconds": 1}));
        job::write(&job.path("image"), b"image");
        let properties = json!({"probe": [{"op": "clock.sleep", "ms": 60_000, "on_cancel": []}]});
        let response = job.call("create_stemcell", json!([job.path("image"), properties])).run();
        response.reaches("create_stemcell_wall_seconds");
    }

    fn cpu_seconds() {
        let response = with(json!({"cpu_seconds": 1, "cleanup_seconds": 1})).script(json!([{"op": "loop"}])).run();
        response.reaches("cpu_seconds");
    }

    fn cleanup_seconds() {
        let response = with(json!({"wall_seconds": 1, "cleanup_seconds": 1})).script(json!([{"op": "loop"}])).run();
        response.reaches("wall_seconds");
        response.fails(tests::CLOUD_ERROR, &["the guest did not end within `cleanup_seconds` (1)"]);
    }

    fn memory_mib() {
        with(json!({"memory_mib": 16})).script(json!([{"op": "grow", "mib": 100}])).run().reaches("memory_mib");
    }

    fn stack_kib() {
        with(json!({"stack_kib": 64})).script(json!([{"op": "recurse"}])).run().reaches("stack_kib");
    }

    fn tables() {
        with(json!({"tables": 1})).script(json!([{"op": "clock.now"}])).run().reaches("tables");
    }

    fn handles() {
        with(json!({"handles": 1})).script(json!([{"op": "wasi.sleep", "ms": 1}])).run().reaches("handles");
    }

    fn host_calls() {
        let response = with(json!({"host_calls": 50})).script(json!([{"op": "clock.now", "repeat": 1_000_000}])).run();
        response.reaches("host_calls");
    }

    fn hostcall_mib() {
        let response = with(json!({"hostcall_mib": 1})).script(json!([{"op": "garbage", "kind": "huge", "mib": 3}])).run();
        response.reaches("hostcall_mib");
    }

    fn request_mib() {
        let job = with(json!({"request_mib": 1}));
        let call = |bytes: usize| job.call("create_disk", json!([1, {"padding": "x".repeat(bytes)}, null])).run();
        call(900 << 10).result();
        // This is an error of the request, since the caller can send less.
        call(1 << 20).fails(CPI_ERROR, &["request: ", "`request_mib` (1)", "raise `limits.request_mib` in the CPI's config"]);
    }

    fn result_kib() {
        let job = with(json!({"result_kib": 16}));
        job.script(json!([{"op": "garbage", "kind": "huge", "mib": 1}])).run().reaches("result_kib");
        assert_eq!(job.script(json!([{"op": "result", "json": "x".repeat(15 << 10)}])).run().result().as_str().unwrap().len(), 15 << 10);
    }

    fn result_depth() {
        let network = |limit: u64, depth: u64| {
            let script = json!([{"op": "garbage", "kind": "deep-json", "depth": depth}]);
            let job = with(json!({"result_depth": limit}));
            job.call("create_network", json!([{"type": "manual", "cloud_properties": {"probe": script}}])).run()
        };
        // The array of the result and the object of the probe add two levels.
        network(90, 88).result();
        network(90, 89).reaches("result_depth");
        network(10, 9).reaches("result_depth");
        network(10, 8).result();
    }

    fn wasm_mib() {
        let job = Job::new().guest_bytes(&vec![0; (1 << 20) + 1]).limits(json!({"wasm_mib": 1}));
        job.call("info", json!([])).run().reaches("wasm_mib");
    }

    fn compile_seconds() {
        let job = Job::new().guest_bytes(&many_probes(40)).limits(json!({"compile_seconds": 1}));
        job.call("info", json!([])).run().reaches("compile_seconds");
        assert!(job.cached("").is_empty());
    }

    fn compile_mib() {
        for mib in [1, 40, 100] {
            let job = Job::new().limits(json!({"compile_mib": mib}));
            job.call("info", json!([])).run().reaches("compile_mib");
        }
    }

    fn log_lines() {
        let response = with(json!({"log_lines": 3})).script(json!([{"op": "log", "message": "m", "repeat": 10}])).run();
        let lines: Vec<&str> = response.stderr.lines().collect();
        assert_eq!(lines[..3], ["cpi-123456 probe info: m"; 3]);
        assert_eq!(lines[3..], ["cpi-123456 wasm-cpi warn: 7 log lines of probe were dropped, because `limits.log_lines` is reached"]);
        assert_eq!(probe::outcomes(response.result())[0]["times"], 10);
    }

    fn line_bytes() {
        let response = with(json!({"line_bytes": 20})).script(json!([{"op": "log", "message": "x".repeat(100)}])).run();
        response.result();
        let expected = format!("cpi-123456 probe info: {}… (80 more bytes; limits.line_bytes)\n", "x".repeat(20));
        assert_eq!(response.stderr, expected);
    }

    fn log_kib() {
        let response = with(json!({"log_kib": 1})).script(json!([{"op": "log", "message": "x".repeat(300), "repeat": 9}])).run();
        response.result();
        let lines: Vec<&str> = response.stderr.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[3].contains("6 log lines of probe were dropped, because `limits.log_kib` is reached"), "{}", lines[3]);
    }

    fn registry_kib() {
        let registry = Registry::start();
        let job = with(json!({"registry_kib": 1})).configure(|config| config["registry"] = registry.section());
        registry.put("vm-1", &json!({"agent_id": "a", "disks": {}, "padding": "x".repeat(3000)}));
        let response = job.call("attach_disk", json!(["vm-1", "disk-1"])).stemcell_api_version(1).run();
        response.fails(tests::CLOUD_ERROR, &["the settings of `vm-1` reached `registry_kib` (1)", "raise `limits.registry_kib`"]);
        registry.put("vm-1", &json!({"agent_id": "a", "disks": {}}));
        job.call("attach_disk", json!(["vm-1", "disk-1"])).stemcell_api_version(1).run().result();
        assert!(registry.get("vm-1").unwrap()["disks"]["persistent"]["disk-1"].is_string());
    }

    elsewhere {
        http_requests: "http",
        http_request_mib: "http",
        http_response_mib: "http",
        http_total_mib: "http",
        http_blocks: "http",
        http_blocks_mib: "http",
        http_headers: "http",
        header_kib: "http",
        url_bytes: "http",
        connect_seconds: "http",
        first_byte_seconds: "http",
        idle_seconds: "http",
    }
}

#[test]
fn a_guest_that_stays_within_its_limits_succeeds() {
    let job = with(json!({"memory_mib": 64, "host_calls": 200, "handles": 50}));
    let outcomes = job
        .probe(json!([{"op": "grow", "mib": 40}, {"op": "clock.now", "repeat": 100}, {"op": "wasi.sleep", "ms": 1}]));
    assert!(outcomes.iter().all(|outcome| outcome.get("ok").is_some()), "{outcomes:?}");
}

#[test]
fn limits_work_although_the_caller_blocked_or_ignored_signals() {
    for (option, operation, limit) in [
        ("--block-signal=VTALRM", json!({"op": "loop"}), "cpu_seconds"),
        ("--ignore-signal=VTALRM", json!({"op": "loop"}), "cpu_seconds"),
        ("--block-signal=SEGV,ILL,BUS,FPE", json!({"op": "recurse"}), "stack_kib"),
    ] {
        let job = with(json!({"cpu_seconds": 1, "cleanup_seconds": 1})).with_launcher(&format!("env {option}"));
        job.script(json!([operation])).run().reaches(limit);
    }
}

#[test]
fn waiting_does_not_count_as_cpu_time() {
    let outcomes = with(json!({"cpu_seconds": 1}))
        .probe(json!([{"op": "clock.sleep", "ms": 1300}, {"op": "wasi.sleep", "ms": 1}]));
    assert_eq!(outcomes[0]["ok"], Value::Null);
}

#[test]
fn wall_seconds_does_not_apply_to_create_stemcell() {
    let job = with(json!({"wall_seconds": 1, "cleanup_seconds": 1}));
    job::write(&job.path("image"), b"image");
    let properties = json!({"probe": [{"op": "clock.sleep", "ms": 1300}]});
    let response = job.call("create_stemcell", json!([job.path("image"), properties])).run();
    assert_eq!(probe::outcomes(response.result())[0]["ok"], Value::Null);
}

#[test]
fn a_guest_whose_initial_memory_exceeds_the_limit_is_refused() {
    let job = Job::new().guest_bytes(&hostile::guest("large-memory")).limits(json!({"memory_mib": 64}));
    job.call("info", json!([]))
        .run()
        .fails(tests::CLOUD_ERROR, &["guest.wasm: ", "`memory_mib` (64)", "raise `limits.memory_mib`"]);
}
