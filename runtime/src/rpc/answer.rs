//! A guest's answer: checks it, and converts it to the form of the caller's API version. Also the answer to `info`.

use crate::bindings::bosh::cpi::types::DiskHint;
use crate::bindings::exports::bosh::cpi::networks::CreatedNetwork;
use crate::bindings::exports::bosh::cpi::vms::CreatedVm;
use crate::failure::Failure;
use crate::log::escape;
use crate::rpc::arguments::Object;
use crate::rpc::conversion;
use serde_json::{Value, json};

/// A guest's answer, in the form of the newest API version.
#[derive(Debug, PartialEq)]
pub enum Answer {
    Nothing,
    Flag(bool),
    Cid(String),
    Cids(Vec<String>),
    CloudProperties(Object),
    /// The answer of `create_vm`.
    Vm {
        cid: String,
        networks: Value,
    },
    /// The answer of `attach_disk`.
    DiskHint(Value),
    /// The answer of `create_network`.
    Network {
        cid: String,
        addresses: Value,
        cloud_properties: Object,
    },
}

impl Answer {
    pub fn cid(cid: String) -> Result<Answer, Failure> {
        conversion::cid_from_guest(cid).map(Answer::Cid)
    }

    pub fn cids(cids: Vec<String>) -> Result<Answer, Failure> {
        cids.into_iter().map(conversion::cid_from_guest).collect::<Result<_, _>>().map(Answer::Cids)
    }

    pub fn cloud_properties(text: &str) -> Result<Answer, Failure> {
        conversion::object_from_guest(text, "cloud_properties").map(Answer::CloudProperties)
    }

    pub fn created_vm(created: CreatedVm) -> Result<Answer, Failure> {
        let cid = conversion::cid_from_guest(created.vm)?;
        let networks = conversion::networks_for_caller(created.networks).map_err(|failure| with_cid(failure, &cid))?;
        Ok(Answer::Vm { cid, networks })
    }

    pub fn disk_hint(hint: DiskHint) -> Result<Answer, Failure> {
        conversion::hint_for_caller(hint).map(Answer::DiskHint)
    }

    pub fn created_network(created: CreatedNetwork) -> Result<Answer, Failure> {
        let cid = conversion::cid_from_guest(created.network)?;
        let addresses = json!({"range": created.range, "gateway": created.gateway, "reserved": created.reserved});
        let cloud_properties = conversion::object_from_guest(&created.cloud_properties, "cloud_properties")?;
        Ok(Answer::Network { cid, addresses, cloud_properties })
    }

    /// Returns the cloud ID of what was created, if the answer names one.
    pub fn created(&self) -> Option<&str> {
        match self {
            Answer::Cid(cid) | Answer::Vm { cid, .. } | Answer::Network { cid, .. } => Some(cid),
            _ => None,
        }
    }

    /// Returns the result for a caller of this API version.
    pub fn for_caller(self, api_version: u32) -> Value {
        match self {
            Answer::Nothing => Value::Null,
            Answer::Flag(flag) => flag.into(),
            Answer::Cid(cid) => cid.into(),
            Answer::Cids(cids) => cids.into(),
            Answer::CloudProperties(properties) => properties.into(),
            Answer::Vm { cid, .. } if api_version < 2 => cid.into(),
            Answer::Vm { cid, networks } => json!([cid, networks]),
            Answer::DiskHint(_) if api_version < 2 => Value::Null,
            Answer::DiskHint(hint) => hint,
            Answer::Network { cid, addresses, cloud_properties } => json!([cid, addresses, cloud_properties]),
        }
    }
}

/// Returns the result of `info`, which the runtime answers itself.
pub fn info(api_version: u32, stemcell_formats: &[String]) -> Value {
    json!({"api_version": api_version, "stemcell_formats": stemcell_formats})
}

/// Adds the cloud ID to a failure, so that an operator can find what was created.
pub fn with_cid(failure: Failure, cid: &str) -> Failure {
    Failure {
        message: format!("{}; the guest returned the cloud ID `{}`", failure.message, escape(cid, 255)),
        ..failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_of_version_1_gets_no_networks_and_no_disk_hint() {
        let vm = || Answer::Vm { cid: "vm-1".into(), networks: json!({"n": {}}) };
        assert_eq!((vm().for_caller(1), vm().for_caller(2)), (json!("vm-1"), json!(["vm-1", {"n": {}}])));
        let hint = || Answer::DiskHint(json!("/dev/sdb"));
        assert_eq!((hint().for_caller(1), hint().for_caller(3)), (Value::Null, json!("/dev/sdb")));
    }

    #[test]
    fn an_answer_names_the_cloud_id_of_what_was_created() {
        assert_eq!(Answer::Vm { cid: "vm-1".into(), networks: Value::Null }.created(), Some("vm-1"));
        assert_eq!(Answer::Cids(vec!["disk-1".into()]).created(), None);
    }
}
