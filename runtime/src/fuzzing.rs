//! Exports for the fuzzer: parsers of hostile bytes that are private otherwise.
//!
//! This module exists only with the feature `fuzzing`. The fuzzer calls the code that ships.

pub use crate::component::declarations::{Declarations, inspect};
pub use crate::config::{Config, ConfigFile};
pub use crate::failure::Who;
pub use crate::image::{Image, Member};
pub use crate::limits::{Limits, NamedLimit};
pub use crate::log::{Format, GuestLog, Level, Log, escape, escape_text};
pub use crate::net::connection_pool::ConnectionPool;
pub use crate::net::error::{HttpError, HttpErrorKind};
pub use crate::net::exchange::{Caps, EchoAllowance, Exchange, Received, SendBody, WireRequest};
pub use crate::net::gate::{Gate, GateParts, GuestBody, GuestRequest};
pub use crate::net::response::{ResponseInScreening, seal_and_blank, search};
pub use crate::net::slots::{RequestToFill, fill};
pub use crate::registry::{RegistryClient, RegistryConfig};
pub use crate::rpc::API_VERSION;
pub use crate::rpc::arguments::Call;
pub use crate::rpc::conversion::{metadata_for_guest, networks_for_caller, networks_for_guest, visible_env};
pub use crate::rpc::method::MethodName;
pub use crate::rpc::request::Request;
pub use crate::rpc::response::{WireError, document};
pub use crate::vault::Vault;

use crate::net::resolver::{addresses, files};
use crate::registry::settings;
use domain::base::Message;
use serde_json::{Map, Value};
use std::net::IpAddr;

/// Returns the addresses in a name server's answer, or `None` if the answer is malformed.
pub fn addresses_in(answer: &[u8]) -> Option<Vec<IpAddr>> {
    addresses(&Message::from_octets(bytes::Bytes::copy_from_slice(answer)).ok()?)
}

pub fn in_hosts(text: &str, name: &str) -> Vec<IpAddr> {
    files::addresses_in_hosts(text, name)
}

/// Returns the name servers, the search list and `use-vc` of a `resolv.conf`.
pub fn name_servers(text: &str) -> (Vec<IpAddr>, Vec<String>, bool) {
    let servers = files::Servers::parse(text);
    (servers.addresses, servers.search, servers.tcp_only)
}

/// Returns a registry's settings as a guest sees them.
pub fn sealed_settings(stored: &Map<String, Value>, vault: &Vault) -> Value {
    settings::seal_settings("vm", stored, vault)
}

/// Returns the stored settings with a guest's changes applied.
pub fn changed_settings(
    stored: &Map<String, Value>,
    seen: &Value,
    given: &Value,
) -> Result<Map<String, Value>, settings::SettingsRefusal> {
    settings::apply_change(stored, seen, given)
}

pub fn attach_and_detach(settings: &mut Map<String, Value>, disk: &str, hint: Value) {
    settings::attach(settings, disk, hint);
    settings::detach(settings, disk);
}
