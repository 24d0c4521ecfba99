//! The operations of APIs that have one path for all of them.
//!
//! A request names exactly one operation. If it could name a second one, a server might carry
//! out the one that was not judged.

mod named;
mod single;

use std::fmt;

use serde_json::{Value, json};

use super::object_reader::{ObjectReader, printable};
use crate::place::Place;
use wasm_cpi_checks::Check;

pub(super) use named::OperationMismatch;

/// The operations that a grant allows, or that a guest declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Where the request names its operation.
    pub place: OperationPlace,
    /// The names of the operations, which must match exactly.
    pub allow: Vec<String>,
    /// The operations that change nothing, although their method is POST: names, and beginnings of
    /// names followed by `*`. Only the operator says so; a need has none.
    pub read_only: Vec<String>,
}

/// Where a request names its operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationPlace {
    /// The value at a place. A JSON body then has one top-level key, and beside a form there is no
    /// query.
    At(Place),
    /// `json`: the only top-level key of the JSON body, as in `{"resize": {…}}`.
    JsonKey,
    /// `soap`: the only child of the SOAP body. A SOAPAction, if there is one, ends in its name.
    Soap,
}

/// The operation of a request that a grant allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The name, which is one of those in the policy.
    pub name: String,
    /// True if the policy says that the operation changes nothing.
    pub is_read_only: bool,
}

impl Operation {
    /// Returns the name for logs, if it is a plain one: letters, digits, `.`, `_`, `:` and `-`.
    pub fn plain_name(&self) -> Option<&str> {
        is_plain(&self.name).then_some(self.name.as_str())
    }
}

/// What stands behind the beginning of a name in `read_only`.
const ANY_END: char = '*';

const NOT_A_NAME: &str = "is not a valid name of an operation";
const NAME_REMEDY: &str = "write 1 to 128 characters, without `*` and without control and invisible ones";

impl Operations {
    /// Reads the `operations` of a grant.
    pub(super) fn of_grant(parent: &mut ObjectReader<'_>) -> Option<Operations> {
        Operations::read(parent, true)
    }

    /// Reads the `operations` of a need, which do not say what changes something.
    pub(super) fn of_need(parent: &mut ObjectReader<'_>) -> Option<Operations> {
        Operations::read(parent, false)
    }

    fn read(parent: &mut ObjectReader<'_>, of_grant: bool) -> Option<Operations> {
        let value = parent.value("operations")?;
        let mut reader = ObjectReader::open(value, parent.at("operations"), parent.problems())?;
        let place = place(&mut reader);
        let mut allow = Vec::new();
        for (at, name) in reader.required_texts("allow", "CreateServer") {
            if is_name(name) {
                allow.push(name.to_owned());
            } else {
                reader.problems().add(at, NOT_A_NAME, NAME_REMEDY);
            }
        }
        let read_only = if of_grant { read_only(&mut reader, &allow) } else { Vec::new() };
        reader.close();
        Some(Operations { place: place?, allow, read_only })
    }

    /// Returns these operations without all but one.
    pub(super) fn only(&self, name: &str) -> Operations {
        Operations { place: self.place.clone(), allow: vec![name.to_owned()], read_only: Vec::new() }
    }

    /// Returns the allowed operation of this name. Nothing but `read_only` decides whether it
    /// changes something, so that no request can claim it.
    pub(super) fn operation(&self, name: String) -> Operation {
        let is_read_only = self.read_only.iter().any(|pattern| matches_name(pattern, &name));
        Operation { name, is_read_only }
    }

    /// Returns true if a request has only query parameters that the grant lists. A server could find an operation in
    /// any other one. A form has no query beside it, and a place in JSON is compared with the query by its names.
    pub(super) fn limits_query(&self) -> bool {
        !matches!(self.place, OperationPlace::At(Place::Json(_) | Place::Form(_)))
    }

    /// Returns true if the operation is in the headers, so that it is known without the body.
    pub(super) fn is_in_head(&self) -> bool {
        matches!(self.place, OperationPlace::At(Place::Header(_) | Place::Cookie(_)))
    }

    /// Returns true if the operation is a field of a form. Servers read the parameters of the query as
    /// fields of the form.
    pub(super) fn is_in_form(&self) -> bool {
        matches!(self.place, OperationPlace::At(Place::Form(_)))
    }

    /// Returns the operations as they are written in a file.
    pub(super) fn to_json(&self) -> Value {
        let mut written = json!({"in": self.place.to_string(), "allow": self.allow});
        if !self.read_only.is_empty() {
            written["read_only"] = json!(self.read_only);
        }
        written
    }
}

/// Reads the name of the operation that an entry is for.
pub(super) fn read_name(reader: &mut ObjectReader<'_>, key: &'static str) -> Option<String> {
    let name = reader.text(key)?;
    if is_name(name) {
        return Some(name.to_owned());
    }
    reader.problem(key, NOT_A_NAME, NAME_REMEDY);
    None
}

/// Reads the operations that change nothing. Each entry must name one of the allowed operations.
fn read_only(reader: &mut ObjectReader<'_>, allow: &[String]) -> Vec<String> {
    let mut patterns: Vec<String> = Vec::new();
    for (at, text) in reader.texts("read_only") {
        let name = text.strip_suffix(ANY_END).unwrap_or(text);
        if !is_name(name) {
            let remedy = "write the name of an operation, or its beginning and a `*`, like `Describe*`";
            reader.problems().add(at, "is not a name, or the beginning of a name and a `*`", remedy);
            continue;
        }
        let named = allow.iter().any(|allowed| matches_name(text, allowed));
        let problems = reader.problems();
        problems.ensure(Check::EntryOutsideGrant, named, || {
            let remedy = "add the operation to `allow`, or remove this";
            super::PolicyProblem::new(at, "names none of the operations in `allow`", remedy)
        });
        patterns.push(text.to_owned());
    }
    patterns
}

/// Returns true if a name is that of the pattern, or begins as the pattern says.
fn matches_name(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix(ANY_END).map_or(pattern == name, |beginning| name.starts_with(beginning))
}

/// Returns true if a file can name an operation so.
fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.chars().count()) && !text.contains(ANY_END) && printable(text) == text
}

/// Quotes the name of an operation only if it looks like one: the guest may have put a seal there.
pub(super) fn quoted(operation: &str) -> String {
    if is_plain(operation) { format!("`{operation}`") } else { "what the request asks for".to_owned() }
}

/// Returns true if a text looks like the name of an operation.
pub(super) fn is_plain(operation: &str) -> bool {
    (1..=64).contains(&operation.len()) && operation.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
}

fn place(reader: &mut ObjectReader<'_>) -> Option<OperationPlace> {
    match reader.required_text("in", "form:Action")? {
        "json" => Some(OperationPlace::JsonKey),
        "soap" => Some(OperationPlace::Soap),
        text => match text.parse::<Place>() {
            Ok(place) => Some(OperationPlace::At(place)),
            Err(error) => {
                let remedy = "write `json` for the only key of a JSON body, `soap` for the child of a SOAP body, or a \
                              place like `form:F`";
                let what = format!("is not a place: {}", printable(&error.to_string()));
                reader.refused(error.check(), "in", what, remedy);
                None
            }
        },
    }
}

impl fmt::Display for OperationPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationPlace::At(place) => write!(f, "{place}"),
            OperationPlace::JsonKey => f.write_str("json"),
            OperationPlace::Soap => f.write_str("soap"),
        }
    }
}
