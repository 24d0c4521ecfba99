//! Judges one value of a request.

use serde_json::Value;

use super::super::FieldRules;
use super::super::field_place::{FieldKind, written};
use super::super::rule::Allowed;
use super::{FieldFault, FieldMismatch, Met};
use wasm_cpi_checks::Check;

impl FieldRules {
    /// Judges one value, and records the rules that it meets.
    pub(super) fn judge_value<T: AsRef<str>>(
        &self,
        kind: FieldKind,
        path: &[T],
        value: &Value,
        met: &mut Met,
    ) -> Result<(), FieldMismatch> {
        let JudgedValue { rules_met, listed } = self.apply_rules(kind, path, value)?;
        rules_met.into_iter().for_each(|number| met[number] = true);
        if listed { Ok(()) } else { self.refuse_unlisted(kind, path, Shape::of(value)) }
    }

    /// Applies the rules for the place of a value and for the places above.
    fn apply_rules<T: AsRef<str>>(
        &self,
        kind: FieldKind,
        path: &[T],
        value: &Value,
    ) -> Result<JudgedValue, FieldMismatch> {
        let (mut rules_met, mut listed, mut refused_above) = (Vec::new(), false, None);
        for (number, (place, rule)) in self.of(kind).filter(|(_, (place, _))| place.is_above(path)) {
            let here = place.is_at(path);
            rules_met.extend(here.then_some(number));
            let refused = || FieldMismatch::from(FieldFault::Rule { place: place.to_string(), rule: rule.to_string() });
            match &rule.allowed {
                Allowed::Nothing => {
                    Check::FieldAbsent.refuse(refused)?;
                    listed = true;
                }
                Allowed::Anything => listed = true,
                _ if here => {
                    Check::FieldValue.ensure(rule.accepts(value), refused)?;
                    listed = true;
                }
                // It is part of a JSON value that was judged as a whole.
                _ if kind == FieldKind::Json => listed = true,
                _ => refused_above = Some(refused()),
            }
        }
        // Servers read `Image.1` as an element of `Image`, whose value is limited.
        if let Some(refused) = refused_above.filter(|_| !listed && !self.deny_others) {
            Check::FieldValue.refuse(|| refused)?;
        }
        Ok(JudgedValue { rules_met, listed })
    }

    /// Rejects a value that no rule lists, if the rules deny others. The members of a container are judged themselves.
    fn refuse_unlisted<T: AsRef<str>>(&self, kind: FieldKind, path: &[T], shape: Shape) -> Result<(), FieldMismatch> {
        let leads_to_rule = || self.of(kind).any(|(_, (place, _))| place.next_after(path).is_some());
        let is_allowed = match shape {
            Shape::Container => true,
            Shape::EmptyContainer => leads_to_rule(),
            Shape::Leaf => false,
        };
        if is_allowed {
            return Ok(());
        }
        match self.others(kind, path) {
            Some(check) => check.refuse(|| FieldFault::Other(written(kind, path)).into()),
            None => Ok(()),
        }
    }
}

/// What the rules say about one value.
struct JudgedValue {
    /// The numbers of the rules for exactly this place.
    rules_met: Vec<usize>,
    /// True if a rule allows the value.
    listed: bool,
}

/// The shape of a value.
#[derive(Clone, Copy)]
enum Shape {
    Leaf,
    EmptyContainer,
    Container,
}

impl Shape {
    fn of(value: &Value) -> Shape {
        let is_empty = match value {
            Value::Object(object) => object.is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => return Shape::Leaf,
        };
        if is_empty { Shape::EmptyContainer } else { Shape::Container }
    }
}
