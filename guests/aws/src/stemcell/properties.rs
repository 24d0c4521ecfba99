//! `cloud_properties` of a stemcell's manifest, below the operator's property `stemcell`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use wasm_cpi_sdk::{Error, Json, Metadata};

use crate::encryption::Encryption;
use crate::session::Session;
use crate::tags::Tags;

const DEFAULT_DISK_MIB: u64 = 2048;
const DEFAULT_ARCHITECTURE: &str = "x86_64";
const DEFAULT_BOOT_MODE: &str = "legacy-bios";
const DEFAULT_VIRTUALIZATION: &str = "hvm";

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct StemcellProperties {
    ami: Option<BTreeMap<String, String>>,
    name: Option<String>,
    version: Option<Value>,
    disk: Option<u64>,
    architecture: Option<String>,
    virtualization_type: Option<String>,
    boot_mode: Option<String>,
    encrypted: Option<bool>,
    kms_key_arn: Option<String>,
    tags: Option<Map<String, Value>>,
}

impl StemcellProperties {
    /// Reads the properties. As with bosh-aws-cpi, those of the operator come before those of the manifest.
    pub(super) fn read(session: &Session, cloud_properties: &Json) -> Result<Self, Error> {
        let mut merged: Map<String, Value> = cloud_properties.parse()?;
        for (key, value) in session.properties.stemcell().into_iter().flatten() {
            merged.insert(key.clone(), value.clone());
        }
        Json::named("cloud_properties", Value::Object(merged).to_string()).parse()
    }

    pub(super) fn is_light(&self) -> bool {
        self.ami.as_ref().is_some_and(|images| !images.is_empty())
    }

    /// Returns the ID of the image in the region.
    pub(super) fn image_in(&self, region: &str) -> Result<&str, Error> {
        let images = || self.ami.iter().flatten();
        images().find(|(name, _)| *name == region).map(|(_, id)| id.as_str()).ok_or_else(|| {
            let regions: Vec<&str> = images().map(|(name, _)| name.as_str()).collect();
            Error::cloud(format!(
                "the light stemcell has no image in region {region}, but in: {}; use a heavy stemcell, which this CPI uploads \
                 from any machine",
                regions.join(", ")
            ))
        })
    }

    pub(super) fn encryption(&self, session: &Session) -> Result<Encryption, Error> {
        Encryption::of(self.encrypted, self.kms_key_arn.as_deref(), &session.properties)
    }

    /// Returns the tags of the manifest, and those of the call.
    pub(super) fn tags(&self, metadata: &Metadata) -> Tags {
        let mut tags = Tags::default();
        self.tags.iter().for_each(|own| tags.extend(own));
        metadata.iter().for_each(|(key, value)| tags.insert(key, value));
        tags
    }

    /// Returns the name and the version, which become the image's description and its tag `Name`.
    pub(super) fn description(&self) -> Option<String> {
        let version = self.version.as_ref().map(|version| match version {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        Some(format!("{} {}", self.name.as_deref()?, version?))
    }

    pub(super) fn disk_mib(&self) -> u64 {
        self.disk.unwrap_or(DEFAULT_DISK_MIB)
    }

    pub(super) fn architecture(&self) -> &str {
        self.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE)
    }

    pub(super) fn boot_mode(&self) -> &str {
        self.boot_mode.as_deref().unwrap_or(DEFAULT_BOOT_MODE)
    }

    /// Returns the kind of virtualization, which must be the one of all current instance types.
    pub(super) fn virtualization(&self) -> Result<&str, Error> {
        match self.virtualization_type.as_deref().unwrap_or(DEFAULT_VIRTUALIZATION) {
            DEFAULT_VIRTUALIZATION => Ok(DEFAULT_VIRTUALIZATION),
            other => Err(Error::cpi(format!(
                "cloud_properties.virtualization_type: `{other}` is not supported, because no current instance type starts such \
                 images; use a stemcell with `{DEFAULT_VIRTUALIZATION}`"
            ))),
        }
    }
}
