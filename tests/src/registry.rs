//! A minimal BOSH registry in this process, for tests that need a working registry
//! but do not test it.

use crate::response::CANARY;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone)]
pub struct Registry {
    address: SocketAddr,
    settings: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Registry {
    /// Starts a registry that serves until this process ends.
    pub fn start() -> Registry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("cannot bind a port: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("cannot read the local address: {error}"));
        let registry = Registry { address, settings: Arc::default() };
        let serving = registry.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.answer(connection));
            }
        });
        registry
    }

    /// Returns the section `registry` of a job's config.
    pub fn section(&self) -> Value {
        json!({"endpoint": format!("http://{}", self.address), "user": "registry", "password": password()})
    }

    pub fn put(&self, id: &str, settings: &Value) {
        self.lock().insert(id.to_owned(), settings.to_string());
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    pub fn get(&self, id: &str) -> Option<Value> {
        self.lock().get(id).and_then(|text| serde_json::from_str(text).ok())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, mut connection: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(connection.try_clone().ok()?);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_owned());
        }
        let header = |name: &str| {
            let found =
                head.iter().filter_map(|line| line.split_once(':')).find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().to_owned())
        };
        let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let basic = format!("Basic {}", STANDARD.encode(format!("registry:{}", password())));
        let (status, answer) = match header("authorization") {
            Some(given) if given == basic => self.serve(head.first()?, String::from_utf8(body).ok()?),
            _ => ("401 Unauthorized", json!({"status": "access_denied"})),
        };
        let answer = answer.to_string();
        let text =
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}", answer.len());
        connection.write_all(text.as_bytes()).ok()
    }

    fn serve(&self, request: &str, body: String) -> (&'static str, Value) {
        let mut parts = request.split(' ');
        let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let Some(id) = path.strip_prefix("/instances/").and_then(|rest| rest.strip_suffix("/settings")) else {
            return ("404 Not Found", json!({"status": "not_found"}));
        };
        match method {
            "GET" => match self.lock().get(id) {
                Some(settings) => ("200 OK", json!({"status": "ok", "settings": settings})),
                None => ("404 Not Found", json!({"status": "not_found"})),
            },
            "PUT" => {
                self.lock().insert(id.to_owned(), body);
                ("200 OK", json!({"status": "ok"}))
            }
            _ => {
                self.lock().remove(id);
                ("200 OK", json!({"status": "ok"}))
            }
        }
    }
}

fn password() -> String {
    format!("{CANARY}-registry")
}
