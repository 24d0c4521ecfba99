//! Elements of XML bodies, by local name or by their path of local names.
//!
//! The parser accepts the XML that APIs use: UTF-8, one root, no document type, no processing
//! instructions, and only the five predefined entities. An element is a value if it holds
//! nothing but text. A changed document is written anew from the parsed events. Documents are
//! streamed and never held as a tree, which would take many times their size in memory.

mod cleaning;

pub use cleaning::{remove, replace_texts};

use std::ops::Range;

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer};

use super::edit::{Change, Numbered};
use super::error::Unparsable;
use super::{Fault, FaultKind};
use wasm_cpi_checks::Check;

/// The largest number of attributes of one element. The check for duplicates takes time that
/// grows with the square of their number.
const MAX_ATTRIBUTES: usize = 256;

pub(super) fn is_local_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Returns the local names of a place: one, or those of a path from the root.
pub(super) fn names(place: &str) -> Vec<&str> {
    match place.strip_prefix('/') {
        Some(path) => path.split('/').collect(),
        None => vec![place],
    }
}

/// Returns the local names of all elements.
pub(super) fn local_names(body: &[u8]) -> Result<Vec<String>, Fault> {
    let mut found: Vec<String> = Vec::new();
    walk(body, &mut |_, event| {
        if let Event::Start(tag) | Event::Empty(tag) = &event {
            let local = tag.local_name();
            let name: &str = local.as_ref();
            found.push(name.to_owned());
        }
        Ok(())
    })?;
    Ok(found)
}

pub(super) fn edit(
    body: &[u8],
    places: &Numbered<'_, String>,
    change: &mut Change<'_>,
) -> Result<Option<Vec<u8>>, Fault> {
    let mut changes: Vec<(Range<usize>, Event<'static>)> = Vec::new();
    for (number, place) in places {
        let Some(Found { value, inner, .. }) = find(body, place)? else { continue };
        let Some(value) = change(*number, &value) else { continue };
        check_value(&value)?;
        // A bare CR would be read as a line feed.
        let escaped = quick_xml::escape::escape(&value).replace('\r', "&#13;");
        changes.push((inner, Event::Text(BytesText::from_escaped(escaped))));
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let mut writer = Document::default();
    walk(body, &mut |index, event| {
        let text = changes.iter().find(|(inner, _)| index + 1 == inner.start).map(|(_, text)| text.borrow());
        match (event, text) {
            // An empty element has no room for text: open and close it.
            (Event::Empty(tag), Some(text)) => {
                writer.write(Event::Start(tag.borrow()));
                writer.write(text);
                writer.write(Event::End(tag.to_end()));
            }
            (event, Some(text)) => {
                writer.write(event);
                writer.write(text);
            }
            _ if changes.iter().any(|(inner, _)| inner.contains(&index)) => {}
            (event, None) => writer.write(event),
        }
        Ok(())
    })?;
    Ok(Some(writer.finish()))
}

/// Removes the texts below elements whose local names are `unwanted`, and the values of
/// attributes with such names, and all comments. Texts for which `keep` returns true stay. Elements without text
/// are written like those whose text was removed.
///
/// Returns the changed document, or `None` if there was nothing to remove. Rejects documents
/// that are not the XML this module reads.
pub fn blank(
    body: &[u8],
    unwanted: &dyn Fn(&str) -> bool,
    keep: &dyn Fn(&str) -> bool,
) -> Result<Option<Vec<u8>>, Fault> {
    let mut open: Vec<bool> = Vec::new();
    let mut blanked = false;
    let mut writer = Document::default();
    walk(body, &mut |_, event| {
        let inside = open.last().is_some_and(|inside| *inside);
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let inside = inside || unwanted(tag.local_name().as_ref());
                let plain = without_attributes(tag, &|name| inside || unwanted(name));
                blanked |= plain.is_some();
                let tag = plain.unwrap_or_else(|| tag.borrow());
                match &event {
                    Event::Empty(_) if inside => {
                        blanked = true;
                        writer.write(Event::Start(tag.borrow()));
                        writer.write(Event::End(tag.to_end()));
                    }
                    Event::Empty(_) => writer.write(Event::Empty(tag)),
                    _ => {
                        open.push(inside);
                        writer.write(Event::Start(tag));
                    }
                }
                return Ok(());
            }
            Event::End(_) => drop(open.pop()),
            // A comment may quote such an element.
            Event::Comment(_) => {
                blanked = true;
                return Ok(());
            }
            _ if inside && text(&event).is_some_and(|text| !keep(&text)) => {
                blanked = true;
                return Ok(());
            }
            _ => {}
        }
        writer.write(event);
        Ok(())
    })?;
    Ok(blanked.then(|| writer.finish()))
}

/// Returns the tag with empty values in attributes of `unwanted` names, or `None` if it has none.
fn without_attributes(tag: &BytesStart<'_>, unwanted: &dyn Fn(&str) -> bool) -> Option<BytesStart<'static>> {
    let namespace = |name: &str| name == "xmlns" || name.starts_with("xmlns:");
    let attributes: Vec<_> = tag.attributes().flatten().collect();
    let gone = |attribute: &Attribute<'_>| {
        let name: &str = attribute.key.as_ref();
        !namespace(name) && !attribute.value.is_empty() && unwanted(attribute.key.local_name().as_ref())
    };
    attributes.iter().any(gone).then(|| {
        let mut plain = BytesStart::new(tag.name().as_ref().to_owned());
        for attribute in &attributes {
            let value = if gone(attribute) { String::new() } else { attribute.value.replace('"', "&quot;") };
            plain.push_attribute(Attribute { key: attribute.key, value: value.into() });
        }
        plain
    })
}

struct Found {
    value: String,
    /// The indices of the events between the tags of the element.
    inner: Range<usize>,
    /// True if the element is at the path of the place.
    placed: bool,
}

/// Returns the only element of this local name. If the place is a path, an element of the name at
/// another path is not found, and makes the place ambiguous as well.
fn find(body: &[u8], place: &str) -> Result<Option<Found>, Fault> {
    let path = names(place);
    let (name, anchored) = (path.last().copied().unwrap_or_default(), place.starts_with('/'));
    let mut found: Option<Found> = None;
    let mut inside: Option<Found> = None;
    // The number of open elements, and how many of them, from the root, are those of the path.
    let (mut depth, mut matched) = (0usize, 0usize);
    walk(body, &mut |index, event| {
        if let Some(mut element) = inside.take() {
            match (text(&event), &event) {
                (Some(text), _) => {
                    element.value.push_str(&text);
                    inside = Some(element);
                }
                (None, Event::End(_)) => {
                    element.inner.end = index;
                    found = Some(element);
                    depth -= 1;
                    matched = matched.min(depth);
                }
                _ => return Err(FaultKind::NotPlain.into()),
            }
            return Ok(());
        }
        let (Event::Start(tag) | Event::Empty(tag)) = &event else {
            if matches!(event, Event::End(_)) {
                depth -= 1;
                matched = matched.min(depth);
            }
            return Ok(());
        };
        let fits = matched == depth && path.get(depth).is_some_and(|name| *name == tag.local_name().as_ref());
        let at_path = fits && depth + 1 == path.len();
        if matches!(event, Event::Start(_)) {
            depth += 1;
            matched += usize::from(fits);
        }
        if tag.local_name().as_ref() != name {
            return Ok(());
        }
        Check::PlaceOnce.ensure(found.is_none(), Fault::ambiguous)?;
        let placed = !anchored || Check::PlaceElement.accepts(at_path);
        let element = Found { value: String::new(), inner: index + 1..index + 1, placed };
        match (&found, &event) {
            (Some(_), _) => {}
            (None, Event::Start(_)) => inside = Some(element),
            (None, _) => found = Some(element),
        }
        Ok(())
    })?;
    Ok(found.filter(|found| found.placed))
}

/// Returns the text that an event stands for, if it is text.
pub(super) fn text(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Text(text) => Some(text.xml10_content().into_owned()),
        Event::CData(text) => Some(text.xml10_content().into_owned()),
        Event::GeneralRef(entity) => match entity.resolve_char_ref() {
            Ok(Some(c)) => Some(c.to_string()),
            _ => resolve_predefined_entity(entity).map(str::to_owned),
        },
        _ => None,
    }
}

/// Calls `visit` with every event and its index. An error in the document may follow events
/// that were already visited.
pub(super) fn walk<'a>(
    body: &'a [u8],
    visit: &mut dyn FnMut(usize, Event<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let malformed = |why: &'static str| Unparsable::from(why).in_format("XML");
    let document = std::str::from_utf8(body).map_err(|_| malformed("it is not UTF-8"))?;
    if document.contains(|c: char| !is_xml_char(c)) {
        return Err(malformed("it holds control characters"));
    }
    let mut reader = Reader::from_str(document);
    reader.config_mut().check_comments = true;
    let (mut depth, mut roots) = (0usize, 0usize);
    for index in 0usize.. {
        let event = reader.read_event().map_err(|_| malformed("it is not well-formed"))?;
        check(&event, index, depth).map_err(|error| error.in_format("XML"))?;
        match &event {
            Event::Eof if depth == 0 && roots == 1 => break,
            Event::Eof => return Err(malformed("it does not have one complete root element")),
            Event::Start(_) => {
                roots += usize::from(depth == 0);
                depth += 1;
            }
            Event::Empty(_) => roots += usize::from(depth == 0),
            Event::End(_) => depth = depth.checked_sub(1).ok_or_else(|| malformed("it is not well-formed"))?,
            _ => {}
        }
        visit(index, event)?;
    }
    Ok(())
}

fn check(event: &Event<'_>, index: usize, depth: usize) -> Result<(), Unparsable> {
    match event {
        Event::Start(tag) | Event::Empty(tag) => Ok(check_tag(tag)?),
        Event::Decl(declaration) => {
            let utf8 = match declaration.encoding() {
                None => true,
                Some(encoding) => encoding.is_ok_and(|name| name.eq_ignore_ascii_case("utf-8")),
            };
            let fits = index == 0 && utf8;
            let why = "its declaration is misplaced, or names an encoding other than UTF-8";
            if fits { Ok(()) } else { Err(why.into()) }
        }
        Event::Text(text) if depth == 0 && !text.trim().is_empty() => Err("there is text around the root".into()),
        Event::CData(_) | Event::GeneralRef(_) if depth == 0 => Err("there is text around the root".into()),
        Event::GeneralRef(_) if text(event).is_none_or(|text| text.contains(|c| !is_xml_char(c))) => {
            Err("it has a reference to something other than a character".into())
        }
        Event::PI(_) | Event::DocType(_) => {
            Check::XmlDoctype.refuse(|| Unparsable::from("it has a document type or processing instructions"))
        }
        _ => Ok(()),
    }
}

fn check_tag(tag: &BytesStart<'_>) -> Result<(), &'static str> {
    check_name(tag.name().as_ref())?;
    for (index, attribute) in tag.attributes().enumerate() {
        let attribute = attribute.map_err(|_| "it has malformed attributes")?;
        check_name(attribute.key.as_ref())?;
        if attribute.value.contains('<') || index == MAX_ATTRIBUTES {
            return Err("it has malformed attributes");
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = match name.split_once(':') {
        Some((prefix, local)) => is_local_name(prefix) && is_local_name(local),
        None => is_local_name(name),
    };
    if fits { Ok(()) } else { Err("it has malformed names") }
}

/// Rejects what the text of an element cannot hold.
pub(super) fn check_value(value: &str) -> Result<(), Fault> {
    Check::PlaceUnwritable
        .ensure(!value.contains(|c: char| !is_xml_char(c)), || Fault::unwritable("XML has no control characters"))
}

fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'))
}

/// A document that is being written.
#[derive(Default)]
struct Document(Vec<u8>);

impl Document {
    fn write(&mut self, event: Event<'_>) {
        // Writing to memory does not fail.
        let _ = Writer::new(&mut self.0).write_event(event);
    }

    fn finish(self) -> Vec<u8> {
        self.0
    }
}
