//! The operation of a SOAP message: the children of its body.

use quick_xml::events::Event;

use super::{Fault, xml};

/// Returns the local names of the children of the SOAP body. Rejects a document that is not an
/// envelope with one body, because servers could find the operation elsewhere.
pub(super) fn children(body: &[u8]) -> Result<Vec<String>, Fault> {
    let malformed = || Fault::malformed("XML: it is not a SOAP envelope with one body");
    let mut open: Vec<String> = Vec::new();
    let mut bodies = 0;
    let mut found = Vec::new();
    xml::walk(body, &mut |_, event| {
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let local = tag.local_name();
                let name: &str = local.as_ref();
                match open.as_slice() {
                    [] if name == "Envelope" => {}
                    [_] if name == "Body" => bodies += 1,
                    [_] if name == "Header" && bodies == 0 => {}
                    [_, parent] if parent == "Body" => found.push(name.to_owned()),
                    [_, _, ..] => {}
                    _ => return Err(malformed()),
                }
                if matches!(event, Event::Start(_)) {
                    open.push(name.to_owned());
                }
            }
            Event::End(_) => drop(open.pop()),
            _ => {}
        }
        Ok(())
    })?;
    if bodies == 1 { Ok(found) } else { Err(malformed()) }
}
