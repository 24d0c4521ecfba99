//! The `cloud_properties` of a VM type. Unknown keys are ignored, as in bosh-aws-cpi. Known keys with values that
//! cannot work are rejected.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use wasm_cpi_sdk::Error;

use crate::properties::Properties;

#[derive(Debug, Deserialize)]
pub(super) struct VmProperties {
    instance_type: Option<String>,
    availability_zone: Option<String>,
    security_groups: Option<Vec<String>>,
    key_name: Option<String>,
    spot_bid_price: Option<Value>,
    spot_ondemand_fallback: Option<bool>,
    elbs: Option<Vec<String>>,
    lb_target_groups: Option<Vec<String>>,
    iam_instance_profile: Option<String>,
    placement_group: Option<String>,
    tenancy: Option<String>,
    auto_assign_public_ip: Option<bool>,
    advertised_routes: Option<Vec<AdvertisedRoute>>,
    raw_instance_storage: Option<bool>,
    source_dest_check: Option<bool>,
    metadata_options: Option<BTreeMap<String, Value>>,
    tags: Option<Map<String, Value>>,
    ephemeral_disk: Option<VmDisk>,
    root_disk: Option<VmDisk>,
}

/// A route to the VM.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct AdvertisedRoute {
    pub(super) table_id: String,
    pub(super) destination: String,
}

/// The root disk or the ephemeral disk.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct VmDisk {
    /// In MiB.
    pub(super) size: Option<u64>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) iops: Option<u64>,
    pub(super) throughput: Option<u64>,
    pub(super) encrypted: Option<bool>,
    pub(super) kms_key_arn: Option<String>,
    /// For the ephemeral disk only.
    pub(super) use_instance_storage: Option<bool>,
    /// For the ephemeral disk only.
    pub(super) use_root_disk: Option<bool>,
}

/// The options of the metadata service that EC2 has, and their names in requests.
const METADATA_OPTIONS: [(&str, &str); 5] = [
    ("http_tokens", "HttpTokens"),
    ("http_put_response_hop_limit", "HttpPutResponseHopLimit"),
    ("http_endpoint", "HttpEndpoint"),
    ("http_protocol_ipv6", "HttpProtocolIpv6"),
    ("instance_metadata_tags", "InstanceMetadataTags"),
];

impl VmProperties {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.instance_type().is_empty() {
            return Err(invalid("instance_type", "is missing; set it to an instance type such as m5.large"));
        }
        if self.zone().is_empty() {
            return Err(invalid("availability_zone", "is missing; set it in the azs of the cloud-config"));
        }
        self.max_price()?;
        match self.tenancy() {
            None | Some("default" | "dedicated" | "host") => {}
            Some(other) => {
                return Err(invalid("tenancy", &format!("`{other}` is not supported; use default, dedicated or host")));
            }
        }
        if self.spot_bid_price.is_some() && self.tenancy() == Some("host") {
            return Err(invalid("tenancy", "`host` cannot be used for spot instances; remove one of the two"));
        }
        let disk = self.ephemeral_disk();
        if disk.use_instance_storage == Some(true) {
            if self.uses_raw_storage() {
                return Err(invalid(
                    "ephemeral_disk.use_instance_storage",
                    "cannot be used together with raw_instance_storage; set only one of them",
                ));
            }
            if disk.size.is_some() || disk.kind.is_some() || disk.iops.is_some() || disk.encrypted == Some(true) {
                return Err(invalid(
                    "ephemeral_disk.use_instance_storage",
                    "cannot be combined with size, type, iops and encrypted, which are for EBS; remove them",
                ));
            }
        }
        Ok(())
    }

    pub(super) fn instance_type(&self) -> &str {
        self.instance_type.as_deref().unwrap_or_default()
    }

    pub(super) fn zone(&self) -> &str {
        self.availability_zone.as_deref().unwrap_or_default()
    }

    pub(super) fn security_groups(&self) -> &[String] {
        self.security_groups.as_deref().unwrap_or_default()
    }

    pub(super) fn key_name<'a>(&'a self, properties: &'a Properties) -> Option<&'a str> {
        self.key_name.as_deref().or(properties.default_key_name())
    }

    pub(super) fn instance_profile<'a>(&'a self, properties: &'a Properties) -> Option<&'a str> {
        self.iam_instance_profile.as_deref().or(properties.default_iam_instance_profile())
    }

    /// Returns the most that a spot instance may cost, or `None` for an instance on demand.
    pub(super) fn max_price(&self) -> Result<Option<String>, Error> {
        match &self.spot_bid_price {
            None => Ok(None),
            Some(Value::Number(price)) => Ok(Some(price.to_string())),
            Some(Value::String(price)) if price.parse::<f64>().is_ok_and(f64::is_finite) => Ok(Some(price.clone())),
            Some(_) => Err(invalid("spot_bid_price", "is not a number; set it to US dollars per hour, such as 0.05")),
        }
    }

    pub(super) fn falls_back_to_demand(&self) -> bool {
        self.spot_ondemand_fallback.unwrap_or(false)
    }

    pub(super) fn elbs(&self) -> &[String] {
        self.elbs.as_deref().unwrap_or_default()
    }

    pub(super) fn target_groups(&self) -> &[String] {
        self.lb_target_groups.as_deref().unwrap_or_default()
    }

    pub(super) fn placement_group(&self) -> Option<&str> {
        self.placement_group.as_deref()
    }

    pub(super) fn tenancy(&self) -> Option<&str> {
        self.tenancy.as_deref()
    }

    pub(super) fn has_public_ip(&self) -> bool {
        self.auto_assign_public_ip.unwrap_or(false)
    }

    pub(super) fn routes(&self) -> &[AdvertisedRoute] {
        self.advertised_routes.as_deref().unwrap_or_default()
    }

    pub(super) fn uses_raw_storage(&self) -> bool {
        self.raw_instance_storage.unwrap_or(false)
    }

    pub(super) fn checks_source_and_destination(&self) -> bool {
        self.source_dest_check.unwrap_or(true)
    }

    pub(super) fn ephemeral_disk(&self) -> VmDisk {
        self.ephemeral_disk.clone().unwrap_or_default()
    }

    pub(super) fn root_disk(&self) -> VmDisk {
        self.root_disk.clone().unwrap_or_default()
    }

    pub(super) fn tags(&self) -> Option<&Map<String, Value>> {
        self.tags.as_ref()
    }

    /// Returns `MetadataOptions`: those of the VM lie over those of the properties, key by key.
    pub(super) fn metadata_options(&self, properties: &Properties) -> Result<Value, Error> {
        let mut merged: BTreeMap<&str, &Value> = BTreeMap::new();
        for options in [properties.metadata_options(), self.metadata_options.as_ref()].into_iter().flatten() {
            merged.extend(options.iter().map(|(key, value)| (key.as_str(), value)));
        }
        let mut wire = Map::new();
        for (key, value) in merged.into_iter().filter(|(_, value)| !value.is_null()) {
            let known = METADATA_OPTIONS.iter().find(|(name, _)| *name == key);
            let (_, name) = known.ok_or_else(|| {
                let names: Vec<&str> = METADATA_OPTIONS.iter().map(|(name, _)| *name).collect();
                invalid(&format!("metadata_options.{key}"), &format!("is not an option; use {}", names.join(", ")))
            })?;
            wire.insert((*name).to_owned(), value.clone());
        }
        Ok(if wire.is_empty() { Value::Null } else { json!(wire) })
    }
}

pub(super) fn invalid(name: &str, what: &str) -> Error {
    Error::cpi(format!("cloud_properties.{name}: {what}"))
}
