//! The stemcell's image.

use crate::explanation::{Entry, refusal};

pub(crate) const ImageDirs: Entry = refusal(
    "image-dirs",
    "The stemcell's image is outside of the directories that the config allows, or was moved during the call.",
    "The operator moves the image there, or adds its directory to `image_dirs`, and tries again.",
);
pub(crate) const ImageLink: Entry = refusal(
    "image-link",
    "The stemcell's image is a symbolic link, which could lead to any file of this machine.",
    "The caller passes the path of the file itself.",
);
pub(crate) const ImageRegular: Entry = refusal(
    "image-regular",
    "The stemcell's image is not a regular file.",
    "The caller copies the image into a regular file.",
);
pub(crate) const ImageKernel: Entry = refusal(
    "image-kernel",
    "The stemcell's image is a file of the kernel, such as one in /proc, which can show secrets of this machine.",
    "The caller copies the image onto a disk.",
);
pub(crate) const ImageRange: Entry = refusal(
    "image-range",
    "The guest reads beyond the end of the image.",
    "The guest's author asks for the size of the image first.",
);
pub(crate) const ImageReadSize: Entry = refusal(
    "image-read-size",
    "The guest reads more than one mebibyte of the image at once.",
    "The guest's author reads the image in smaller pieces.",
);
pub(crate) const ImageUnchanged: Entry = refusal(
    "image-unchanged",
    "The stemcell's image was changed while it was read, so what was sent is a mixture of two files.",
    "The caller leaves the image as it is until the call ends, and tries again.",
);
pub(crate) const ImageMethod: Entry = refusal(
    "image-method",
    "The image is the body of a GET, HEAD, OPTIONS or DELETE, whose bodies servers leave unread.",
    "The guest's author sends images with POST, PUT or PATCH.",
);
pub(crate) const ImageType: Entry = refusal(
    "image-type",
    "The Content-Type of an image is that of a form or of JSON, so a server would find parameters in the image.",
    "The guest's author sends `application/octet-stream`, or the image as one of the parts of a multipart form.",
);
pub(crate) const ArchiveBounds: Entry = refusal(
    "archive-bounds",
    "The archive in the image has too many members, or names or headers that are too long.",
    "The operator uploads a stemcell whose archive has a usual size.",
);
