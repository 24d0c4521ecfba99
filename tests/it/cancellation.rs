//! Calls that end early: the guest is first asked to end and can clean up. It is
//! stopped if it does not end in time.

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{CLOUD_ERROR, Job, Response, probe};

/// The signals that end a call.
const SIGNALS: [(Signal, &str); 4] =
    [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT"), (Signal::HUP, "SIGHUP"), (Signal::QUIT, "SIGQUIT")];

/// Returns a script that waits, and cleans up when the call is cancelled.
fn waiting_script() -> Value {
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

/// What the guest gets at every early ending.
const ENDING: &str = "the call is ending: undo what is unfinished, and return";

/// Checks that the guest cleaned up and ended by itself, and that it got the same words as at every ending.
#[track_caller]
fn check_cleaned_up(response: &Response) {
    let why = ENDING;
    let message = response.message();
    assert!(
        message.contains(&format!(
            "; the guest cleaned up in time and reported: probe cancelled: {why}; probe outcomes: ["
        )),
        "{message}"
    );
    assert!(response.stderr.contains("probe info: cleaning up\n"), "{}", response.stderr);
    let outcomes = probe::outcomes_in(message);
    assert_eq!(outcomes.len(), 8, "{message}");
    assert_eq!(outcomes[1]["error"], json!({"kind": "cancelled", "message": why}));
    assert_eq!(outcomes[3]["ok"], why);
    // Once the call is ending, waits and new operations are cancelled.
    for outcome in &outcomes[4..] {
        assert_eq!(outcome["error"], json!({"kind": "cancelled", "message": why}), "{outcome}");
    }
}

#[test]
fn a_guest_that_reaches_wall_seconds_cleans_up_at_once() {
    let response = Job::default().limits(json!({"wall_seconds": 1})).script(waiting_script()).run();
    check_cleaned_up(&response);
    response.reaches("wall_seconds");
}

#[test]
fn a_guest_that_reaches_cpu_seconds_cleans_up() {
    let job = Job::default().limits(json!({"cpu_seconds": 1}));
    // Many short turns, because a second of CPU time takes longer on a busy machine.
    let turn = [
        json!({"op": "spin_ms", "ms": 200}),
        json!({"op": "clock.sleep", "ms": 1, "on_cancel": [{"op": "log", "message": "cleaning up"}]}),
    ];
    let script: Vec<_> = std::iter::repeat_n(turn, 200).flatten().collect();
    let response = job.script(script.into()).run();
    response.reaches("cpu_seconds").fails(CLOUD_ERROR, &["probe cancelled: the call is ending"]);
    assert!(response.stderr.contains("cleaning up"));
}

#[test]
fn signals_ask_the_guest_to_clean_up() {
    let job = Job::default();
    for (signal, name) in SIGNALS {
        let response = job.script(waiting_script()).signal_at("waiting", signal).run();
        check_cleaned_up(&response);
        response.fails(CLOUD_ERROR, &[&format!("runtime: {name} ended the call; ")]);
    }
}

#[test]
fn sigpipe_does_not_end_a_call() {
    let script = json!([
        {"op": "log", "message": "waiting"}, {"op": "clock.sleep", "ms": 300}, {"op": "result", "json": "disk-made"},
    ]);
    let response = Job::default().script(script).signal_at("waiting", Signal::PIPE).run();
    assert_eq!(*response.result(), "disk-made");
}

#[test]
fn the_response_reports_the_first_reason_for_the_end() {
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
    call.fails(CLOUD_ERROR, &["SIGTERM ended the call; the guest cleaned up in time and reported: done"]);
}

#[test]
fn a_call_that_succeeds_while_it_is_ending_returns_its_result() {
    let script = json!([{"op": "log", "message": "waiting"}, {"op": "clock.sleep", "ms": 60_000}, {"op": "result", "json": "disk-made"}]);
    let response = Job::default().script(script).signal_at("waiting", Signal::TERM).run();
    assert_eq!(*response.result(), "disk-made");
}

#[test]
fn a_guest_that_ignores_a_signal_is_stopped_after_cleanup_seconds() {
    let job = Job::default().limits(json!({"cleanup_seconds": 1}));
    for (signal, name) in SIGNALS {
        let script = json!([{"op": "log", "message": "waiting"}, {"op": "loop"}]);
        let response = job.script(script).signal_at("waiting", signal).run();
        let expected = format!("{name} ended the call; the guest did not end within `cleanup_seconds` (1)");
        response.fails(CLOUD_ERROR, &[&expected]);
    }
}

#[test]
fn a_limit_that_the_guest_reaches_while_it_cleans_up_is_reported_after_the_signal() {
    for (limits, last, reached) in [
        (
            json!({"result_kib": 16}),
            json!({"op": "garbage", "kind": "huge", "mib": 1}),
            "the guest's result reached `result_kib` (16)",
        ),
        (
            json!({"host_calls": 50}),
            json!({"op": "clock.now", "repeat": 1_000_000}),
            "the guest reached `host_calls` (50)",
        ),
    ] {
        let script = json!([{"op": "log", "message": "waiting"}, {"op": "clock.sleep", "ms": 60_000}, last]);
        let response = Job::default().limits(limits).script(script).signal_at("waiting", Signal::TERM).run();
        response.fails(CLOUD_ERROR, &[&format!("runtime: SIGTERM ended the call; then {reached}")]);
        assert!(!response.message().contains("did not end within"), "{}", response.message());
    }
}

#[test]
fn a_cleanup_that_loops_forever_is_stopped() {
    let job = Job::default().limits(json!({"wall_seconds": 1, "cleanup_seconds": 1}));
    let script = json!([{"op": "clock.sleep", "ms": 60_000, "on_cancel": [{"op": "loop"}]}]);
    let response = job.script(script).run();
    response.reaches("wall_seconds").fails(CLOUD_ERROR, &["within `cleanup_seconds` (1)"]);
}

#[test]
fn a_wasi_sleep_ends_with_the_call() {
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
fn a_signal_while_the_guest_is_compiled_ends_the_call_with_an_error() {
    let job = Job::new().configure(|config| config["log"] = json!({"level": "debug"}));
    let response = job.call("has_vm", json!(["vm-1"])).signal_at("it is compiled now", Signal::TERM).run();
    response.fails(CLOUD_ERROR, &["runtime: ", "SIGTERM ended the call while the guest was compiled"]);
}
