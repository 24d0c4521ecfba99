//! `set_vm_metadata`: sets tags, and the name if `human_readable_vm_names` is set. A
//! VM that gets another name keeps its first name as a tag: it is the key by which
//! its Agent asks the registry.

use wasm_cpi_sdk::{Error, Metadata};

use super::{REGISTRY_KEY, get};
use crate::session::Session;
use crate::tags::{tags, truncate};

pub(crate) fn set_metadata(session: &Session, vm: &str, metadata: &Metadata) -> Result<(), Error> {
    let server = get(session, vm)?;
    let compute = session.compute()?;
    let mut tags = tags(metadata);
    let name = readable_name(metadata).filter(|_| session.properties.readable_names());
    if name.is_some() && !server.metadata.contains_key(REGISTRY_KEY) {
        tags.insert(REGISTRY_KEY.to_owned(), server.name.clone());
    }
    if !tags.is_empty() {
        compute.add_metadata(vm, &tags)?;
    }
    match name {
        Some(name) if name != server.name => Ok(compute.rename(vm, &name)?),
        _ => Ok(()),
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
