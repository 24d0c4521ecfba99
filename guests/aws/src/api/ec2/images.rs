//! Images.

use wasm_cpi_sdk::xml::{Element, XmlError};

use super::{Ec2, operation, text_or_empty};
use crate::api::Query;

/// An image, and its block devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) root_device: Option<String>,
    pub(crate) devices: Vec<ImageDevice>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageDevice {
    pub(crate) name: String,
    pub(crate) snapshot: Option<String>,
    /// The size of its volume in GiB.
    pub(crate) size_gib: Option<u64>,
}

impl Image {
    fn read(item: &Element) -> Result<Self, XmlError> {
        let device = |item: &Element| {
            Ok(ImageDevice {
                name: item.required_text("deviceName")?.to_owned(),
                snapshot: item.text("ebs/snapshotId").map(str::to_owned),
                size_gib: item.parsed("ebs/volumeSize")?,
            })
        };
        Ok(Self {
            id: item.required_text("imageId")?.to_owned(),
            state: text_or_empty(item, "imageState"),
            root_device: item.text("rootDeviceName").map(str::to_owned),
            devices: item.items("blockDeviceMapping/item").into_iter().map(device).collect::<Result<_, XmlError>>()?,
        })
    }
}

impl Ec2 {
    /// Returns the image with this ID, or nothing. Unlike a request with the ID itself, a filter finds deprecated
    /// images and does not fail for one that does not exist.
    pub(crate) fn image(&self, id: &str) -> Query<Vec<Image>> {
        let operation = operation("DescribeImages").filter("image-id", [id]).set("IncludeDeprecated", true);
        self.repeatable(operation, |answer| answer.items("imagesSet/item").into_iter().map(Image::read).collect())
    }
}
