//! The simulated cloud: answers requests from its state.
//!
//! One lock protects the whole state. It is not held while an image is uploaded, so
//! that an upload does not block other requests.

use super::message::{Answer, Request, Response, not_found, unauthorized};
use super::service::Service;
use super::state::{Session, State};
use super::{compute, identity, image, load_balancers, metadata_service, network, seed, versions, volume};
use crate::gateway::Backend;
use serde_json::Value;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// The maximum length of a body that is not image data.
const MAX_BODY: u64 = 1 << 20;

/// A cloud in memory. Clones are the same cloud.
#[derive(Clone)]
pub struct Simulator {
    state: Arc<Mutex<State>>,
    cloud: Arc<Value>,
}

/// A request with its session and its JSON body.
pub(super) struct Call<'a> {
    pub(super) request: &'a Request,
    pub(super) session: Session,
    pub(super) body: Value,
    /// The parts of the path after the service's prefix.
    pub(super) parts: Vec<&'a str>,
}

impl Default for Simulator {
    fn default() -> Self {
        Simulator::new()
    }
}

impl Simulator {
    /// Creates a cloud with the same content as the real cloud of the tests: flavors,
    /// networks, users.
    pub fn new() -> Simulator {
        let mut state = State::new();
        let cloud = seed::fill(&mut state);
        Simulator { state: Arc::new(Mutex::new(state)), cloud: Arc::new(cloud) }
    }

    /// Creates a cloud whose tenant has this password instead of the default.
    pub fn with_password(password: &str) -> Simulator {
        let mut state = State::new();
        let mut cloud = seed::fill(&mut state);
        let own = cloud["api_key"].clone();
        state.users.iter_mut().filter(|user| own == user.password).for_each(|user| user.password = password.to_owned());
        cloud["api_key"] = password.into();
        Simulator { state: Arc::new(Mutex::new(state)), cloud: Arc::new(cloud) }
    }

    /// Sets how many reads see a change in progress before it completes. The default is
    /// one.
    pub fn set_reads_before_change(&self, reads: usize) {
        self.lock().pending.reads = reads;
    }

    /// Sets the lifetime of tokens issued from now on.
    pub fn set_token_lifetime(&self, lifetime: Duration) {
        self.lock().token_lifetime = lifetime;
    }

    /// Keeps deleted servers as soft-deleted, like a Nova that reclaims them after a
    /// time. Here they are never reclaimed.
    pub fn enable_soft_delete(&self) {
        self.lock().soft_delete = true;
    }

    /// Revokes all tokens.
    pub fn revoke_tokens(&self) {
        self.lock().tokens.clear();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session of the request's token, or the answer to an invalid token.
    pub(super) fn session(&self, request: &Request) -> Result<Session, Response> {
        let refused = || unauthorized().with("WWW-Authenticate", &format!("Keystone uri=\"{}/v3\"", seed::IDENTITY));
        let token = request.header("x-auth-token").ok_or_else(refused)?;
        let session = self.lock().tokens.get(token).cloned().ok_or_else(refused)?;
        if session.expires <= SystemTime::now() { Err(refused()) } else { Ok(session) }
    }

    fn route(&self, service: Service, request: &Request, body: &mut dyn Read) -> Answer {
        if let Some(answer) = versions::answer(service, request) {
            return Ok(answer);
        }
        let relative = service.relative(&request.path);
        let parts: Vec<&str> = relative.split('/').filter(|part| !part.is_empty()).collect();
        match service {
            Service::Identity => return identity::answer(self, request, &parts, &json(body)?),
            Service::Metadata => return metadata_service::answer(self, request),
            Service::Image if image::is_upload(request, &parts) => {
                let session = self.session(request).map_err(|_| image::unauthorized(request))?;
                return image::upload(self, &session, request, parts[1], body);
            }
            _ => {}
        }
        let session = self.session(request);
        let session =
            if service == Service::Image { session.map_err(|_| image::unauthorized(request)) } else { session }?;
        if service == Service::Volume && !volume::is_own(&request.path, &session) {
            return Err(super::message::fault(400, "Malformed request url"));
        }
        let call = Call { request, session, body: json(body)?, parts };
        let state = &mut *self.lock();
        match service {
            Service::Image => image::answer(state, &call),
            Service::Compute => compute::answer(state, &call),
            Service::Network => network::answer(state, &call),
            Service::Volume => volume::answer(state, &call),
            Service::LoadBalancer => load_balancers::answer(state, &call),
            Service::Identity | Service::Metadata => Err(not_found(request)),
        }
    }
}

impl Backend for Simulator {
    type Service = Service;

    fn answer(&self, service: Service, request: &Request, body: &mut dyn Read) -> io::Result<Response> {
        let response = self.route(service, request, body).unwrap_or_else(|refusal| refusal);
        let id = format!("req-{}", self.lock().uuid());
        Ok(response
            .with(if service == Service::Compute { "x-compute-request-id" } else { "X-Openstack-Request-Id" }, &id))
    }

    fn cloud(&self) -> Value {
        (*self.cloud).clone()
    }
}

impl Call<'_> {
    /// Returns method and path parts, for a `match`.
    pub(super) fn route(&self) -> (&str, &[&str]) {
        (&self.request.method, &self.parts)
    }

    /// Rejects the request unless an admin sent it.
    pub(super) fn check_admin(&self, refusal: impl FnOnce() -> Response) -> Result<(), Response> {
        if self.session.admin { Ok(()) } else { Err(refusal()) }
    }
}

/// Parses the body; an empty body is null.
fn json(body: &mut dyn Read) -> Result<Value, Response> {
    let mut bytes = Vec::new();
    let read = body.take(MAX_BODY).read_to_end(&mut bytes);
    if read.is_err() || bytes.is_empty() {
        return Ok(Value::Null);
    }
    let malformed = |_| super::message::fault(400, "Malformed request body");
    serde_json::from_slice(&bytes).map_err(malformed)
}
