//! Origins as they are written, with `${property}` in them, and their values in one call.
//!
//! A property can stand for the whole origin and then holds a URL, whose path is put before all
//! paths of the grant, login or need. Behind a scheme, as in `https://${property}`, it holds a
//! host or a URL. In place of one label it holds that label; if a cpi-config sets it, the label
//! must be one of the policy's `regions`.

use std::fmt;

use super::{MAX_BYTES, Origin, OriginError};
use crate::destination::{Destination, InvalidUrl, Scheme};
use crate::path::Base;
use crate::problem::{PolicyProblem, Problems};
use crate::properties::{Properties, leaf_text};
use crate::regions::Regions;
use crate::secret::Layer;
use crate::template::{Template, scalar};
use wasm_cpi_checks::Check;

/// An origin as it is written in a policy or a needs section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginSpec {
    /// An origin without properties.
    Fixed(Origin),
    /// `${property}` alone. The value of the property is an origin, or a URL with a path.
    Property(String),
    /// A scheme and a property, like `https://${property}`. The value of the property is a host,
    /// perhaps with a port, or a URL.
    Host {
        /// The scheme of the origin if the property holds a host.
        scheme: Scheme,
        /// The dotted path of the property.
        property: String,
    },
    /// An origin with a property in place of one label, like `https://${property}.example.com`.
    Label {
        /// The text before `${`, such as `https://`.
        before: String,
        /// The dotted path of the property.
        property: String,
        /// The text after `}`, such as `.example.com`.
        after: String,
    },
}

/// An origin with the properties of one call filled in.
#[derive(Debug)]
pub(crate) struct ResolvedOrigin {
    pub(crate) origin: Origin,
    /// The path of the URL, which is put before all paths.
    pub(crate) base: Base,
    /// The layer of the property that chose the origin; `Job` if there is no property in it, or if the
    /// property is one of the policy's `regions`.
    pub(crate) layer: Layer,
}

impl ResolvedOrigin {
    /// Returns an origin without a path.
    fn of(origin: Origin, layer: Layer) -> ResolvedOrigin {
        ResolvedOrigin { origin, base: Base::default(), layer }
    }

    /// Returns the origin and the path of a URL.
    fn of_url(url: &str, layer: Layer) -> Result<ResolvedOrigin, OriginError> {
        let url = Destination::parse(url, MAX_BYTES).map_err(without_value)?;
        Ok(ResolvedOrigin { origin: Origin::of(&url)?, base: Base::of(&url), layer })
    }
}

impl OriginSpec {
    /// Parses the `to` of a grant, login or need. Rejects what [`Origin::parse`] rejects, and a
    /// property that is neither the whole origin, nor the whole host, nor one whole label.
    pub fn parse(text: &str) -> Result<OriginSpec, OriginError> {
        let template = Template::parse(text)?;
        if !template.has_property() {
            return Origin::parse(text).map(OriginSpec::Fixed);
        }
        if let Some(property) = template.whole_property() {
            return Ok(OriginSpec::Property(property.to_owned()));
        }
        let (before, rest) = text.split_once("${").ok_or(OriginError::MisplacedProperty)?;
        let (property, after) = rest.split_once('}').ok_or(OriginError::MisplacedProperty)?;
        let scheme =
            [Scheme::Https, Scheme::Http].into_iter().find(|scheme| before == format!("{}://", scheme.as_str()));
        if let (Some(scheme), "") = (scheme, after) {
            return Ok(OriginSpec::Host { scheme, property: property.to_owned() });
        }
        let name = after.strip_prefix('.').ok_or(OriginError::MisplacedProperty)?;
        let whole_label = before.ends_with('.') || before.ends_with("://");
        let alone = whole_label && !before.contains('*') && name.contains('.') && !after.contains("${");
        if Check::OriginTemplate.refuses(!alone) {
            return Err(OriginError::MisplacedProperty);
        }
        Origin::parse(&format!("{before}any{after}"))?;
        Ok(OriginSpec::Label { before: before.to_owned(), property: property.to_owned(), after: after.to_owned() })
    }

    /// Returns the property in the origin, if there is one.
    pub fn property(&self) -> Option<&String> {
        match self {
            OriginSpec::Fixed(_) => None,
            OriginSpec::Property(property) | OriginSpec::Host { property, .. } | OriginSpec::Label { property, .. } => {
                Some(property)
            }
        }
    }

    /// Returns true if, whatever the properties hold, this origin covers the other one.
    pub(crate) fn covers(&self, other: &OriginSpec) -> bool {
        match (self, other) {
            (OriginSpec::Fixed(own), OriginSpec::Fixed(other)) => own.covers(other),
            // What covers two different labels at one place has its `*` there.
            (OriginSpec::Fixed(own), OriginSpec::Label { before, after, .. }) => ["a", "b"]
                .iter()
                .all(|label| Origin::parse(&format!("{before}{label}{after}")).is_ok_and(|filled| own.covers(&filled))),
            _ => self == other,
        }
    }

    /// Fills in the property; a value that is not what the origin needs is a problem at the key `at`.
    pub(crate) fn resolve(
        &self,
        properties: &Properties,
        regions: &Regions,
        at: &str,
        problems: &Problems,
    ) -> Option<ResolvedOrigin> {
        let Some(property) = self.property() else { return self.fill("", Layer::Job, regions).ok() };
        let (value, layer) = scalar(properties, property, at, problems)?;
        let filled = self.fill(&leaf_text(value), layer, regions);
        let reported = filled.map_err(|error| {
            let what = format!("the value of the property `{property}`: {error}");
            problems.push(PolicyProblem { check: error.check(), ..PolicyProblem::new(at, what, error.remedy()) });
        });
        reported.ok()
    }

    /// Returns the origin with the value of its property, which was set in this layer.
    fn fill(&self, value: &str, layer: Layer, regions: &Regions) -> Result<ResolvedOrigin, OriginError> {
        match self {
            OriginSpec::Fixed(origin) => Ok(ResolvedOrigin::of(origin.clone(), Layer::Job)),
            OriginSpec::Property(_) => ResolvedOrigin::of_url(value, layer),
            OriginSpec::Host { .. } if value.contains("://") => ResolvedOrigin::of_url(value, layer),
            OriginSpec::Host { scheme, .. } => {
                let alone = !value.contains(['/', '?', '#', '@', '%']);
                if Check::OriginTemplate.refuses(!alone) {
                    return Err(OriginError::PropertyHost);
                }
                ResolvedOrigin::of_url(&format!("{}://{value}", scheme.as_str()), layer)
            }
            OriginSpec::Label { before, after, .. } => {
                let label = value.to_lowercase();
                let one = !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
                if Check::OriginTemplate.refuses(!one) {
                    return Err(OriginError::PropertyLabel);
                }
                let layer = regions.layer_of(value, layer)?;
                Ok(ResolvedOrigin::of(Origin::parse(&format!("{before}{label}{after}"))?, layer))
            }
        }
    }
}

/// Returns the error for a property whose value is not a URL. The error does not hold any part of
/// the value, since the value may be a secret.
fn without_value(invalid: InvalidUrl) -> OriginError {
    match invalid {
        InvalidUrl::Scheme(_) => OriginError::PropertyScheme,
        other => OriginError::PropertyUrl(other),
    }
}

impl fmt::Display for OriginSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OriginSpec::Fixed(origin) => write!(f, "{origin}"),
            OriginSpec::Property(property) => write!(f, "${{{property}}}"),
            OriginSpec::Host { scheme, property } => write!(f, "{}://${{{property}}}", scheme.as_str()),
            OriginSpec::Label { before, property, after } => write!(f, "{before}${{{property}}}{after}"),
        }
    }
}
