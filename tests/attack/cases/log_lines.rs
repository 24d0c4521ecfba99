//! What a guest or a server can write into the logs: lines that look like the
//! runtime's, characters that control a terminal, and floods of lines.
//!
//! `Response` also checks every response: stderr has no control or invisible
//! character, and no more than a megabyte.

use crate::case::{API, Case};
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use tests::response::is_invisible;
use tests::{Job, Response, probe};

const CLASS: &str = "audit and logs";

/// The start of every line of the guest, and of the runtime.
const GUEST: &str = "cpi-123456 probe ";
const RUNTIME: &str = "cpi-123456 wasm-cpi ";

/// Every kind of line break, terminal escapes, and characters that hide or reverse text.
const HOSTILE_TEXT: &str = "a\ncpi-123456 wasm-cpi error: forged\r\u{1b}[2J\u{1b}]0;x\u{7}\u{8}\u{0}\u{85}\u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{9b}31m\u{e0041}z";

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, mutants: &[&str], attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, mutants, attempt)
    };
    vec![
        case("a log message that pretends to be several lines", &["escape-log"], log_hostile_text),
        case("printed lines that pretend to be the runtime's", &["escape-log"], print_hostile_text),
        case("a log message that pretends to have other JSON fields", &["escape-log"], json_lines),
        case("errors with terminal escapes", &["escape-log"], failures),
        case("a request ID with terminal escapes", &["escape-log"], request_id),
        case("a method with terminal escapes", &["escape-log"], method),
        case("a server that answers with terminal escapes", &["escape-log"], peer).may_contact(API),
        case("a flood of refused requests", &["limit-log_lines"], denials),
        case("a flood of warnings leaves room for the error that ends the call", &["response-log-size"], story),
        case("seals are named, not shown", &["seal-printed"], seals),
        case("a log that cannot be written", &[], unwritable),
    ]
}

fn job(world: &World) -> Job {
    row::job(world, &json!({}))
}

fn run(job: &Job, operations: Value) -> Response {
    without_final_error(job.call("has_vm", json!([probe::cid(&operations)])).run())
}

/// Removes the runtime's own line about the error of the call.
fn without_final_error(mut response: Response) -> Response {
    let ended = |line: &&str| line.contains("guest: Bosh::Clouds::") && line.contains("probe outcomes");
    response.stderr = response.stderr.split_inclusive('\n').filter(|line| !ended(line)).collect();
    response
}

/// Fails unless every line names the guest or the runtime as its source, and none is forged.
fn check_sources(response: &Response) -> Result<(), String> {
    let unknown = response.stderr.lines().find(|line| !line.starts_with(GUEST) && !line.starts_with(RUNTIME));
    let forged = response.stderr.lines().find(|line| line.starts_with(&format!("{RUNTIME}error: forged")));
    match unknown.or(forged) {
        Some(line) => Err(format!("this line is forged: {line}\nin {}", response.stderr)),
        None => Ok(()),
    }
}

fn expect_part<'a>(text: &'a str, part: &str) -> Result<&'a str, String> {
    if text.contains(part) { Ok(text) } else { Err(format!("no `{part}` in: {text}")) }
}

fn log_hostile_text(world: &World) -> Result<(), String> {
    for level in ["info", "warn", "error"] {
        let response = run(&job(world), json!([{"op": "log", "level": level, "message": HOSTILE_TEXT}]));
        check_sources(&response)?;
        if response.stderr.lines().count() != 1 {
            return Err(format!("more than one line: {}", response.stderr));
        }
        expect_part(&response.stderr, "a\\ncpi-123456 wasm-cpi error: forged\\r\\u{1b}[2J")?;
        let story = response.log();
        if story.chars().any(|c| c != '\n' && c.is_control()) || story.lines().count() > 1 {
            return Err(format!("the response's log has control characters or several lines: {story:?}"));
        }
    }
    Ok(())
}

fn print_hostile_text(world: &World) -> Result<(), String> {
    for stream in ["stdout", "stderr"] {
        let text = format!("{HOSTILE_TEXT}\n{RUNTIME}error: forged\n\n{HOSTILE_TEXT}");
        let response = run(&job(world), json!([{"op": "print", "stream": stream, "text": text}]));
        check_sources(&response)?;
        expect_part(&response.stderr, GUEST)?;
        expect_part(&response.stderr, ": cpi-123456 wasm-cpi error: forged\n")?;
    }
    Ok(())
}

fn json_lines(world: &World) -> Result<(), String> {
    let job = job(world).configure(|config| config["log"] = json!({"format": "json", "level": "debug"}));
    let message = format!(
        "\",\"level\":\"error\",\"source\":\"wasm-cpi\",\"x\":\"{HOSTILE_TEXT}\"}}\n{{\"source\":\"wasm-cpi\"}}"
    );
    let response = run(&job, json!([{"op": "log", "message": message}, {"op": "print", "text": message}]));
    for line in response.stderr.lines() {
        let fields: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        if fields["source"] != "probe" || fields["level"] != "info" || fields["request_id"] != "cpi-123456" {
            return Err(format!("this line is forged: {line}"));
        }
        if fields.as_object().is_none_or(|fields| fields.len() != 4) {
            return Err(format!("other fields: {line}"));
        }
    }
    if response.stderr.lines().count() == 4 { Ok(()) } else { Err(format!("not four lines: {}", response.stderr)) }
}

fn failures(world: &World) -> Result<(), String> {
    for operation in [
        json!({"op": "error", "kind": "cloud", "message": HOSTILE_TEXT}),
        json!({"op": "error", "kind": "not-supported", "message": HOSTILE_TEXT}),
        json!({"op": "garbage", "kind": "nul", "in_error": true}),
    ] {
        let response = run(&job(world), json!([operation]));
        check_sources(&response)?;
        let is_unsafe = |c: char| c != '\n' && (c.is_control() || is_invisible(c));
        for text in [response.message(), response.log()] {
            if text.contains(is_unsafe) {
                return Err(format!("{operation}: {text:?}"));
            }
        }
    }
    Ok(())
}

fn request_id(world: &World) -> Result<(), String> {
    let job = job(world);
    let call = job.call("has_vm", json!([probe::cid(&json!([{"op": "log", "message": "x"}]))]));
    let response = call.context("request_id", json!(format!("{HOSTILE_TEXT}{}", "y".repeat(10_000)))).run();
    let response = without_final_error(response);
    if response.stderr.lines().count() != 1 || response.stderr.len() > 400 {
        return Err(format!("the request ID is not one short text: {}", response.stderr));
    }
    expect_part(&response.stderr, "a\\ncpi-123456").map(drop)
}

fn method(world: &World) -> Result<(), String> {
    let response = job(world).call(&format!("{HOSTILE_TEXT}{}", "y".repeat(10_000)), json!([])).run();
    if response.message().contains(char::is_control) || response.message().len() > 1000 {
        return Err(format!("the method is quoted without escapes: {:?}", response.message()));
    }
    expect_part(response.message(), "Method is not known").map(drop)
}

fn peer(world: &World) -> Result<(), String> {
    let names =
        HashMap::from([("api.iaas.test".to_owned(), vec![crate::dns::Reply::Addresses(vec![[5, 6, 7, 10].into()])])]);
    for raw in [
        "HTTP/1.1 200 \u{1b}[2J\r\nX: \u{1b}]0;x\u{7}\r\n\r\n",
        "\u{1b}[2J\u{7}",
        "HTTP/1.1 999 x\r\n\u{1b}: y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \u{1b}[2J\r\n\r\n",
    ] {
        world.reset(names.clone(), Served::new(&json!({"api.iaas.test": {"raw": raw}})))?;
        let response = run(&job(world), json!([{"op": "http", "url": "https://api.iaas.test/v1/x"}]));
        check_sources(&response)?;
        if world.requests().len() != 1 || response.message().contains('\u{1b}') {
            return Err(format!("{raw:?}: {:?}", response.message()));
        }
    }
    Ok(())
}

fn denials(world: &World) -> Result<(), String> {
    let job = job(world).configure(|config| config["limits"] = json!({"log_lines": 100}));
    let denied = json!({"op": "http", "url": "https://evil.test/"});
    let operations: Vec<Value> =
        std::iter::repeat_n(denied, 300).chain([json!({"op": "result", "json": true})]).collect();
    let response = run(&job, json!(operations));
    check_sources(&response)?;
    expect_part(&response.stderr, "log lines of probe were dropped, because `limits.log_lines` is reached")?;
    let shown = response.stderr.lines().count();
    if shown == 101 { Ok(()) } else { Err(format!("{shown} lines are shown")) }
}

fn story(world: &World) -> Result<(), String> {
    let flood = json!({"op": "log", "level": "warn", "message": "w".repeat(1000), "repeat": 400});
    let response = run(&job(world), json!([flood, {"op": "trap"}]));
    expect_part(response.log(), "wasm-cpi error: guest: trapped in has_vm")?;
    if response.log().len() <= 16 * 1024 { Ok(()) } else { Err(format!("{} bytes", response.log().len())) }
}

fn seals(world: &World) -> Result<(), String> {
    let texts = [
        "{{props.password}}",
        "{{props.password|base64}}",
        "{{props.password|hex}}",
        "{{props.password|upper}}",
        "{{props.password|percent}}",
    ];
    let logged = texts.map(|text| json!({"op": "log", "message": format!("it is {text}.")}));
    let response = run(&job(world), json!(logged));
    let named = response.stderr.matches("it is <sealed:password>").count();
    if named == texts.len() { Ok(()) } else { Err(format!("{named} seals are named: {}", response.stderr)) }
}

/// The call writes its response although stderr cannot be written.
fn unwritable(world: &World) -> Result<(), String> {
    let job = job(world);
    let call = job.call("has_vm", json!([probe::cid(&json!([{"op": "log", "message": "x", "repeat": 100}]))]));
    let failed = |error: std::io::Error| error.to_string();
    let full = File::options().write(true).open("/dev/full").map_err(failed)?;
    let mut child = call.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(full).spawn().map_err(failed)?;
    child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(call.request().as_bytes())).map_err(failed)?;
    let output = child.wait_with_output().map_err(failed)?;
    let answer: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    expect_part(answer["error"]["message"].as_str().unwrap_or_default(), "probe outcomes: ")?;
    if output.status.success() { Ok(()) } else { Err(format!("{}", output.status)) }
}
