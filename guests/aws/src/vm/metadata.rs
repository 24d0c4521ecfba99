//! `set_vm_metadata`: tags of the instance and of its volumes, in one request.

use wasm_cpi_sdk::{Error, Metadata, log};

use super::not_found;
use crate::session::Session;
use crate::tags::Tags;

/// The tag that consoles show as the name of an instance.
const NAME: &str = "Name";

pub(crate) fn set(session: &Session, vm: &str, metadata: &Metadata) -> Result<(), Error> {
    let tags = tags(metadata);
    if tags.is_empty() {
        return Ok(());
    }
    let found = session.ec2().instance(vm).send().map_err(|error| not_found(error, vm))?;
    let Some(instance) = found.into_iter().find(|instance| !instance.is_gone()) else {
        return Err(Error::vm_not_found(vm));
    };
    let volumes = instance.volumes.iter().map(|volume| volume.volume.as_str());
    let resources: Vec<&str> = std::iter::once(vm).chain(volumes).collect();
    match session.ec2().create_tags(&resources, &tags).send() {
        // Like bosh-aws-cpi: a deployment does not fail because of its tags.
        Err(error) if matches!(error.code(), "TagLimitExceeded" | "InvalidParameterValue") => {
            log::warn(format_args!("VM {vm} and its volumes do not get their tags: {error}"));
            Ok(())
        }
        outcome => outcome.map_err(|error| not_found(error, vm)),
    }
}

/// Returns the tags for metadata. The name is the Director's `name`, or made of the job, as in bosh-aws-cpi.
fn tags(metadata: &Metadata) -> Tags {
    let value = |key: &str| metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    let name = match (value("name"), value("job"), value("index"), value("compiling")) {
        (Some(name), ..) => Some(name.to_owned()),
        (None, Some(job), Some(index), _) => Some(format!("{job}/{index}")),
        (None, _, _, Some(package)) => Some(format!("compiling/{package}")),
        _ => None,
    };
    let others: Metadata = metadata.iter().filter(|(key, _)| key != "name").cloned().collect();
    let mut tags = Tags::of_metadata(&others);
    if let Some(name) = name {
        tags.insert(NAME, &name);
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_named_after_its_job() {
        for (pairs, name) in [
            (&[("name", "web/1234"), ("job", "web"), ("index", "0")][..], Some("web/1234")),
            (&[("job", "web"), ("index", "0")], Some("web/0")),
            (&[("compiling", "ruby")], Some("compiling/ruby")),
            (&[("job", "web")], None),
        ] {
            let owned = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let tags = tags(&owned);
            assert_eq!(tags.get(NAME), name);
            assert_eq!(tags.get("name"), None);
        }
    }
}
