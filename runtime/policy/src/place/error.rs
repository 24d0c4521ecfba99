//! The errors of places, and of bodies that cannot be parsed.

use thiserror::Error;

use wasm_cpi_checks::{Check, RefusedBy};

/// The error of reading, writing or parsing a place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{place}`: {fault}")]
pub struct PlaceError {
    /// The place as policies write it.
    pub place: String,
    /// What is wrong there.
    pub fault: Fault,
}

impl PlaceError {
    /// Returns the check that refuses the place or the message, if it is a named one.
    pub fn check(&self) -> Option<Check> {
        self.fault.check
    }
}

/// What is wrong with a place, or with a message in which it is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}")]
pub struct Fault {
    /// The kind of the fault, which `Display` describes.
    pub kind: FaultKind,
    /// The check that refuses, if it is a named one.
    pub check: Option<Check>,
}

impl Fault {
    pub(super) fn ambiguous() -> Fault {
        FaultKind::Ambiguous.into()
    }

    pub(super) fn malformed(why: impl Into<String>) -> Fault {
        FaultKind::Malformed(why.into()).into()
    }

    pub(super) fn unwritable(why: &'static str) -> Fault {
        FaultKind::Unwritable(why).into()
    }
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Fault {
        Fault { kind, check: None }
    }
}

impl RefusedBy for Fault {
    fn refused_by(self, check: Check) -> Fault {
        Fault { check: self.check.or(Some(check)), ..self }
    }
}

/// What can be wrong with a place, or with a message in which it is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultKind {
    /// The text is not a place; the message says how places are written.
    #[error("{0}")]
    Syntax(&'static str),
    /// The body has another type than the place needs. Holds the type that is needed.
    #[error("the Content-Type is not {0}")]
    ContentType(&'static str),
    /// The headers or the body cannot be parsed, or servers could parse them differently.
    #[error("the message cannot be read: {0}")]
    Malformed(String),
    /// Several values have the name of the place.
    #[error("it occurs more than once, so that it is unclear which one is meant")]
    Ambiguous,
    /// The value is an object, a list, an element with children, or not UTF-8.
    #[error("the value there is not a single plain value")]
    NotPlain,
    /// The new value has characters that cannot be written at this place.
    #[error("the value cannot be written there: {0}")]
    Unwritable(&'static str),
}

/// The reason why a body cannot be parsed: a text, and the check that refuses it, if it is a named one.
pub(super) struct Unparsable {
    pub(super) why: &'static str,
    pub(super) check: Option<Check>,
}

impl Unparsable {
    /// Returns the fault of a body in this format.
    pub(super) fn in_format(self, format: &str) -> Fault {
        Fault { kind: FaultKind::Malformed(format!("{format}: {}", self.why)), check: self.check }
    }
}

impl From<&'static str> for Unparsable {
    fn from(why: &'static str) -> Unparsable {
        Unparsable { why, check: None }
    }
}

impl RefusedBy for Unparsable {
    fn refused_by(self, check: Check) -> Unparsable {
        Unparsable { check: self.check.or(Some(check)), ..self }
    }
}
