//! How calls end early: the guest is asked first and can clean up; only then
//! is it stopped.

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{CLOUD_ERROR, Job, Response, probe};

/// Waits, and cleans up when told that the call ends.
fn waiting() -> Value {
    json!([
        {"op": "log", "message": "waiting"},
        {"op": "clock.sleep", "ms": 60_000, "on_cancel": [
            {"op": "log", "message": "cleaning up"},
            {"op": "clock.ending"},
            {"op": "clock.sleep", "ms": 60_000},
            {"op": "registry.get", "id": "vm-1"},
            {"op": "image.size"},
            {"op": "agent.deleted", "key": "vm-1"},
        ]},
        {"op": "panic", "message": "never reached"},
    ])
}

#[track_caller]
fn cleaned_up(response: &Response, why: &str) {
    let message = response.message();
    assert!(
        message.contains(&format!("; the guest ended in time and said: probe cancelled: {why}; probe outcomes: [")),
        "{message}"
    );
    assert!(response.stderr.contains("probe info: cleaning up\n"), "{}", response.stderr);
    let outcomes = probe::outcomes_in(message);
    assert_eq!(outcomes.len(), 8, "{message}");
    assert_eq!(outcomes[1]["error"], json!({"kind": "cancelled", "message": why}));
    assert_eq!(outcomes[3]["ok"], why);
    // Once the call is ending, nothing waits and nothing new begins.
    for outcome in &outcomes[4..] {
        assert_eq!(outcome["error"], json!({"kind": "cancelled", "message": why}), "{outcome}");
    }
}

#[test]
fn a_guest_whose_time_is_up_cleans_up_at_once() {
    let response = Job::default().limits(json!({"wall_seconds": 1})).script(waiting()).run();
    cleaned_up(&response, "the limit wall_seconds is reached");
    response.reaches("wall_seconds");
}

#[test]
fn a_guest_that_computed_too_much_cleans_up() {
    let job = Job::default().limits(json!({"cpu_seconds": 1}));
    // Many short turns: on a busy machine a second of CPU takes a while.
    let turn = [
        json!({"op": "spin_ms", "ms": 200}),
        json!({"op": "clock.sleep", "ms": 1, "on_cancel": [{"op": "log", "message": "cleaning up"}]}),
    ];
    let script: Vec<_> = std::iter::repeat_n(turn, 200).flatten().collect();
    let response = job.script(script.into()).run();
    response.reaches("cpu_seconds").fails(CLOUD_ERROR, &["probe cancelled: the limit cpu_seconds is reached"]);
    assert!(response.stderr.contains("cleaning up"));
}

#[test]
fn signals_ask_the_guest_to_clean_up() {
    let job = Job::default();
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT")] {
        let response = job.script(waiting()).signal_at("waiting", signal).run();
        cleaned_up(&response, &format!("{name} received"));
        response.fails(CLOUD_ERROR, &[&format!("runtime: {name} ended the call; ")]);
    }
}

#[test]
fn the_first_reason_is_the_one_that_is_told() {
    let script = json!([
        {"op": "log", "message": "waiting"},
        {"op": "clock.sleep", "ms": 60_000},
        {"op": "log", "message": "still here"},
        {"op": "spin_ms", "ms": 300},
        {"op": "clock.ending"},
        {"op": "error", "kind": "cloud", "message": "done"},
    ]);
    let call =
        Job::default().script(script).signal_at("waiting", Signal::TERM).signal_at("still here", Signal::INT).run();
    call.fails(CLOUD_ERROR, &["SIGTERM ended the call; the guest ended in time and said: done"]);
}

#[test]
fn a_call_that_succeeds_while_it_is_ending_has_succeeded() {
    let script = json!([{"op": "log", "message": "waiting"}, {"op": "clock.sleep", "ms": 60_000}, {"op": "result", "json": "disk-made"}]);
    let response = Job::default().script(script).signal_at("waiting", Signal::TERM).run();
    assert_eq!(*response.result(), "disk-made");
}

#[test]
fn a_guest_that_does_not_listen_is_stopped_after_cleanup_seconds() {
    let job = Job::default().limits(json!({"cleanup_seconds": 1}));
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT")] {
        let script = json!([{"op": "log", "message": "waiting"}, {"op": "loop"}]);
        let response = job.script(script).signal_at("waiting", signal).run();
        let said = format!("{name} ended the call; the guest did not end by itself within cleanup_seconds (1)");
        response.fails(CLOUD_ERROR, &[&said]);
    }
}

#[test]
fn a_cleanup_without_an_end_is_stopped_too() {
    let job = Job::default().limits(json!({"wall_seconds": 1, "cleanup_seconds": 1}));
    let script = json!([{"op": "clock.sleep", "ms": 60_000, "on_cancel": [{"op": "loop"}]}]);
    let response = job.script(script).run();
    response.reaches("wall_seconds").fails(CLOUD_ERROR, &["within cleanup_seconds (1)"]);
}

#[test]
fn a_sleep_of_wasi_ends_with_the_call() {
    let job = Job::default().limits(json!({"wall_seconds": 1, "cleanup_seconds": 1}));
    let response = job.script(json!([{"op": "wasi.sleep", "ms": 60_000}])).run();
    response.reaches("wall_seconds");
}

#[test]
fn a_guest_that_polls_forever_is_stopped() {
    let job = Job::default().limits(json!({"wall_seconds": 1, "cleanup_seconds": 1, "host_calls": 100_000_000}));
    let response = job.script(json!([{"op": "clock.monotonic", "repeat": 4_000_000_000_u64}])).run();
    response.reaches("wall_seconds");
}

#[test]
fn a_signal_while_the_guest_is_compiled_is_answered() {
    let job = Job::new().configure(|config| config["log"] = json!({"level": "debug"}));
    let response = job.call("has_vm", json!(["vm-1"])).signal_at("compiling it", Signal::TERM).run();
    response.fails(CLOUD_ERROR, &["runtime: ", "SIGTERM ended the call while the guest was compiled"]);
}
