//! The errors of documents and of accesses to them. They never quote a text of the document.

use std::fmt;

use crate::Error;

/// A document cannot be read, or lacks what the guest needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XmlError {
    /// The document is not XML as APIs send it.
    Malformed {
        /// The position in bytes at which this was noticed.
        at: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// The document is too large. Holds what there is too much of, and the limit.
    TooLarge(&'static str, usize),
    /// There is no element at a path.
    MissingElement {
        /// The element below which the path was searched.
        element: String,
        /// The path.
        path: String,
    },
    /// There is no element at a path, or it has no text.
    MissingText {
        /// The element below which the path was searched.
        element: String,
        /// The path.
        path: String,
    },
    /// The text at a path is not of the expected type.
    InvalidText {
        /// The element below which the path was searched.
        element: String,
        /// The path.
        path: String,
        /// The name of the expected type.
        expected: &'static str,
    },
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { at, why } => write!(f, "the XML cannot be read: {why}, at byte {at}"),
            Self::TooLarge(what, limit) => write!(f, "the XML cannot be read: it has more than {limit} {what}"),
            Self::MissingElement { element, path } => {
                write!(f, "the XML element `{element}` has no element at `{path}`")
            }
            Self::MissingText { element, path } => write!(f, "the XML element `{element}` has no text at `{path}`"),
            Self::InvalidText { element, path, expected } => {
                write!(f, "the text at `{path}` of the XML element `{element}` is not a valid {expected}")
            }
        }
    }
}

impl std::error::Error for XmlError {}

impl From<XmlError> for Error {
    fn from(error: XmlError) -> Self {
        Self::cloud(error.to_string())
    }
}
