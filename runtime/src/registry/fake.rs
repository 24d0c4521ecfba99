//! A registry in memory for tests. It implements both dialects, and can send wrong answers.

use super::{RegistryClient, RegistryConfig};
use crate::limits::Limits;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dialect {
    Ruby,
    Go,
}

pub(crate) struct Fake {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    dialect: Dialect,
    store: Mutex<BTreeMap<String, String>>,
    requests: Mutex<Vec<String>>,
    /// A method, and the raw answer to it.
    broken: Mutex<Option<(&'static str, String)>>,
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

impl Fake {
    pub(crate) fn start(dialect: Dialect) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared =
            Arc::new(Shared { dialect, store: Mutex::default(), requests: Mutex::default(), broken: Mutex::default() });
        let serving = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = serving.clone();
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Fake { address, shared }
    }

    /// Answers `method` with `answer` from now on. If it is empty, no answer is sent.
    pub(crate) fn break_method(&self, method: &'static str, answer: impl Into<String>) {
        *self.shared.broken.lock().unwrap() = Some((method, answer.into()));
    }

    pub(crate) fn config(&self) -> RegistryConfig {
        let section = json!({"endpoint": self.address.to_string(), "user": "admin", "password": "pa:ss-hunter2"});
        serde_json::from_value(section).unwrap()
    }

    pub(crate) fn client(&self) -> RegistryClient {
        RegistryClient::new(
            &self.config(),
            &Limits { registry_kib: 1, connect_seconds: 1, first_byte_seconds: 1, ..Limits::default() },
        )
        .unwrap()
    }

    pub(crate) fn stored(&self, id: &str) -> Option<Value> {
        self.shared.store.lock().unwrap().get(id).map(|text| serde_json::from_str(text).unwrap())
    }

    pub(crate) fn store(&self, id: &str, text: impl ToString) {
        self.shared.store.lock().unwrap().insert(id.into(), text.to_string());
    }

    /// Returns the method and path of each request.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(n) if n > 2 => head.push(line.trim_end().to_owned()),
                _ => break,
            }
        }
        let header = |name: &str| {
            let value = head.iter().skip(1).find_map(|line| {
                let (found, value) = line.split_once(": ")?;
                found.eq_ignore_ascii_case(name).then(|| value.to_owned())
            });
            value.unwrap_or_default()
        };
        let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
        if head.is_empty() || reader.read_exact(&mut body).is_err() {
            return;
        }
        let line: Vec<&str> = head[0].split(' ').collect();
        self.requests.lock().unwrap().push(format!("{} {}", line[0], line[1]));
        let broken = self.broken.lock().unwrap().clone().filter(|(method, _)| *method == line[0]);
        let answer = match broken {
            Some((_, answer)) if answer.is_empty() => {
                std::thread::sleep(Duration::from_secs(5));
                return;
            }
            Some((_, answer)) => answer,
            None if header("authorization") != format!("Basic {}", BASE64_STANDARD.encode("admin:pa:ss-hunter2")) => {
                http(401, r#"{"status":"access_denied"}"#)
            }
            None => self.answer(line[0], line[1], String::from_utf8(body).unwrap()),
        };
        let _ = reader.get_mut().write_all(answer.as_bytes());
    }

    fn answer(&self, method: &str, path: &str, body: String) -> String {
        let id = path.strip_prefix("/instances/").and_then(|rest| rest.strip_suffix("/settings")).unwrap();
        let mut store = self.store.lock().unwrap();
        let is_ruby = self.dialect == Dialect::Ruby;
        let ok = if is_ruby { r#"{"status":"ok"}"# } else { "" };
        match method {
            "GET" => match store.get(id) {
                Some(settings) => http(200, &json!({"status": "ok", "settings": settings}).to_string()),
                None if is_ruby => http(404, r#"{"status":"not_found"}"#),
                None => http(404, r#"{"settings":"","status":"not_found"}"#),
            },
            "PUT" => {
                let is_new = store.insert(id.into(), body).is_none();
                http(if is_new && !is_ruby { 201 } else { 200 }, ok)
            }
            "DELETE" => {
                store.remove(id);
                http(200, ok)
            }
            _ => http(405, ""),
        }
    }
}

pub(crate) fn http(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}
