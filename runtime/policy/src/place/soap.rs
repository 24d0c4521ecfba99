//! The operation of a SOAP message: the children of its body, and the actions in its header.

use quick_xml::events::Event;

use super::{Fault, xml};

/// The operations that a SOAP message names.
#[derive(Debug, Default)]
pub(crate) struct SoapNames {
    /// The local names of the children of the body.
    pub(crate) children: Vec<String>,
    /// The texts of the elements `Action` in the header, by which servers with WS-Addressing choose
    /// an operation.
    pub(crate) actions: Vec<String>,
}

/// Returns the operations that a SOAP message names. Rejects a document that is not an envelope
/// with one body, because servers could find the operation elsewhere.
pub(super) fn names(body: &[u8]) -> Result<SoapNames, Fault> {
    let malformed = || Fault::malformed("XML: it is not a SOAP envelope with one body");
    let mut open: Vec<String> = Vec::new();
    let mut bodies = 0;
    let mut found = SoapNames::default();
    xml::walk(body, &mut |_, event| {
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let local = tag.local_name();
                let name: &str = local.as_ref();
                match open.as_slice() {
                    [] if name == "Envelope" => {}
                    [_] if name == "Body" => bodies += 1,
                    [_] if name == "Header" && bodies == 0 => {}
                    [_, parent] if parent == "Body" => found.children.push(name.to_owned()),
                    [_, parent] if parent == "Header" && name.eq_ignore_ascii_case("Action") => {
                        found.actions.push(String::new());
                    }
                    [_, _, ..] => {}
                    _ => return Err(malformed()),
                }
                if matches!(event, Event::Start(_)) {
                    open.push(name.to_owned());
                }
            }
            Event::End(_) => drop(open.pop()),
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {
                if let [_, parent, name, ..] = open.as_slice()
                    && parent == "Header"
                    && name.eq_ignore_ascii_case("Action")
                    && let Some(action) = found.actions.last_mut()
                {
                    action.push_str(&xml::text(&event).unwrap_or_default());
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    if bodies == 1 { Ok(found) } else { Err(malformed()) }
}
