//! Builds the tree of a document from the events of the parser.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::{Element, MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, XmlError};

/// An element whose end was not read yet.
struct OpenElement {
    name: Box<str>,
    text: String,
    children: Vec<Element>,
}

/// The part of the tree that was read.
#[derive(Default)]
struct Tree {
    open: Vec<OpenElement>,
    elements: usize,
    root: Option<Element>,
}

/// Why an event does not fit into the tree.
enum Fault {
    Malformed(&'static str),
    TooLarge(&'static str, usize),
}

impl From<&'static str> for Fault {
    fn from(why: &'static str) -> Self {
        Self::Malformed(why)
    }
}

pub(super) fn parse(document: &[u8]) -> Result<Element, XmlError> {
    if document.len() > MAX_BYTES {
        return Err(XmlError::TooLarge("bytes", MAX_BYTES));
    }
    let not_utf8 = |error: std::str::Utf8Error| (error.valid_up_to(), "it is not UTF-8");
    let text = std::str::from_utf8(document).map_err(not_utf8).and_then(|text| match text.find(is_not_allowed) {
        Some(at) => Err((at, "it has a control character")),
        None => Ok(text),
    });
    let text = text.map_err(|(at, why)| XmlError::Malformed { at: at as u64, why })?;

    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = true;
    let mut tree = Tree::default();
    loop {
        let begin = reader.buffer_position();
        let event = reader
            .read_event()
            .map_err(|_| XmlError::Malformed { at: reader.error_position(), why: "it is not well-formed" })?;
        let added = match event {
            Event::Eof => break,
            Event::Decl(declaration) => check_declaration(begin, &declaration),
            event => tree.add(&event),
        };
        added.map_err(|fault| match fault {
            Fault::Malformed(why) => XmlError::Malformed { at: begin, why },
            Fault::TooLarge(what, limit) => XmlError::TooLarge(what, limit),
        })?;
    }
    let incomplete = || XmlError::Malformed { at: reader.buffer_position(), why: "it has no complete root element" };
    tree.finish().ok_or_else(incomplete)
}

impl Tree {
    fn add(&mut self, event: &Event<'_>) -> Result<(), Fault> {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::Empty(tag) => self.start(tag).and_then(|()| self.end()),
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(&text.xml10_content()),
            Event::CData(text) if !self.open.is_empty() => self.text(&text.xml10_content()),
            Event::GeneralRef(reference) if !self.open.is_empty() => {
                let mut buffer = [0; 4];
                let text = character(reference, &mut buffer)
                    .ok_or("it has a reference to something other than a character")?;
                self.text(text)
            }
            Event::CData(_) | Event::GeneralRef(_) => Err(Fault::Malformed("it has text around the root element")),
            Event::DocType(_) | Event::PI(_) => {
                Err(Fault::Malformed("it has a document type or a processing instruction"))
            }
            Event::Comment(_) | Event::Decl(_) | Event::Eof => Ok(()),
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), Fault> {
        let local = tag.local_name();
        let name: &str = local.as_ref();
        if !is_name(name) {
            return Err(Fault::Malformed("it has an element without a valid name"));
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err(Fault::Malformed("it has more than one root element"));
        }
        self.elements += 1;
        if self.elements > MAX_ELEMENTS {
            return Err(Fault::TooLarge("elements", MAX_ELEMENTS));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(Fault::TooLarge("elements inside of each other", MAX_DEPTH));
        }
        self.open.push(OpenElement { name: name.into(), text: String::new(), children: vec![] });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let OpenElement { name, mut text, children } = self.open.pop().ok_or("it is not well-formed")?;
        // The text between children is indentation.
        if !children.is_empty() {
            if !is_blank(&text) {
                return Err(Fault::Malformed("it has an element with both text and children"));
            }
            text.clear();
        }
        let element = Element { name, text: text.into(), children };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Fault> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if is_blank(text) => {}
            None => return Err(Fault::Malformed("it has text around the root element")),
        }
        Ok(())
    }

    fn finish(self) -> Option<Element> {
        self.root.filter(|_| self.open.is_empty())
    }
}

/// Refuses a declaration that is not at the start, or that names an encoding other than UTF-8.
fn check_declaration(begin: u64, declaration: &str) -> Result<(), Fault> {
    let small = declaration.to_ascii_lowercase();
    let is_utf8 = !small.contains("encoding") || small.contains("utf-8");
    if begin == 0 && is_utf8 {
        Ok(())
    } else {
        Err(Fault::Malformed("its declaration is not at the start, or names an encoding other than UTF-8"))
    }
}

/// Returns the character for which a reference stands: one of the five predefined entities or a number.
fn character<'a>(reference: &'a BytesRef<'_>, buffer: &'a mut [u8; 4]) -> Option<&'a str> {
    match reference.resolve_char_ref() {
        Ok(Some(c)) if !is_not_allowed(c) => Some(c.encode_utf8(buffer)),
        Ok(None) => resolve_xml_entity(reference),
        _ => None,
    }
}

/// Returns true if XML allows the text as a local name; characters beyond ASCII are not checked.
fn is_name(name: &str) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii();
    let is_other = |byte: u8| is_start(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    name.bytes().next().is_some_and(is_start) && name.bytes().all(is_other)
}

/// Returns true if the text has only the white space of XML.
fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

/// Returns true for characters that no XML document may have.
fn is_not_allowed(c: char) -> bool {
    (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}
