//! `cloud_properties` of a disk type.

use serde::Deserialize;
use serde_json::{Map, Value};
use wasm_cpi_sdk::Error;

use crate::encryption::Encryption;
use crate::session::Session;
use crate::tags::Tags;

const DEFAULT_TYPE: &str = "gp3";

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct DiskProperties {
    #[serde(rename = "type")]
    kind: Option<String>,
    pub(super) iops: Option<u64>,
    pub(super) throughput: Option<u64>,
    pub(super) encrypted: Option<bool>,
    pub(super) kms_key_arn: Option<String>,
    tags: Option<Map<String, Value>>,
}

impl DiskProperties {
    /// Returns the type of the volume.
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().filter(|kind| !kind.is_empty()).unwrap_or(DEFAULT_TYPE)
    }

    pub(super) fn encryption(&self, session: &Session) -> Result<Encryption, Error> {
        Encryption::of(self.encrypted, self.kms_key_arn.as_deref(), &session.properties)
    }

    pub(super) fn tags(&self) -> Tags {
        let mut tags = Tags::default();
        self.tags.iter().for_each(|own| tags.extend(own));
        tags
    }
}
