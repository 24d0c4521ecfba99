//! Readers of hostile bytes that are private to their modules, for the fuzzer.
//!
//! Exists with the feature `fuzzing` alone. Nothing but doors: what is behind
//! them is the very code that ships.

use crate::net::resolve::{addresses, files};
use crate::registry::settings;
use crate::vault::Vault;
use domain::base::Message;
use serde_json::{Map, Value};
use std::net::IpAddr;

/// The addresses in a name server's answer; `None` if it makes no sense.
pub fn addresses_in(answer: &[u8]) -> Option<Vec<IpAddr>> {
    addresses(&Message::from_octets(bytes::Bytes::copy_from_slice(answer)).ok()?)
}

pub fn in_hosts(text: &str, name: &str) -> Vec<IpAddr> {
    files::in_hosts(text, name)
}

/// Name servers, search list and `use-vc` of a `resolv.conf`.
pub fn name_servers(text: &str) -> (Vec<IpAddr>, Vec<String>, bool) {
    let servers = files::Servers::parse(text);
    (servers.addresses, servers.search, servers.tcp_only)
}

/// A registry's settings as a guest sees them.
pub fn sealed_settings(stored: &Map<String, Value>, vault: &Vault) -> Value {
    settings::sealed(stored, vault)
}

/// What a guest's settings make of those that are stored.
pub fn changed_settings(
    stored: &Map<String, Value>,
    seen: &Value,
    given: &Value,
) -> Result<Map<String, Value>, String> {
    settings::changed(stored, seen, given)
}

pub fn attach_and_detach(settings: &mut Map<String, Value>, disk: &str, hint: Value) {
    settings::attach(settings, disk, hint);
    settings::detach(settings, disk);
}
