//! The effective policy: what config, policy and the guest's needs grant together. A call gets
//! this, and `check` and `inspect` show it before there is a call.
//!
//! This module reads the operator's files. The crate `wasm-cpi-policy` decides.

mod credentials;
mod presets;

pub use credentials::{check_sendable, credentials};
pub use presets::{Presets, presets_of_guest};

use crate::component::description::Description;
use crate::config::{self, Config};
use crate::failure::{Failure, Problem};
use crate::hardening::Network;
use crate::net::proxy::ProxyConfig;
use crate::registry::RegistryConfig;
use std::path::Path;
use wasm_cpi_policy::{Endpoint, Needs, Policy, Properties};

/// Returns the needs that the guest declares, which were read when it was prepared.
pub fn needs(description: &Description) -> Result<Option<Needs>, Failure> {
    let parse = |text: &String| {
        Needs::parse(text.as_bytes()).map_err(|problems| {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let failure = Failure::config(format!(
                "the needs that {} declares are invalid: {}",
                description.name,
                texts.join("; ")
            ));
            Failure { check: problems.iter().find_map(|problem| problem.check), ..failure }
        })
    };
    description.needs.as_ref().map(parse).transpose()
}

/// Returns the operator's policy with properties filled in and the guest's needs applied.
pub fn policy(config: &Config, properties: &Properties, needs: Option<&Needs>) -> Result<Policy, Failure> {
    let path = &config.policy;
    let text = match &config.inline_policy {
        Some(text) => text.clone(),
        None => config::operator_file::read(path)?.0,
    };
    let file =
        Presets::beside(path, &config.packages).parse(&text).map_err(|problems| combine_problems(path, &problems))?;
    Policy::resolve(&file, properties, needs, &forbidden(config), config.allow_local)
        .map_err(|problems| combine_problems(path, &problems))
}

fn combine_problems(path: &Path, problems: &[wasm_cpi_policy::PolicyProblem]) -> Failure {
    let problems: Vec<Problem> = problems.iter().map(Problem::from).collect();
    config::combine_problems(path, &problems)
}

/// Returns the endpoints of BOSH itself and of proxies, which no grant can allow.
pub fn forbidden(config: &Config) -> Vec<Endpoint> {
    let urls = |registry: &RegistryConfig| {
        let for_agents = registry.agent_endpoint().map(|endpoint| endpoint.reveal().to_owned());
        std::iter::once(registry.endpoint().to_string()).chain(for_agents)
    };
    let registry = config.registry.iter().flat_map(urls).map(|url| ("the registry", url));
    let proxies = config.proxy.iter().flat_map(ProxyConfig::endpoints);
    endpoints(registry.chain(config.agent.endpoints()).chain(proxies))
}

/// Returns the endpoints of these URLs.
pub fn endpoints(urls: impl IntoIterator<Item = (&'static str, String)>) -> Vec<Endpoint> {
    urls.into_iter().filter_map(|(what, url)| Endpoint::from_url(what, &url)).collect()
}

/// Returns the ports that the call may connect to: those of its grants and logins, of proxies,
/// and of the registry.
pub fn network(config: &Config, policy: &Policy) -> Network {
    let registry = config.registry.iter().filter_map(|registry| registry.endpoint().port_or_known_default());
    let mut ports: Vec<u16> = policy.ports().collect();
    if !ports.is_empty() {
        ports.extend(config.proxy.iter().flat_map(ProxyConfig::ports));
    }
    Network::to(ports.into_iter().chain(registry))
}
