//! What a guest or a peer can make the logs say: lines that somebody else seems
//! to have written, characters that steer a terminal, more than anybody reads.
//!
//! Every response is held to `Response`'s contract as well: no control or
//! invisible character on stderr, and no more than a megabyte.

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

/// What begins every line of a guest, and of the runtime.
const GUEST: &str = "cpi-123456 probe ";
const RUNTIME: &str = "cpi-123456 wasm-cpi ";

/// A line break of every kind, a terminal's own language, and text that hides or turns around.
const NASTY: &str = "a\ncpi-123456 wasm-cpi error: forged\r\u{1b}[2J\u{1b}]0;x\u{7}\u{8}\u{0}\u{85}\u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{9b}31m\u{e0041}z";

pub(super) fn cases() -> Vec<Case> {
    let case =
        |name: &str, holes: &[&str], attempt: fn(&World) -> Result<(), String>| Case::new(CLASS, name, holes, attempt);
    vec![
        case("a line of the log that pretends to be several", &["escape-log"], logged),
        case("printed lines that pretend to be another's", &["escape-log"], printed),
        case("a line of JSON that pretends to have other fields", &["escape-log"], json_lines),
        case("errors that steer a terminal", &["escape-log"], failures),
        case("a request id that steers a terminal", &["escape-log"], request_id),
        case("a method that steers a terminal", &["escape-log"], method),
        case("a server whose words steer a terminal", &["escape-log"], peer).speaking_to(API),
        case("a flood of refused requests", &["limit-log_lines"], denials),
        case("a flood of warnings leaves room for how it ended", &["story-size"], story),
        case("seals are named, not shown", &["seal-printed"], seals),
        case("a log that nobody can write to", &[], full),
    ]
}

fn job(world: &World) -> Job {
    row::job(world, &json!({}))
}

fn run(job: &Job, operations: Value) -> Response {
    without_its_end(job.call("has_vm", json!([probe::cid(&operations)])).run())
}

/// Without the runtime's own line about how the call ended.
fn without_its_end(mut response: Response) -> Response {
    let ended = |line: &&str| line.contains("guest: Bosh::Clouds::") && line.contains("probe outcomes");
    response.stderr = response.stderr.split_inclusive('\n').filter(|line| !ended(line)).collect();
    response
}

/// Every line is from one of the two who write there, and says who.
fn attributed(response: &Response) -> Result<(), String> {
    let stranger = response.stderr.lines().find(|line| !line.starts_with(GUEST) && !line.starts_with(RUNTIME));
    let forged = response.stderr.lines().find(|line| line.starts_with(&format!("{RUNTIME}error: forged")));
    match stranger.or(forged) {
        Some(line) => Err(format!("nobody wrote this line: {line}\nin {}", response.stderr)),
        None => Ok(()),
    }
}

fn told<'a>(text: &'a str, part: &str) -> Result<&'a str, String> {
    if text.contains(part) { Ok(text) } else { Err(format!("no `{part}` in: {text}")) }
}

fn logged(world: &World) -> Result<(), String> {
    for level in ["info", "warn", "error"] {
        let response = run(&job(world), json!([{"op": "log", "level": level, "message": NASTY}]));
        attributed(&response)?;
        if response.stderr.lines().count() != 1 {
            return Err(format!("more than one line: {}", response.stderr));
        }
        told(&response.stderr, "a\\ncpi-123456 wasm-cpi error: forged\\r\\u{1b}[2J")?;
        let story = response.log();
        if story.chars().any(|c| c != '\n' && c.is_control()) || story.lines().count() > 1 {
            return Err(format!("the response's log can be steered: {story:?}"));
        }
    }
    Ok(())
}

fn printed(world: &World) -> Result<(), String> {
    for stream in ["stdout", "stderr"] {
        let text = format!("{NASTY}\n{RUNTIME}error: forged\n\n{NASTY}");
        let response = run(&job(world), json!([{"op": "print", "stream": stream, "text": text}]));
        attributed(&response)?;
        told(&response.stderr, GUEST)?;
        told(&response.stderr, ": cpi-123456 wasm-cpi error: forged\n")?;
    }
    Ok(())
}

fn json_lines(world: &World) -> Result<(), String> {
    let job = job(world).configure(|config| config["log"] = json!({"format": "json", "level": "debug"}));
    let message =
        format!("\",\"level\":\"error\",\"source\":\"wasm-cpi\",\"x\":\"{NASTY}\"}}\n{{\"source\":\"wasm-cpi\"}}");
    let response = run(&job, json!([{"op": "log", "message": message}, {"op": "print", "text": message}]));
    for line in response.stderr.lines() {
        let fields: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        if fields["source"] != "probe" || fields["level"] != "info" || fields["request_id"] != "cpi-123456" {
            return Err(format!("nobody wrote this line: {line}"));
        }
        if fields.as_object().is_none_or(|fields| fields.len() != 4) {
            return Err(format!("other fields: {line}"));
        }
    }
    if response.stderr.lines().count() == 4 { Ok(()) } else { Err(format!("not four lines: {}", response.stderr)) }
}

fn failures(world: &World) -> Result<(), String> {
    for operation in [
        json!({"op": "error", "kind": "cloud", "message": NASTY}),
        json!({"op": "error", "kind": "not-supported", "message": NASTY}),
        json!({"op": "garbage", "kind": "nul", "in_error": true}),
    ] {
        let response = run(&job(world), json!([operation]));
        attributed(&response)?;
        let steers = |c: char| c != '\n' && (c.is_control() || is_invisible(c));
        for text in [response.message(), response.log()] {
            if text.contains(steers) {
                return Err(format!("{operation}: {text:?}"));
            }
        }
    }
    Ok(())
}

fn request_id(world: &World) -> Result<(), String> {
    let job = job(world);
    let call = job.call("has_vm", json!([probe::cid(&json!([{"op": "log", "message": "x"}]))]));
    let response = call.context("request_id", json!(format!("{NASTY}{}", "y".repeat(10_000)))).run();
    let response = without_its_end(response);
    if response.stderr.lines().count() != 1 || response.stderr.len() > 400 {
        return Err(format!("the request id is not one short word: {}", response.stderr));
    }
    told(&response.stderr, "a\\ncpi-123456").map(drop)
}

fn method(world: &World) -> Result<(), String> {
    let response = job(world).call(&format!("{NASTY}{}", "y".repeat(10_000)), json!([])).run();
    if response.message().contains(char::is_control) || response.message().len() > 1000 {
        return Err(format!("the method is quoted as it is: {:?}", response.message()));
    }
    told(response.message(), "Method is not known").map(drop)
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
        world.set(names.clone(), Served::new(&json!({"api.iaas.test": {"raw": raw}})))?;
        let response = run(&job(world), json!([{"op": "http", "url": "https://api.iaas.test/v1/x"}]));
        attributed(&response)?;
        if world.arrived().len() != 1 || response.message().contains('\u{1b}') {
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
    attributed(&response)?;
    told(&response.stderr, "lines of probe dropped: `limits.log_lines` is reached")?;
    let shown = response.stderr.lines().count();
    if shown == 101 { Ok(()) } else { Err(format!("{shown} lines are shown")) }
}

fn story(world: &World) -> Result<(), String> {
    let flood = json!({"op": "log", "level": "warn", "message": "w".repeat(1000), "repeat": 400});
    let response = run(&job(world), json!([flood, {"op": "trap"}]));
    told(response.log(), "wasm-cpi error: guest: trapped in has_vm")?;
    if response.log().len() <= 16 * 1024 { Ok(()) } else { Err(format!("{} bytes", response.log().len())) }
}

fn seals(world: &World) -> Result<(), String> {
    let said = [
        "{{props.password}}",
        "{{props.password|base64}}",
        "{{props.password|hex}}",
        "{{props.password|upper}}",
        "{{props.password|percent}}",
    ];
    let logged = said.map(|text| json!({"op": "log", "message": format!("it is {text}.")}));
    let response = run(&job(world), json!(logged));
    let named = response.stderr.matches("it is <sealed:password>").count();
    if named == said.len() { Ok(()) } else { Err(format!("{named} seals are named: {}", response.stderr)) }
}

/// One response on stdout, whatever becomes of stderr.
fn full(world: &World) -> Result<(), String> {
    let job = job(world);
    let call = job.call("has_vm", json!([probe::cid(&json!([{"op": "log", "message": "x", "repeat": 100}]))]));
    let failed = |error: std::io::Error| error.to_string();
    let nowhere = File::options().write(true).open("/dev/full").map_err(failed)?;
    let mut child =
        call.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(nowhere).spawn().map_err(failed)?;
    child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(call.request().as_bytes())).map_err(failed)?;
    let output = child.wait_with_output().map_err(failed)?;
    let answer: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    told(answer["error"]["message"].as_str().unwrap_or_default(), "probe outcomes: ")?;
    if output.status.success() { Ok(()) } else { Err(format!("{}", output.status)) }
}
