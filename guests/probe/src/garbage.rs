//! Results that the types allow but the contract does not. Each kind has a form as
//! plain text (cloud IDs, hints, messages) and one as a JSON document (cloud
//! properties).

use serde::Deserialize;
use wasm_cpi_sdk::{CreatedVm, DiskHint, Json, Network};

use crate::memory::invalid_utf8;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    BadJson,
    DeepJson,
    DuplicateKeys,
    NotAnObject,
    Huge,
    Empty,
    EmptyFields,
    Nul,
    InvalidUtf8,
    NoNetworks,
    ForeignNetwork,
    DuplicateNetwork,
    ShadowedNetwork,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Garbage {
    kind: Kind,
    /// The size of `huge`.
    #[serde(default = "default_mib")]
    mib: usize,
    /// The depth of `deep-json`.
    #[serde(default = "default_depth")]
    depth: usize,
    /// True to put the garbage into the message of an error.
    #[serde(default)]
    pub(crate) in_error: bool,
}

fn default_mib() -> usize {
    2
}

fn default_depth() -> usize {
    10_000
}

impl Garbage {
    pub(crate) fn text(&self) -> String {
        match self.kind {
            Kind::Empty | Kind::EmptyFields => String::new(),
            Kind::Nul => "vm-\0\u{1b}[31m\r\n\u{202e}\u{feff}1".to_owned(),
            Kind::Huge => "x".repeat(self.mib * 1024 * 1024),
            Kind::InvalidUtf8 => invalid_utf8(),
            _ => self.json(),
        }
    }

    pub(crate) fn json(&self) -> String {
        match self.kind {
            Kind::BadJson => r#"{"a":"#.to_owned(),
            Kind::DeepJson => format!(r#"{{"a":{}{}}}"#, "[".repeat(self.depth), "]".repeat(self.depth)),
            Kind::DuplicateKeys => r#"{"a":1,"a":2}"#.to_owned(),
            Kind::NotAnObject => "[1]".to_owned(),
            Kind::Huge => format!(r#"{{"a":"{}"}}"#, self.text()),
            Kind::Empty | Kind::EmptyFields => String::new(),
            Kind::Nul => "{\"a\":\"\0\"}".to_owned(),
            Kind::InvalidUtf8 => invalid_utf8(),
            Kind::NoNetworks | Kind::ForeignNetwork | Kind::DuplicateNetwork | Kind::ShadowedNetwork => {
                r#"{"ip":"192.0.2.66","type":"dynamic","netmask":7,"cloud_properties":[]}"#.to_owned()
            }
        }
    }

    pub(crate) fn hint(&self) -> DiskHint {
        let field = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        match self.kind {
            Kind::EmptyFields => DiskHint::Fields(vec![]),
            Kind::DuplicateKeys => DiskHint::Fields(vec![field("path", "/dev/sda"), field("path", "/dev/sdb")]),
            Kind::NotAnObject => DiskHint::Fields(vec![field("", ""), field("no_such_key", "x")]),
            _ => DiskHint::Text(self.text()),
        }
    }

    pub(crate) fn vm(&self, mut networks: Vec<Network>) -> CreatedVm {
        let mut vm = "vm-garbage".to_owned();
        match self.kind {
            Kind::NoNetworks => networks.clear(),
            Kind::ForeignNetwork => networks.iter_mut().for_each(|network| network.name.push_str("-foreign")),
            Kind::DuplicateNetwork => networks.extend(networks.clone()),
            Kind::ShadowedNetwork => networks.iter_mut().for_each(|network| network.extra = Json::raw(self.json())),
            Kind::BadJson | Kind::DeepJson | Kind::DuplicateKeys | Kind::NotAnObject => {
                for network in &mut networks {
                    network.cloud_properties = Json::raw(self.json());
                    network.extra = Json::raw(self.json());
                }
            }
            Kind::Huge | Kind::Empty | Kind::EmptyFields | Kind::Nul | Kind::InvalidUtf8 => vm = self.text(),
        }
        CreatedVm { vm, networks }
    }
}
