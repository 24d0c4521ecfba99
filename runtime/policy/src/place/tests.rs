mod parts;

use super::*;
use proptest::prelude::*;

/// Hard for every encoder, and yet allowed everywhere but in headers.
const NEW: &str = "n\u{e9}w <&>\"'%+=;~ \r\n/";
const FORM: &str = "application/x-www-form-urlencoded";
const MULTI: &str = "multipart/form-data; boundary=b0";

enum Outcome {
    /// What is read, and the body once `NEW` was written.
    Holds(&'static str, &'static str),
    Nothing,
    Fails(&'static str),
}
use Outcome::{Fails, Holds, Nothing};

const BODIES: &[(&str, &str, &str, Outcome)] = &[
    (
        "json:/a",
        "application/json",
        r#"{"z":1,"a":"v","b":[]}"#,
        Holds("v", "{\"z\":1,\"a\":\"né\u{77} <&>\\\"'%+=;~ \\r\\n/\",\"b\":[]}"),
    ),
    ("json:/a/1", "", r#"{"a":["x","v"]}"#, Holds("v", "{\"a\":[\"x\",\"né\u{77} <&>\\\"'%+=;~ \\r\\n/\"]}")),
    (
        "json:/a~1b/~0",
        "application/vnd.x+json; charset=utf-8",
        r#"{"a/b":{"~":"v"}}"#,
        Holds("v", "{\"a/b\":{\"~\":\"néw <&>\\\"'%+=;~ \\r\\n/\"}}"),
    ),
    ("json:/", "application/json", r#"{"":"v"}"#, Holds("v", "{\"\":\"néw <&>\\\"'%+=;~ \\r\\n/\"}")),
    ("json:/n", "application/json", r#"{"n":3600}"#, Holds("3600", "{\"n\":\"néw <&>\\\"'%+=;~ \\r\\n/\"}")),
    ("json:/a", "application/json", r#"{"a":"\u0076"}"#, Holds("v", "{\"a\":\"néw <&>\\\"'%+=;~ \\r\\n/\"}")),
    ("json:/a/01", "application/json", r#"{"a":["x","v"]}"#, Nothing),
    ("json:/a/-", "application/json", r#"{"a":["x","v"]}"#, Nothing),
    ("json:/a/b", "application/json", r#"{"a":"v"}"#, Nothing),
    ("json:/a", "application/json", r#"{"a":null}"#, Nothing),
    ("json:/a", "application/json", "", Nothing),
    ("json:/a", "application/json", r#"{"a":{"b":"v"}}"#, Fails("not a single plain value")),
    ("json:/a", "application/json", r#"{"a":"v","b":{"c":1,"c":1}}"#, Fails("a key twice at line 1 column")),
    ("json:/a", "application/json", r#"{"a":"v","\u0061":"w"}"#, Fails("a key twice")),
    ("json:/a", "application/json", r#"{"a":"v","A":"w"}"#, Fails("more than once")),
    ("json:/a", "application/json", r#"{"a\u0000x":"w","a":"v"}"#, Fails("more than once")),
    ("json:/a/b", "application/json", r#"{"a":{"b":"v"},"a ":{"b":"w"}}"#, Fails("more than once")),
    ("json:/a", "application/json", r#"{"a":"v"}{}"#, Fails("malformed")),
    ("json:/a", "application/json", r#"{"a":"v","#, Fails("malformed")),
    ("json:/a", "application/json", "{\"a\":\"v\u{0}\"}", Fails("malformed")),
    ("json:/a", "text/plain", r#"{"a":"v"}"#, Fails("not JSON")),
    ("form:f", FORM, "e=%20x&f=v&e=2", Holds("v", "e=+x&f=n%C3%A9w+%3C%26%3E%22%27%25%2B%3D%3B~+%0D%0A%2F&e=2")),
    ("form:a[b]", FORM, "a%5Bb%5D=v%2B1+x", Holds("v+1 x", "a%5Bb%5D=n%C3%A9w+%3C%26%3E%22%27%25%2B%3D%3B~+%0D%0A%2F")),
    ("form:f", FORM, "f", Holds("", "f=n%C3%A9w+%3C%26%3E%22%27%25%2B%3D%3B~+%0D%0A%2F")),
    ("form:f", FORM, "g=f", Nothing),
    ("form:f", FORM, "f=v&%66=w", Fails("more than once")),
    ("form:f", FORM, "f=v%2", Fails("field 1")),
    ("form:f", FORM, "g=%ff&f=v", Fails("field 1")),
    ("form:f", FORM, "f=v&&g=1", Fails("field 2")),
    ("form:f", FORM, "f=v\n", Fails("field 1")),
    ("form:f", "", "f=v", Fails("not application/x-www-form-urlencoded")),
    ("form:f", "application/json", "f=v", Fails("not application/x-www-form-urlencoded")),
    (
        "xml:E",
        "text/xml",
        "<?xml version=\"1.0\"?><r a=\"1\"><p:E>v</p:E><!-- c --></r>",
        Holds(
            "v",
            "<?xml version=\"1.0\"?><r a=\"1\"><p:E>néw &lt;&amp;&gt;&quot;&apos;%+=;~ &#13;\n/</p:E><!-- c --></r>",
        ),
    ),
    (
        "xml:E",
        "application/soap+xml",
        "<r><E>a&amp;&#x62;<![CDATA[<c>]]></E></r>",
        Holds("a&b<c>", "<r><E>néw &lt;&amp;&gt;&quot;&apos;%+=;~ &#13;\n/</E></r>"),
    ),
    ("xml:E", "", "<r><E/></r>", Holds("", "<r><E>néw &lt;&amp;&gt;&quot;&apos;%+=;~ &#13;\n/</E></r>")),
    (
        "xml:E",
        "",
        "<r><E x='1'/><F/></r>",
        Holds("", "<r><E x='1'>néw &lt;&amp;&gt;&quot;&apos;%+=;~ &#13;\n/</E><F/></r>"),
    ),
    ("xml:E", "", "<E></E>", Holds("", "<E>néw &lt;&amp;&gt;&quot;&apos;%+=;~ &#13;\n/</E>")),
    ("xml:E", "text/xml", "<r><e>v</e></r>", Nothing),
    ("xml:E", "text/xml", "<r><E>v</E><q><E/></q></r>", Fails("more than once")),
    ("xml:E", "text/xml", "<r><E>v<b/></E></r>", Fails("not a single plain value")),
    ("xml:E", "text/xml", "<r><E>v<!-- c --></E></r>", Fails("not a single plain value")),
    ("xml:E", "text/xml", "<r><E><E>v</E></E></r>", Fails("not a single plain value")),
    ("xml:E", "text/xml", "<r><E>v</E>", Fails("complete root")),
    ("xml:E", "text/xml", "<r><E>v</F></r>", Fails("well-formed")),
    ("xml:E", "text/xml", "<r/><E>v</E>", Fails("complete root")),
    ("xml:E", "text/xml", "<E>v</E>x", Fails("around the root")),
    ("xml:E", "text/xml", "<!DOCTYPE r [<!ENTITY e \"x\">]><E>&e;</E>", Fails("document type")),
    ("xml:E", "text/xml", "<E>&e;</E>", Fails("reference")),
    ("xml:E", "text/xml", "<E>&#0;</E>", Fails("reference")),
    ("xml:E", "text/xml", "<E>a & b</E>", Fails("well-formed")),
    ("xml:E", "text/xml", "<r><?php E?><E>v</E></r>", Fails("processing instructions")),
    ("xml:E", "text/xml", "<?xml version=\"1.0\" encoding=\"UTF-7\"?><E>v</E>", Fails("encoding")),
    ("xml:E", "text/xml", "<r a=\"1\" a=\"2\"><E>v</E></r>", Fails("attributes")),
    ("xml:E", "text/xml", "<r a=1><E>v</E></r>", Fails("attributes")),
    ("xml:E", "application/json", "<E>v</E>", Fails("not XML")),
    (
        "xml:/r/q/E",
        "text/xml",
        "<n:r><a/><q><b><c/></b><E>v</E></q></n:r>",
        Holds("v", "<n:r><a/><q><b><c/></b><E>néw &lt;&amp;&gt;&quot;&apos;%+=;~ &#13;\n/</E></q></n:r>"),
    ),
    ("xml:/E", "text/xml", "<E/>", Holds("", "<E>néw &lt;&amp;&gt;&quot;&apos;%+=;~ &#13;\n/</E>")),
    ("xml:/r/E", "text/xml", "<r><q><E>v</E></q></r>", Nothing),
    ("xml:/r/E", "text/xml", "<E>v</E>", Nothing),
    ("xml:/r/E", "text/xml", "<q><r><E>v</E></r></q>", Nothing),
    ("xml:/r/q/E", "text/xml", "<r><q/><E>v</E></r>", Nothing),
    ("xml:/r/q/E", "text/xml", "<r><q><x/></q><p><E/></p></r>", Nothing),
    ("xml:/r/E", "text/xml", "<r><q><E>w</E></q><E>v</E></r>", Fails("more than once")),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=\"filename\"; filename=m\r\n\r\n\r\n--b0\r\nContent-Disposition: form-data; name=n\r\nContent-Type: text/plain\r\n\r\nv\r\n--b0--",
        Holds(
            "v",
            "--b0\r\nContent-Disposition: form-data; name=\"filename\"; filename=m\r\n\r\n\r\n--b0\r\nContent-Disposition: form-data; name=n\r\nContent-Type: text/plain\r\n\r\nnéw <&>\"'%+=;~ \r\n/\r\n--b0--\r\n",
        ),
    ),
    ("part:n", MULTI, "--b0--\r\n", Nothing),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=n; FileName=\"f\"\r\n\r\nv\r\n--b0--",
        Fails("the part has a filename"),
    ),
    (
        "part:n",
        MULTI,
        "x\r\n--b0\r\nContent-Disposition: form-data; name=n\r\n\r\nv\r\n--b0--",
        Fails("begin with its boundary"),
    ),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=n\r\n\r\nv\r\n--b0--\r\nx",
        Fails("follows the last"),
    ),
    ("part:n", MULTI, "--b0\r\nContent-Disposition: form-data; name=n\r\n\r\nv", Fails("last boundary is missing")),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=n\r\n\r\nv\r\n--b0x\r\n--b0--",
        Fails("line break"),
    ),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=n\r\n\r\n--b0--\r\n--b0--",
        Fails("begins with the boundary"),
    ),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=\"n\\\"\"\r\n\r\nv\r\n--b0--",
        Fails("Content-Disposition"),
    ),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=n; name=m\r\n\r\nv\r\n--b0--",
        Fails("Content-Disposition"),
    ),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name*=UTF-8''n\r\n\r\nv\r\n--b0--",
        Fails("Content-Disposition"),
    ),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data;\r\n name=n\r\n\r\nv\r\n--b0--",
        Fails("Content-Disposition"),
    ),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=n\r\nContent-Transfer-Encoding: base64\r\n\r\nv\r\n--b0--",
        Fails("transfer encoding"),
    ),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=n\r\n\r\nv\n--b0\n\r\n--b0--",
        Fails("line break of one character"),
    ),
    (
        "part:n",
        MULTI,
        "--b0\r\nContent-Disposition: form-data; name=m\r\n\r\n\r--b0--\r\n--b0--",
        Fails("line break of one character"),
    ),
    ("part:n", MULTI, "--b0\r\nContent-Type: text/plain\r\n\r\nv\r\n--b0--", Fails("no name")),
    ("part:n", "multipart/form-data", "--b0--", Fails("boundary")),
    ("part:n", "multipart/mixed; boundary=b0", "--b0--", Fails("not multipart/form-data")),
    ("body", "text/plain", "v", Holds("v", NEW)),
    ("body", "", "", Nothing),
];

fn headers(content_type: &str) -> Vec<(String, String)> {
    let given = (!content_type.is_empty()).then(|| ("Content-Type".to_owned(), content_type.to_owned()));
    given.into_iter().collect()
}

#[test]
fn a_value_in_a_body_is_read_and_replaced_only_where_it_is_unambiguous() {
    for (place, content_type, body, outcome) in BODIES {
        let place: Place = place.parse().unwrap();
        let mut headers = headers(content_type);
        let mut written = body.as_bytes().to_vec();
        let read = place.read(&Message { headers: &headers, body: body.as_bytes() });
        let replaced = place.replace(&mut headers, &mut written, &mut |_| Some(NEW.to_owned()));
        match outcome {
            Holds(value, after) => {
                assert_eq!(read.as_ref().unwrap().as_deref(), Some(*value), "{place} in {body}");
                assert_eq!(replaced, Ok(true), "{place} in {body}");
                assert_eq!(std::str::from_utf8(&written).unwrap(), *after, "{place} in {body}");
                let again = place.read(&Message { headers: &headers, body: &written });
                assert_eq!(again.unwrap().as_deref(), Some(NEW), "{place} in {body}");
            }
            Nothing => {
                assert_eq!(read, Ok(None), "{place} in {body}");
                assert_eq!((replaced, written.as_slice()), (Ok(false), body.as_bytes()), "{place} in {body}");
            }
            Fails(why) => {
                let message = read.expect_err(body).to_string();
                assert!(message.contains(why), "{place} in {body}: {message}");
                assert_eq!(replaced.expect_err(body).to_string(), message);
                assert_eq!(written, body.as_bytes());
            }
        }
    }
}

#[test]
fn a_value_in_a_header_is_read_and_replaced_only_where_it_is_unambiguous() {
    type Headers = &'static [(&'static str, &'static str)];
    type Row = (&'static str, Headers, Result<Option<&'static str>, &'static str>, &'static str);
    let table: &[Row] = &[
        ("header:X-Key", &[("x-KEY", "v")], Ok(Some("v")), "new"),
        ("header:x-key", &[("x-other", "v")], Ok(None), "v"),
        ("header:x-key", &[("x-key", "v"), ("X-Key", "w")], Err("more than once"), "v"),
        ("cookie:s", &[("Set-Cookie", "s=v; Path=/; HttpOnly")], Ok(Some("v")), "s=new"),
        ("cookie:s", &[("cookie", "a=1;s=v ; b=2")], Ok(Some("v")), "a=1; s=new; b=2"),
        ("cookie:s", &[("set-cookie", "S=v; s=w")], Ok(None), "S=v; s=w"),
        ("cookie:s", &[("set-cookie", "s=v"), ("set-cookie", "s=w")], Err("more than once"), "s=v"),
        ("cookie:s", &[("cookie", "s=v; s=w")], Err("more than once"), "s=v; s=w"),
        (
            "json:/a",
            &[("content-type", "application/json"), ("content-type", "text/xml")],
            Err("more than once"),
            "application/json",
        ),
    ];
    for (place, given, expected, after) in table {
        let place: Place = place.parse().unwrap();
        let mut headers: Vec<_> = given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let mut body = b"{}".to_vec();
        let read = place.read(&Message { headers: &headers, body: &body });
        let _ = place.replace(&mut headers, &mut body, &mut |_| Some("new".to_owned()));
        match expected {
            Ok(value) => assert_eq!(read.unwrap().as_deref(), *value, "{place} in {given:?}"),
            Err(why) => assert!(read.unwrap_err().to_string().contains(why), "{place} in {given:?}"),
        }
        assert_eq!(headers[0].1, *after, "{place} in {given:?}");
    }
}

#[test]
fn a_value_that_does_not_fit_its_place_is_not_written() {
    let huge = r#"{"a":"v","n":123456789012345678901234567890}"#;
    for (place, header, body, value, why) in [
        ("header:x", ("x", "v"), "", "a\r\nb: c", "without line breaks"),
        ("header:x", ("x", "v"), "", "\u{e4}", "ASCII"),
        ("header:x", ("x", "v"), "", "a\0", "control characters"),
        ("header:x", ("x", "v"), "", " a", "spaces around"),
        ("cookie:x", ("cookie", "x=v"), "", "a; b=c", "semicolons"),
        ("xml:E", ("content-type", "text/xml"), "<E/>", "\u{1}", "control characters"),
        ("json:/a", ("content-type", "application/json"), huge, "x", "too large"),
    ] {
        let mut headers = vec![(header.0.to_owned(), header.1.to_owned())];
        let before = (headers.clone(), body.as_bytes().to_vec());
        let mut body = before.1.clone();
        let place: Place = place.parse().unwrap();
        let error = place.replace(&mut headers, &mut body, &mut |_| Some(value.to_owned())).unwrap_err().to_string();
        assert!(error.contains(why), "{place}: {error}");
        assert_eq!((headers, body), before, "{place}");
    }
}

#[test]
fn several_places_are_written_at_once() {
    let part =
        |name: &str, value: &str| format!("--b0\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}\r\n");
    let parts = |a: &str, b: &str| format!("{}{}--b0--", part("a", a), part("b", b));
    let written = format!("{}\r\n", parts("0", "1"));
    for (places, content_type, body, expected) in [
        (["json:/a", "json:/b/0"], "application/json", r#"{"b":["w",3],"a":"v"}"#, r#"{"b":["1",3],"a":"0"}"#),
        (["form:a", "form:b"], FORM, "b=w&c=x&a=v", "b=1&c=x&a=0"),
        (["xml:/r/a", "xml:b"], "text/xml", "<r><b/><c>x</c><a>v</a></r>", "<r><b>1</b><c>x</c><a>0</a></r>"),
        (["part:a", "part:b"], MULTI, &parts("v", "w"), &written),
        (["header:x", "json:/a"], "application/json", r#"{"a":"v"}"#, r#"{"a":"1"}"#),
        (["json:/a", "json:/missing"], "application/json", r#"{"a":"v"}"#, r#"{"a":"0"}"#),
    ] {
        let places = places.map(|place| place.parse::<Place>().unwrap());
        let mut headers = headers(content_type);
        headers.push(("x".to_owned(), "h".to_owned()));
        let mut body = body.as_bytes().to_vec();
        let changed =
            replace_all(&[&places[0], &places[1]], &mut headers, &mut body, &mut |number, _| Some(number.to_string()));
        assert_eq!((changed, std::str::from_utf8(&body).unwrap()), (Ok(true), expected));
        assert_eq!(
            headers[1].1,
            if expected.contains("\"1\"") && places[0].to_string() == "header:x" { "0" } else { "h" }
        );
    }
}

#[test]
fn a_value_that_is_written_does_not_decide_about_another_place() {
    // Too many values for memory, if it were parsed again.
    let huge = "{".repeat(1 << 20);
    let places = ["json:/a", "json:/b"].map(|place| place.parse::<Place>().unwrap());
    let (mut headers, mut body) = (headers("application/json"), br#"{"a":"v","b":"w"}"#.to_vec());
    let values = [huge.as_str(), "x"];
    let changed = replace_all(&[&places[0], &places[1]], &mut headers, &mut body, &mut |number, value| {
        assert_eq!(value, ["v", "w"][number]);
        Some(values[number].to_owned())
    });
    assert_eq!(changed, Ok(true));
    assert_eq!(body.len(), r#"{"a":"","b":"x"}"#.len() + huge.len());
}

#[test]
fn a_value_is_judged_for_its_place_without_a_message() {
    for (place, value, fits) in [
        ("header:x", "a b", true),
        ("header:x", "a\r\nb", false),
        ("cookie:x", "a;b", false),
        ("xml:E", "\u{1}", false),
        ("xml:E", "\n\u{e4}", true),
        ("json:/a", "\u{1}", true),
        ("form:a", "\u{1}", true),
        ("part:a", "\u{1}", true),
        ("body", "\u{1}", true),
    ] {
        assert_eq!(place.parse::<Place>().unwrap().check_value(value).is_ok(), fits, "{place} {value:?}");
    }
}

#[test]
fn objects_are_read_as_values_only_when_asked_for() {
    let headers = headers("application/json");
    let message = Message { headers: &headers, body: br#"{"a":{"b":[1]},"c":"v"}"# };
    let value = |place: &str| place.parse::<Place>().unwrap().read_value(&message).unwrap();
    assert_eq!(value("json:/a"), Some(serde_json::json!({"b": [1]})));
    assert_eq!(value("json:/c"), Some(serde_json::json!("v")));
    assert_eq!(value("json:/d"), None);
    assert_eq!(value("header:content-type"), Some(serde_json::json!("application/json")));
}

#[test]
fn an_invalid_place_is_refused_with_a_description_of_valid_places() {
    for (text, why) in [
        ("", "one of `header:NAME`"),
        ("json", "one of"),
        ("query:x", "one of"),
        ("Body", "one of"),
        ("json:", "starts with `/`"),
        ("json:a", "starts with `/`"),
        ("json:/a~2", "`~0`"),
        ("json:/a~", "`~0`"),
        ("header:", "header's name"),
        ("header:a b", "header's name"),
        ("header:a\r\nb", "header's name"),
        ("cookie:a=b", "cookie's name"),
        ("form:", "must not be empty"),
        ("part:a\"b", "quotes"),
        ("form:a\u{202e}b", "invisible"),
        ("json:/a\u{200b}", "invisible"),
        ("xml:p:E", "local name"),
        ("xml:a/b", "local name"),
        ("xml:/", "local name"),
        ("xml:/a/", "local name"),
        ("xml:/a//b", "local name"),
        ("xml:/a/p:b", "local name"),
        ("xml:1", "local name"),
    ] {
        let error = text.parse::<Place>().unwrap_err().to_string();
        assert!(error.contains(why) && error.starts_with(&format!("`{text}`: ")), "{error}");
    }
}

#[test]
fn errors_quote_no_part_of_the_message() {
    let headers = headers("application/json");
    for body in [r#"{"hush":1,"hush":2}"#, r#"{"hush": hush}"#, r#"hush at line "#, "{\"a\":\"hush\nhush\"}"] {
        let error = Place::Json(vec!["a".into()]).read(&Message { headers: &headers, body: body.as_bytes() });
        assert!(!format!("{:?}", error.unwrap_err()).contains("hush"), "{body}");
    }
}

fn kinds() -> impl Strategy<Value = Place> {
    prop_oneof![
        "[a-z0-9-]{1,12}".prop_map(Place::Header),
        prop::collection::vec("[^\\p{C}\\p{Zl}\\p{Zp}]{0,8}", 1..4).prop_map(Place::Json),
        "[^\\p{C}\\p{Zl}\\p{Zp}\"\\\\]{1,12}".prop_map(Place::Form),
        "[A-Za-z_][A-Za-z0-9_.-]{0,9}".prop_map(Place::Xml),
        "(/[A-Za-z_][A-Za-z0-9_.-]{0,3}){1,3}".prop_map(Place::Xml),
        "[^\\p{C}\\p{Zl}\\p{Zp}\"\\\\]{1,12}".prop_map(Place::Part),
        "[A-Za-z0-9_.-]{1,12}".prop_map(Place::Cookie),
        Just(Place::Body),
    ]
}

proptest! {
    #[test]
    fn a_place_prints_as_it_was_parsed(place in kinds()) {
        prop_assert_eq!(place.to_string().parse::<Place>(), Ok(place));
    }

    #[test]
    fn any_text_written_is_read_back(value in "\\PC{0,40}", place in 0..5usize) {
        let (place, content_type, body) = [
            ("json:/a", "application/json", r#"{"a":"v"}"#),
            ("form:f", FORM, "f=v"),
            ("xml:E", "text/xml", "<E>v</E>"),
            ("part:n", MULTI, "--b0\r\nContent-Disposition: form-data; name=n\r\n\r\nv\r\n--b0--"),
            ("body", "", "v"),
        ][place];
        let place: Place = place.parse().unwrap();
        let mut headers = headers(content_type);
        let mut body = body.as_bytes().to_vec();
        prop_assert_eq!(place.replace(&mut headers, &mut body, &mut |_| Some(value.clone())), Ok(true));
        if !(body.is_empty()) {
            prop_assert_eq!(place.read(&Message { headers: &headers, body: &body }), Ok(Some(value)));
        }
    }

    #[test]
    fn places_never_panic_on_any_message(
        place in kinds(),
        content_type in prop_oneof![Just(FORM), Just(MULTI), Just("application/json"), Just("text/xml"), Just("")],
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            "[<>/!?a-c\\[\\]&;#x0-9 =\"-]{0,40}".prop_map(String::into_bytes),
            "(--b0|\r\n|Content-Disposition: form-data; name=|a|--){0,9}".prop_map(String::into_bytes),
            "[a-c=&%0-9+\\[{\"':,]{0,40}".prop_map(String::into_bytes),
        ],
    ) {
        let mut headers = headers(content_type);
        let mut written = body.clone();
        let read = place.read(&Message { headers: &headers, body: &body });
        let replaced = place.replace(&mut headers, &mut written, &mut |_| None);
        prop_assert_eq!(replaced.is_err(), read.is_err());
        prop_assert_eq!(written, body);
    }
}
