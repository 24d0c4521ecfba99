//! A gate for tests, from a policy and properties as JSON. It records all events.

use crate::image::Image;
use crate::leak_latch::LeakLatch;
use crate::limits::Limits;
use crate::net::error::HttpError;
use crate::net::gate::{Gate, GateParts, GuestBody, GuestRequest, GuestResponse, HttpEvent, KeptSecrets};
use crate::net::proxy::ProxyConfig;
use crate::net::resolver::Resolver;
use crate::token_store::TokenStore;
use crate::vault::Vault;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wasm_cpi_policy::secret::{Layer, Secret};
use wasm_cpi_policy::{Endpoint, Policy, PolicyFile, Properties};

pub(super) struct Fixture {
    pub policy: Value,
    pub properties: Value,
    pub limits: Limits,
    pub allow_local: bool,
    pub forbidden: Vec<Endpoint>,
    pub image: Option<Arc<Image>>,
    pub latch: Option<LeakLatch>,
    /// True if it is recorded what the requests create.
    pub records_creations: bool,
    pub proxy: Option<ProxyConfig>,
    /// The cache directory, if the call keeps tokens.
    pub cache: Option<PathBuf>,
    /// The text of the hosts file.
    pub hosts: String,
    /// The port of the name server on this machine.
    pub name_server: u16,
}

pub(super) struct Running {
    pub gate: Gate,
    pub vault: Arc<Vault>,
    pub events: Arc<Mutex<Vec<HttpEvent>>>,
    /// The properties as the guest sees them.
    pub visible: Value,
    pub files: tempfile::TempDir,
    /// Connections that are kept belong to one runtime, as in a call.
    runtime: tokio::runtime::Runtime,
}

impl Fixture {
    /// Creates a policy with these grants, which allow loopback addresses, and without logins.
    pub(super) fn new(grants: Value) -> Self {
        Fixture::with(json!({"http": grants}))
    }

    pub(super) fn with(mut policy: Value) -> Self {
        policy["version"] = 1.into();
        policy["trust_undeclared"] = true.into();
        let logins =
            policy["logins"].as_object().map(|logins| logins.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        for login in logins {
            near(&mut policy["logins"][login]);
        }
        let credentials = policy.get_mut("credentials").and_then(Value::as_object_mut).into_iter().flatten();
        credentials.filter_map(|(_, one)| one.get_mut("assume_role")).for_each(near);
        policy["http"].as_array_mut().unwrap().iter_mut().for_each(near);
        let limits = Limits { connect_seconds: 1, first_byte_seconds: 1, idle_seconds: 1, ..Limits::default() };
        Fixture {
            policy,
            properties: json!({}),
            limits,
            allow_local: true,
            forbidden: Vec::new(),
            image: None,
            latch: None,
            records_creations: false,
            proxy: None,
            cache: None,
            hosts: "127.0.0.1 api.test id.test\n".into(),
            name_server: 1,
        }
    }

    pub(super) fn start(self) -> Running {
        let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let properties = Properties::merge(object(&self.properties), object(&json!({})));
        let file = PolicyFile::parse(&self.policy.to_string()).unwrap_or_else(|p| panic!("{p:?}"));
        let policy = Policy::resolve(&file, &properties, None, &self.forbidden, self.allow_local);
        let policy = Arc::new(policy.unwrap_or_else(|p| panic!("{p:?}")));
        let vault = Arc::new(Vault::new());
        let visible = properties
            .visible(&policy.expose, None, |name, value, layer: Layer| vault.seal(name, Secret::new(value), layer));
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = events.clone();
        let watch = Box::new(move |event: &HttpEvent| seen.lock().unwrap().push(event.clone()));
        let files = tempfile::tempdir().unwrap();
        let (hosts, conf) = (files.path().join("hosts"), files.path().join("resolv.conf"));
        std::fs::write(&hosts, self.hosts).unwrap();
        std::fs::write(&conf, "nameserver 127.0.0.1\n").unwrap();
        let kept = self.cache.map(|cache| {
            let store = TokenStore::open(&cache).unwrap();
            KeptSecrets::open(&store, &[b"guest"], &policy, self.proxy.as_ref(), files.path(), &vault).unwrap()
        });
        let gate = Gate::new(GateParts {
            allow_local: self.allow_local,
            image: self.image,
            files: files.path().to_owned(),
            proxy: self.proxy,
            kept: kept.unwrap_or_default(),
            latch: self.latch.map(Arc::new),
            records_creations: self.records_creations,
            observer: Some(watch),
            ..GateParts::minimal(policy, vault.clone(), self.limits)
        });
        let gate = gate.with_resolver(Resolver::with_files(hosts, conf, self.name_server));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Running { gate, vault, events, visible, files, runtime }
    }
}

fn near(part: &mut Value) {
    if part.get("addresses").is_none() {
        part["addresses"] = json!(["127.0.0.0/8"]);
    }
    if part["to"].as_str().is_some_and(|to| to.starts_with("http://")) {
        part["plain_http"] = true.into();
    }
}

pub(super) fn request(method: &str, url: impl Into<String>) -> GuestRequest {
    GuestRequest {
        method: method.into(),
        url: url.into(),
        headers: Vec::new(),
        body: GuestBody::None,
        timeout_ms: None,
    }
}

pub(super) fn post(url: impl Into<String>, json: &Value) -> GuestRequest {
    let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    let body = GuestBody::Bytes(json.to_string().into_bytes());
    GuestRequest { headers, body, ..request("POST", url) }
}

impl Running {
    pub(super) fn send(&self, request: GuestRequest) -> Result<GuestResponse, HttpError> {
        let deadline = Instant::now() + Duration::from_secs(10);
        self.runtime.block_on(self.gate.send(request, deadline, &AtomicBool::new(false)))
    }

    /// Sends a request and abandons it after this time. Returns whether any byte of it may have been sent.
    pub(super) fn abandon(&self, request: GuestRequest, after: Duration) -> bool {
        let (sent, deadline) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(10));
        let sending = self.gate.send(request, deadline, &sent);
        assert!(self.runtime.block_on(async { tokio::time::timeout(after, sending).await }).is_err());
        sent.into_inner()
    }

    /// Sends requests at once, and returns their outcomes and how long each took.
    pub(super) fn send_all(&self, requests: Vec<GuestRequest>) -> Vec<(Result<GuestResponse, HttpError>, Duration)> {
        let start = Instant::now();
        let deadline = start + Duration::from_secs(10);
        let sent = AtomicBool::new(false);
        let send = async |request| (self.gate.send(request, deadline, &sent).await, start.elapsed());
        self.runtime.block_on(join_all(requests.into_iter().map(send)))
    }

    pub(super) fn get(&self, url: impl Into<String>) -> Result<GuestResponse, HttpError> {
        self.send(request("GET", url))
    }

    pub(super) fn session(&self, name: &str) -> Result<String, HttpError> {
        self.runtime.block_on(self.gate.session(name, Instant::now() + Duration::from_secs(10)))
    }

    pub(super) fn events(&self) -> Vec<HttpEvent> {
        self.events.lock().unwrap().clone()
    }
}
