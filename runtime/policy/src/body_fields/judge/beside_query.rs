//! Fields of the body with the name of a query parameter that a rule limits. Servers that merge both may use the one
//! in the body.

use serde_json::Value;

use super::super::FieldRules;
use super::super::field_place::FieldKind;
use super::super::names::NameError;
use super::{FieldMismatch, unreadable_json};
use crate::normalize_header_name;
use crate::place::{Message, Place, is_read_as_form, names_in_body, parse_form, parse_json};
use crate::request_head::begins_alike;
use wasm_cpi_checks::Check;

const WHAT: &str = "has the name of a query parameter that is limited";

impl FieldRules {
    /// Rejects a field of the body that a server could read as a limited query parameter, unless a rule lists the field.
    pub(super) fn judge_body_beside_query(&self, message: &Message<'_>) -> Result<(), FieldMismatch> {
        let limited = self.of(FieldKind::Query).filter(|(_, (_, rule))| rule.limits());
        let limited: Vec<String> = limited.map(|(_, (place, _))| place.parts().concat()).collect();
        // If others are denied, every field of the body is listed.
        if limited.is_empty() || self.deny_others || message.body.is_empty() {
            return Ok(());
        }
        for (kind, name) in self.named_in_body(message)? {
            let path: Vec<&str> = if kind == FieldKind::Json { vec![&name] } else { name.split('.').collect() };
            let is_listed =
                self.of(kind).any(|(_, (place, _))| place.is_above(&path) || place.next_after(&path).is_some());
            let is_read_so = limited.iter().any(|parameter| begins_alike(&name, parameter));
            Check::FieldQuery.ensure(is_listed || !is_read_so, || NameError::new(kind, &path, WHAT))?;
        }
        Ok(())
    }

    /// Returns the names by which servers could find parameters in the body.
    fn named_in_body(&self, message: &Message<'_>) -> Result<Vec<(FieldKind, String)>, FieldMismatch> {
        let types = message.headers.iter().filter(|(name, _)| normalize_header_name(name) == "content-type");
        let types: String = types.map(|(_, value)| value.to_ascii_lowercase()).collect();
        if self.has(FieldKind::Json) || types.contains("json") {
            let document = parse_json(message.body).map_err(unreadable_json)?;
            let keys = if let Value::Object(object) = document { object.keys().cloned().collect() } else { Vec::new() };
            return Ok(keys.into_iter().map(|key| (FieldKind::Json, key)).collect());
        }
        let names = if types.contains("multipart") {
            names_in_body(&Place::Part(String::new()), message)?
        } else if self.has(FieldKind::Form) || is_read_as_form(message.headers) {
            let unreadable = |_| FieldMismatch::body("the body is not a properly urlencoded form");
            parse_form(message.body).map_err(unreadable)?.into_iter().map(|(name, _)| name).collect()
        } else {
            Vec::new()
        };
        Ok(names.into_iter().map(|name| (FieldKind::Form, name)).collect())
    }
}
