//! Third step: determines what this call may do, from the operator's policy and the module's needs.

use crate::agent::{self, Mode};
use crate::call::CallError;
use crate::call::load::LoadedGuest;
use crate::effective_policy;
use crate::rpc::arguments::Call;
use std::sync::Arc;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::{Needs, Policy, Properties};

/// A call, and what it may do.
pub struct Authorised {
    pub loaded: LoadedGuest,
    pub needs: Option<Needs>,
    /// The job's properties, overridden by those of the context.
    pub properties: Properties,
    pub policy: Arc<Policy>,
    /// Whether the VM's Agent reads its settings from the registry.
    pub mode: Mode,
}

/// Decides what the call may do.
pub fn authorise(loaded: LoadedGuest) -> Result<Authorised, CallError> {
    let LoadedGuest { config, request, call, description, .. } = &loaded;
    let needs = effective_policy::needs(description)?;
    let properties = Properties::merge(config.properties.clone(), request.properties.clone());
    let mut policy = effective_policy::policy(config, &properties, needs.as_ref())?;
    if let Call::CreateVm { env, .. } = call {
        let endpoints = effective_policy::endpoints(agent::endpoints_of_env(env));
        Check::EndpointOfEnv.perform(|| policy.forbid(endpoints));
    }
    let mode = agent::mode(request.api_version, request.stemcell_api_version);
    mode.check(call.method().name(), config.registry.is_some())?;
    Ok(Authorised { needs, properties, policy: Arc::new(policy), mode, loaded })
}
