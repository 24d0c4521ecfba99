//! The `cloud_properties` of a VM type. Unknown keys are ignored, as in
//! bosh-openstack-cpi. Known keys with values that cannot work are rejected.

use serde::Deserialize;
use serde_json::{Map, Value};
use wasm_cpi_sdk::{Error, random};

use super::pools::PoolProperties;
use crate::api::Flavor;
use crate::properties::Properties;

#[derive(Debug, Deserialize)]
pub(super) struct VmProperties {
    pub(super) instance_type: String,
    availability_zone: Option<String>,
    availability_zones: Option<Vec<String>>,
    pub(super) key_name: Option<String>,
    security_groups: Option<Vec<String>>,
    boot_from_volume: Option<bool>,
    root_disk: Option<RootDisk>,
    pub(super) scheduler_hints: Option<Map<String, Value>>,
    pub(super) allowed_address_pairs: Option<String>,
    pub(super) vrrp_port_check: Option<bool>,
    loadbalancer_pools: Option<Vec<PoolProperties>>,
}

#[derive(Debug, Deserialize)]
struct RootDisk {
    /// In GiB.
    size: Option<f64>,
}

impl VmProperties {
    pub(super) fn check(&self, properties: &Properties) -> Result<(), Error> {
        if self.availability_zone.is_some() && !self.zones_listed().is_empty() {
            return Err(invalid(
                "availability_zones",
                "cannot be used together with availability_zone; set only one of them",
            ));
        }
        if self.zones_listed().len() > 1 && !properties.ignores_zones() {
            return Err(invalid(
                "availability_zones",
                "several zones need the property ignore_server_availability_zone: true; set it, or list one zone",
            ));
        }
        Ok(())
    }

    fn zones_listed(&self) -> &[String] {
        self.availability_zones.as_deref().unwrap_or_default()
    }

    /// Returns the zones to try in this order. If there are none, the cloud chooses. A list is
    /// shuffled, so that the VMs of one type are distributed over its zones.
    pub(super) fn zones(&self) -> Vec<String> {
        match &self.availability_zone {
            Some(zone) => vec![zone.clone()],
            None => shuffled(self.zones_listed().to_vec()),
        }
    }

    pub(super) fn pools(&self) -> &[PoolProperties] {
        self.loadbalancer_pools.as_deref().unwrap_or_default()
    }

    pub(super) fn security_groups(&self) -> &[String] {
        self.security_groups.as_deref().unwrap_or_default()
    }

    /// Returns the size of the volume to boot from in GiB, or `None` to boot from the
    /// image.
    pub(super) fn boot_volume(&self, properties: &Properties, flavor: &Flavor) -> Result<Option<u64>, Error> {
        if !self.boot_from_volume.unwrap_or(properties.boot_from_volume()) {
            return Ok(None);
        }
        let requested = self.root_disk.as_ref().and_then(|disk| disk.size);
        if requested.is_some_and(|size| size < 1.0) {
            return Err(invalid("root_disk.size", "expected a number of GiB, at least 1"));
        }
        match requested.map(|size| size.ceil() as u64).or((flavor.disk > 0).then_some(flavor.disk)) {
            Some(size) => Ok(Some(size)),
            None => Err(invalid(
                "root_disk.size",
                &format!(
                    "is missing, and flavor `{}` has a root disk of 0 GiB; set it, or use another flavor",
                    flavor.name
                ),
            )),
        }
    }
}

/// Returns the list in a random order (Fisher and Yates).
fn shuffled<T>(mut list: Vec<T>) -> Vec<T> {
    for last in (1..list.len()).rev() {
        let number = random::bytes(8).into_iter().fold(0, |number, byte| number << 8 | u64::from(byte));
        list.swap(last, (number % (last as u64 + 1)) as usize);
    }
    list
}

pub(super) fn invalid(name: &str, what: &str) -> Error {
    Error::cpi(format!("cloud_properties.{name}: {what}"))
}
