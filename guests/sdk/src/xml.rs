//! Reads the XML responses of APIs into a small tree: names, texts and children. Prefixes of names and
//! attributes are left out, because these APIs say nothing with them.
//!
//! Paths are names of elements, joined by `/`. A path is searched below the element, in the order of the
//! document:
//!
//! ```
//! use wasm_cpi_sdk::xml;
//!
//! let answer = xml::parse(
//!     b"<DescribeVolumesResponse><volumeSet>
//!         <item><volumeId>vol-1</volumeId><size>10</size><attachmentSet/></item>
//!         <item><volumeId>vol-2</volumeId></item>
//!     </volumeSet></DescribeVolumesResponse>",
//! )
//! .unwrap();
//! let volumes = answer.items("volumeSet/item");
//! assert_eq!(volumes[0].required_text("volumeId"), Ok("vol-1"));
//! assert_eq!(volumes[0].parsed("size"), Ok(Some(10)));
//! assert_eq!(volumes[1].text("size"), None);
//! let error = volumes[1].required_text("size").unwrap_err();
//! assert_eq!(error.to_string(), "the XML element `item` has no text at `size`");
//! ```
//!
//! [`crate::http::Response::xml`] parses the body of a response, and its error names the request.

mod error;
mod reader;
#[cfg(test)]
mod tests;

use std::str::FromStr;

pub use error::XmlError;

/// The largest document in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// The largest number of elements, which bounds the memory of the tree.
pub const MAX_ELEMENTS: usize = 500_000;

/// The largest number of elements inside of each other.
pub const MAX_DEPTH: usize = 64;

/// An element of a document: it has a text or children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    name: Box<str>,
    text: Box<str>,
    children: Vec<Element>,
}

/// Parses a document and returns its root.
///
/// Refuses what responses of APIs do not have: document types, processing instructions, references to
/// anything but a character, text beside elements, encodings other than UTF-8, and documents beyond
/// [`MAX_BYTES`], [`MAX_ELEMENTS`] or [`MAX_DEPTH`].
pub fn parse(document: &[u8]) -> Result<Element, XmlError> {
    reader::parse(document)
}

impl Element {
    /// Returns the name without its prefix.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the element's own text; empty if it has children.
    pub fn value(&self) -> &str {
        &self.text
    }

    /// Returns all children.
    pub fn children(&self) -> &[Self] {
        &self.children
    }

    /// Returns the first child with this name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| *child.name == *name)
    }

    /// Returns the first element at a path.
    pub fn at(&self, path: &str) -> Option<&Self> {
        let (name, rest) = split(path);
        self.children.iter().filter(|child| *child.name == *name).find_map(|child| match rest {
            Some(rest) => child.at(rest),
            None => Some(child),
        })
    }

    /// Returns all elements at a path, through all parents with the names of the path.
    pub fn items(&self, path: &str) -> Vec<&Self> {
        let mut found = vec![];
        self.collect(path, &mut found);
        found
    }

    fn collect<'a>(&'a self, path: &str, found: &mut Vec<&'a Self>) {
        let (name, rest) = split(path);
        for child in self.children.iter().filter(|child| *child.name == *name) {
            match rest {
                Some(rest) => child.collect(rest, found),
                None => found.push(child),
            }
        }
    }

    /// Returns the text of the first element at a path. An empty element counts as an absent one: APIs
    /// write both for a value that is not set.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.at(path).map(Self::value).filter(|text| !text.is_empty())
    }

    /// Returns the first element at a path, and an error that names the path if there is none.
    pub fn required(&self, path: &str) -> Result<&Self, XmlError> {
        self.at(path).ok_or_else(|| XmlError::MissingElement { element: self.name.to_string(), path: path.to_owned() })
    }

    /// Returns the text of the first element at a path, and an error that names the path if the text is
    /// absent or empty.
    pub fn required_text(&self, path: &str) -> Result<&str, XmlError> {
        self.text(path).ok_or_else(|| self.missing_text(path))
    }

    /// Returns the text at a path as a number, `bool` or other type, and `None` if the text is absent or
    /// empty. Fails if the text is not of this type; the error does not quote it.
    pub fn parsed<T: FromStr>(&self, path: &str) -> Result<Option<T>, XmlError> {
        let invalid = || XmlError::InvalidText {
            element: self.name.to_string(),
            path: path.to_owned(),
            expected: std::any::type_name::<T>(),
        };
        self.text(path).map(|text| text.trim().parse().map_err(|_| invalid())).transpose()
    }

    /// Returns the text at a path as a number, `bool` or other type. Fails if the text is absent, empty or
    /// not of this type.
    pub fn required_parsed<T: FromStr>(&self, path: &str) -> Result<T, XmlError> {
        self.parsed(path)?.ok_or_else(|| self.missing_text(path))
    }

    fn missing_text(&self, path: &str) -> XmlError {
        XmlError::MissingText { element: self.name.to_string(), path: path.to_owned() }
    }
}

/// Returns the first name of a path, and the rest of the path.
fn split(path: &str) -> (&str, Option<&str>) {
    match path.split_once('/') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    }
}
