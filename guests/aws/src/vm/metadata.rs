//! `set_vm_metadata`: tags of the instance and of its volumes.

use wasm_cpi_sdk::{Error, Metadata};

use super::not_found;
use crate::session::Session;
use crate::tags::Tags;

pub(crate) fn set(session: &Session, vm: &str, metadata: &Metadata) -> Result<(), Error> {
    let mut tags = Tags::of_metadata(metadata);
    let value = |key: &str| metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    if let Some(name) = name(value("job"), value("index"), value("name"), value("id")) {
        tags.insert("Name", &name);
    }
    let found = session.ec2().instance(vm).send().map_err(|error| not_found(error, vm))?;
    let Some(instance) = found.into_iter().find(|instance| instance.is_alive()) else {
        return Err(Error::vm_not_found(vm));
    };
    let volumes = instance.volumes.iter().map(|volume| volume.volume.as_str());
    let resources: Vec<&str> = std::iter::once(vm).chain(volumes).collect();
    session.ec2().create_tags(&resources, &tags).send().map_err(Error::from)
}

/// Returns the name of an instance that people see: `JOB/INDEX`, or the Director's name of a compilation VM.
fn name(job: Option<&str>, index: Option<&str>, name: Option<&str>, id: Option<&str>) -> Option<String> {
    match (name, job, index.or(id)) {
        (Some(name), ..) => Some(name.to_owned()),
        (None, Some(job), Some(index)) => Some(format!("{job}/{index}")),
        _ => None,
    }
}
