//! Third step: determines what this call may do, from the operator's policy and the guest's needs.

use crate::agent::{self, Mode};
use crate::call::leak::leak_refusal;
use crate::call::load::LoadedGuest;
use crate::call::{CallError, Record};
use crate::config::Config;
use crate::effective_policy;
use crate::failure::{Failure, Who};
use crate::leak_latch::{LeakLatch, OnLeak};
use crate::log::Level;
use crate::rpc::arguments::Call;
use crate::rpc::request::Request;
use std::sync::Arc;
use wasm_cpi_checks::{Check, RefusedBy};
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
    /// Remembers a leak for later calls; absent if the config or the disk does not allow it.
    pub latch: Option<Arc<LeakLatch>>,
}

/// Decides what the call may do.
pub fn authorise(loaded: LoadedGuest, record: &Record) -> Result<Authorised, CallError> {
    let LoadedGuest { config, request, call, description, .. } = &loaded;
    let latch = leak_latch(config, request, record)?;
    let needs = effective_policy::needs(description)?;
    let properties = Properties::merge(config.properties.clone(), request.properties.clone());
    let mut policy = effective_policy::policy(config, &properties, needs.as_ref())?;
    if let Call::CreateVm { env, .. } = call {
        let endpoints = effective_policy::endpoints(agent::endpoints_of_env(env));
        Check::EndpointOfEnv.perform(|| policy.forbid(endpoints));
    }
    let mode = agent::mode(request.api_version, request.stemcell_api_version);
    mode.check(call.method().name(), config.registry.is_some())?;
    Ok(Authorised { needs, properties, policy: Arc::new(policy), mode, latch, loaded })
}

/// Opens the file that remembers leaks. Rejects the call if an earlier one of this guest leaked.
fn leak_latch(config: &Config, request: &Request, record: &Record) -> Result<Option<Arc<LeakLatch>>, Failure> {
    if config.on_leak == OnLeak::End {
        return Ok(None);
    }
    let latch = match LeakLatch::open(&config.cache, &config.guest_of_job()) {
        Ok(latch) => latch.for_call(&request.method, request.request_id.as_deref()),
        Err(error) if error.is_untrusted() => {
            let remedy =
                "correct its owner and mode; it remembers leaks, so look at the audit log before you delete it";
            return Err(Failure::config(format!("{error}; {remedy}")).refused_by(Check::LatchTrust));
        }
        Err(error) => {
            let what = "a leak would not be remembered for later calls";
            let remedy = "make the cache directory writable for this user alone";
            record.log.write(Level::Warn, &format!("{what}: {error}; {remedy}"));
            return Ok(None);
        }
    };
    Check::LeakLatched.reject(latch.recorded(), |leak| Failure::new(Who::Policy, leak_refusal(leak, config)))?;
    Ok(Some(Arc::new(latch)))
}
