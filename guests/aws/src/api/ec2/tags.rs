//! Tags of resources.

use wasm_cpi_sdk::xml::Element;

use super::{Ec2, nothing, operation};
use crate::api::Query;
use crate::tags::Tags;

impl Ec2 {
    /// Sets tags of several resources. What was just created may not be known everywhere: that is waited out.
    pub(crate) fn create_tags(&self, resources: &[&str], tags: &Tags) -> Query<()> {
        let operation = operation("CreateTags").set("ResourceId", resources).set("Tag", tags.list());
        let passing = &[
            "InvalidInstanceID.NotFound",
            "InvalidVolume.NotFound",
            "InvalidSnapshot.NotFound",
            "InvalidAMIID.NotFound",
        ];
        self.repeatable(operation, nothing).passing(passing).changes(format!("tagged {}", resources.join(", ")))
    }
}

/// Returns the tags of a resource.
pub(super) fn read(element: &Element) -> Tags {
    let pair = |item: &Element| {
        let text = |name| item.text(name).unwrap_or_default().to_owned();
        (text("key"), text("value"))
    };
    element.items("tagSet/item").into_iter().map(pair).collect()
}
