//! What config, policy and the module's needs together grant: what a call gets,
//! and what `check` and `inspect` show of it before there is one.
//!
//! Reads the operator's files, and decides nothing: that is `policy`.

use crate::component::description::Description;
use crate::config::{self, Config};
use crate::failure::Failure;
use crate::hardening::Network;
use crate::net::proxy::ProxyConfig;
use crate::policy::{Endpoint, Needs, Policy, PolicyFile, Problem, Properties};
use crate::registry::RegistryConfig;
use std::cell::RefCell;
use std::path::Path;

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

/// The operator's policy with this call's properties filled in.
pub fn policy(config: &Config, properties: &Properties, needs: Option<&Needs>) -> Result<Policy, Failure> {
    let path = &config.policy;
    let several = |problems: Vec<Problem>| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        config::several(path, &problems)
    };
    let text = match &config.inline_policy {
        Some(text) => text.clone(),
        None => config::read(path)?.0,
    };
    let file = policy_file(&text, path, config.packages.as_deref(), &mut Vec::new()).map_err(several)?;
    Policy::resolve(&file, properties, needs, &forbidden(config), config.allow_local).map_err(several)
}

/// The policy that stands in the file at `path`, with the presets that it names.
pub fn policy_file(
    text: &str,
    path: &Path,
    packages: Option<&Path>,
    warnings: &mut Vec<String>,
) -> Result<PolicyFile, Vec<Problem>> {
    let doubts = RefCell::new(Vec::new());
    let file = PolicyFile::parse_with(text, &|package, name| {
        let file = match package {
            None => path.parent().unwrap_or(Path::new("")).join(name),
            Some(package) => config::package_file(packages, package, name)?,
        };
        let (text, warnings) = config::read(&file).map_err(|failure| failure.message)?;
        doubts.borrow_mut().extend(warnings);
        Ok(text)
    });
    warnings.append(&mut doubts.into_inner());
    file
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
