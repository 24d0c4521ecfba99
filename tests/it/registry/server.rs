//! The server `wasm-cpi registry`: its HTTP API, its files, and that it never loses
//! settings that it acknowledged.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tests::registry_server::{RegistryServer, USER, basic, command, database, password, password_file};
use tests::servers::{Authority, Validity};
use tests::{client, job, users};

fn started() -> (tempfile::TempDir, RegistryServer) {
    let dir = tempfile::tempdir().unwrap();
    let server = RegistryServer::start(dir.path());
    (dir, server)
}

#[test]
fn every_request_gets_the_response_of_the_api() {
    let (_dir, server) = started();
    let (one, two) = (r#"{"a": 1.50, "b":"ü\u0041"}"#, r#"{"a":2}"#);
    let status = |word: &str| json!({"status": word}).to_string();
    let long = "i".repeat(256);
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(512 << 10));
    let deep = format!("{}{}", "{\"a\":".repeat(70), "1") + &"}".repeat(70);
    for (line, body, code, answer) in [
        ("GET /instances/vm-1/settings", "", 404, status("not_found")),
        ("DELETE /instances/vm-1/settings", "", 200, status("ok")),
        ("PUT /instances/vm-1/settings", one, 200, status("ok")),
        // The settings are JSON in a string, exactly as they were stored.
        ("GET /instances/vm-1/settings", "", 200, json!({"status": "ok", "settings": one}).to_string()),
        ("PUT /instances/vm-1/settings", two, 200, status("ok")),
        ("GET /instances/vm-1/settings", "", 200, json!({"status": "ok", "settings": two}).to_string()),
        ("GET /instances/VM-1/settings", "", 404, status("not_found")),
        ("PUT /instances/vm-1/settings", "", 400, String::new()),
        ("PUT /instances/vm-1/settings", "not JSON", 400, String::new()),
        ("PUT /instances/vm-1/settings", "[]", 400, String::new()),
        ("PUT /instances/vm-1/settings", "{\"a\":1,\"a\":2}", 400, String::new()),
        ("PUT /instances/vm-1/settings", &deep, 400, String::new()),
        ("PUT /instances/vm-1/settings", &large, 413, String::new()),
        ("PUT /instances/a%2Fb/settings", one, 400, String::new()),
        ("PUT /instances/../settings", one, 400, String::new()),
        ("PUT /instances//settings", one, 400, String::new()),
        (&format!("PUT /instances/{long}/settings"), one, 400, String::new()),
        ("POST /instances/vm-1/settings", one, 405, String::new()),
        ("PATCH /instances/vm-1/settings", one, 405, String::new()),
        ("GET /instances/vm-1", "", 404, status("not_found")),
        ("GET /", "", 404, status("not_found")),
        ("GET /instances/vm-1/settings/x", "", 404, status("not_found")),
        ("GET /instances/vm-1/settings", "", 200, json!({"status": "ok", "settings": two}).to_string()),
        ("DELETE /instances/vm-1/settings", "", 200, status("ok")),
        ("GET /instances/vm-1/settings", "", 404, status("not_found")),
    ] {
        let answered = server.ask(line, body.as_bytes());
        assert_eq!(answered.status, code, "{line} {body}: {}", answered.body);
        assert_eq!(answered.header("content-type"), Some("application/json"), "{line}");
        let json: Value = serde_json::from_str(&answered.body).unwrap();
        match answer.as_str() {
            "" => assert!(json["status"] == "error" && json["message"].is_string(), "{line}: {json}"),
            answer => assert_eq!(answered.body, *answer, "{line}"),
        }
    }
    assert_eq!(server.ask("POST /instances/vm-1/settings", b"{}").header("allow"), Some("GET, PUT, DELETE"));
    let not_text = server.ask("PUT /instances/vm-1/settings", b"{\"a\":\"\xff\"}");
    assert_eq!(not_text.status, 400);
}

#[test]
fn requests_without_the_right_credentials_are_refused() {
    let (_dir, server) = started();
    server.put("vm-1", &json!({"a": 1}));
    let wrong = [
        None,
        Some(basic(USER, "wrong")),
        Some(basic("other", &password())),
        Some(basic(USER, "")),
        Some(basic("", &password())),
        Some(basic(USER, &format!("{}x", password()))),
        Some(basic(USER, &password()).replace("Basic", "Bearer")),
        Some(format!("Basic {USER}:{}", password())),
        Some("Basic".to_owned()),
        Some(format!("{}\r\nAuthorization: {}", basic(USER, &password()), basic(USER, "wrong"))),
    ];
    for credentials in &wrong {
        for line in [
            "GET /instances/vm-1/settings",
            "PUT /instances/vm-1/settings",
            "DELETE /instances/vm-1/settings",
            "GET /",
            "POST /x",
            "GET /instances/../settings",
        ] {
            let answered = server.request(line, credentials.as_deref(), b"{\"a\":2}").unwrap();
            assert_eq!(
                (answered.status, answered.body.as_str()),
                (401, "{\"status\":\"access_denied\"}"),
                "{line} {credentials:?}"
            );
            assert_eq!(answered.header("www-authenticate"), Some("Basic realm=\"Bosh Registry\""));
        }
    }
    assert_eq!(server.get("vm-1"), Some(json!({"a": 1})));
    // The scheme is not case-sensitive.
    let lower = basic(USER, &password()).replace("Basic", "basic");
    assert_eq!(server.request("GET /instances/vm-1/settings", Some(&lower), b"").unwrap().status, 200);
}

#[test]
fn a_server_with_tls_accepts_only_tls() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let server = RegistryServer::secure(dir.path(), &authority.issue(&["127.0.0.1"], Validity::Now), &authority.pem());
    assert!(server.endpoint().starts_with("https://"));
    server.put("vm-1", &json!({"a": 1}));
    assert_eq!(server.get("vm-1"), Some(json!({"a": 1})));
    let plain = format!(
        "GET /instances/vm-1/settings HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n\r\n",
        basic(USER, &password())
    );
    assert!(client::exchange(server.address(), None, plain.as_bytes()).is_err());
    assert!(client::exchange(server.address(), Some(&Authority::new().pem()), plain.as_bytes()).is_err());
    assert_eq!(server.get("vm-1"), Some(json!({"a": 1})));
}

#[test]
fn invalid_requests_do_not_stop_the_server() {
    let (_dir, server) = started();
    let auth = basic(USER, &password());
    for bytes in [
        String::new(),
        "\r\n\r\n".into(),
        "nonsense\r\n\r\n".into(),
        "GET / HTTP/9.9\r\n\r\n".into(),
        format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)),
        format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1000)),
        format!(
            "PUT /instances/vm-1/settings HTTP/1.1\r\nHost: x\r\nAuthorization: {auth}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{{}}"
        ),
        format!(
            "PUT /instances/vm-1/settings HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {auth}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        ),
    ] {
        let stream = std::net::TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut stream = stream;
        let _ = std::io::Write::write_all(&mut stream, bytes.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
        assert!(!String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 2"), "{bytes}");
    }
    let chunked = format!(
        "PUT /instances/vm-1/settings HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {auth}\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{{\"a\":1}}\r\n0\r\n\r\n"
    );
    assert_eq!(client::exchange(server.address(), None, chunked.as_bytes()).unwrap().status, 200);
    assert_eq!(server.get("vm-1"), Some(json!({"a": 1})));
}

#[test]
fn files_are_private_and_files_with_other_modes_are_refused() {
    let (dir, server) = started();
    server.put("vm-1", &json!({"a": 1}));
    for entry in std::fs::read_dir(dir.path()).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", entry.file_name());
    }
    drop(server);
    let fails = |change: &dyn Fn(&std::path::Path), expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = command(dir.path());
        change(dir.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(expected), "no `{expected}` in: {text}");
        assert!(!text.contains(&password()), "{text}");
    };
    let set = |path: std::path::PathBuf, mode: u32| job::set_mode(&path, mode);
    fails(&|dir| set(password_file(dir), 0o644), "other users can access it (mode 644); run `chmod o-rwx,g-w` on it");
    fails(&|dir| set(password_file(dir), 0o620), "other users can access it (mode 620)");
    fails(&|dir| std::fs::remove_file(password_file(dir)).unwrap(), "cannot be read");
    fails(&|dir| job::write(&password_file(dir), b""), "must hold one line");
    fails(&|dir| job::write(&password_file(dir), b"two\nlines\n"), "must hold one line");
    let link = |dir: &std::path::Path| {
        job::write(&dir.join("elsewhere"), b"");
        std::os::unix::fs::symlink(dir.join("elsewhere"), database(dir)).unwrap();
    };
    fails(&link, "links are not followed");
    fails(&|dir| std::fs::create_dir(database(dir)).unwrap(), "store");
    let open = |dir: &std::path::Path| {
        job::write(&database(dir), b"");
        job::set_mode(&database(dir), 0o644);
    };
    fails(&open, "holds secrets, but other users can access it (mode 644); run `chmod 600` on it");
    let garbage = |dir: &std::path::Path| {
        job::write(&database(dir), &[b'x'; 5000]);
        job::set_mode(&database(dir), 0o600);
    };
    fails(&garbage, "cannot be used");
}

#[test]
fn invalid_options_are_named_in_the_error() {
    let (dir, server) = started();
    let run = |arguments: &[&str]| {
        let mut all = command(dir.path());
        all.args(arguments);
        let output = Command::new(all.get_program()).args(all.get_args()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (arguments, expected) in [
        (&["--cert", "x.pem"][..], "--key"),
        (&["--cert", "/missing.pem", "--key", "/missing.key"], "certificate file `/missing.pem` cannot be read"),
    ] {
        let (succeeds, text) = run(arguments);
        assert!(!succeeds && text.contains(expected), "{arguments:?}: {text}");
    }
    let mut second = Command::new(tests::dist::tool());
    second
        .args(["registry", "--user", USER, "--listen", &server.address().to_string(), "--database"])
        .arg(dir.path().join("other.db"));
    let output = second.arg("--password-file").arg(password_file(dir.path())).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success()
            && text.contains("cannot listen on 127.0.0.1:")
            && text.contains("choose another address or port"),
        "{text}"
    );
}

#[test]
fn sigterm_and_sigint_end_the_server_without_loss() {
    for signal in [Signal::TERM, Signal::INT] {
        let (dir, mut server) = started();
        server.put("vm-1", &json!({"a": 1}));
        kill_process(Pid::from_child(server.child()), signal).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let status = loop {
            match server.child().try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < until, "the server does not end"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(status.success(), "{status}");
        assert_eq!(RegistryServer::start(dir.path()).get("vm-1"), Some(json!({"a": 1})));
    }
}

/// Four clients write new IDs and rewrite one ID each, until the process is killed.
#[test]
fn a_kill_under_load_loses_no_acknowledged_settings() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..2_u64 {
        let mut server = RegistryServer::start(dir.path());
        check_all_stored(&server, &expected);
        let killed = Arc::new(AtomicBool::new(false));
        let (acknowledgement, acknowledgements) = channel();
        let pid = Pid::from_child(server.child());
        let acknowledged: Vec<BTreeMap<String, u64>> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4_u64)
                .map(|writer| {
                    let (server, killed, acknowledgement) = (&server, Arc::clone(&killed), acknowledgement.clone());
                    scope.spawn(move || write_until(server, &killed, &acknowledgement, round, writer))
                })
                .collect();
            drop(acknowledgement);
            assert_eq!(acknowledgements.iter().take(20).count(), 20);
            kill_process(pid, Signal::KILL).unwrap();
            killed.store(true, Ordering::SeqCst);
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        expected.extend(acknowledged.into_iter().flatten());
    }
    check_all_stored(&RegistryServer::start(dir.path()), &expected);
}

/// Checks that all acknowledged settings are stored.
#[track_caller]
fn check_all_stored(server: &RegistryServer, expected: &BTreeMap<String, u64>) {
    for (id, number) in expected {
        let stored = server.get(id).unwrap_or_else(|| panic!("{id} is lost"))["n"].as_u64();
        // A write without a response may have been stored.
        let later = id.starts_with("same") && stored > Some(*number);
        assert!(stored == Some(*number) || later, "{id}: got {stored:?}, expected {number}");
    }
}

/// Writes until the server is gone. Returns the acknowledged numbers by ID, and sends a message
/// for each acknowledgement.
fn write_until(
    server: &RegistryServer,
    killed: &AtomicBool,
    acknowledgement: &Sender<()>,
    round: u64,
    writer: u64,
) -> BTreeMap<String, u64> {
    let mut acknowledged = BTreeMap::new();
    for number in (round * 1_000_000).. {
        for id in [format!("vm-{writer}-{number}"), format!("same-{round}-{writer}")] {
            let (line, auth) = (format!("PUT /instances/{id}/settings"), basic(USER, &password()));
            let answer = server.request(&line, Some(&auth), json!({"n": number}).to_string().as_bytes());
            match answer {
                Ok(answer) if answer.status == 200 => {
                    acknowledged.insert(id, number);
                    let _ = acknowledgement.send(());
                }
                _ if killed.load(Ordering::SeqCst) => return acknowledged,
                Ok(answer) => panic!("{}", answer.body),
                // The server was killed, and the flag is set a moment later.
                Err(_) => return acknowledged,
            }
        }
    }
    acknowledged
}

#[test]
fn a_full_disk_fails_new_writes_and_keeps_stored_settings() {
    if !users::is_root("a registry on a full disk") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(_disk) = users::SmallDisk::mount(dir.path(), "size=1m") else { return };
    let server = RegistryServer::start(dir.path());
    let settings = |number: u64| json!({"n": number, "padding": "x".repeat(50_000)});
    let mut written = Vec::new();
    let refused = (0..200).find(|number| {
        let answer =
            server.ask(&format!("PUT /instances/vm-{number}/settings"), settings(*number).to_string().as_bytes());
        match answer.status {
            200 => written.push(*number),
            status => assert_eq!((status, answer.body.as_str()), (500, "{\"status\":\"error\"}")),
        }
        answer.status != 200
    });
    assert!(refused.is_some() && !written.is_empty(), "a disk of 1 MiB stored {} MiB", written.len() / 20);
    for number in &written {
        assert_eq!(server.get(&format!("vm-{number}")), Some(settings(*number)));
    }
    assert_eq!(server.get(&format!("vm-{}", refused.unwrap())), None);
}
