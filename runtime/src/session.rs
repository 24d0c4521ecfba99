//! One call of a guest: its capabilities put together, run, and accounted for.

use crate::agent::{self, AgentSession, VmSpec};
use crate::arena::Arena;
use crate::audit::{Audit, Used};
use crate::bindings::bosh::cpi::config::CallInfo;
use crate::component::prepared::{CacheEvent, Prepared};
use crate::config::Config;
use crate::failure::{Failure, Who};
use crate::granted;
use crate::hardening::{self, Hardening, Network, Remaining};
use crate::holes::Check;
use crate::host::{self, Host, HostCall};
use crate::image::Image;
use crate::log::{GuestLog, Level, Log, escape};
use crate::net::gate::{Gate, HttpEvent};
use crate::net::http_trace::Tracer;
use crate::net::proxy::ProxyConfig;
use crate::net::resolve::Resolver;
use crate::policy::{AGENT, Policy, Properties};
use crate::registry::{GuestRegistry, RegistryClient, RegistrySession};
use crate::rpc::arguments::Call;
use crate::rpc::method::Method;
use crate::rpc::request::Request;
use crate::rpc::response::WireError;
use crate::rpc::shape;
use crate::sandbox::call::{self, Unsuccessful as Ended};
use crate::sandbox::ending::{Ending, Why};
use crate::sandbox::engine;
use crate::sandbox::state::State;
use crate::sandbox::ticker;
use crate::secret::Secret;
use crate::vault::Vault;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

pub struct Session<'a> {
    pub config: &'a Config,
    pub request: &'a Request,
    pub call: &'a Call,
    pub vault: &'a Arc<Vault>,
    pub log: &'a Arc<Log>,
    pub audit: &'a Arc<Audit>,
    /// Told of everything that the guest asks for.
    pub watch: Option<Watch>,
}

pub type Watch = Arc<dyn Fn(Observed<'_>) + Send + Sync>;

/// One thing that a guest asked for.
pub enum Observed<'a> {
    Http(&'a HttpEvent),
    Host(&'a HostCall<'a>),
}

pub enum Unsuccessful {
    /// The guest's own error.
    Wire(WireError),
    Failure(Failure),
}

impl From<Failure> for Unsuccessful {
    fn from(failure: Failure) -> Self {
        Unsuccessful::Failure(failure)
    }
}

/// How it ended, and what it took.
pub struct Ran {
    pub result: Result<Value, Unsuccessful>,
    pub used: Used,
}

pub fn run(session: Session<'_>, prepared: Prepared) -> Result<Ran, Failure> {
    let Session { config, request, call, vault, log, audit, watch } = session;
    Arena::expect_call();
    let method = call.method();
    let limits = &config.limits;
    let ending = Arc::new(Ending::new(limits, method));
    let needs = granted::needs(&prepared.description)?;
    let properties = Properties::merge(config.properties.clone(), request.properties.clone());
    let mut policy = granted::policy_of_call(config, &properties, needs.as_ref())?;
    if let Call::CreateVm { env, .. } = call
        && Check::EndpointOfEnv.on()
    {
        policy.forbid(granted::endpoints(agent::endpoints_of_env(env)));
    }
    let policy = Arc::new(policy);
    config.proxy.iter().flat_map(ProxyConfig::secrets).for_each(|secret| vault.keep("proxy", secret));
    // Opened in any case: what is wrong with its path is the caller's to know.
    let image = image(call, config)?.filter(|_| policy.image || !Check::NeedsImage.on()).map(Arc::new);
    let mode = agent::mode(request.api_version, request.stemcell_api_version);
    mode.check(method.name(), config.registry.is_some())?;
    let client = config.registry.as_ref().map(|registry| RegistryClient::new(registry, limits)).transpose()?;
    let creates = method == Method::CreateVm;
    let registry = Arc::new(RegistrySession::new(client, policy.registry.clone(), call.ids(), creates));
    let agent = AgentSession::new(
        mode,
        config.agent.clone(),
        vm_spec(call),
        config.registry.clone(),
        Arc::clone(&registry),
        Arc::clone(vault),
    );
    let agent = Arc::new(agent);
    let guest_log = Arc::new(GuestLog::new(Arc::clone(log), &prepared.description.name, limits));
    let watch_host = watch_host(audit, watch.clone());
    let watch = logged(Arc::clone(&guest_log), Arc::clone(audit), watch);
    let trace = config.http_trace.map(|what| Tracer::new(what, Arc::clone(log), Arc::clone(vault)));
    let gate =
        Gate::new(Arc::clone(&policy), Arc::clone(vault), limits, config.allow_local, image.clone(), Some(watch));
    let files = config.policy.parent().unwrap_or(Path::new("."));
    let gate = Arc::new(gate.with_files_in(files).with_trace(trace).with_proxy(config.proxy.clone()));
    // A property of the name under which agent settings travel must not travel like them.
    let own = |name: &str| {
        if name == AGENT && Check::PropertyName.on() { format!("properties.{name}") } else { name.to_owned() }
    };
    let seal = |name: &str, value: &str, layer| vault.seal(&own(name), Secret::new(value), layer);
    let host = Host {
        properties: properties.visible(&policy.expose, needs.as_ref(), seal).to_string(),
        call: CallInfo {
            method: method.name().to_owned(),
            director_uuid: request.director_uuid.clone(),
            request_id: request.request_id.clone(),
            api_version: request.api_version,
            stemcell_api_version: request.stemcell_api_version,
        },
        gate: Arc::clone(&gate),
        agent: Arc::clone(&agent),
        registry: Arc::new(GuestRegistry::new(registry, Arc::clone(vault))),
        image,
        log: guest_log,
        watch: watch_host,
    };
    let engine =
        engine::engine(limits).map_err(|error| Failure::runtime(format!("the engine does not start: {error:#}")))?;
    let component = prepared.component(&engine, config.wanted(), &told(log, audit))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start: {error}")))?;
    let state = State::new(limits, Arc::clone(&ending), host);
    ticker::start(&engine).map_err(|error| Failure::runtime(format!("cannot start: {error}")))?;
    let hardening = open_and_lock_down(config, &policy, &gate)?;
    let outcome = call::run(&runtime, &engine, &component, state, limits, call, request.api_version)?;
    let mut result = outcome.result.and_then(|value| Ok(without_secrets(value, vault, audit)?));
    if let Some(Why::Abort(failure)) = ending.why() {
        result = result.and_then(|_| Err(failure.into()));
    }
    if method == Method::CreateVm {
        result = result.and_then(|vm| reachable(vm, &agent, &gate, &policy));
        let returned = result.as_ref().ok().and_then(returned_vm).map(str::to_owned);
        let undone = runtime.block_on(agent.finish(returned.as_deref(), ending.hard_deadline()));
        match undone {
            Ok(left) => left.iter().for_each(|what| log.write(Level::Warn, what)),
            Err(failure) => result = Err(failure.into()),
        }
    }
    let from_director = request.request_id.is_some();
    let result = concluded(result, ending.why(), &gate, limits.cleanup_seconds, |error| {
        shape::guest_error(error, method, from_director)
    });
    let state = outcome.store.data();
    let (usage, counts) = (state.meter.usage(), state.counts);
    // A call is a process: taking all this apart would only delay the response.
    std::mem::forget((outcome.store, component, engine, runtime));
    Ok(Ran { result, used: Used { usage, network: gate.usage(), counts, hardening } })
}

/// What is worth telling about the cache, to whom.
pub fn told<'a>(log: &'a Log, audit: &'a Audit) -> impl Fn(&CacheEvent) + use<'a> {
    move |event| {
        log.write(event.level(), &event.to_string());
        audit.cache(event);
    }
}

fn watch_host(audit: &Arc<Audit>, watch: Option<Watch>) -> Option<host::Watch> {
    if watch.is_none() && !audit.is_on() {
        return None;
    }
    let audit = Arc::clone(audit);
    Some(Arc::new(move |call: &HostCall<'_>| {
        audit.host(call);
        if let Some(watch) = &watch {
            watch(Observed::Host(call));
        }
    }))
}

/// The last step before the guest's code: what it may still need is opened, and
/// then nothing can be any more. No other thread runs.
fn open_and_lock_down(config: &Config, policy: &Policy, gate: &Gate) -> Result<String, Failure> {
    let network = granted::network(config, policy);
    let files = match &network {
        Network::Ports(_) if config.hardening != Hardening::Off => Resolver::hold_system() + gate.hold_files(),
        _ => 0,
    };
    let walls = hardening::lock_down(config.hardening, Remaining { network, files, limits: &config.limits })?;
    Ok(walls.map_or_else(|| Hardening::Off.to_string(), |walls| walls.to_string()))
}

/// Every request is a line for whoever debugs; what was refused, one for all. They
/// count as the guest's lines, since it decides how many there are.
fn logged(log: Arc<GuestLog>, audit: Arc<Audit>, watch: Option<Watch>) -> Box<dyn Fn(&HttpEvent) + Send + Sync> {
    Box::new(move |event| {
        audit.http(event);
        // Where a login goes, the guest is not told, whatever came of it.
        let fine = event.outcome.is_ok_and(|status| event.login.is_none() || status < 300);
        let level = if fine { Level::Debug } else { Level::Warn };
        log.write_of_runtime(level, &event.to_string());
        if let Some(watch) = &watch {
            watch(Observed::Http(event));
        }
    })
}

fn image(call: &Call, config: &Config) -> Result<Option<Image>, Failure> {
    match call {
        Call::CreateStemcell { image_path, .. } => Image::open(Path::new(image_path), &config.image_dirs).map(Some),
        _ => Ok(None),
    }
}

fn vm_spec(call: &Call) -> Option<VmSpec> {
    match call {
        Call::CreateVm { agent_id, networks, env, .. } => {
            Some(VmSpec { agent_id: agent_id.clone(), networks: networks.clone(), env: Value::Object(env.clone()) })
        }
        _ => None,
    }
}

/// A result reaches the Director's database and logs. It is passed on as it is or
/// not at all: an altered cloud ID would be one that nobody can delete.
fn without_secrets(result: Value, vault: &Vault, audit: &Audit) -> Result<Value, Failure> {
    let leak = vault.leak_in(result.to_string().as_bytes());
    let Some(name) = leak.filter(|_| Check::ResultWithheld.on()) else { return Ok(result) };
    audit.result_leak(&name);
    Err(Failure::guest(format!(
        "the result was withheld, as it holds the value of `{name}`; if that is no secret, list it under `expose` in the policy"
    )))
}

/// The VM's cloud ID in either shape of `create_vm`'s result.
fn returned_vm(result: &Value) -> Option<&str> {
    result.as_str().or_else(|| result.get(0)?.as_str())
}

/// A VM whose user-data was made but never sent has an Agent that nobody will
/// hear of. Where the policy has no slot for it, there was nowhere to send it.
fn reachable(vm: Value, agent: &AgentSession, gate: &Gate, policy: &Policy) -> Result<Value, Ended> {
    let has_slot =
        policy.http.iter().any(|grant| grant.slots.iter().any(|slot| slot.takes.iter().any(|name| name == AGENT)));
    let sent = gate.sent().iter().any(|name| name == AGENT);
    if Check::VmUnreachable.on() && has_slot && !sent {
        let how = if agent.bootstraps().is_empty() {
            "without calling `agent.bootstrap`"
        } else {
            "without sending the user-data of `agent.bootstrap`"
        };
        let cid = escape(returned_vm(&vm).unwrap_or_default(), 255);
        return Err(Failure::guest(format!(
            "create_vm made `{cid}` {how}: nobody could reach that VM; a bug in the guest"
        ))
        .into());
    }
    Ok(vm)
}

/// The call's end, with why it ended early and what it may have left behind.
fn concluded(
    result: Result<Value, Ended>,
    why: Option<Why>,
    gate: &Gate,
    cleanup_seconds: u64,
    shaped: impl FnOnce(crate::bindings::bosh::cpi::types::Error) -> Option<WireError>,
) -> Result<Value, Unsuccessful> {
    let failure = match (result, why) {
        (Ok(value), _) => return Ok(value),
        (Err(Ended::Error(error)), None) => {
            return match shaped(error) {
                None => Ok(Value::Null),
                Some(error) => Err(Unsuccessful::Wire(error)),
            };
        }
        (Err(Ended::Error(error)), Some(why)) => {
            let failure = why.failure();
            Failure {
                message: format!("{}; the guest ended in time and said: {}", failure.message, error.message),
                ..failure
            }
        }
        (Err(Ended::Failure(failure)), Some(why)) if matches!(failure.who, Who::Limit | Who::Runtime) => Failure {
            message: format!(
                "{}; the guest did not end by itself within cleanup_seconds ({cleanup_seconds})",
                why.failure().message
            ),
            ..failure
        },
        (Err(Ended::Failure(failure)), _) => failure,
    };
    let changes = gate.changes();
    if changes.is_empty() {
        return Err(failure.into());
    }
    let message =
        format!("{}; requests of this call that may have changed something: {}", failure.message, changes.join(", "));
    Err(Failure { message, ..failure }.into())
}
