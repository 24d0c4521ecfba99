//! An in-memory host for native tests: every import of the world, without a
//! runtime, a cloud or waiting. Build one, install it, run the guest's code,
//! look at what it did:
//!
//! ```
//! use wasm_cpi_sdk::{fake::{Answer, Fake}, http};
//! let host = Fake::new().on("GET", "https://cloud.example/a", Answer::text(200, "hello")).install();
//! assert_eq!(http::get("https://cloud.example/a").send().unwrap().text().unwrap(), "hello");
//! assert_eq!(host.requests().len(), 1);
//! ```
//!
//! It enforces no policy: what an operator must grant shows when the guest
//! runs under the runtime.

mod answer;
mod host;
#[cfg(test)]
mod tests;

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value;

use crate::DiskHint;
use crate::bindings::bosh::cpi::{agent, config, http, log};
use crate::host::Guard;

pub use answer::Answer;

/// What a guest told the Agent's settings.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    Bootstrap(agent::Settings),
    Created { vm: String, registry_key: String },
    Attached { registry_key: String, disk: String, hint: DiskHint },
    Detached { registry_key: String, disk: String },
    Deleted { registry_key: String },
}

/// The host. Methods that take `self` prepare it, the others read what happened.
pub struct Fake {
    state: RefCell<State>,
}

type Server = Box<dyn FnMut(&http::Request) -> Answer>;

struct State {
    properties: String,
    call: config::CallInfo,
    answers: BTreeMap<(String, String), VecDeque<Answer>>,
    server: Option<Server>,
    sessions: BTreeMap<String, String>,
    session_failures: Vec<http::ErrorKind>,
    requests: Vec<http::Request>,
    agent_events: Vec<AgentEvent>,
    agent_failure: Option<agent::Error>,
    registry: BTreeMap<String, String>,
    image: Option<Vec<u8>>,
    members: Vec<(String, Vec<u8>)>,
    logs: Vec<(log::Level, String)>,
    elapsed_ms: u64,
    sleeps: Vec<u64>,
    end: Option<(u64, String)>,
    random: u64,
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

impl Fake {
    /// No properties, no cloud, no image, no registry entries.
    pub fn new() -> Self {
        let call = config::CallInfo {
            method: "test".to_owned(),
            director_uuid: Some("director-uuid".to_owned()),
            request_id: Some("cpi-000001".to_owned()),
            api_version: 2,
            stemcell_api_version: Some(3),
        };
        let state = State {
            properties: "{}".to_owned(),
            call,
            answers: BTreeMap::new(),
            server: None,
            sessions: BTreeMap::new(),
            session_failures: Vec::new(),
            requests: vec![],
            agent_events: vec![],
            agent_failure: None,
            registry: BTreeMap::new(),
            image: None,
            members: vec![],
            logs: vec![],
            elapsed_ms: 0,
            sleeps: vec![],
            end: None,
            random: 0x9e37_79b9_7f4a_7c15,
        };
        Self { state: RefCell::new(state) }
    }

    /// Makes it the host of this thread while the answer lives.
    pub fn install(self) -> Installed {
        let fake = Rc::new(self);
        let guard = crate::host::install(Rc::<Self>::clone(&fake));
        Installed { fake, _guard: guard }
    }

    fn with(mut self, change: impl FnOnce(&mut State)) -> Self {
        change(self.state.get_mut());
        self
    }

    fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    pub fn properties(self, properties: Value) -> Self {
        self.with(|state| state.properties = properties.to_string())
    }

    pub fn call_info(self, call: config::CallInfo) -> Self {
        self.with(|state| state.call = call)
    }

    /// Answers a request to exactly this URL. Several answers for the same
    /// request are given in their order; the last one stays.
    pub fn on(self, method: &str, url: &str, answer: Answer) -> Self {
        let key = (method.to_owned(), url.to_owned());
        self.with(|state| state.answers.entry(key).or_default().push_back(answer))
    }

    /// Answers all requests that [`Fake::on`] does not: a cloud with a memory.
    /// It must not use the host itself.
    pub fn serve(self, server: impl FnMut(&http::Request) -> Answer + 'static) -> Self {
        self.with(|state| state.server = Some(Box::new(server)))
    }

    /// What the login `name` lets the guest see.
    pub fn session(self, name: &str, shown: Value) -> Self {
        self.with(|state| {
            state.sessions.insert(name.to_owned(), shown.to_string());
        })
    }

    /// Fails the next logins so.
    pub fn session_fails(self, kind: http::ErrorKind, times: usize) -> Self {
        self.with(|state| state.session_failures = std::iter::repeat_n(kind, times).collect())
    }

    /// Fails every call to `agent`.
    pub fn fail_agent(self, error: agent::Error) -> Self {
        self.with(|state| state.agent_failure = Some(error))
    }

    pub fn registry_entry(self, id: &str, settings: Value) -> Self {
        self.with(|state| {
            state.registry.insert(id.to_owned(), settings.to_string());
        })
    }

    /// The image of `create_stemcell`.
    pub fn image(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.with(|state| state.image = Some(bytes.into()))
    }

    /// A file in the image, which thereby is an archive.
    pub fn image_member(self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.with(|state| {
            state.image.get_or_insert_default();
            state.members.push((name.to_owned(), bytes.into()));
        })
    }

    /// The call ends, for the reason `why`, once sleeps add up to more.
    pub fn end_after_ms(self, ms: u64, why: &str) -> Self {
        self.with(|state| state.end = Some((ms, why.to_owned())))
    }

    /// All requests, in their order, those without an answer included.
    pub fn requests(&self) -> Vec<http::Request> {
        self.state().requests.clone()
    }

    /// The body of request `index`, if it is JSON.
    pub fn request_json(&self, index: usize) -> Option<Value> {
        match &self.state().requests.get(index)?.body {
            http::Body::Bytes(bytes) => serde_json::from_slice(bytes).ok(),
            _ => None,
        }
    }

    pub fn agent_events(&self) -> Vec<AgentEvent> {
        self.state().agent_events.clone()
    }

    /// The registry's settings of `id` as they are now.
    pub fn registry_settings(&self, id: &str) -> Option<Value> {
        serde_json::from_str(self.state().registry.get(id)?).ok()
    }

    pub fn logs(&self) -> Vec<(log::Level, String)> {
        self.state().logs.clone()
    }

    /// Lengths of all sleeps in milliseconds. None of them took any time.
    pub fn sleeps(&self) -> Vec<u64> {
        self.state().sleeps.clone()
    }
}

/// A [`Fake`] that is the host of this thread.
pub struct Installed {
    fake: Rc<Fake>,
    _guard: Guard,
}

impl Deref for Installed {
    type Target = Fake;

    fn deref(&self) -> &Fake {
        &self.fake
    }
}
