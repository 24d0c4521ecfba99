//! The imports of a [`Fake`]. Like the real host, it cancels `agent`, `registry`,
//! `image` and sleeps when the call is ending; all else still works.

use std::collections::VecDeque;

use super::{AgentEvent, Answer, Fake, State};
use crate::bindings::bosh::cpi::{agent, config, http, image, log, registry};
use crate::host::Host;
use crate::types::DiskHint;
use sha2::{Digest as _, Sha256};

/// 2026-01-01 00:00:00 UTC, the time at which every fake call starts.
const START_MS: u64 = 1_767_225_600_000;

const MAX_READ: u32 = 1024 * 1024;

/// The text of the runtime for a call that is ending.
const ENDING: &str = "the call is ending: undo what is unfinished, and return";

impl State {
    fn ending(&self) -> Option<String> {
        self.end_ms.filter(|at| self.elapsed_ms >= *at).map(|_| ENDING.to_owned())
    }

    fn agent(&mut self, event: AgentEvent) -> Result<(), agent::Error> {
        if let Some(why) = self.ending() {
            return Err(agent::Error::Cancelled(why));
        }
        if let Some(error) = &self.agent_failure {
            return Err(error.clone());
        }
        self.agent_events.push(event);
        Ok(())
    }

    fn registry(&self, id: &str) -> Result<String, registry::Error> {
        if let Some(why) = self.ending() {
            return Err(registry::Error::Cancelled(why));
        }
        if self.needs.as_ref().is_some_and(|needs| !needs.has("registry")) {
            return Err(registry::Error::Denied("the guest's needs do not declare `registry`".to_owned()));
        }
        self.registry.get(id).cloned().ok_or(registry::Error::NotFound)
    }

    fn image(&self) -> Result<&[u8], image::Error> {
        if let Some(why) = self.ending() {
            return Err(image::Error::Cancelled(why));
        }
        if self.needs.as_ref().is_some_and(|needs| !needs.has("image")) {
            let what = "the guest's needs do not declare `image`; add `\"image\": true` to them";
            return Err(image::Error::Denied(what.to_owned()));
        }
        self.image
            .as_deref()
            .ok_or_else(|| image::Error::Denied("the fake has no image; add one with `Fake::image`".to_owned()))
    }
}

/// Rejects a read that the real host rejects.
fn check_length(length: u32) -> Result<(), image::Error> {
    if length <= MAX_READ {
        return Ok(());
    }
    Err(image::Error::Invalid(format!(
        "{length} bytes are too many for one read; read at most {MAX_READ} bytes at once"
    )))
}

/// Takes the next answer; the last one stays for all further requests.
fn next(answers: &mut VecDeque<Answer>) -> Option<Answer> {
    if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
}

impl Host for Fake {
    fn properties(&self) -> String {
        self.state().properties.clone()
    }
    fn call(&self) -> config::CallInfo {
        self.state().call.clone()
    }

    fn http_send(&self, request: &http::Request) -> Result<http::Response, http::Error> {
        let mut state = self.state();
        state.requests.push(request.clone());
        let refused = |needs: &super::Needs| needs.refusal(request, &state.properties);
        if let Some(message) = state.needs.as_ref().and_then(refused) {
            let kind = http::ErrorKind::Denied(http::Denial::Undeclared);
            return Err(http::Error { kind, message, sent: false });
        }
        let key = (request.method.clone(), request.url.clone());
        if let Some(answer) = state.answers.get_mut(&key).and_then(next) {
            return answer.0;
        }
        let operation = super::form_fields(request).and_then(|mut form| form.remove("Action"));
        if let Some(answer) = operation.and_then(|action| state.operations.get_mut(&action).and_then(next)) {
            return answer.0;
        }
        if let Some(server) = &mut state.server {
            return server(request).0;
        }
        Err(http::Error {
            kind: http::ErrorKind::Denied(http::Denial::Undeclared),
            message: format!(
                "the fake has no answer for {} {}; add one with `Fake::on`, `Fake::on_operation` or `Fake::serve`",
                request.method, request.url
            ),
            sent: false,
        })
    }
    fn http_send_all(&self, requests: &[http::Request]) -> Vec<Result<http::Response, http::Error>> {
        requests.iter().map(|request| self.http_send(request)).collect()
    }
    fn http_send_blocks(&self, upload: &http::BlockUpload) -> Result<http::BlocksSent, http::BlocksError> {
        self.send_blocks(upload)
    }
    fn http_session(&self, name: &str) -> Result<String, http::Error> {
        if self.state().needs.as_ref().is_some_and(|needs| !needs.has_login(name)) {
            let message = format!(
                "policy: the guest's needs do not declare the login `{name}`; add \"{name}\" to \"logins\" in needs.json"
            );
            return Err(http::Error { kind: http::ErrorKind::Denied(http::Denial::Undeclared), message, sent: false });
        }
        if let Some(kind) = self.state().session_failures.pop() {
            return Err(http::Error { kind, message: format!("login `{name}` failed"), sent: false });
        }
        self.state().sessions.get(name).cloned().ok_or_else(|| http::Error {
            kind: http::ErrorKind::Denied(http::Denial::Undeclared),
            message: format!("the fake has no login `{name}`; add one with `Fake::session`"),
            sent: false,
        })
    }

    fn agent_bootstrap(&self, settings: &agent::Settings) -> Result<String, agent::Error> {
        let mut state = self.state();
        state.agent(AgentEvent::Bootstrap(settings.clone()))?;
        Ok(format!("sealed-user-data-{}", state.agent_events.len()))
    }
    fn agent_created(&self, vm: &str, registry_key: &str) -> Result<(), agent::Error> {
        self.state().agent(AgentEvent::Created { vm: vm.to_owned(), registry_key: registry_key.to_owned() })
    }
    fn agent_attached(&self, registry_key: &str, disk: &str, hint: &DiskHint) -> Result<(), agent::Error> {
        let (registry_key, disk) = (registry_key.to_owned(), disk.to_owned());
        self.state().agent(AgentEvent::Attached { registry_key, disk, hint: hint.clone() })
    }
    fn agent_detached(&self, registry_key: &str, disk: &str) -> Result<(), agent::Error> {
        self.state().agent(AgentEvent::Detached { registry_key: registry_key.to_owned(), disk: disk.to_owned() })
    }
    fn agent_deleted(&self, registry_key: &str) -> Result<(), agent::Error> {
        self.state().agent(AgentEvent::Deleted { registry_key: registry_key.to_owned() })
    }

    fn registry_get(&self, id: &str) -> Result<String, registry::Error> {
        self.state().registry(id)
    }
    fn registry_put(&self, id: &str, settings: &str) -> Result<(), registry::Error> {
        let mut state = self.state();
        match state.registry(id) {
            Ok(_) | Err(registry::Error::NotFound) => {
                state.registry.insert(id.to_owned(), settings.to_owned());
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
    fn registry_delete(&self, id: &str) -> Result<(), registry::Error> {
        let mut state = self.state();
        match state.registry(id) {
            // The runtime succeeds, too, if there are no settings.
            Ok(_) | Err(registry::Error::NotFound) => {
                state.registry.remove(id);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn image_size(&self) -> Result<u64, image::Error> {
        self.state().image().map(|bytes| bytes.len() as u64)
    }
    fn image_sha256(&self) -> Result<String, image::Error> {
        Ok(Sha256::digest(self.state().image()?).iter().map(|byte| format!("{byte:02x}")).collect())
    }
    fn image_read(&self, offset: u64, length: u32) -> Result<Vec<u8>, image::Error> {
        let state = self.state();
        let bytes = state.image()?;
        check_length(length)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).ok_or_else(|| {
            let size = bytes.len();
            image::Error::Invalid(format!("offset {offset} is beyond the end of the image, which has {size} bytes"))
        })?;
        Ok(rest[..rest.len().min(length as usize)].to_vec())
    }
    fn image_members(&self) -> Result<Vec<image::Member>, image::Error> {
        let state = self.state();
        state.image()?;
        if state.members.is_empty() {
            return Err(image::Error::Invalid("the image is not an archive".to_owned()));
        }
        let member = |(name, bytes): &(String, Vec<u8>)| image::Member { name: name.clone(), size: bytes.len() as u64 };
        Ok(state.members.iter().map(member).collect())
    }
    fn image_read_member(&self, name: &str, length: u32) -> Result<Vec<u8>, image::Error> {
        let state = self.state();
        state.image()?;
        check_length(length)?;
        let found = state.members.iter().find(|(other, _)| other == name);
        let (_, bytes) = found.ok_or_else(|| image::Error::Invalid(format!("the image has no member `{name}`")))?;
        Ok(bytes[..bytes.len().min(length as usize)].to_vec())
    }

    fn log(&self, level: log::Level, message: &str) {
        self.state().logs.push((level, message.to_owned()));
    }

    fn now_ms(&self) -> u64 {
        START_MS + self.state().elapsed_ms
    }
    fn monotonic_ns(&self) -> u64 {
        self.state().elapsed_ms * 1_000_000
    }
    fn sleep(&self, ms: u64) -> Result<(), String> {
        let mut state = self.state();
        let target = state.elapsed_ms.saturating_add(ms);
        state.elapsed_ms = state.end_ms.map_or(target, |at| target.min(at.max(state.elapsed_ms)));
        state.sleeps.push(ms);
        state.ending().map_or(Ok(()), Err)
    }
    fn ending(&self) -> Option<String> {
        self.state().ending()
    }

    /// Returns the same sequence of bytes in every test (splitmix64).
    fn random(&self, count: u32) -> Vec<u8> {
        let mut state = self.state();
        let mut next = || {
            state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state.random ^ (state.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ (mixed >> 27)).to_le_bytes()[0]
        };
        (0..count).map(|_| next()).collect()
    }
}
