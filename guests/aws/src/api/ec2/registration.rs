//! Creates and removes images.

use serde_json::Value;
use wasm_cpi_sdk::xml::{Element, XmlError};

use super::{Ec2, nothing, operation};
use crate::api::Query;

fn image_id(answer: &Element) -> Result<String, XmlError> {
    answer.required_text("imageId").map(str::to_owned)
}

impl Ec2 {
    /// Registers an image and returns its ID. EC2 refuses a second image with the same name.
    pub(crate) fn register_image(&self, parameters: &Value) -> Query<String> {
        self.repeatable(operation("RegisterImage").set_all(parameters), image_id)
            .creates("registered image", Clone::clone)
    }

    /// Copies an image and returns the ID of the copy. The parameters have a `ClientToken`.
    pub(crate) fn copy_image(&self, parameters: &Value) -> Query<String> {
        self.repeatable(operation("CopyImage").set_all(parameters), image_id)
            .creates("copied the image to", Clone::clone)
    }

    /// Returns the IDs of this account's images with this name.
    pub(crate) fn images_named(&self, name: &str) -> Query<Vec<String>> {
        let operation = operation("DescribeImages").set("Owner", ["self"]).filter("name", [name]);
        self.repeatable(operation, |answer| answer.items("imagesSet/item").into_iter().map(image_id).collect())
    }

    pub(crate) fn deregister_image(&self, id: &str) -> Query<()> {
        self.repeatable(operation("DeregisterImage").set("ImageId", id), nothing)
            .changes(format!("deregistered image {id}"))
    }
}
