//! `wasm-cpi registry`, the server: its HTTP API, its files, and that nothing
//! it acknowledged is ever lost.

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
fn every_request_is_answered_as_the_api_says() {
    let (_dir, server) = started();
    let (one, two) = (r#"{"a": 1.50, "b":"ü\u0041"}"#, r#"{"a":2}"#);
    let status = |word: &str| json!({"status": word}).to_string();
    let long = "i".repeat(256);
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(256 << 10));
    let deep = format!("{}{}", "{\"a\":".repeat(70), "1") + &"}".repeat(70);
    for (line, body, code, answer) in [
        ("GET /instances/vm-1/settings", "", 404, status("not_found")),
        ("DELETE /instances/vm-1/settings", "", 200, status("ok")),
        ("PUT /instances/vm-1/settings", one, 200, status("ok")),
        // Double encoded, and the very text that was stored.
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
fn nothing_is_answered_without_the_right_credentials() {
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
    // Case of the scheme does not count.
    let lower = basic(USER, &password()).replace("Basic", "basic");
    assert_eq!(server.request("GET /instances/vm-1/settings", Some(&lower), b"").unwrap().status, 200);
}

#[test]
fn tls_is_spoken_to_those_who_ask_for_it_and_to_nobody_else() {
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
fn clients_that_break_the_rules_do_not_stop_it() {
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
fn its_files_are_its_own() {
    let (dir, server) = started();
    server.put("vm-1", &json!({"a": 1}));
    for entry in std::fs::read_dir(dir.path()).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", entry.file_name());
    }
    drop(server);
    let fails = |change: &dyn Fn(&std::path::Path), said: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = command(dir.path());
        change(dir.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "no `{said}` in: {text}");
        assert!(!text.contains(&password()), "{text}");
    };
    let set = |path: std::path::PathBuf, mode: u32| job::set_mode(&path, mode);
    fails(&|dir| set(password_file(dir), 0o644), "has mode 644; run `chmod o-rwx,g-w` on it");
    fails(&|dir| set(password_file(dir), 0o620), "has mode 620");
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
    fails(&open, "has mode 644 and holds secrets; run `chmod 600` on it");
    let garbage = |dir: &std::path::Path| {
        job::write(&database(dir), &[b'x'; 5000]);
        job::set_mode(&database(dir), 0o600);
    };
    fails(&garbage, "cannot be used");
}

#[test]
fn options_that_cannot_work_are_named() {
    let (dir, server) = started();
    let run = |arguments: &[&str]| {
        let mut all = command(dir.path());
        all.args(arguments);
        let output = Command::new(all.get_program()).args(all.get_args()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (arguments, said) in [
        (&["--cert", "x.pem"][..], "--key"),
        (&["--cert", "/missing.pem", "--key", "/missing.key"], "certificate file `/missing.pem` cannot be read"),
    ] {
        let (good, text) = run(arguments);
        assert!(!good && text.contains(said), "{arguments:?}: {text}");
    }
    let mut taken = Command::new(tests::dist::tool());
    taken
        .args(["registry", "--user", USER, "--listen", &server.address().to_string(), "--database"])
        .arg(dir.path().join("other.db"));
    let output = taken.arg("--password-file").arg(password_file(dir.path())).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success()
            && text.contains("cannot listen on 127.0.0.1:")
            && text.contains("choose another address or port"),
        "{text}"
    );
}

#[test]
fn it_ends_in_order_when_asked() {
    for signal in [Signal::TERM, Signal::INT] {
        let (dir, mut server) = started();
        server.put("vm-1", &json!({"a": 1}));
        kill_process(Pid::from_child(server.child()), signal).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let status = loop {
            match server.child().try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < until, "it does not end"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(status.success(), "{status}");
        assert_eq!(RegistryServer::start(dir.path()).get("vm-1"), Some(json!({"a": 1})));
    }
}

/// Four clients write new IDs and one of their own over and over; then the
/// process is killed.
#[test]
fn a_kill_under_load_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..2_u64 {
        let mut server = RegistryServer::start(dir.path());
        all_there(&server, &expected);
        let over = Arc::new(AtomicBool::new(false));
        let (told, acknowledgements) = channel();
        let pid = Pid::from_child(server.child());
        let acknowledged: Vec<BTreeMap<String, u64>> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4_u64)
                .map(|writer| {
                    let (server, over, told) = (&server, Arc::clone(&over), told.clone());
                    scope.spawn(move || write_until(server, &over, &told, round, writer))
                })
                .collect();
            drop(told);
            assert_eq!(acknowledgements.iter().take(20).count(), 20);
            kill_process(pid, Signal::KILL).unwrap();
            over.store(true, Ordering::SeqCst);
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        expected.extend(acknowledged.into_iter().flatten());
    }
    all_there(&RegistryServer::start(dir.path()), &expected);
}

#[track_caller]
fn all_there(server: &RegistryServer, expected: &BTreeMap<String, u64>) {
    for (id, number) in expected {
        let stored = server.get(id).unwrap_or_else(|| panic!("{id} is lost"))["n"].as_u64();
        // A write without an answer may have arrived.
        let later = id.starts_with("same") && stored > Some(*number);
        assert!(stored == Some(*number) || later, "{id}: {stored:?}, not {number}");
    }
}

/// What was acknowledged, by ID; told as it happens.
fn write_until(
    server: &RegistryServer,
    over: &AtomicBool,
    told: &Sender<()>,
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
                    let _ = told.send(());
                }
                _ if over.load(Ordering::SeqCst) => return acknowledged,
                Ok(answer) => panic!("{}", answer.body),
                // Killed, and the flag comes a moment later.
                Err(_) => return acknowledged,
            }
        }
    }
    acknowledged
}

#[test]
fn a_full_disk_fails_writes_and_keeps_what_was_written() {
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
    assert!(refused.is_some() && !written.is_empty(), "a disk of 1 MiB took {} MiB", written.len() / 20);
    for number in &written {
        assert_eq!(server.get(&format!("vm-{number}")), Some(settings(*number)));
    }
    assert_eq!(server.get(&format!("vm-{}", refused.unwrap())), None);
}
