//! The error of every CPI method.
//!
//! The kind decides what the Director does next: skip, retry or fail. The
//! message is for people: what failed, on which object, and what to do. It must
//! never hold a secret.

use std::fmt;

use crate::bindings::bosh::cpi::types as wire;

pub use crate::bindings::bosh::cpi::types::{ErrorKind, RetryAdvice};

const DO_NOT_RETRY: RetryAdvice = RetryAdvice { ok_to_retry: false };

/// The error of a CPI method.
///
/// ```
/// use wasm_cpi_sdk::{Error, ErrorKind, RetryAdvice};
///
/// let error = Error::vm_creation_failed("the zone has no capacity").ok_to_retry(true);
/// assert_eq!(error.kind, ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: true }));
/// let error = Error::cloud("quota exceeded").context("creating disk `data`");
/// assert_eq!(error.to_string(), "creating disk `data`: quota exceeded");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The reason, as BOSH clients know it.
    pub kind: ErrorKind,
    /// The message for people.
    pub message: String,
}

impl Error {
    /// Creates an error of any kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Returns the error of a method that this CPI does not have.
    pub fn not_implemented(method: &str) -> Self {
        Self::new(ErrorKind::NotImplemented, format!("this CPI does not implement {method}"))
    }

    /// Returns the error of a method that cannot do what these arguments ask for.
    /// After `resize_disk` and `update_disk` the Director copies the disk
    /// instead.
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotSupported, message)
    }

    /// Returns the error for a VM that does not exist.
    pub fn vm_not_found(vm: &str) -> Self {
        Self::new(ErrorKind::VmNotFound, format!("VM `{vm}` was not found in the cloud"))
    }

    /// Returns the error for a VM that could not be created. Add [`Error::ok_to_retry`] if the same
    /// `create_vm` can succeed later.
    pub fn vm_creation_failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::VmCreationFailed(DO_NOT_RETRY), message)
    }

    /// Returns the error for a disk that does not exist.
    pub fn disk_not_found(disk: &str) -> Self {
        Self::new(ErrorKind::DiskNotFound(DO_NOT_RETRY), format!("disk `{disk}` was not found in the cloud"))
    }

    /// Returns the error for a disk that exists, but is not attached to the VM.
    pub fn disk_not_attached(disk: &str, vm: &str) -> Self {
        Self::new(ErrorKind::DiskNotAttached(DO_NOT_RETRY), format!("disk `{disk}` is not attached to VM `{vm}`"))
    }

    /// Returns the error for a disk for which the cloud has no space left.
    pub fn no_disk_space(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NoDiskSpace(DO_NOT_RETRY), message)
    }

    /// Returns the error for a network that does not exist.
    pub fn network_not_found(network: &str) -> Self {
        Self::new(ErrorKind::NetworkNotFound, format!("network `{network}` was not found in the cloud"))
    }

    /// Returns the error for a stemcell that does not exist. Only
    /// `delete_stemcell` returns it.
    pub fn stemcell_not_found(stemcell: &str) -> Self {
        Self::new(ErrorKind::StemcellNotFound, format!("stemcell `{stemcell}` was not found in the cloud"))
    }

    /// Returns the error for a request that the cloud refused, or that failed.
    pub fn cloud(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cloud, message)
    }

    /// Returns the error for a wrong call: for example, `cloud_properties` lack a
    /// key.
    pub fn cpi(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cpi, message)
    }

    /// Sets whether the caller may repeat the call. It has no effect on kinds
    /// that carry no [`RetryAdvice`].
    #[must_use]
    pub fn ok_to_retry(mut self, ok_to_retry: bool) -> Self {
        match &mut self.kind {
            ErrorKind::VmCreationFailed(advice)
            | ErrorKind::DiskNotFound(advice)
            | ErrorKind::DiskNotAttached(advice)
            | ErrorKind::NoDiskSpace(advice) => advice.ok_to_retry = ok_to_retry,
            _ => {}
        }
        self
    }

    /// Puts what was being done in front of the message.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for wire::Error {
    fn from(error: Error) -> Self {
        Self { kind: error.kind, message: error.message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: RetryAdvice = RetryAdvice { ok_to_retry: true };

    #[test]
    fn constructors_name_the_missing_object() {
        for (error, kind, part) in [
            (Error::vm_not_found("vm-1"), ErrorKind::VmNotFound, "vm-1"),
            (Error::disk_not_found("disk-1"), ErrorKind::DiskNotFound(DO_NOT_RETRY), "disk-1"),
            (Error::disk_not_attached("disk-1", "vm-1"), ErrorKind::DiskNotAttached(DO_NOT_RETRY), "vm-1"),
            (Error::network_not_found("net-1"), ErrorKind::NetworkNotFound, "net-1"),
            (Error::stemcell_not_found("sc-1"), ErrorKind::StemcellNotFound, "sc-1"),
            (Error::not_implemented("get_disks"), ErrorKind::NotImplemented, "get_disks"),
            (Error::not_supported("shrinking"), ErrorKind::NotSupported, "shrinking"),
            (Error::no_disk_space("pool full"), ErrorKind::NoDiskSpace(DO_NOT_RETRY), "pool full"),
            (Error::vm_creation_failed("no host"), ErrorKind::VmCreationFailed(DO_NOT_RETRY), "no host"),
            (Error::cloud("quota"), ErrorKind::Cloud, "quota"),
            (Error::cpi("bad size"), ErrorKind::Cpi, "bad size"),
        ] {
            assert_eq!(error.kind, kind);
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn only_kinds_with_retry_advice_keep_it() {
        assert_eq!(Error::disk_not_found("d").ok_to_retry(true).kind, ErrorKind::DiskNotFound(RETRY));
        assert_eq!(Error::no_disk_space("d").ok_to_retry(true).kind, ErrorKind::NoDiskSpace(RETRY));
        assert_eq!(Error::disk_not_attached("d", "v").ok_to_retry(true).kind, ErrorKind::DiskNotAttached(RETRY));
        let failed = Error::vm_creation_failed("m").ok_to_retry(true);
        assert_eq!(failed.kind, ErrorKind::VmCreationFailed(RETRY));
        assert_eq!(failed.ok_to_retry(false).kind, ErrorKind::VmCreationFailed(DO_NOT_RETRY));
        assert_eq!(Error::cloud("c").ok_to_retry(true).kind, ErrorKind::Cloud);
    }

    #[test]
    fn context_comes_first() {
        assert_eq!(Error::cloud("quota").context("creating VM").message, "creating VM: quota");
    }
}
