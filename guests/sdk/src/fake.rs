//! An in-memory host for native tests. It implements every import of the world
//! without a runtime, a cloud or real sleeps. Build a [`Fake`], install it, run
//! the guest's code, and check what it did:
//!
//! ```
//! use wasm_cpi_sdk::{fake::{Answer, Fake}, http};
//!
//! let host = Fake::new().on("GET", "https://cloud.example/a", Answer::text(200, "hello")).install();
//! assert_eq!(http::get("https://cloud.example/a").send().unwrap().text().unwrap(), "hello");
//! assert_eq!(host.requests().len(), 1);
//! ```
//!
//! The fake denies what the guest's needs do not declare, as the runtime does:
//! it reads `needs.json` of the crate that cargo tests, or takes the text given to
//! [`Fake::needs`]. It enforces no policy, and knows no seals and slots. Only a run under the
//! runtime shows what an operator must grant, and whether seals are in declared slots.

mod answer;
mod blocks;
mod form;
mod host;
mod needs;
mod operations;
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

use needs::Needs;

pub use answer::Answer;
pub use form::form_fields;

/// One call of the guest to a function of [`crate::agent`], with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// A call of [`crate::agent::bootstrap`].
    Bootstrap(agent::Settings),
    /// A call of [`crate::agent::created`].
    Created {
        /// The VM that exists now.
        vm: String,
        /// The key by which its Agent asks the registry.
        registry_key: String,
    },
    /// A call of [`crate::agent::attached`].
    Attached {
        /// The key of the VM in the registry.
        registry_key: String,
        /// The disk that is attached now.
        disk: String,
        /// How the Agent finds the disk.
        hint: DiskHint,
    },
    /// A call of [`crate::agent::detached`].
    Detached {
        /// The key of the VM in the registry.
        registry_key: String,
        /// The disk that is detached now.
        disk: String,
    },
    /// A call of [`crate::agent::deleted`].
    Deleted {
        /// The key of the VM in the registry.
        registry_key: String,
    },
}

/// The in-memory host. Methods that take `self` by value set it up; methods that
/// take `&self` return what the guest did.
pub struct Fake {
    state: RefCell<State>,
}

type Server = Box<dyn FnMut(&http::Request) -> Answer>;

struct State {
    /// Absent for a crate without needs, in which everything is declared.
    needs: Option<Needs>,
    properties: String,
    call: config::CallInfo,
    answers: BTreeMap<(String, String), VecDeque<Answer>>,
    operations: BTreeMap<String, VecDeque<Answer>>,
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
    end_ms: Option<u64>,
    random: u64,
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

impl Fake {
    /// Creates a host without properties, responses, image and registry
    /// settings. It enforces the needs in `needs.json` of the crate under test, if
    /// there is that file.
    ///
    /// # Panics
    /// If that file is not a JSON object.
    pub fn new() -> Self {
        let call = config::CallInfo {
            method: "test".to_owned(),
            director_uuid: Some("director-uuid".to_owned()),
            request_id: Some("cpi-000001".to_owned()),
            api_version: 2,
            stemcell_api_version: Some(3),
        };
        let state = State {
            needs: Needs::of_tested_crate(),
            properties: "{}".to_owned(),
            call,
            answers: BTreeMap::new(),
            operations: BTreeMap::new(),
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
            end_ms: None,
            random: 0x9e37_79b9_7f4a_7c15,
        };
        Self { state: RefCell::new(state) }
    }

    /// Makes this the host of the current thread until the returned value is
    /// dropped.
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

    /// Sets the properties of the CPI, a JSON object.
    pub fn properties(self, properties: Value) -> Self {
        self.with(|state| state.properties = properties.to_string())
    }

    /// Sets the needs that the guest declares, the text of a needs.json.
    ///
    /// # Panics
    /// If the text is not a JSON object.
    pub fn needs(self, text: &str) -> Self {
        let needs = Needs::parse(text);
        self.with(|state| state.needs = Some(needs))
    }

    /// Sets the facts of the call.
    pub fn call_info(self, call: config::CallInfo) -> Self {
        self.with(|state| state.call = call)
    }

    /// Adds an answer to requests with this method and exactly this URL. Several
    /// answers to the same request are used in their order; the last one is used
    /// for all further requests.
    pub fn on(self, method: &str, url: &str, answer: Answer) -> Self {
        let key = (method.to_owned(), url.to_owned());
        self.with(|state| state.answers.entry(key).or_default().push_back(answer))
    }

    /// Adds an answer to requests whose form names this operation in the field `Action`, whatever their URL is.
    /// Several answers are used as those of [`Fake::on`], which come first.
    pub fn on_operation(self, action: &str, answer: Answer) -> Self {
        self.with(|state| state.operations.entry(action.to_owned()).or_default().push_back(answer))
    }

    /// Answers all requests that have no answer by [`Fake::on`] or [`Fake::on_operation`]. The function can
    /// keep state, like a cloud. It must not use the host itself.
    pub fn serve(self, server: impl FnMut(&http::Request) -> Answer + 'static) -> Self {
        self.with(|state| state.server = Some(Box::new(server)))
    }

    /// Sets the JSON object that [`crate::http::session`] returns for the login
    /// `name`.
    pub fn session(self, name: &str, shown: Value) -> Self {
        self.with(|state| {
            state.sessions.insert(name.to_owned(), shown.to_string());
        })
    }

    /// Makes the next `times` calls of [`crate::http::session`] fail.
    pub fn fail_sessions(self, kind: http::ErrorKind, times: usize) -> Self {
        self.with(|state| state.session_failures = std::iter::repeat_n(kind, times).collect())
    }

    /// Makes every call of [`crate::agent`] fail.
    pub fn fail_agent(self, error: agent::Error) -> Self {
        self.with(|state| state.agent_failure = Some(error))
    }

    /// Stores settings in the registry.
    pub fn registry_entry(self, id: &str, settings: Value) -> Self {
        self.with(|state| {
            state.registry.insert(id.to_owned(), settings.to_string());
        })
    }

    /// Sets the image of `create_stemcell`.
    pub fn image(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.with(|state| state.image = Some(bytes.into()))
    }

    /// Adds a file to the image, which makes the image an archive.
    pub fn image_member(self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.with(|state| {
            state.image.get_or_insert_default();
            state.members.push((name.to_owned(), bytes.into()));
        })
    }

    /// Ends the call when the sum of all sleeps reaches `ms`, with the text of the
    /// runtime.
    pub fn end_after_ms(self, ms: u64) -> Self {
        self.with(|state| state.end_ms = Some(ms))
    }

    /// Returns all requests in their order, also those without an answer.
    pub fn requests(&self) -> Vec<http::Request> {
        self.state().requests.clone()
    }

    /// Returns the body of the request `index`, if it is JSON.
    pub fn request_json(&self, index: usize) -> Option<Value> {
        match &self.state().requests.get(index)?.body {
            http::Body::Bytes(bytes) => serde_json::from_slice(bytes).ok(),
            _ => None,
        }
    }

    /// Returns the fields of the request `index`, if its body is a form that [`form_fields`] reads.
    pub fn request_form(&self, index: usize) -> Option<BTreeMap<String, String>> {
        form_fields(self.state().requests.get(index)?)
    }

    /// Returns all calls of [`crate::agent`] that succeeded, in their order.
    pub fn agent_events(&self) -> Vec<AgentEvent> {
        self.state().agent_events.clone()
    }

    /// Returns the current settings of `id` in the registry.
    pub fn registry_settings(&self, id: &str) -> Option<Value> {
        serde_json::from_str(self.state().registry.get(id)?).ok()
    }

    /// Returns all log lines.
    pub fn logs(&self) -> Vec<(log::Level, String)> {
        self.state().logs.clone()
    }

    /// Returns the lengths of all sleeps in milliseconds. None of them took any
    /// time.
    pub fn sleeps(&self) -> Vec<u64> {
        self.state().sleeps.clone()
    }
}

/// A [`Fake`] that is the host of the current thread. Dropping it restores the
/// previous host.
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
