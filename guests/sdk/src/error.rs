//! The error of every CPI method, in the words that BOSH clients know.
//!
//! The kind decides what the Director does next (skip, retry, give up); the
//! message is for people: what failed, on what, and what to do. Never put a
//! secret into it.

use std::fmt;

use crate::bindings::bosh::cpi::types as wire;

pub use crate::bindings::bosh::cpi::types::ErrorKind;

/// What a CPI method failed with.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// This CPI has no such method.
    pub fn not_implemented(method: &str) -> Self {
        Self::new(ErrorKind::NotImplemented, format!("this CPI does not implement {method}"))
    }

    /// The method exists, this use of it is not possible here. The Director
    /// copies a disk instead when `resize_disk` or `update_disk` say so.
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotSupported, message)
    }

    pub fn vm_not_found(vm: &str) -> Self {
        Self::new(ErrorKind::VmNotFound, format!("VM `{vm}` not found"))
    }

    /// `retry`: whether the same `create_vm` may well succeed later.
    pub fn vm_creation_failed(message: impl Into<String>, retry: bool) -> Self {
        Self::new(ErrorKind::VmCreationFailed(retry), message)
    }

    pub fn disk_not_found(disk: &str) -> Self {
        Self::new(ErrorKind::DiskNotFound(false), format!("disk `{disk}` not found"))
    }

    pub fn disk_not_attached(disk: &str, vm: &str) -> Self {
        Self::new(ErrorKind::DiskNotAttached(false), format!("disk `{disk}` is not attached to VM `{vm}`"))
    }

    pub fn no_disk_space(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NoDiskSpace(false), message)
    }

    pub fn network_not_found(network: &str) -> Self {
        Self::new(ErrorKind::NetworkNotFound, format!("network `{network}` not found"))
    }

    pub fn stemcell_not_found(stemcell: &str) -> Self {
        Self::new(ErrorKind::StemcellNotFound, format!("stemcell `{stemcell}` not found"))
    }

    /// The cloud refused or failed.
    pub fn cloud(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cloud, message)
    }

    /// The request cannot be right: wrong `cloud_properties` and the like.
    pub fn cpi(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cpi, message)
    }

    /// Says whether the caller may try the same call again, where the kind has
    /// room for it.
    pub fn ok_to_retry(mut self, retry: bool) -> Self {
        self.kind = match self.kind {
            ErrorKind::VmCreationFailed(_) => ErrorKind::VmCreationFailed(retry),
            ErrorKind::DiskNotFound(_) => ErrorKind::DiskNotFound(retry),
            ErrorKind::DiskNotAttached(_) => ErrorKind::DiskNotAttached(retry),
            ErrorKind::NoDiskSpace(_) => ErrorKind::NoDiskSpace(retry),
            other => other,
        };
        self
    }

    /// Puts what was being done before the message.
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

    #[test]
    fn constructors_name_the_thing_that_is_missing() {
        for (error, kind, part) in [
            (Error::vm_not_found("vm-1"), ErrorKind::VmNotFound, "vm-1"),
            (Error::disk_not_found("disk-1"), ErrorKind::DiskNotFound(false), "disk-1"),
            (Error::disk_not_attached("disk-1", "vm-1"), ErrorKind::DiskNotAttached(false), "vm-1"),
            (Error::network_not_found("net-1"), ErrorKind::NetworkNotFound, "net-1"),
            (Error::stemcell_not_found("sc-1"), ErrorKind::StemcellNotFound, "sc-1"),
            (Error::not_implemented("get_disks"), ErrorKind::NotImplemented, "get_disks"),
            (Error::not_supported("shrinking"), ErrorKind::NotSupported, "shrinking"),
            (Error::no_disk_space("pool full"), ErrorKind::NoDiskSpace(false), "pool full"),
            (Error::cloud("quota"), ErrorKind::Cloud, "quota"),
            (Error::cpi("bad size"), ErrorKind::Cpi, "bad size"),
        ] {
            assert_eq!(error.kind, kind);
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn retry_is_kept_only_by_kinds_that_have_it() {
        assert_eq!(Error::disk_not_found("d").ok_to_retry(true).kind, ErrorKind::DiskNotFound(true));
        assert_eq!(Error::no_disk_space("d").ok_to_retry(true).kind, ErrorKind::NoDiskSpace(true));
        assert_eq!(Error::disk_not_attached("d", "v").ok_to_retry(true).kind, ErrorKind::DiskNotAttached(true));
        assert_eq!(Error::vm_creation_failed("m", true).ok_to_retry(false).kind, ErrorKind::VmCreationFailed(false));
        assert_eq!(Error::cloud("c").ok_to_retry(true).kind, ErrorKind::Cloud);
    }

    #[test]
    fn context_comes_first() {
        assert_eq!(Error::cloud("quota").context("creating VM").message, "creating VM: quota");
    }
}
