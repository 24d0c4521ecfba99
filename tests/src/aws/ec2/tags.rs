//! Tags.

use super::{Call, done};
use crate::aws::error::{Error, invalid};
use crate::aws::kind::Kind;
use crate::aws::parameters::{list, text, texts};
use crate::aws::state::State;
use serde_json::{Value, json};

/// The most characters of a key and of a value.
const MAX_KEY: usize = 128;
const MAX_VALUE: usize = 256;

pub(super) fn create(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let tags = read(&call.parameters["Tag"])?;
    let ids = texts(call.parameters, "ResourceId");
    for id in &ids {
        let kind = Kind::of_id(id).ok_or_else(|| Error::new("InvalidID", format!("The ID '{id}' is not valid")))?;
        let item = state.find(kind, call.account, id)?;
        merge(item.view["tagSet"].as_array().cloned().unwrap_or_default(), &tags, state.limit("tags-per-resource"))?;
    }
    for id in ids {
        if let Some(item) = state.resources.get_mut(id) {
            let own = item.view["tagSet"].as_array().cloned().unwrap_or_default();
            item.view["tagSet"] = json!(merge(own, &tags, usize::MAX)?);
        }
    }
    done()
}

/// Returns the tags with these added; tags with the same key are replaced.
pub(in crate::aws) fn merge(mut own: Vec<Value>, new: &[Value], limit: usize) -> Result<Vec<Value>, Error> {
    for tag in new {
        own.retain(|known| known["key"] != tag["key"]);
        own.push(tag.clone());
    }
    if own.len() > limit {
        return Err(Error::new("TagLimitExceeded", format!("More than {limit} tags were specified.")));
    }
    Ok(own)
}

/// Reads a list of tags and returns them as resources show them.
pub(super) fn read(tags: &Value) -> Result<Vec<Value>, Error> {
    let mut read: Vec<Value> = Vec::new();
    for tag in tags.as_array().into_iter().flatten() {
        let (key, value) = (text(tag, "Key").unwrap_or_default(), text(tag, "Value").unwrap_or_default());
        if key.is_empty() || key.chars().count() > MAX_KEY || key.to_lowercase().starts_with("aws:") {
            return Err(invalid("tag key", key, "It must have 1 to 128 characters and not start with aws:."));
        }
        if value.chars().count() > MAX_VALUE {
            return Err(invalid("tag value", value, "It must have at most 256 characters."));
        }
        if read.iter().any(|known| known["key"] == key) {
            return Err(invalid("tag key", key, "Duplicate tag key specified."));
        }
        read.push(json!({"key": key, "value": value}));
    }
    Ok(read)
}

/// Returns the tags that a request has for new resources of this kind. Every
/// specification must be for one of `kinds`.
pub(super) fn specified(state: &State, parameters: &Value, kind: Kind, kinds: &[Kind]) -> Result<Vec<Value>, Error> {
    let mut tags = Vec::new();
    for specification in list(parameters, "TagSpecification") {
        let wanted = text(specification, "ResourceType").unwrap_or_default();
        if !kinds.iter().any(|kind| kind.resource_type() == wanted) {
            return Err(invalid("ResourceType", wanted, "This request does not create such a resource."));
        }
        if wanted == kind.resource_type() {
            tags = merge(tags, &read(&specification["Tag"])?, state.limit("tags-per-resource"))?;
        }
    }
    Ok(tags)
}
