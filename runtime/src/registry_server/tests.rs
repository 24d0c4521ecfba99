use super::connections::Timeouts;
use super::*;
use crate::limits::Limits;
use crate::registry::{RegistryClient, RegistryConfig};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, json};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::oneshot;

struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    directory: TempDir,
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn options(directory: &Path) -> ServerOptions {
    write(&directory.join("password"), "pa:ss\n", 0o600);
    ServerOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        store: directory.join("db"),
        user: "admin".into(),
        password_file: directory.join("password"),
        tls: None,
        max_kib: 1,
    }
}

impl Running {
    fn start(tls: bool) -> Running {
        Running::start_with(tls, Duration::from_millis(400))
    }

    /// Starts a server that waits this long for the head of a request.
    fn with_head_time(head: Duration) -> Running {
        Running::start_with(false, head)
    }

    fn start_with(tls: bool, head: Duration) -> Running {
        let directory = TempDir::new().unwrap();
        let mut options = options(directory.path());
        if tls {
            let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            write(&directory.path().join("cert"), &certified.cert.pem(), 0o644);
            write(&directory.path().join("key"), &certified.signing_key.serialize_pem(), 0o600);
            let files = TlsFiles { certificate: directory.path().join("cert"), key: directory.path().join("key") };
            options.tls = Some(files);
        }
        let (stop, stopped) = oneshot::channel();
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let short = Duration::from_millis(400);
                let timeouts = Timeouts {
                    head,
                    body: short,
                    handshake: short,
                    life: Duration::from_secs(3).max(head),
                    grace: short,
                };
                let server = prepare(&options).await.unwrap().with_timeouts(timeouts);
                sender.send(server.address().unwrap()).unwrap();
                server.run(async { drop(stopped.await) }).await;
            });
        });
        let address = receiver.recv().unwrap();
        Running { address, stop: Some(stop), thread: Some(thread), directory }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Returns the whole answer to a raw request.
    fn raw(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn ask(&self, method: &str, path: &str, auth: &str, body: &str) -> String {
        let length = body.len();
        let auth = if auth.is_empty() { String::new() } else { format!("Authorization: {auth}\r\n") };
        self.raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{auth}Content-Length: {length}\r\n\r\n{body}"
        ))
    }

    fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.thread.take().unwrap().join().unwrap();
    }
}

fn basic(pair: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

#[test]
fn valid_clients_are_served_while_300_idle_ones_hang_on() {
    let server = Running::with_head_time(Duration::from_secs(60));
    let idle: Vec<TcpStream> = (0..300).map(|_| server.connect()).collect();
    let before = Instant::now();
    for n in 0..20 {
        let answer = server.ask("GET", &format!("/instances/i-{n}/settings"), &basic("admin:pa:ss"), "");
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
    assert!(before.elapsed() < Duration::from_secs(10), "{:?}", before.elapsed());
    drop(idle);
}

#[test]
fn the_api_answers_as_the_ruby_registry_does() {
    let server = Running::start(false);
    let auth = basic("admin:pa:ss");
    let path = "/instances/i-1:a_b.c/settings";
    for (method, body, status, expected) in [
        ("GET", "", 404, r#"{"status":"not_found"}"#),
        ("DELETE", "", 200, r#"{"status":"ok"}"#),
        ("PUT", r#"{"a": "\u00fc"}"#, 200, r#"{"status":"ok"}"#),
        ("GET", "", 200, r#"{"status":"ok","settings":"{\"a\": \"\\u00fc\"}"}"#),
        ("PUT", "{}", 200, r#"{"status":"ok"}"#),
        ("GET", "", 200, r#"{"status":"ok","settings":"{}"}"#),
        ("DELETE", "", 200, r#"{"status":"ok"}"#),
        ("GET", "", 404, r#"{"status":"not_found"}"#),
    ] {
        let answer = server.ask(method, path, &auth, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.ends_with(expected), "{method}: {answer}");
    }
}

#[test]
fn every_method_and_path_needs_the_right_credentials() {
    let server = Running::start(false);
    for method in ["GET", "PUT", "DELETE", "POST"] {
        for path in ["/instances/a/settings", "/", "/instances/../settings"] {
            for auth in ["", "Basic", "Basic !", "Bearer x", &basic("admin:pa:sS"), &basic("admin"), &basic("")] {
                let answer = server.ask(method, path, auth, "{}");
                assert!(answer.starts_with("HTTP/1.1 401 "), "{method} {path} {auth}: {answer}");
                assert!(answer.contains("www-authenticate: Basic realm=\"Bosh Registry\""), "{answer}");
                assert!(answer.ends_with(r#"{"status":"access_denied"}"#), "{answer}");
            }
        }
    }
    let twice = format!("{}\r\nAuthorization: {}", basic("admin:pa:ss"), basic("admin:pa:ss"));
    assert!(server.ask("GET", "/instances/a/settings", &twice, "").starts_with("HTTP/1.1 401 "));
    let lower = basic("admin:pa:ss").replace("Basic", "basic");
    assert!(server.ask("GET", "/instances/a/settings", &lower, "").starts_with("HTTP/1.1 404 "));
}

#[test]
fn invalid_requests_are_answered_with_the_matching_status() {
    let server = Running::start(false);
    let auth = basic("admin:pa:ss");
    let long = format!("/instances/{}/settings", "x".repeat(256));
    let large = json!({"a": "x".repeat(2000)}).to_string();
    for (method, path, body, status) in [
        ("GET", "/instances/a", "", 404),
        ("GET", "/", "", 404),
        ("GET", "/instances//settings", "", 400),
        ("GET", "/instances/../settings", "", 400),
        ("GET", "/instances/a/b/settings", "", 400),
        ("GET", "/instances/a%2fb/settings", "", 400),
        ("GET", &long, "", 400),
        ("POST", "/instances/a/settings", "{}", 405),
        ("PUT", "/instances/a/settings", "", 400),
        ("PUT", "/instances/a/settings", "no JSON", 400),
        ("PUT", "/instances/a/settings", "[]", 400),
        ("PUT", "/instances/a/settings", r#"{"a":1,"a":2}"#, 400),
        ("PUT", "/instances/a/settings", &large, 413),
    ] {
        let answer = server.ask(method, path, &auth, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
    }
    let chunked = format!(
        "PUT /instances/a/settings HTTP/1.1\r\nHost: x\r\nAuthorization: {auth}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    assert!(server.raw(&chunked).starts_with("HTTP/1.1 413 "));
    assert!(server.ask("GET", "/instances/a/settings", &auth, "").starts_with("HTTP/1.1 404 "), "nothing was stored");
}

#[test]
fn connections_of_silent_or_slow_clients_are_closed() {
    let server = Running::start(false);
    let auth = basic("admin:pa:ss");
    for sent in ["", "GET /instances/a/settings HTTP/1.1\r\nHost"] {
        let start = Instant::now();
        let answer = server.raw(sent);
        assert!(start.elapsed() < Duration::from_secs(3), "{sent}: {answer}");
    }
    let head = format!(
        "PUT /instances/a/settings HTTP/1.1\r\nHost: x\r\nAuthorization: {auth}\r\nContent-Length: 9\r\n\r\n{{"
    );
    let start = Instant::now();
    assert!(server.raw(&head).starts_with("HTTP/1.1 408 "));
    assert!(start.elapsed() < Duration::from_secs(3));
    assert!(server.ask("GET", "/instances/a/settings", &auth, "").starts_with("HTTP/1.1 404 "));
}

#[test]
fn a_stopping_server_answers_requests_in_progress_and_keeps_acknowledged_writes() {
    let mut server = Running::start(false);
    let auth = basic("admin:pa:ss");
    let mut idle = server.connect();
    let mut half = server.connect();
    let head = format!(
        "PUT /instances/a/settings HTTP/1.1\r\nHost: x\r\nAuthorization: {auth}\r\nContent-Length: 2\r\n\r\n{{"
    );
    half.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let finish = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        half.write_all(b"}").unwrap();
        let mut answer = String::new();
        half.read_to_string(&mut answer).unwrap();
        answer
    });
    let _ = server.stop.take().unwrap().send(());
    assert!(finish.join().unwrap().starts_with("HTTP/1.1 200 "));
    server.thread.take().unwrap().join().unwrap();
    let mut rest = Vec::new();
    assert_eq!(idle.read_to_end(&mut rest).unwrap_or(0), 0);
    assert!(TcpStream::connect(server.address).is_err());
    let store = Store::open(&server.directory.path().join("db")).unwrap();
    assert_eq!(store.get("a").unwrap().as_deref(), Some("{}"));
}

#[test]
fn concurrent_writes_are_all_stored() {
    let mut server = Running::start(false);
    let auth = basic("admin:pa:ss");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (server, auth) = (&server, &auth);
            scope.spawn(move || {
                for round in 0..10 {
                    let path = format!("/instances/vm-{writer}-{round}/settings");
                    assert!(server.ask("PUT", &path, auth, "{}").starts_with("HTTP/1.1 200 "));
                }
            });
        }
    });
    server.stop();
    let store = Store::open(&server.directory.path().join("db")).unwrap();
    let missing = (0..80).filter(|n| store.get(&format!("vm-{}-{}", n / 10, n % 10)).unwrap().is_none()).count();
    assert_eq!(missing, 0);
}

#[test]
fn the_client_works_with_the_server_over_tls() {
    let server = Running::start(true);
    let mut section = json!({
        "endpoint": format!("https://localhost:{}", server.address.port()), "user": "admin", "password": "pa:ss",
        "ca": server.directory.path().join("cert").to_str().unwrap(),
    });
    let client = |section: &serde_json::Value| {
        let config: RegistryConfig = serde_json::from_value(section.clone()).unwrap();
        RegistryClient::new(&config, &Limits::default()).unwrap()
    };
    let settings = Map::from_iter([("a".to_owned(), json!("ü\n"))]);
    let soon = Instant::now() + Duration::from_secs(20);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let registry = client(&section);
        assert_eq!(registry.get("vm", soon).await, Ok(None));
        registry.put("vm", &settings, soon).await.unwrap();
        assert_eq!(registry.get("vm", soon).await, Ok(Some(settings)));
        registry.delete("vm", soon).await.unwrap();
        section["password"] = json!("wrong");
        let failure = client(&section).get("vm", soon).await.unwrap_err();
        assert!(failure.message.contains("HTTP 401; check `registry.user`"), "{failure}");
        // No public authority signed the certificate.
        section["ca"] = json!(null);
        let failure = client(&section).get("vm", soon).await.unwrap_err();
        assert!(failure.message.contains("did not answer"), "{failure}");
    });
}

#[test]
fn the_server_does_not_start_with_invalid_options_or_with_files_that_others_can_read() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    write(&at("open"), "pa:ss", 0o644);
    write(&at("empty"), "\n", 0o600);
    write(&at("lines"), "a\nb\n", 0o600);
    write(&at("junk"), "junk", 0o600);
    let tls = |certificate: &str, key: &str| Some(TlsFiles { certificate: at(certificate), key: at(key) });
    type Change<'a> = &'a dyn Fn(&mut ServerOptions);
    let start = |change: Change<'_>| {
        let mut options = options(directory.path());
        change(&mut options);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(prepare(&options)).map(drop)
    };
    assert!(start(&|_| ()).is_ok());
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    write(&at("cert"), &certified.cert.pem(), 0o644);
    let cases: [(Change<'_>, &str); 10] = [
        (&|options| options.password_file = at("open"), "run `chmod o-rwx,g-w`"),
        (&|options| options.password_file = at("empty"), "must hold one line"),
        (&|options| options.password_file = at("lines"), "must hold one line"),
        (&|options| options.password_file = at("missing"), "cannot be read"),
        (&|options| options.user = "a:b".into(), "the user name"),
        (&|options| options.tls = tls("missing", "junk"), "certificate file"),
        (&|options| options.tls = tls("cert", "open"), "run `chmod o-rwx,g-w`"),
        (&|options| options.tls = tls("junk", "junk"), "holds no PEM certificate"),
        (&|options| options.tls = tls("cert", "junk"), "no PEM private key"),
        (&|options| options.listen = "192.0.2.1:1".parse().unwrap(), "cannot listen on 192.0.2.1:1"),
    ];
    for (change, expected) in cases {
        let failure = start(change).unwrap_err();
        assert!(failure.message.contains(expected) && !failure.message.contains("pa:ss"), "{expected}: {failure}");
    }
}
