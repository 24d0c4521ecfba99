//! The effective policy: what config, policy and the guest's needs grant together. A call gets
//! this, and `check` and `inspect` show it before there is a call.
//!
//! This module reads the operator's files. The crate `wasm-cpi-policy` decides.

mod credentials;
mod presets;

pub use credentials::{check_sendable, credentials, describe_credentials};
pub use presets::{PolicyReader, presets_of_guest};

use crate::component::description::GuestDescription;
use crate::config::{self, Config};
use crate::failure::{Failure, Problem};
use crate::lock_down::Network;
use crate::net::proxy::ProxyConfig;
use crate::registry::RegistryConfig;
use wasm_cpi_policy::{Endpoint, Needs, Policy, PolicyProblem, Properties};

/// Returns the needs that the guest declares, which were read when it was prepared.
pub fn needs(description: &GuestDescription) -> Result<Option<Needs>, Failure> {
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
    let (text, _) = read_policy(config)?;
    resolve(config, &text, properties, needs).map_err(|problems| {
        let problems: Vec<Problem> = problems.iter().map(Problem::from).collect();
        Failure::of_problems(&config.policy_path.display(), &problems)
    })
}

/// Returns the text of the operator's policy, and warnings about its file.
pub fn read_policy(config: &Config) -> Result<(String, Vec<String>), Failure> {
    match &config.policy_text {
        Some(text) => Ok((text.clone(), Vec::new())),
        None => config::operator_file::read(&config.policy_path),
    }
}

/// Parses the text of the operator's policy with its presets, fills in the properties, and applies the
/// guest's needs. Returns all problems.
pub fn resolve(
    config: &Config,
    text: &str,
    properties: &Properties,
    needs: Option<&Needs>,
) -> Result<Policy, Vec<PolicyProblem>> {
    let file = PolicyReader::new(&config.policy_path, &config.packages).parse_policy(text)?;
    Policy::resolve(&file, properties, needs, &forbidden(config), config.allow_local)
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
