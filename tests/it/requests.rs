//! Invalid requests, and stdin, stdout and stderr that are closed or full.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::Stdio;
use tests::{CPI_ERROR, Job, NOT_IMPLEMENTED};

#[test]
fn input_that_is_not_a_valid_request_is_a_request_error() {
    let job = Job::default();
    let valid = job.call("has_vm", json!(["vm-1"])).request();
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(10_000), close.repeat(10_000));
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("nothing", b"".to_vec(), "stdin is empty"),
        ("white space", b" \r\n\t ".to_vec(), "stdin is empty"),
        ("not JSON", b"hello".to_vec(), "not one JSON document"),
        ("a shell's error", b"bash: cpi: not found\n".to_vec(), "not one JSON document"),
        ("cut off", valid.as_bytes()[..valid.len() / 2].to_vec(), "not one JSON document: EOF"),
        ("the last byte missing", valid.as_bytes()[..valid.len() - 1].to_vec(), "not one JSON document: EOF"),
        ("two documents", format!("{valid}{valid}").into_bytes(), "trailing characters"),
        ("garbage behind it", format!("{valid} x").into_bytes(), "trailing characters"),
        ("a byte order mark", format!("\u{feff}{valid}").into_bytes(), "not one JSON document"),
        ("not UTF-8", b"{\"method\":\"info\xff\",\"arguments\":[]}".to_vec(), "not UTF-8"),
        ("half a surrogate", br#"{"method":"\ud800","arguments":[]}"#.to_vec(), "not one JSON document"),
        ("UTF-16", valid.encode_utf16().flat_map(u16::to_le_bytes).collect(), "request: "),
        ("NaN", br#"{"method":"has_vm","arguments":[NaN]}"#.to_vec(), "not one JSON document"),
        (
            "a number without end",
            format!("{{\"method\":\"has_vm\",\"arguments\":[1e{}]}}", "9".repeat(999)).into_bytes(),
            "request: ",
        ),
        ("depth of arrays", deep("[", "]").into_bytes(), "request: "),
        ("depth of objects", deep("{\"a\":", "}").into_bytes(), "request: "),
        (
            "depth of arguments",
            format!("{{\"method\":\"has_vm\",\"arguments\":[{}]}}", deep("[", "]")).into_bytes(),
            "request: ",
        ),
        ("null", b"null".to_vec(), "must be a JSON object"),
        ("an array", b"[]".to_vec(), "must be a JSON object"),
        ("a string", b"\"info\"".to_vec(), "must be a JSON object"),
        ("an empty object", b"{}".to_vec(), "`method` is missing"),
        ("no arguments", br#"{"method":"info"}"#.to_vec(), "`arguments` is missing"),
        ("a method that is not a string", br#"{"method":7,"arguments":[]}"#.to_vec(), "`method` must be a string"),
        (
            "arguments that are not an array",
            br#"{"method":"info","arguments":{}}"#.to_vec(),
            "`arguments` must be an array",
        ),
        ("null arguments", br#"{"method":"info","arguments":null}"#.to_vec(), "`arguments` must be an array"),
        ("the method twice", br#"{"method":"info","method":"ping","arguments":[]}"#.to_vec(), "`method` occurs twice"),
        (
            "a key of arguments twice",
            br#"{"method":"create_disk","arguments":[1,{"a":1,"\u0061":2},null]}"#.to_vec(),
            "`a` occurs twice",
        ),
        (
            "a key of the context twice",
            br#"{"method":"info","arguments":[],"context":{"x":1,"x":2}}"#.to_vec(),
            "twice",
        ),
    ];
    for (what, stdin, expected) in cases {
        let response = job.raw(stdin).run();
        assert!(response.message().contains(expected), "{what}: {}", response.message());
        response.fails(CPI_ERROR, &["request: "]);
    }
}

#[test]
fn envelope_fields_of_a_wrong_type_are_request_errors() {
    let job = Job::default();
    for (key, value, expected) in [
        ("api_version", json!("2"), "`api_version` must be a whole number of at least 1"),
        ("api_version", json!(0), "`api_version` must be a whole number of at least 1"),
        ("api_version", json!(-1), "`api_version` must be a whole number of at least 1"),
        ("api_version", json!(1.5), "`api_version` must be a whole number of at least 1"),
        ("api_version", json!(u64::MAX), "`api_version` must be a whole number of at least 1"),
        ("api_version", json!(4), "supports at most 3"),
        ("context", json!([]), "`context` must be an object"),
        ("context", json!({"director_uuid": 1}), "`context.director_uuid` must be a string"),
        ("context", json!({"request_id": {}}), "`context.request_id` must be a string"),
        ("context", json!({"vm": {"stemcell": {"api_version": "x"}}}), "`context.vm.stemcell.api_version`"),
    ] {
        let mut request = json!({"method": "has_vm", "arguments": ["vm-1"]});
        request[key] = value;
        job.raw(request.to_string()).run().fails(CPI_ERROR, &["request: ", expected]);
    }
}

#[test]
fn unknown_keys_and_missing_optional_keys_are_accepted() {
    let job = Job::default();
    for extra in [
        json!({}),
        json!({"context": null}),
        json!({"context": {}, "api_version": null}),
        json!({"api_version": 2.0}),
        json!({"later": {"key": 1}, "context": {"later": [1], "vm": {"later": 1}}}),
        json!({"context": {"vm": null, "request_id": null, "director_uuid": null}}),
    ] {
        let mut request = json!({"method": "has_vm", "arguments": ["vm-1"]});
        request.as_object_mut().unwrap().extend(extra.as_object().cloned().unwrap());
        assert_eq!(*job.raw(format!("\n {request}\r\n")).run().result(), true, "{extra}");
    }
}

#[test]
fn unknown_methods_are_not_implemented() {
    let job = Job::default();
    for method in ["Info", "infos", "", "../info", "__proto__", "describe", "compile-guest", "has_vm ", "İnfo"] {
        let message = format!("Method is not known, got: {method}");
        job.call(method, json!([])).run().fails(NOT_IMPLEMENTED, &[&message]);
    }
    let odd = job.call(&format!("{}\u{1b}[2J\u{202e}\0", "x".repeat(5000)), json!([])).run();
    assert!(odd.message().len() < 300 && !odd.message().contains(['\u{1b}', '\u{202e}', '\0']), "{}", odd.message());
    let fine = job.call("x\u{1b}[2J\u{202e}\u{200b}\0y", json!([])).run();
    assert!(!fine.message().contains(['\u{1b}', '\u{202e}', '\u{200b}', '\0']), "{:?}", fine.message());
}

/// The arguments of each method, by kind. The tests remove each argument, replace it by values of
/// a wrong type, and add one too many.
const SIGNATURES: &[(&str, u32, &[Kind])] = &[
    ("info", 2, &[]),
    ("create_stemcell", 2, &[Kind::Text, Kind::ObjectOrNull]),
    ("create_stemcell", 3, &[Kind::Text, Kind::ObjectOrNull, Kind::ObjectOrAbsent]),
    ("delete_stemcell", 2, &[Kind::Text]),
    (
        "create_vm",
        2,
        &[Kind::Text, Kind::Text, Kind::ObjectOrNull, Kind::Object, Kind::ListOrAbsent, Kind::ObjectOrAbsent],
    ),
    ("delete_vm", 2, &[Kind::Text]),
    ("has_vm", 2, &[Kind::Text]),
    ("reboot_vm", 2, &[Kind::Text]),
    ("set_vm_metadata", 2, &[Kind::Text, Kind::Object]),
    ("calculate_vm_cloud_properties", 2, &[Kind::Size]),
    ("create_disk", 2, &[Kind::Number, Kind::ObjectOrNull, Kind::TextOrAbsent]),
    ("delete_disk", 2, &[Kind::Text]),
    ("has_disk", 2, &[Kind::Text]),
    ("attach_disk", 2, &[Kind::Text, Kind::Text]),
    ("detach_disk", 2, &[Kind::Text, Kind::Text]),
    ("set_disk_metadata", 2, &[Kind::Text, Kind::Object]),
    ("get_disks", 2, &[Kind::Text]),
    ("resize_disk", 2, &[Kind::Text, Kind::Number]),
    ("update_disk", 2, &[Kind::Text, Kind::Number, Kind::ObjectOrNull]),
    ("snapshot_disk", 2, &[Kind::Text, Kind::ObjectOrNull]),
    ("delete_snapshot", 2, &[Kind::Text]),
    ("create_network", 2, &[Kind::Object]),
    ("delete_network", 2, &[Kind::Text]),
];

#[derive(Clone, Copy)]
enum Kind {
    Text,
    TextOrAbsent,
    Number,
    Object,
    ObjectOrNull,
    ObjectOrAbsent,
    ListOrAbsent,
    Size,
}

impl Kind {
    fn right(self) -> Value {
        match self {
            Kind::Text | Kind::TextOrAbsent => json!("vm-1"),
            Kind::Number => json!(1024),
            Kind::Object | Kind::ObjectOrNull | Kind::ObjectOrAbsent => json!({}),
            Kind::ListOrAbsent => json!([]),
            Kind::Size => json!({"ram": 1, "cpu": 1, "ephemeral_disk_size": 1}),
        }
    }

    fn wrong(self) -> Vec<Value> {
        let (text, number, object, list) = (json!("x"), json!(1), json!({}), json!([]));
        match self {
            Kind::Text => vec![json!(null), json!(""), number, object, list, json!(true)],
            Kind::TextOrAbsent => vec![number, object, list],
            Kind::Number => vec![json!(null), text, json!(-1), json!(1.5), json!(1e300), object, list],
            Kind::Object => vec![json!(null), text, number, list],
            Kind::ObjectOrNull | Kind::ObjectOrAbsent => vec![text, number, list, json!(false)],
            Kind::ListOrAbsent => vec![text, number, object, json!([1]), json!([null])],
            Kind::Size => vec![
                json!(null),
                list,
                object,
                json!({"ram": "1", "cpu": 1, "ephemeral_disk_size": 1}),
                json!({"ram": 1, "cpu": -1, "ephemeral_disk_size": 1}),
                json!({"ram": 1, "cpu": 4_294_967_296_u64, "ephemeral_disk_size": 1}),
                json!({"ram": 1, "cpu": 1, "ephemeral_disk_size": null}),
            ],
        }
    }

    fn can_be_absent(self) -> bool {
        matches!(self, Kind::TextOrAbsent | Kind::ObjectOrAbsent | Kind::ListOrAbsent)
    }
}

#[test]
fn the_error_for_a_wrong_number_of_arguments_names_the_method_and_the_missing_argument() {
    let job = Job::default();
    for (method, version, kinds) in SIGNATURES {
        let right: Vec<Value> = kinds.iter().map(|kind| kind.right()).collect();
        let run = |arguments: &[Value]| job.call(method, json!(arguments)).api_version(*version).run();
        let more = [right.as_slice(), &[json!("one too many")]].concat();
        let too_many = format!("`{method}` got {} arguments, but takes at most {}", more.len(), right.len());
        run(&more).fails(CPI_ERROR, &["request: ", &too_many]);
        let needed = kinds.iter().filter(|kind| !kind.can_be_absent()).count();
        for count in 0..needed {
            let too_few = format!("`{method}` got {count} arguments; argument {} (", count + 1);
            run(&right[..count]).fails(CPI_ERROR, &["request: ", &too_few, "is missing"]);
        }
    }
}

#[test]
fn the_error_for_an_argument_of_a_wrong_type_names_its_position() {
    let job = Job::default();
    for (method, version, kinds) in SIGNATURES {
        for (position, kind) in kinds.iter().enumerate() {
            for wrong in kind.wrong() {
                let mut arguments: Vec<Value> = kinds.iter().map(|kind| kind.right()).collect();
                arguments[position] = wrong;
                let response = job.call(method, json!(arguments)).api_version(*version).run();
                let place = format!("`{method}`: argument {} (`", position + 1);
                response.fails(CPI_ERROR, &["request: ", &place, "must be"]);
            }
        }
    }
}

#[test]
fn the_contents_of_networks_and_options_are_checked() {
    let job = Job::default();
    let vm = |networks: Value| job.call("create_vm", json!(["a", "stemcell-1", {}, networks, [], {}])).run();
    vm(json!({"n": 7})).fails(CPI_ERROR, &["an object of objects; `n` is not an object"]);
    vm(json!({"n": null})).fails(CPI_ERROR, &["an object of objects; `n` is not an object"]);
    let options = job.call("create_stemcell", json!(["/image", {}, {"tags": []}])).api_version(3).run();
    options.fails(CPI_ERROR, &["`tags` is an object"]);
    for (key, value) in
        [("cloud_properties", json!(7)), ("range", json!({})), ("netmask_bits", json!("many")), ("type", json!([]))]
    {
        let response = job.call("create_network", json!([{key: value}])).run();
        response.fails(CPI_ERROR, &[&format!("`create_network`: `{key}` must be")]);
    }
}

#[test]
fn a_request_of_64_mib_is_read_completely_and_refused() {
    let job = Job::default();
    let padding = "x".repeat(64 << 20);
    let request = job.call("create_disk", json!([1, {"padding": padding}, null])).request();
    let response = job.raw(request).run();
    response.fails(CPI_ERROR, &["request: ", "`request_mib` (16)", "raise `limits.request_mib`"]);
}

#[test]
fn a_large_request_and_a_large_response_do_not_block_each_other() {
    // More than a pipe holds, and less than agent settings may have.
    let network = |n: usize| (format!("network-{n:0100}"), json!({"type": "manual", "cloud_properties": {}}));
    let networks: Value = (0..500).map(network).collect::<serde_json::Map<_, _>>().into();
    let response = Job::default().call("create_vm", json!(["a", "stemcell-1", {}, networks, [], {}])).run();
    assert_eq!(response.result()[1].as_object().unwrap().len(), 500);
}

/// Both stdin and stderr get more than a pipe holds, and the caller reads nothing until it has
/// written all of stdin, as the Director does.
#[test]
fn a_large_request_and_much_stderr_do_not_block_each_other() {
    let script = json!([{"op": "log", "message": "l".repeat(1000), "repeat": 400}]);
    let properties = json!({"probe": script, "padding": "p".repeat(1 << 20)});
    let response = Job::default().call("create_disk", json!([1, properties, null])).run();
    response.result();
    assert!(response.stderr.len() > 400_000, "{} bytes", response.stderr.len());
}

#[test]
fn a_call_whose_caller_closes_stdout_or_stderr_does_not_crash() {
    let job = Job::default();
    let call = job.script(json!([{"op": "log", "message": "m", "repeat": 500}]));
    for closed in ["stdout", "stderr"] {
        let mut child =
            call.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        match closed {
            "stdout" => stdout = None,
            _ => stderr = None,
        }
        stdin.write_all(call.request().as_bytes()).unwrap();
        drop(stdin);
        let mut written = Vec::new();
        if let Some(stdout) = &mut stdout {
            stdout.read_to_end(&mut written).unwrap();
        }
        if let Some(stderr) = &mut stderr {
            stderr.read_to_end(&mut Vec::new()).unwrap();
        }
        let status = child.wait().unwrap();
        // A signal would mean that SIGPIPE killed the process.
        match closed {
            "stdout" => assert_eq!(status.code(), Some(1), "{status}"),
            _ => {
                assert_eq!(status.code(), Some(0), "{status}");
                assert!(serde_json::from_slice::<Value>(&written).unwrap()["error"].is_null());
            }
        }
    }
}

#[test]
fn no_file_is_opened_as_a_closed_standard_stream() {
    let job = Job::default().configure(|config| config["audit"] = json!({"path": "../audit.log"}));
    let call = job.call("has_vm", json!(["vm-1"]));
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &format!("exec \"$0\" --config \"$1\" {closed}")]).arg(job.program()).arg(job.config_file());
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // The write fails if stdin is closed.
        let _ = child.stdin.take().unwrap().write_all(call.request().as_bytes());
        let output = child.wait_with_output().unwrap();
        let answer = serde_json::from_slice::<Value>(&output.stdout);
        match closed {
            "<&-" => assert!(answer.unwrap()["error"]["message"].as_str().unwrap().contains("stdin is empty")),
            "2>&-" => assert_eq!(answer.unwrap()["result"], true),
            _ => assert!(output.stdout.is_empty()),
        }
        let audit = std::fs::read_to_string(job.path("audit.log")).unwrap();
        let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(
            lines.iter().all(|line| line["v"] == 1),
            "output of another stream was written to the audit log: {audit}"
        );
    }
}

#[test]
fn a_request_without_an_end_is_refused_after_wall_seconds() {
    let job = Job::default().limits(json!({"wall_seconds": 1}));
    let request = job.call("has_vm", json!(["vm-1"])).request();
    let mut command = job.raw(request.as_str()).command();
    let response = tests::process::run_with_open_stdin(&mut command, request.as_bytes(), tests::process::GUARD);
    let message = response.unwrap()["error"]["message"].as_str().unwrap().to_owned();
    let expected = "request: waiting for the end of the request on stdin reached `wall_seconds` (1)";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn empty_stdin_is_a_request_error() {
    let job = Job::default();
    let output = job.call("info", json!([])).command().stdin(Stdio::null()).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success());
    assert!(answer["error"]["message"].as_str().unwrap().contains("stdin is empty"), "{answer}");
}

#[test]
fn the_hot_binary_prints_its_usage_to_stderr() {
    let output = std::process::Command::new(tests::dist::hot()).arg("--help").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty(), "stdout is only for responses");
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: wasm-cpi-run --config"));
}
