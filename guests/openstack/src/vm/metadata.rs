//! `set_vm_metadata`: sets tags, and the name if `human_readable_vm_names` is set. A
//! VM that gets another name keeps its first name as a tag: it is the key by which
//! its Agent asks the registry.

use std::collections::BTreeMap;

use wasm_cpi_sdk::{Error, Metadata};

use super::{REGISTRY_KEY, get};
use crate::session::Session;
use crate::tags::{tags, truncate};

pub(crate) fn set_metadata(session: &Session, vm: &str, metadata: &Metadata) -> Result<(), Error> {
    let mut tags = tags(metadata);
    let Some(name) = readable_name(metadata).filter(|_| session.properties.readable_names()) else {
        return if tags.is_empty() { get(session, vm).map(drop) } else { add(session, vm, &tags) };
    };
    let server = get(session, vm)?;
    if !server.metadata.contains_key(REGISTRY_KEY) {
        tags.insert(REGISTRY_KEY.to_owned(), server.name.clone());
    }
    if !tags.is_empty() {
        add(session, vm, &tags)?;
    }
    if name == server.name { Ok(()) } else { Ok(session.compute()?.rename(vm, &name)?) }
}

fn add(session: &Session, vm: &str, tags: &BTreeMap<String, String>) -> Result<(), Error> {
    match session.compute()?.add_metadata(vm, tags) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::vm_not_found(vm)),
        Err(error) => {
            // Nova refuses to change a soft-deleted server, which does not exist for BOSH.
            if error.status() == Some(409) {
                get(session, vm)?;
            }
            Err(error.into())
        }
    }
}

fn readable_name(metadata: &Metadata) -> Option<String> {
    let value = |key: &str| metadata.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str());
    let name = match (value("name"), value("job"), value("index"), value("compiling")) {
        (Some(name), ..) => name.to_owned(),
        (None, Some(job), Some(index), _) => format!("{job}/{index}"),
        (None, _, _, Some(compiling)) => format!("compiling/{compiling}"),
        _ => return None,
    };
    Some(truncate(&name)).filter(|name| !name.trim().is_empty())
}
