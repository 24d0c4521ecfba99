//! Disks and snapshots: volumes of EBS and their snapshots.

use wasm_cpi_sdk::{Cid, DiskHint, Error, Json, Metadata};

use crate::session::Session;

pub(crate) fn create(_: &Session, _: u64, _: &Json, _: Option<&str>) -> Result<Cid, Error> {
    Err(Error::not_implemented("create_disk"))
}

pub(crate) fn delete(_: &Session, _: &str) -> Result<(), Error> {
    Err(Error::not_implemented("delete_disk"))
}

pub(crate) fn exists(_: &Session, _: &str) -> Result<bool, Error> {
    Err(Error::not_implemented("has_disk"))
}

pub(crate) fn attach(_: &Session, _: &str, _: &str) -> Result<DiskHint, Error> {
    Err(Error::not_implemented("attach_disk"))
}

pub(crate) fn detach(_: &Session, _: &str, _: &str) -> Result<(), Error> {
    Err(Error::not_implemented("detach_disk"))
}

pub(crate) fn set_metadata(_: &Session, _: &str, _: &Metadata) -> Result<(), Error> {
    Err(Error::not_implemented("set_disk_metadata"))
}

pub(crate) fn of_vm(_: &Session, _: &str) -> Result<Vec<Cid>, Error> {
    Err(Error::not_implemented("get_disks"))
}

pub(crate) fn resize(_: &Session, _: &str, _: u64) -> Result<(), Error> {
    Err(Error::not_implemented("resize_disk"))
}

pub(crate) fn update(_: &Session, _: &str, _: u64, _: &Json) -> Result<Option<Cid>, Error> {
    Err(Error::not_implemented("update_disk"))
}

pub(crate) fn snapshot(_: &Session, _: &str, _: &Metadata) -> Result<Cid, Error> {
    Err(Error::not_implemented("snapshot_disk"))
}

pub(crate) fn delete_snapshot(_: &Session, _: &str) -> Result<(), Error> {
    Err(Error::not_implemented("delete_snapshot"))
}
