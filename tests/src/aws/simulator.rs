//! The simulated cloud: verifies a request, reads its parameters, runs its operation, and
//! writes the result in the protocol of the API.

use super::ec2::{self, Call};
use super::error::Error;
use super::service::{Api, Service};
use super::state::{AccessKey, State};
use super::{answer, authentication, clock, ebs, form, load_balancing, metadata, model, seed, snapshot_blocks, sts};
use crate::gateway::{Backend, Request, Response};
use serde_json::Value;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum length of a body.
const MAX_BODY: u64 = 1 << 20;

/// A cloud in memory. Clones are the same cloud.
#[derive(Clone)]
pub struct Simulator {
    state: Arc<Mutex<State>>,
    cloud: Arc<Value>,
}

impl Default for Simulator {
    fn default() -> Self {
        Simulator::new()
    }
}

impl Simulator {
    /// Creates a cloud with the resources that an operator creates.
    pub fn new() -> Simulator {
        let mut state = State::new(seed::REGION);
        let cloud = seed::fill(&mut state);
        Simulator { state: Arc::new(Mutex::new(state)), cloud: Arc::new(cloud) }
    }

    /// Creates a cloud whose first account has this access key.
    pub fn with_access_key(id: &str, secret: &str) -> Simulator {
        let mut state = State::new(seed::REGION);
        let mut cloud = seed::fill(&mut state);
        if let Some(key) = state.keys.iter_mut().find(|key| key.account == seed::ACCOUNT) {
            (key.id, key.secret) = (id.to_owned(), secret.to_owned());
        }
        (cloud["access_key_id"], cloud["secret_access_key"]) = (id.into(), secret.into());
        Simulator { state: Arc::new(Mutex::new(state)), cloud: Arc::new(cloud) }
    }

    /// Sets how many reads see a change in progress before it completes. The default is
    /// one.
    pub fn set_reads_before_change(&self, reads: usize) {
        self.lock().pending.reads = reads;
    }

    /// Sets for how many lookups a resource that is created from now on does not exist
    /// yet. The default is none.
    pub fn set_hidden_lookups(&self, lookups: u64) {
        self.lock().hidden_lookups = lookups;
    }

    /// Sets the limit of every account: `instances`, `volumes`, `snapshots`, `network-interfaces`,
    /// `tags-per-resource`, `targets-per-group`.
    pub fn set_limit(&self, name: &'static str, limit: usize) {
        self.lock().limits.insert(name, limit);
    }

    /// Sets by how many seconds the clock of the cloud is ahead of this machine's.
    pub fn set_clock_ahead(&self, seconds: i64) {
        self.lock().clock_ahead = seconds;
    }

    /// Sets for how many seconds temporary credentials are valid that are issued from now on.
    pub fn set_key_lifetime(&self, seconds: u64) {
        self.lock().key_lifetime = Some(seconds);
    }

    /// Makes the metadata service return these keys, which may be those of another cloud.
    pub fn set_machine_keys(&self, id: &str, secret: &str, token: &str) {
        let mut state = self.lock();
        let expires = state.now() + Duration::from_secs(3600);
        state.keys.push(AccessKey {
            id: id.to_owned(),
            secret: secret.to_owned(),
            token: Some(token.to_owned()),
            expires: Some(expires),
            account: seed::ACCOUNT.to_owned(),
            arn: seed::instance_role_arn(),
            user: seed::ROLE.to_owned(),
        });
    }

    /// Makes all temporary credentials invalid.
    pub fn revoke_temporary_keys(&self) {
        self.lock().keys.retain(|key| key.token.is_none());
    }

    /// Makes the next launches fail after they were accepted: their instances terminate.
    pub fn fail_launches(&self, count: usize) {
        self.lock().failing_launches = count;
    }

    /// Accepts bodies whose hash is not signed, as EBS direct does. botocore sends such over TLS.
    pub fn allow_unsigned_payload(&self) {
        self.lock().allows_unsigned_payload = true;
    }

    /// Checks only the signature of a request to EC2 or load balancing. An error says what is wrong.
    pub fn check_signature(&self, service: Service, request: &Request, body: &[u8]) -> Result<(), String> {
        // EC2 itself does not say why.
        let key = authentication::verify(&self.lock(), Api::Elb, service.signing_name(), request, body);
        key.map(drop).map_err(|error| format!("{}: {}", error.code, error.message))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Simulator {
    type Service = Service;

    fn answer(&self, service: Service, request: &Request, body: &mut dyn Read) -> io::Result<Response> {
        let mut bytes = Vec::new();
        body.take(MAX_BODY + 1).read_to_end(&mut bytes)?;
        let state = &mut *self.lock();
        state.begin_request();
        let response = match service {
            Service::Metadata => metadata::answer(state, request),
            Service::Ebs => rest(state, request, bytes),
            _ => query(state, service, request, &bytes),
        };
        Ok(response.with("Date", &clock::format_date(state.now())))
    }

    fn cloud(&self) -> Value {
        (*self.cloud).clone()
    }
}

/// Answers a request of EC2 or of a query API.
fn query(state: &mut State, service: Service, request: &Request, body: &[u8]) -> Response {
    let id = state.ids.uuid();
    let pairs = form::parse(body);
    let value = |name: &str| {
        let pairs = pairs.as_ref().ok()?;
        pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    let api = match service {
        Service::Ec2 => Api::Ec2,
        Service::Sts => Api::Sts,
        _ if value("Version") == Some(model::version(Api::ElbV2)) => Api::ElbV2,
        _ => Api::Elb,
    };
    let done = run_query(state, api, service, request, body, &pairs);
    match done {
        Ok((operation, result)) => answer::xml(api, operation, &result, &id),
        Err(error) => answer::error(api, &error, &id),
    }
}

fn run_query(
    state: &mut State,
    api: Api,
    service: Service,
    request: &Request,
    body: &[u8],
    pairs: &Result<Vec<(String, String)>, Error>,
) -> Result<(model::Operation, Value), Error> {
    check_length(body)?;
    let key = authentication::verify(state, api, service.signing_name(), request, body)?;
    check_envelope(request)?;
    let pairs = pairs.as_ref().map_err(Clone::clone)?;
    let value = |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let action = value("Action").ok_or_else(|| Error::new("MissingAction", "The request must contain Action."))?;
    if value("Version") != Some(model::version(api)) {
        let message = format!("The version must be {}.", model::version(api));
        return Err(Error::new("NoSuchVersion", message));
    }
    let operation = model::operation(api, action).ok_or_else(|| {
        Error::new("InvalidAction", format!("The action {action} is not valid for this web service."))
    })?;
    let parameters = form::parameters(api, operation, pairs)?;
    let call = Call { account: &key.account, operation: operation.name, parameters: &parameters };
    Ok((operation, dispatch(state, api, &key, &call)?))
}

fn dispatch(state: &mut State, api: Api, key: &AccessKey, call: &Call<'_>) -> Result<Value, Error> {
    match api {
        Api::Ec2 => ec2::answer(state, call),
        Api::Sts => sts::answer(state, key, call),
        Api::Elb | Api::ElbV2 | Api::Ebs => load_balancing::answer(state, api, call),
    }
}

/// Requests of query APIs are forms that are posted to the root.
fn check_envelope(request: &Request) -> Result<(), Error> {
    let wrong = |message: &str| Err(Error::new("InvalidRequest", message));
    let kind = request.header("content-type").unwrap_or_default().to_lowercase();
    match (request.method.as_str(), request.target.as_str(), kind.replace(' ', "").as_str()) {
        ("POST", "/", "application/x-www-form-urlencoded" | "application/x-www-form-urlencoded;charset=utf-8") => {
            Ok(())
        }
        ("POST", "/", _) => wrong("The body must be a form."),
        _ => wrong("The request must be POST /, with its parameters in the body."),
    }
}

fn check_length(body: &[u8]) -> Result<(), Error> {
    if body.len() as u64 > MAX_BODY {
        return Err(Error::with_status(413, "RequestEntityTooLarge", "The body is too long."));
    }
    Ok(())
}

/// Answers a request of EBS direct.
fn rest(state: &mut State, request: &Request, body: Vec<u8>) -> Response {
    let id = state.ids.uuid();
    match run_rest(state, request, body) {
        Ok((operation, result, block)) => ebs::response(operation, &result, block, &id),
        Err(error) => answer::error(Api::Ebs, &error, &id),
    }
}

fn run_rest(state: &mut State, request: &Request, body: Vec<u8>) -> Result<(model::Operation, Value, Vec<u8>), Error> {
    check_length(&body)?;
    let key = authentication::verify(state, Api::Ebs, Service::Ebs.signing_name(), request, &body)?;
    let unknown = || Error::with_status(404, "UnknownOperationException", "There is no such operation.");
    let (name, path) = ebs::operation(request).ok_or_else(unknown)?;
    let operation = model::operation(Api::Ebs, name).ok_or_else(unknown)?;
    let parameters = ebs::parameters(operation, request, path, &body)?;
    let call = Call { account: &key.account, operation: operation.name, parameters: &parameters };
    let (result, block) = snapshot_blocks::answer(state, &call, body)?;
    Ok((operation, result, block))
}
