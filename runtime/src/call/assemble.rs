//! Fourth step: builds the guest's capabilities, each restricted to what the call may do.

use crate::agent::{AgentParts, AgentSession, VmSpec};
use crate::bindings::bosh::cpi::config::CallInfo;
use crate::call::authorise::Authorised;
use crate::call::load::LoadedGuest;
use crate::call::{CallError, Observer, Record, observe, undo};
use crate::config::Config;
use crate::effective_policy;
use crate::failure::Failure;
use crate::host::{Capabilities, GuestState, LastFailure};
use crate::image::Image;
use crate::leak_latch::LeakLatch;
use crate::log::{GuestLog, Level};
use crate::net::gate::{Gate, GateParts, KeptSecrets};
use crate::net::http_trace::Tracer;
use crate::net::proxy::ProxyConfig;
use crate::registry::{Access, GuestRegistry, RegistryClient, RegistrySession};
use crate::rpc::arguments::Call;
use crate::rpc::method::Method;
use crate::sandbox::call_clock::CallClock;
use crate::sandbox::watchdog;
use crate::token_store::{TokenStore, TokenStoreError, token_owner};
use crate::vault::{SecretKind, Vault};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{AGENT, Needs, Policy, Properties, looks_like_credential};

/// A call that is ready to run.
pub struct Assembled {
    pub loaded: LoadedGuest,
    pub capabilities: CallCapabilities,
    /// The guest's state, which holds its capabilities.
    pub state: GuestState,
}

/// What the runtime keeps of a guest's capabilities, to judge the call when it has ended.
pub struct CallCapabilities {
    pub policy: Arc<Policy>,
    pub gate: Arc<Gate>,
    pub agent: Arc<AgentSession>,
    pub latch: Option<Arc<LeakLatch>>,
}

/// Builds the capabilities of a call.
pub fn assemble(authorised: Authorised, record: &Record, observer: Option<Observer>) -> Result<Assembled, CallError> {
    let Authorised { loaded, needs, properties, policy, mode, latch } = authorised;
    let LoadedGuest { config, request, call, description, clock, .. } = &loaded;
    let Record { vault, log, audit } = record;
    let limits = &config.limits;
    stop_searches_at_the_end(vault, clock);
    config.proxy.iter().flat_map(ProxyConfig::secrets).for_each(|secret| vault.register("proxy", secret));
    let image = image(call, config, &policy)?;
    let client = config.registry.as_ref().map(|registry| RegistryClient::new(registry, limits)).transpose()?;
    let access = match call.method() {
        Method::CreateVm => Access::CreateVm,
        _ => Access::Ids(call.registry_ids()),
    };
    let registry = Arc::new(RegistrySession::new(client, policy.registry.clone(), access));
    let agent = Arc::new(AgentSession::new(AgentParts {
        mode,
        config: config.agent.clone(),
        spec: vm_spec(call),
        registry_config: config.registry.clone(),
        registry: Arc::clone(&registry),
        vault: Arc::clone(vault),
    }));
    agent.check_size(policy.agent_max_bytes())?;
    let guest_log = Arc::new(GuestLog::new(Arc::clone(log), &description.name, limits));
    let files = config.policy_path.parent().unwrap_or(Path::new("."));
    // Without a usable cache directory every call logs in.
    let kept = kept_secrets(config, &policy, files, vault).unwrap_or_else(|error| {
        log.write(Level::Debug, &error.to_string());
        KeptSecrets::default()
    });
    let gate = Arc::new(Gate::new(GateParts {
        policy: Arc::clone(&policy),
        vault: Arc::clone(vault),
        limits: limits.clone(),
        allow_local: config.allow_local,
        image: image.clone(),
        files: files.to_owned(),
        proxy: config.proxy.clone(),
        kept,
        trace: config.http_trace.map(|what| Tracer::new(what, Arc::clone(log), Arc::clone(vault))),
        latch: latch.clone(),
        records_creations: undo::is_undoable(call),
        observer: Some(observe::http(audit, &guest_log, observer.clone())),
    }));
    let (visible, sealed) = seal_properties(&policy, &properties, needs.as_ref(), vault);
    register_credentials(&policy, &sealed, vault);
    effective_policy::check_sendable(&policy, &sealed)?;
    let of_guest = Capabilities {
        properties: visible.to_string(),
        call: CallInfo {
            method: call.method().name().to_owned(),
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
        last_failure: LastFailure::default(),
        observer: observe::host_calls(audit, observer),
    };
    let state = GuestState::new(limits, Arc::clone(clock), of_guest);
    Ok(Assembled { loaded, capabilities: CallCapabilities { policy, gate, agent, latch }, state })
}

/// Opens the tokens and keys that earlier calls of the same guest in the same job kept. Returns none if they are not
/// kept.
fn kept_secrets(config: &Config, policy: &Policy, files: &Path, vault: &Vault) -> Result<KeptSecrets, TokenStoreError> {
    if !config.keep_tokens || !policy.has_tokens() {
        return Ok(KeptSecrets::default());
    }
    let owner = token_owner(&config.guest_of_job());
    let owner = owner.each_ref().map(Vec::as_slice);
    KeptSecrets::open(&TokenStore::open(&config.cache)?, &owner, policy, config.proxy.as_ref(), files, vault)
}

/// Stops searches for secrets when the guest has to be stopped: this thread would otherwise search on.
/// No watchdog runs on this thread while it searches, so the search itself asks for the end when it is
/// due.
fn stop_searches_at_the_end(vault: &Vault, clock: &Arc<CallClock>) {
    let clock = Arc::clone(clock);
    vault.stop_searches_when(Box::new(move || {
        watchdog::request_end_if_due(&clock);
        Instant::now() >= clock.hard_deadline()
    }));
}

/// The fewest bytes of a property that count as a part of a credential. Shorter ones are in many texts
/// by chance.
const MIN_PART: usize = 6;

/// The properties that the guest gets as seals, with the names of the seals.
type SealedProperties = Vec<(String, Secret)>;

/// Returns the properties as the guest sees them, with seals instead of those that are not exposed, and
/// those that were sealed.
fn seal_properties(
    policy: &Policy,
    properties: &Properties,
    needs: Option<&Needs>,
    vault: &Vault,
) -> (Value, SealedProperties) {
    let mut sealed = Vec::new();
    let visible = properties.visible(&policy.expose, needs, |name, value, layer| {
        let kind = if looks_like_credential(name, value) { SecretKind::Credential } else { SecretKind::Value };
        let (name, secret) = (seal_name(name), Secret::new(value));
        sealed.push((name.clone(), secret.clone()));
        vault.seal_as(kind, &name, secret, layer)
    });
    (visible, sealed)
}

/// Registers the credentials that grants and logins send, so that they are searched for.
fn register_credentials(policy: &Policy, sealed: &SealedProperties, vault: &Vault) {
    for (name, text) in effective_policy::credentials(policy) {
        let is_part = |secret: &str| secret.len() >= MIN_PART && text.reveal().contains(secret);
        let parts: Vec<_> = sealed.iter().filter(|(_, secret)| is_part(secret.reveal())).collect();
        // If all properties in the text are exposed, it is not a secret, so it is not registered.
        if parts.is_empty() {
            continue;
        }
        // If one part is a credential by its name, its seal has registered it already, and the other
        // parts, such as `region` in `Key ${region}:${password}`, must not be searched for. If none is,
        // every part may be the credential, so all are registered.
        if !parts.iter().any(|(name, secret)| looks_like_credential(name, secret.reveal())) {
            parts.iter().for_each(|(name, secret)| vault.register(name, secret.clone()));
        }
        vault.register(&name, text);
    }
}

/// Returns the name of a property's seal. The property `agent` becomes `properties.agent`, so
/// that no slot for agent settings takes it.
fn seal_name(name: &str) -> String {
    if Check::PropertyName.refuses(name == AGENT) { format!("properties.{name}") } else { name.to_owned() }
}

/// Returns the stemcell's image, if this call has one and the guest declares that it reads it.
/// It is opened even if the guest may not read it, so that the caller always gets the error about
/// a wrong path.
fn image(call: &Call, config: &Config, policy: &Policy) -> Result<Option<Arc<Image>>, Failure> {
    let Call::CreateStemcell { image_path, .. } = call else { return Ok(None) };
    let image = Image::open(Path::new(image_path), &config.image_dirs)?;
    Ok(Check::NeedsImage.accepts(policy.image).then(|| Arc::new(image)))
}

fn vm_spec(call: &Call) -> Option<VmSpec> {
    match call {
        Call::CreateVm { agent_id, networks, env, .. } => {
            Some(VmSpec { agent_id: agent_id.clone(), networks: networks.clone(), env: Value::Object(env.clone()) })
        }
        _ => None,
    }
}
