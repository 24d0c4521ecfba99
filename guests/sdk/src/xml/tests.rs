use super::*;
use crate::fake::{Answer, Fake};

/// Returns the tree as a text, which is easy to compare.
fn shown(element: &Element) -> String {
    let inside = element.children().iter().map(shown).collect::<Vec<_>>().join(" ");
    format!("{}({}{inside})", element.name(), element.value())
}

fn why(document: &[u8]) -> String {
    parse(document).unwrap_err().to_string()
}

#[test]
fn names_texts_and_children_are_kept_and_the_rest_is_left_out() {
    for (document, tree) in [
        ("<a/>", "a()"),
        ("<a></a>", "a()"),
        ("\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a xmlns=\"http://x/\">1</a>\n", "a(1)"),
        ("<n:a xmlns:n='u' b=\"<>\"><n:c>1</n:c>\n  <d> 2 </d></n:a>", "a(c(1) d( 2 ))"),
        ("<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#10;</a>", "a(<>&\"'AB\n)"),
        ("<a>1<![CDATA[<2>&amp;]]>3<!-- 4 -->5</a>", "a(1<2>&amp;35)"),
        ("<!-- first --><a>\r\n</a><!-- last -->", "a(\n)"),
        ("<é.1-_>ü</é.1-_>", "é.1-_(ü)"),
    ] {
        assert_eq!(shown(&parse(document.as_bytes()).unwrap()), tree, "{document}");
    }
}

#[test]
fn what_apis_do_not_send_is_refused() {
    for (document, part) in [
        ("", "it has no complete root element, at byte 0"),
        ("<a>", "it has no complete root element"),
        ("<a><b></a>", "it is not well-formed"),
        ("</a>", "it is not well-formed"),
        ("<a", "it is not well-formed"),
        ("<a>&</a>", "it is not well-formed"),
        ("<a/><b/>", "it has more than one root element, at byte 4"),
        ("x<a/>", "it has text around the root element"),
        ("<a/>&amp;", "it has text around the root element"),
        ("<![CDATA[x]]><a/>", "it has text around the root element"),
        ("<a>x<b/></a>", "it has an element with both text and children"),
        ("<a>&nbsp;</a>", "a reference to something other than a character, at byte 3"),
        ("<a>&#0;</a>", "a reference to something other than a character"),
        ("<a>&#xD800;</a>", "a reference to something other than a character"),
        ("<a>&#27;</a>", "a reference to something other than a character"),
        ("<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>", "a document type or a processing instruction, at byte 0"),
        ("<a><?php 1 ?></a>", "a document type or a processing instruction"),
        ("<a/><?xml version=\"1.0\"?>", "its declaration is not at the start"),
        ("<?xml version=\"1.0\" encoding=\"latin-1\"?><a/>", "names an encoding other than UTF-8"),
        ("<>1</>", "an element without a valid name"),
        ("<1/>", "an element without a valid name"),
        ("<a:/>", "an element without a valid name"),
        ("<a=b/>", "an element without a valid name"),
        ("<a>\u{1}</a>", "it has a control character, at byte 3"),
    ] {
        let why = why(document.as_bytes());
        assert!(why.starts_with("the XML cannot be read: ") && why.contains(part), "{document}: {why}");
    }
    assert_eq!(why(b"<a>\xff</a>"), "the XML cannot be read: it is not UTF-8, at byte 3");
}

#[test]
fn large_documents_are_refused() {
    let nested = |depth| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
    let too_deep = why(nested(MAX_DEPTH + 1).as_bytes());
    assert_eq!(too_deep, "the XML cannot be read: it has more than 64 elements inside of each other");
    let wide = |children| format!("<a>{}</a>", "<b/>".repeat(children));
    assert!(parse(wide(MAX_ELEMENTS - 1).as_bytes()).is_ok());
    assert_eq!(why(wide(MAX_ELEMENTS).as_bytes()), "the XML cannot be read: it has more than 500000 elements");
    let long = |bytes| format!("<a>{}</a>", "x".repeat(bytes - 7));
    assert!(parse(long(MAX_BYTES).as_bytes()).is_ok());
    assert_eq!(why(long(MAX_BYTES + 1).as_bytes()), "the XML cannot be read: it has more than 16777216 bytes");
}

#[test]
fn paths_find_the_first_element_or_all() {
    let root = parse(
        b"<r><set/><set><item><id>1</id><on>true</on></item></set><set><item><id>2</id><on/></item></set><id>9</id></r>",
    )
    .unwrap();
    assert_eq!(root.child("id").map(Element::value), Some("9"));
    assert_eq!(root.text("set/item/id"), Some("1"));
    assert_eq!(root.text("set/item"), None);
    assert_eq!((root.at(""), root.at("set/"), root.at("/id")), (None, None, None));
    let ids: Vec<_> = root.items("set/item").iter().map(|item| item.required_parsed::<u8>("id")).collect();
    assert_eq!(ids, [Ok(1), Ok(2)]);
    assert!(root.items("set/other").is_empty());
    assert_eq!(root.parsed("set/item/on"), Ok(Some(true)));
    assert_eq!(root.items("set/item")[1].parsed::<bool>("on"), Ok(None));
}

#[test]
fn errors_name_the_path_and_do_not_quote_the_document() {
    let root = parse(b"<r><a>secret</a><b/></r>").unwrap();
    for (error, message) in [
        (root.required("a/x").unwrap_err(), "the XML element `r` has no element at `a/x`"),
        (root.required_text("b").unwrap_err(), "the XML element `r` has no text at `b`"),
        (root.required_parsed::<u32>("b").unwrap_err(), "the XML element `r` has no text at `b`"),
        (root.required_parsed::<u32>("a").unwrap_err(), "the text at `a` of the XML element `r` is not a valid u32"),
        (root.parsed::<bool>("a").unwrap_err(), "the text at `a` of the XML element `r` is not a valid bool"),
    ] {
        assert_eq!(error.to_string(), message);
        assert_eq!(crate::Error::from(error).message, message);
    }
}

#[test]
fn the_error_of_a_response_names_the_request() {
    let url = "https://cloud.example/";
    let _host = Fake::new().on("GET", url, Answer::xml(200, "<a/>")).install();
    let response = crate::http::get(url).send().unwrap();
    assert_eq!(response.xml(|root| Ok(root.name().to_owned())), Ok("a".to_owned()));
    let error = response.xml(|root| root.required("b").cloned()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "GET https://cloud.example/: the response's body: the XML element `a` has no element at `b`"
    );
    let _host = Fake::new().on("GET", url, Answer::text(200, "{}")).install();
    let error = crate::http::get(url).send().unwrap().xml(|_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("the response's body: the XML cannot be read: "), "{error}");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(document in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        drop(parse(&document));
    }

    #[test]
    fn any_mixture_of_markup_is_parsed_or_refused(
        parts in proptest::collection::vec(r"<a>|</a>|<b/>|<|>|&|;|&lt;|&#[0-9x]{0,3};?|<!|<!--|-->|<!\[CDATA\[|\]\]>|<\?|<\?xml|\?>|<!DOCTYPE|[ a\[\]'=]|é|\x00", 0..12)
    ) {
        if let Ok(root) = parse(parts.concat().as_bytes()) {
            assert!(!root.name().is_empty());
        }
    }

    #[test]
    fn texts_are_read_as_they_were_written(texts in proptest::collection::vec("[^\\x00-\\x1f\\u{7f}-\\u{9f}\\u{2028}\\u{fffe}\\u{ffff}]{0,20}", 0..6)) {
        let items: String = texts.iter().map(|text| format!("<item>{}</item>", escaped(text))).collect();
        let root = parse(format!("<set>{items}</set>").as_bytes()).unwrap();
        let read: Vec<&str> = root.items("item").into_iter().map(Element::value).collect();
        assert_eq!(read, texts);
    }
}
