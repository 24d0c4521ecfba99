//! Second step: checks the operator's config, parses the arguments, and loads the guest's code.

use crate::call::{CallError, Record};
use crate::component::cache::CacheEvent;
use crate::component::description::GuestDescription;
use crate::component::preparation;
use crate::config::{Config, ConfigFile};
use crate::failure::{Failure, RESOURCE_REMEDY, Who};
use crate::rpc::answer;
use crate::rpc::arguments::Call;
use crate::rpc::method::{Method, MethodName};
use crate::rpc::request::Request;
use crate::rpc::response::{ErrorType, WireError};
use crate::sandbox::call_clock::CallClock;
use crate::sandbox::engine;
use serde_json::Value;
use std::sync::Arc;
use wasmtime::Engine;
use wasmtime::component::Component;

/// The answer to `info`, or a call that a guest has to serve.
pub enum Loaded {
    /// The answer to `info`, which needs no guest code.
    Info(Value),
    /// A method that the guest implements, with all that is needed to run it.
    Guest(Box<LoadedGuest>),
}

/// A call of a guest's method.
pub struct LoadedGuest {
    pub config: Config,
    pub request: Request,
    pub call: Call,
    pub description: GuestDescription,
    pub engine: Engine,
    pub component: Component,
    /// The clock of the call. It starts after the request was read and the guest was found or
    /// compiled.
    pub clock: Arc<CallClock>,
}

/// Returns the method that a request names, or the error that the Director expects for another name.
pub fn find_method(name: &str) -> Result<Method, CallError> {
    match MethodName::parse(name) {
        MethodName::Known(method) => Ok(method),
        MethodName::ConfigureNetworks => {
            let message = "`configure_networks` is deprecated, and the Director does not call it; remove the call";
            Err(protocol_error(Who::Request, ErrorType::NotSupported, message))
        }
        MethodName::Unknown => Err(CallError::Protocol { who: Who::Request, error: WireError::unknown_method(name) }),
    }
}

/// Loads the config and the guest that a request for `method` is for. A guest that is not prepared
/// yet is compiled now.
pub fn load(file: ConfigFile, method: Method, mut request: Request, record: &Record) -> Result<Loaded, CallError> {
    let config = Config::of(file)?;
    record.audit.set_pin(&config.guest.sha256);
    record.audit.set_http_request_limit(config.limits.http_requests);
    let arguments = std::mem::take(&mut request.arguments);
    let call = Call::parse(method, arguments, request.api_version)?;
    let report = |event: &CacheEvent| record.cache_event(event);
    let prepared = preparation::prepare(config.preparation(), &report)?;
    let description = prepared.description.clone();
    record.audit.set_guest(&description);
    if method == Method::Info {
        return Ok(Loaded::Info(answer::info(config.api_version, &description.stemcell_formats)));
    }
    if !description.methods.iter().any(|name| name == method.name()) {
        let (guest, version) = (&description.name, &description.version);
        let message = format!(
            "{guest} {version} does not implement {}; use a guest that does, or remove what needs it from the deployment",
            method.name()
        );
        return Err(protocol_error(Who::Guest, ErrorType::NotImplemented, &message));
    }
    let clock = Arc::new(CallClock::new(&config.limits, method));
    let engine = engine::build(&config.limits)
        .map_err(|error| Failure::runtime(format!("the engine cannot start: {error:#}; {RESOURCE_REMEDY}")))?;
    let component = prepared.load(&engine, &report)?;
    Ok(Loaded::Guest(Box::new(LoadedGuest { config, request, call, description, engine, component, clock })))
}

/// Returns an error of the protocol whose message begins with who failed.
fn protocol_error(who: Who, kind: ErrorType, message: &str) -> CallError {
    CallError::Protocol { who, error: WireError::new(kind, format!("{who}: {message}")) }
}
