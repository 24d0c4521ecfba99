//! Removes elements, and replaces texts, wherever they are in an XML document.

use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesStart, BytesText, Event};

use super::{Document, text, walk};
use crate::place::Fault;

/// Removes all elements whose local names are `unwanted`, with everything in them, and all
/// attributes with such names, and all comments.
///
/// Returns the changed document, or `None` if there was nothing to remove. Rejects documents that
/// are not the XML this module reads. A root that is removed becomes an empty element.
pub fn remove(body: &[u8], unwanted: &dyn Fn(&str) -> bool) -> Result<Option<Vec<u8>>, Fault> {
    let mut writer = Document::default();
    // How many elements are open, and at how many of them removing began.
    let (mut depth, mut from) = (0usize, None);
    let mut removed = false;
    walk(body, &mut |_, event| {
        let (opens, closes) = (matches!(event, Event::Start(_)), matches!(event, Event::End(_)));
        let inside = from.is_some();
        if let (false, Event::Start(tag) | Event::Empty(tag)) = (inside, &event) {
            if unwanted(tag.local_name().as_ref()) {
                removed = true;
                from = opens.then_some(depth);
                if depth == 0 {
                    writer.write(Event::Empty(BytesStart::new(tag.name().as_ref().to_owned())));
                }
            } else {
                let plain = changed_attributes(tag, &|name, _| unwanted(name).then(String::new));
                removed |= plain.is_some();
                let tag = plain.unwrap_or_else(|| tag.borrow());
                writer.write(if opens { Event::Start(tag) } else { Event::Empty(tag) });
            }
        } else if matches!(event, Event::Comment(_)) {
            // A comment may quote such an element.
            removed = true;
        } else if !inside {
            writer.write(event);
        }
        depth = depth + usize::from(opens) - usize::from(closes);
        if closes && from == Some(depth) {
            from = None;
        }
        Ok(())
    })?;
    Ok(removed.then(|| writer.finish()))
}

/// Replaces the texts and attribute values for which `unwanted` returns true, and removes such
/// comments. A text is everything between two tags.
///
/// Returns the changed document, or `None` if there was nothing to replace. Rejects documents
/// that are not the XML this module reads.
pub fn replace_texts(body: &[u8], unwanted: &dyn Fn(&str) -> bool, by: &str) -> Result<Option<Vec<u8>>, Fault> {
    let mut writer = Document::default();
    let mut replaced = false;
    let mut run: Vec<Event<'_>> = Vec::new();
    walk(body, &mut |_, event| {
        if text(&event).is_some() {
            run.push(event);
            return Ok(());
        }
        let whole: String = run.iter().filter_map(text).collect();
        if !run.is_empty() && unwanted(&whole) {
            replaced = true;
            run.clear();
            writer.write(Event::Text(BytesText::new(by)));
        }
        run.drain(..).for_each(|event| writer.write(event));
        match &event {
            Event::Comment(comment) if unwanted(&comment.xml10_content()) => replaced = true,
            Event::Start(tag) | Event::Empty(tag) => {
                let plain = changed_attributes(tag, &|_, value| unwanted(value).then(|| by.to_owned()));
                replaced |= plain.is_some();
                let tag = plain.unwrap_or_else(|| tag.borrow());
                writer.write(if matches!(event, Event::Start(_)) { Event::Start(tag) } else { Event::Empty(tag) });
            }
            _ => writer.write(event),
        }
        Ok(())
    })?;
    Ok(replaced.then(|| writer.finish()))
}

/// Returns the tag with the values that `change` returns for the local names and values of its
/// attributes, or `None` if it changes none. Names of namespaces stay.
fn changed_attributes(
    tag: &BytesStart<'_>,
    change: &dyn Fn(&str, &str) -> Option<String>,
) -> Option<BytesStart<'static>> {
    let mut changed = false;
    let mut plain = BytesStart::new(tag.name().as_ref().to_owned());
    for attribute in tag.attributes().flatten() {
        let name: &str = attribute.key.as_ref();
        let value = quick_xml::escape::unescape(&attribute.value).unwrap_or(attribute.value.as_ref().into());
        let is_namespace = name == "xmlns" || name.starts_with("xmlns:");
        let new = change(attribute.key.local_name().as_ref(), &value).filter(|_| !is_namespace && !value.is_empty());
        changed |= new.is_some();
        let value = new
            .map_or_else(|| attribute.value.replace('"', "&quot;"), |new| quick_xml::escape::escape(new).into_owned());
        plain.push_attribute(Attribute { key: attribute.key, value: value.into() });
    }
    changed.then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(document: &str) -> String {
        let unwanted = |name: &str| name.eq_ignore_ascii_case("userData");
        let changed = remove(document.as_bytes(), &unwanted).unwrap();
        changed.map_or_else(|| document.to_owned(), |bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn elements_are_removed_with_all_that_is_in_them() {
        for (document, expected) in [
            ("<r><a>1</a></r>", "<r><a>1</a></r>"),
            ("<r><userData>x</userData><a>1</a></r>", "<r><a>1</a></r>"),
            ("<r><n:UserDATA><b><c>x</c></b>y</n:UserDATA><a/></r>", "<r><a/></r>"),
            ("<r><userData/><userData><userData>x</userData>y</userData>z</r>", "<r>z</r>"),
            ("<r><a userData=\"x\" b=\"&quot;\"/></r>", "<r><a userData=\"\" b=\"&quot;\"/></r>"),
            ("<userData>x</userData>", "<userData/>"),
            ("<!-- a --><r><!-- <userData>x</userData> --><a>1</a></r>", "<r><a>1</a></r>"),
        ] {
            assert_eq!(removed(document), expected);
        }
        assert!(remove(b"<r><userData>x</r>", &|_| true).is_err());
    }

    #[test]
    fn texts_are_replaced_however_they_are_written() {
        let replaced = |document: &str| {
            let changed = replace_texts(document.as_bytes(), &|text| text.contains("MARK"), "gone").unwrap();
            changed.map_or_else(|| document.to_owned(), |bytes| String::from_utf8(bytes).unwrap())
        };
        for (document, expected) in [
            ("<r><a>1 &amp; 2</a></r>", "<r><a>1 &amp; 2</a></r>"),
            ("<r><a>x MARK y</a><b>1</b></r>", "<r><a>gone</a><b>1</b></r>"),
            ("<r><a>x M&#65;R<![CDATA[K]]> y</a></r>", "<r><a>gone</a></r>"),
            ("<r a=\"MARK\" b='1'><!-- MARK --></r>", "<r a=\"gone\" b=\"1\"></r>"),
            ("<r a=\"M&#65;RK\"/>", "<r a=\"gone\"/>"),
        ] {
            assert_eq!(replaced(document), expected);
        }
    }
}
