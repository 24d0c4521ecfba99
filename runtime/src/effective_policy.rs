//! What config, policy and the module's needs together grant: what a call gets,
//! and what `check` and `inspect` show of it before there is one.
//!
//! Reads the operator's files, and decides nothing: that is `policy`.

mod presets;

pub use presets::Presets;

use crate::component::description::Description;
use crate::config::{self, Config};
use crate::failure::Failure;
use crate::hardening::Network;
use crate::net::proxy::ProxyConfig;
use crate::registry::RegistryConfig;
use std::path::Path;
use wasm_cpi_policy::{Endpoint, Needs, Policy, Problem, Properties};

/// What the guest declares, as it was read when it was prepared.
pub fn needs(description: &Description) -> Result<Option<Needs>, Failure> {
    let parse = |text: &String| {
        Needs::parse(text.as_bytes()).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Failure::config(format!(
                "the needs that {} declares are not right: {}",
                description.name,
                problems.join("; ")
            ))
        })
    };
    description.needs.as_ref().map(parse).transpose()
}

/// Returns the operator's policy with properties filled in and the module's needs applied.
pub fn policy(config: &Config, properties: &Properties, needs: Option<&Needs>) -> Result<Policy, Failure> {
    let path = &config.policy;
    let text = match &config.inline_policy {
        Some(text) => text.clone(),
        None => config::read(path)?.0,
    };
    let file = Presets::beside(path, &config.packages).parse(&text).map_err(|problems| several(path, &problems))?;
    Policy::resolve(&file, properties, needs, &forbidden(config), config.allow_local)
        .map_err(|problems| several(path, &problems))
}

fn several(path: &Path, problems: &[Problem]) -> Failure {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    config::several(path, &problems)
}

/// Endpoints of BOSH itself, which no grant can open.
pub fn forbidden(config: &Config) -> Vec<Endpoint> {
    let urls = |registry: &RegistryConfig| {
        let for_agents = registry.agent_endpoint().map(|endpoint| endpoint.reveal().to_owned());
        std::iter::once(registry.endpoint().to_string()).chain(for_agents)
    };
    let registry = config.registry.iter().flat_map(urls).map(|url| ("the registry", url));
    let proxies = config.proxy.iter().flat_map(ProxyConfig::endpoints);
    endpoints(registry.chain(config.agent.endpoints()).chain(proxies))
}

pub fn endpoints(urls: impl IntoIterator<Item = (&'static str, String)>) -> Vec<Endpoint> {
    urls.into_iter().filter_map(|(what, url)| Endpoint::from_url(what, &url)).collect()
}

/// What the call can reach: its grants and logins, by a proxy where there is one,
/// and the registry.
pub fn network(config: &Config, policy: &Policy) -> Network {
    let registry = config.registry.iter().filter_map(|registry| registry.endpoint().port_or_known_default());
    let mut ports: Vec<u16> = policy.ports().collect();
    if !ports.is_empty() {
        ports.extend(config.proxy.iter().flat_map(ProxyConfig::ports));
    }
    Network::to(ports.into_iter().chain(registry))
}
