//! The real `wasm-cpi registry`, started as a process.

use crate::client::{self, HttpResponse};
use crate::response::CANARY;
use crate::servers::Identity;
use crate::{dist, job};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub const USER: &str = "registry";

/// A running registry; dropping this kills it.
pub struct RegistryServer {
    child: Child,
    scheme: String,
    address: SocketAddr,
    authority: Option<String>,
}

pub fn password() -> String {
    format!("{CANARY}-registry: $&")
}

/// Returns the command that starts a registry on a free port with its files in this
/// directory.
pub fn command(dir: &Path) -> Command {
    let file = password_file(dir);
    if !file.exists() {
        job::write(&file, format!("{}\n", password()).as_bytes());
        job::set_mode(&file, 0o600);
    }
    let mut command = Command::new(dist::tool());
    command.args(["registry", "--listen", "127.0.0.1:0", "--user", USER, "--password-file"]).arg(file);
    command.arg("--database").arg(database(dir)).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn password_file(dir: &Path) -> PathBuf {
    dir.join("registry-password")
}

pub fn database(dir: &Path) -> PathBuf {
    dir.join("registry.db")
}

impl RegistryServer {
    pub fn start(dir: &Path) -> RegistryServer {
        RegistryServer::spawn(command(dir), None)
    }

    /// Starts a registry with TLS. `authority` is the certificate authority that issued
    /// the identity.
    pub fn secure(dir: &Path, identity: &Identity, authority: &str) -> RegistryServer {
        let (certificate, key) = (dir.join("registry.pem"), dir.join("registry.key"));
        job::write(&certificate, identity.certificate.as_bytes());
        job::write(&key, identity.key.as_bytes());
        job::set_mode(&key, 0o600);
        let mut command = command(dir);
        command.arg("--cert").arg(certificate).arg("--key").arg(key);
        RegistryServer::spawn(command, Some(authority.to_owned()))
    }

    fn spawn(mut command: Command, authority: Option<String>) -> RegistryServer {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let url = line.trim().strip_prefix("registry listens on ").and_then(|url| url.split_once("://"));
        let found = url.and_then(|(scheme, address)| Some((scheme.to_owned(), address.parse().ok()?)));
        let Some((scheme, address)) = found else {
            let _ = child.kill();
            panic!("the registry does not print where it listens: {line:?}, {:?}", child.wait_with_output());
        };
        RegistryServer { child, scheme, address, authority }
    }

    pub fn endpoint(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the section `registry` of a job's config.
    pub fn section(&self) -> Value {
        let mut section = json!({"endpoint": self.endpoint(), "user": USER, "password": password()});
        if let Some(authority) = &self.authority {
            section["ca"] = json!(authority);
        }
        section
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends a request with this request line, these credentials, and this body.
    pub fn request(&self, line: &str, credentials: Option<&str>, body: &[u8]) -> Result<HttpResponse, Box<dyn Error>> {
        let auth = credentials.map(|value| format!("Authorization: {value}\r\n")).unwrap_or_default();
        let length = body.len();
        let head = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{auth}Content-Length: {length}\r\n\r\n");
        client::exchange(self.address, self.authority.as_deref(), &[head.as_bytes(), body].concat())
    }

    /// Sends a request with the correct credentials.
    #[track_caller]
    pub fn ask(&self, line: &str, body: &[u8]) -> HttpResponse {
        self.request(line, Some(&basic(USER, &password())), body).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Returns the stored settings.
    #[track_caller]
    pub fn get(&self, id: &str) -> Option<Value> {
        let answer = self.ask(&format!("GET /instances/{id}/settings"), b"");
        let answer: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        answer["settings"].as_str().and_then(|settings| serde_json::from_str(settings).ok())
    }

    #[track_caller]
    pub fn put(&self, id: &str, settings: &Value) {
        let answer = self.ask(&format!("PUT /instances/{id}/settings"), settings.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

impl Drop for RegistryServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the value of an `Authorization` header for basic authentication.
pub fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}
