//! The stemcell image of this `create_stemcell`. To send it, use
//! [`crate::http::Request::image`]: the host streams it from its disk.
//!
//! ```
//! use wasm_cpi_sdk::{fake::Fake, image};
//!
//! let _host = Fake::new().image_member("root.img", "the disk").install();
//! let members = image::members().unwrap();
//! assert_eq!((members[0].name.as_str(), members[0].size), ("root.img", 8));
//! assert_eq!(image::read_member("root.img", 3).unwrap(), b"the");
//! ```

use crate::bindings::bosh::cpi::image as wire;
use crate::{Error, host};

pub use crate::bindings::bosh::cpi::http::ImagePart;
pub use crate::bindings::bosh::cpi::image::Member;

/// Returns the size of the image file in bytes.
pub fn size() -> Result<u64, Error> {
    host::current().image_size().map_err(failed)
}

/// Returns the SHA-256 of the image file in lower-case hex.
pub fn sha256() -> Result<String, Error> {
    host::current().image_sha256().map_err(failed)
}

/// Returns `length` bytes from `offset` on, at most 1 MiB; fewer at the end of
/// the file.
pub fn read(offset: u64, length: u32) -> Result<Vec<u8>, Error> {
    host::current().image_read(offset, length).map_err(failed)
}

/// Returns the regular files of a tar or tar.gz image, in the order of the
/// archive.
pub fn members() -> Result<Vec<Member>, Error> {
    host::current().image_members().map_err(failed)
}

/// Returns the first `length` bytes of a member, at most 1 MiB; fewer if it is
/// shorter.
pub fn read_member(name: &str, length: u32) -> Result<Vec<u8>, Error> {
    host::current().image_read_member(name, length).map_err(failed)
}

fn failed(error: wire::Error) -> Error {
    match error {
        wire::Error::Denied(message) | wire::Error::Invalid(message) => Error::cpi(message),
        wire::Error::Io(message) => Error::cloud(message),
        wire::Error::Cancelled(why) => crate::clock::Cancelled(why).into(),
    }
    .context("reading the stemcell image")
}
