//! Values that are written out or taken from one property, such as the region of signed requests.

use super::object_reader::ObjectReader;
use super::problem::{PolicyProblem, Problems};
use super::properties::{Properties, leaf_text};
use super::template::{Template, scalar};
use crate::secret::Layer;
use wasm_cpi_checks::Check;

/// What a kind of value must look like.
pub(super) struct Form {
    /// The key of the value, such as `region`.
    pub(super) key: &'static str,
    /// What messages call a valid value, such as "a region like `eu-central-1`".
    pub(super) noun: &'static str,
    pub(super) is_valid: fn(&str) -> bool,
    /// Refuses a value of another form.
    pub(super) check: Check,
}

/// A value as it is written in the file: a literal, or one property.
#[derive(Clone, Debug)]
pub(super) struct OnePropertySpec(Template);

/// A value with its property filled in.
pub(super) struct OneProperty<'a> {
    pub(super) value: String,
    /// The property that it comes from; `None` for a literal.
    pub(super) property: Option<&'a str>,
    /// The layer that set the property; `Job` for a literal.
    pub(super) layer: Layer,
}

impl OnePropertySpec {
    /// Reads a value that must be there.
    pub(super) fn read(reader: &mut ObjectReader<'_>, form: &Form) -> Option<OnePropertySpec> {
        let text = reader.required_text(form.key, "${property}")?;
        let remedy = format!("write {}, or `${{property}}` alone", form.noun);
        match Template::parse(text) {
            Err(error) => {
                reader.problem(form.key, error.to_string(), remedy);
                None
            }
            Ok(template) if template.has_property() => {
                if template.whole_property().is_none() {
                    reader.problem(form.key, "is neither a value nor one property", remedy);
                    return None;
                }
                Some(OnePropertySpec(template))
            }
            Ok(template) => {
                let what = || (format!("is not {}", form.noun), remedy);
                let fits = reader.ensure(form.check, (form.is_valid)(text), form.key, what);
                fits.then_some(OnePropertySpec(template))
            }
        }
    }

    /// Returns the name of the property that holds the value, if one does.
    pub(super) fn property(&self) -> Option<&str> {
        self.0.whole_property()
    }

    /// Fills in the property. `at` is the path of the object that the value is in.
    pub(super) fn resolve(
        &self,
        form: &Form,
        properties: &Properties,
        at: &str,
        problems: &Problems,
    ) -> Option<OneProperty<'_>> {
        let at = format!("{at}.{}", form.key);
        let Some(property) = self.property() else {
            // The form of a literal was checked when it was read.
            let value = self.0.resolve(properties, Layer::Job, &at, problems)?.secret;
            return Some(OneProperty { value: value.reveal().to_owned(), property: None, layer: Layer::Job });
        };
        let (value, layer) = scalar(properties, property, &at, problems)?;
        let value = leaf_text(value);
        let fits = problems.ensure(form.check, (form.is_valid)(&value), || {
            let what = format!("the value of the property `{property}` is not {}", form.noun);
            PolicyProblem::new(&at, what, "correct the property")
        });
        fits.then_some(OneProperty { value, property: Some(property), layer })
    }
}
