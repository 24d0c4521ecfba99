//! The regions that a cpi-config may choose.
//!
//! A policy may take one label of a host, or the region of a signature, from a property. If a
//! cpi-config sets that property, any other label would lead elsewhere: below the domain of a cloud
//! there are not only its regions, but also names that its customers chose. So the operator lists
//! the regions, and only these are accepted. What has a listed region counts as chosen by the
//! operator.

use super::object_reader::ObjectReader;
use crate::secret::Layer;
use wasm_cpi_checks::{Check, RefusedBy};

/// The `regions` of a policy. The default lists none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions(Vec<String>);

/// A cpi-config sets a region that the policy does not list. The message follows the name of the
/// property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cpi-config sets it to a value that the policy's `regions` do not list")]
pub struct UnlistedRegion {
    /// The check that refuses the region.
    pub check: Option<Check>,
}

impl UnlistedRegion {
    /// What the operator should do.
    pub const REMEDY: &'static str =
        "list the value, like \"regions\": [\"eu-west-1\"] at the top of the policy, or correct the cpi-config";
}

impl RefusedBy for UnlistedRegion {
    fn refused_by(self, check: Check) -> UnlistedRegion {
        UnlistedRegion { check: self.check.or(Some(check)) }
    }
}

const MAX_LABEL: usize = 63;

impl Regions {
    pub(super) fn read(reader: &mut ObjectReader<'_>) -> Regions {
        let mut listed: Vec<String> = Vec::new();
        for (at, name) in reader.texts("regions") {
            if !is_region(name) {
                let remedy = "write one label of a DNS name, like `eu-west-1`: lower-case letters, digits and `-`";
                reader.problems().add(at, "is not the name of a region", remedy);
            } else if listed.iter().any(|known| known == name) {
                reader.problems().add(at, format!("names `{name}` again"), "remove it");
            } else {
                listed.push(name.to_owned());
            }
        }
        Regions(listed)
    }

    /// Returns the layer of an origin or a signature that takes its region from a property. `region`
    /// is the value of the property, exactly as it is set, and `layer` says who set it. A region of
    /// the job is accepted as it is. One of the context must be listed, and then has the layer of the
    /// job, which chose it.
    ///
    /// ```
    /// use wasm_cpi_policy::Regions;
    /// use wasm_cpi_policy::secret::Layer;
    ///
    /// let none = Regions::default();
    /// assert_eq!(none.layer_of("eu-west-1", Layer::Job), Ok(Layer::Job));
    /// assert!(none.layer_of("eu-west-1", Layer::Context).is_err());
    /// ```
    pub fn layer_of(&self, region: &str, layer: Layer) -> Result<Layer, UnlistedRegion> {
        if layer == Layer::Job {
            return Ok(Layer::Job);
        }
        let listed = self.0.iter().any(|known| known == region);
        Check::RegionListed.ensure(listed, || UnlistedRegion { check: None })?;
        Ok(Layer::Job)
    }
}

/// Returns true for one label of a DNS name in its canonical form.
fn is_region(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    plain && (1..=MAX_LABEL).contains(&text.len()) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::problem::Problems;

    fn read(regions: serde_json::Value) -> (Regions, Vec<String>) {
        let problems = Problems::default();
        let value = json!({"regions": regions});
        let mut reader = ObjectReader::open(&value, "", &problems).unwrap();
        let read = Regions::read(&mut reader);
        (read, problems.into_vec().into_iter().map(|problem| problem.key).collect())
    }

    #[test]
    fn a_region_of_a_cpi_config_must_be_listed_exactly() {
        let (regions, problems) = read(json!(["eu-west-1", "us-east-2"]));
        assert_eq!(problems, Vec::<String>::new());
        for region in ["eu-west-1", "us-east-2"] {
            assert_eq!(regions.layer_of(region, Layer::Context), Ok(Layer::Job));
        }
        for region in ["s3", "eu-west-1.s3", "EU-WEST-1", "eu-west-1 ", "eu-west-11", "eu-west", "", "*"] {
            let refused = regions.layer_of(region, Layer::Context).unwrap_err();
            assert_eq!(refused.check, Some(Check::RegionListed), "{region}");
            assert_eq!(regions.layer_of(region, Layer::Job), Ok(Layer::Job), "{region}");
        }
    }

    #[test]
    fn only_single_labels_are_listed() {
        for region in ["", "*", "a.b", "EU", "-a", "a-", "a b", "ä", "a_b", "${region}"] {
            assert_eq!(read(json!([region])), (Regions::default(), vec!["regions[0]".to_owned()]), "{region}");
        }
        assert_eq!(read(json!(["a", "a"])).1, ["regions[1]"]);
        assert_eq!(read(json!("eu-west-1")).1, ["regions"]);
        assert_eq!(read(json!([["a"]])).1, ["regions[0]"]);
    }
}
