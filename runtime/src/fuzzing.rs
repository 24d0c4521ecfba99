//! What the fuzzer drives: readers of hostile bytes, which are private otherwise.
//!
//! Exists with the feature `fuzzing` alone. The fuzzer calls the very code that ships.

pub use crate::component::surface::{Surface, inspect};
pub use crate::config::Config;
pub use crate::failure::Who;
pub use crate::image::{Image, Member};
pub use crate::limits::Limits;
pub use crate::log::{Format, GuestLog, Level, Log, escape, escape_text};
pub use crate::net::captures::{Incoming, screen};
pub use crate::net::error::{HttpError, HttpErrorKind};
pub use crate::net::exchange::{Caps, Exchange, Received, SendBody};
pub use crate::net::gate::{Gate, OutboundBody, OutboundRequest};
pub use crate::net::slots::{Outgoing, fill};
pub use crate::net::tls::{TlsSettings, for_scheme};
pub use crate::registry::{RegistryClient, RegistryConfig};
pub use crate::rpc::API_VERSION;
pub use crate::rpc::arguments::Call;
pub use crate::rpc::method::Named;
pub use crate::rpc::request::Request;
pub use crate::rpc::response::{WireError, write};
pub use crate::rpc::shape::{metadata_for_guest, networks_for_caller, networks_for_guest, visible_env};
pub use crate::vault::Vault;

use crate::net::resolve::{addresses, files};
use crate::registry::settings;
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
) -> Result<Map<String, Value>, settings::SettingsRefusal> {
    settings::changed(stored, seen, given)
}

pub fn attach_and_detach(settings: &mut Map<String, Value>, disk: &str, hint: Value) {
    settings::attach(settings, disk, hint);
    settings::detach(settings, disk);
}
