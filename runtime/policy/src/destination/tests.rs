use proptest::prelude::*;

use super::*;

const MAX: u64 = 8192;

fn parse(text: &str) -> Result<Destination, InvalidUrl> {
    Destination::parse(text, MAX)
}

#[test]
fn the_host_of_a_guests_url_must_be_ascii() {
    for (host, path) in [("b\u{fc}cher.test", "/"), ("\u{ff41}pi.iaas.test", "/"), ("api\u{3002}iaas.test:8443", "?x")]
    {
        let url = format!("https://{host}{path}");
        assert!(Destination::parse(&url, 8192).is_ok(), "{url}");
        let refused = Destination::from_guest(&url, 8192).unwrap_err();
        assert_eq!(refused.check(), Some(Check::UrlHostAscii), "{url}");
    }
    for url in ["https://xn--bcher-kva.test/\u{fc}?\u{fc}", "https://api.iaas.test/", "https://[::1]:8443/"] {
        assert_eq!(Destination::from_guest(url, 8192), Destination::parse(url, 8192), "{url}");
    }
}

#[test]
fn accepted_urls_have_one_canonical_form() {
    for (text, canonical) in [
        ("https://api.iaas.test/v1/x", "https://api.iaas.test/v1/x"),
        ("HTTPS://API.IAAS.TEST/v1/X", "https://api.iaas.test/v1/X"),
        ("https://api.iaas.test", "https://api.iaas.test/"),
        ("https://api.iaas.test?q", "https://api.iaas.test/?q"),
        ("https://api.iaas.test:443/v1", "https://api.iaas.test/v1"),
        ("http://api.iaas.test:443/v1", "http://api.iaas.test:443/v1"),
        ("https://api.iaas.test:8443/v1/x", "https://api.iaas.test:8443/v1/x"),
        ("https://api.iaas.test./v1/x", "https://api.iaas.test./v1/x"),
        ("https://.iaas.test/", "https://.iaas.test/"),
        ("https://a_b.iaas.test/", "https://a_b.iaas.test/"),
        ("https://bücher.test/", "https://xn--bcher-kva.test/"),
        ("https://xn--bcher-kva.test/", "https://xn--bcher-kva.test/"),
        ("https://api.iaas.test/v1/../../admin", "https://api.iaas.test/admin"),
        ("https://api.iaas.test/v1/%2e%2e/admin", "https://api.iaas.test/admin"),
        ("https://api.iaas.test/v1/%2E%2E/", "https://api.iaas.test/"),
        ("https://api.iaas.test/v1/.%2e/admin", "https://api.iaas.test/admin"),
        ("https://api.iaas.test/v1/./x/..", "https://api.iaas.test/v1/"),
        ("https://api.iaas.test/%7Euser/%41%2D%2e%5f", "https://api.iaas.test/~user/A-._"),
        ("https://api.iaas.test/a%20b%c3%a9é", "https://api.iaas.test/a%20b%C3%A9%C3%A9"),
        ("https://api.iaas.test/100%25", "https://api.iaas.test/100%25"),
        ("https://api.iaas.test/a;b=c/...;d", "https://api.iaas.test/a;b=c/...;d"),
        ("https://api.iaas.test/v1//x", "https://api.iaas.test/v1//x"),
        ("https://api.iaas.test/v1/x?y=https://evil.test", "https://api.iaas.test/v1/x?y=https://evil.test"),
        ("https://api.iaas.test/v1/x?a=%2f%00&b=../..", "https://api.iaas.test/v1/x?a=%2f%00&b=../.."),
        ("https://api.iaas.test/v1/x#fragment", "https://api.iaas.test/v1/x"),
        ("https://api.iaas.test/v1/x?q#@evil.test", "https://api.iaas.test/v1/x?q"),
        ("https://10.0.0.5/", "https://10.0.0.5/"),
        ("https://2130706433/", "https://127.0.0.1/"),
        ("https://0x7f000001/", "https://127.0.0.1/"),
        ("https://0177.0.0.1/", "https://127.0.0.1/"),
        ("https://127.1/", "https://127.0.0.1/"),
        ("https://0/", "https://0.0.0.0/"),
        ("https://[::1]/", "https://[::1]/"),
        ("https://[0:0::1]:8443/", "https://[::1]:8443/"),
        ("https://[::ffff:127.0.0.1]/", "https://127.0.0.1/"),
        ("https://[::ffff:7f00:1]:8443/", "https://127.0.0.1:8443/"),
        ("https://[::127.0.0.1]/", "https://[::7f00:1]/"),
    ] {
        let destination = parse(text).unwrap_or_else(|invalid| panic!("{text}: {invalid}"));
        assert_eq!(destination.to_url().as_str(), canonical, "{text}");
    }
}

#[test]
fn malformed_urls_are_invalid() {
    let label = format!("https://{}.test/", "a".repeat(64));
    let name = format!("https://{}/", vec!["a".repeat(49); 5].join(".") + ".test");
    let nul = "https://api.iaas.test/\0";
    for text in [
        "",
        "api.iaas.test",
        "api.iaas.test/v1",
        "/v1/x",
        "*",
        "//api.iaas.test/x",
        "https:",
        "https:/",
        "https://",
        "https:api.iaas.test",
        "https:/api.iaas.test",
        "https:///api.iaas.test/",
        "https://?x",
        "https://#x",
        "https://:443/",
        "1https://api.iaas.test/",
        ":https://api.iaas.test/",
        "https://api.iaas.test:0/",
        "https://api.iaas.test:00443/",
        "https://api.iaas.test:65536/",
        "https://api.iaas.test:/",
        "https://api.iaas.test:+443/",
        "https://api.iaas.test:-1/",
        "https://api.iaas.test:0x1bb/",
        "https://api.iaas.test:443:443/",
        "https://api.iaas.test:٤٤٣/",
        "https://user:pw@api.iaas.test/v1/x",
        "https://user@api.iaas.test/",
        "https://@api.iaas.test/",
        "https://api.iaas.test:443@evil.test/",
        "https://api%2eiaas.test/",
        "https://api.iaas.test%00/",
        "https://xn--/",
        "https://xn--a/",
        "https://xn--a.iaas.test/",
        "https://-a.test/",
        "https://a-.test/",
        "https://a*b.test/",
        "https://*.iaas.test/",
        "https://a,b.test/",
        "https://a／b.test/",
        "https://a％2eb.test/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[::1/",
        "https://[::1]x/",
        "https://[::1]:/",
        "https://[v1.x]/",
        "https://::1/",
        "https://256.0.0.1/",
        "https://1.2.3.4.5/",
        "https://0x100000000/",
        nul,
        "https://api.iaas.test/a b",
        "https://api.iaas.test/a\tb",
        "https://api.iaas.test/a\rb",
        "https://api.ia\nas.test/",
        "https://api.iaas.test/\u{85}",
        "https://api.iaas.test/\u{2028}",
        " https://api.iaas.test/",
        "https://api.iaas.test/ ",
        "https:\\\\api.iaas.test\\v1",
        "https://api.iaas.test\\@evil.test/",
        "https://api.iaas.test/v1/%2fadmin",
        "https://api.iaas.test/v1/%c0%ae%c0%ae/admin",
        "https://api.iaas.test/v1/%ff",
        "https://api.iaas.test/v1/..%2Fadmin",
        "https://api.iaas.test/v1/..%5cadmin",
        "https://api.iaas.test/v1/%252e%252e/admin",
        "https://api.iaas.test/v1/%25252fadmin",
        // Escapes that are undone make another one.
        "https://api.iaas.test/v1/%25%32%65%25%32%65%25%32%66admin",
        "https://api.iaas.test/v1/%252%66admin",
        "https://api.iaas.test/v1/%25%325fadmin",
        "https://api.iaas.test/v1/..%253b/admin",
        "https://api.iaas.test/v1/..;/admin",
        "https://api.iaas.test/v1/..;x=y/admin",
        "https://api.iaas.test/v1/%2e%2e%3b/admin",
        "https://api.iaas.test/v1/.;/admin",
        "https://api.iaas.test/v1/%00",
        "https://api.iaas.test/v1/%0d%0ax",
        "https://api.iaas.test/v1/%7f",
        "https://api.iaas.test/v1/%",
        "https://api.iaas.test/v1/%2",
        "https://api.iaas.test/v1/%zz",
        "https://api.iaas.test/v1/%é",
        label.as_str(),
        name.as_str(),
    ] {
        assert!(matches!(parse(text), Err(InvalidUrl::Form { .. })), "{text:?}: {:?}", parse(text));
    }
}

#[test]
fn names_of_full_length_are_valid() {
    let name = format!("{}.{}", vec!["a".repeat(49); 5].join("."), "abc");
    assert_eq!(name.len(), 253);
    assert!(parse(&format!("https://{name}/")).is_ok());
    assert!(parse(&format!("https://{}.test/", "a".repeat(63))).is_ok());
}

#[test]
fn other_schemes_are_distinguished_from_malformed_urls() {
    for (text, scheme) in [
        ("file:///etc/passwd", "file"),
        ("ftp://api.iaas.test/", "ftp"),
        ("gopher://api.iaas.test/", "gopher"),
        ("data:text/plain,x", "data"),
        ("ws://api.iaas.test/", "ws"),
        ("WSS://api.iaas.test/", "wss"),
        ("unix:/run/x.sock", "unix"),
        ("evil.test:443", "evil.test"),
        ("javascript:alert(1)", "javascript"),
    ] {
        assert_eq!(parse(text), Err(InvalidUrl::Scheme(scheme.into())), "{text}");
    }
}

#[test]
fn a_url_that_is_too_long_exceeds_a_limit() {
    let text = format!("https://api.iaas.test/{}", "a".repeat(1 << 20));
    assert_eq!(parse(&text), Err(InvalidUrl::TooLong { length: text.len(), limit: MAX }));
    assert!(Destination::parse("https://a.test/", 15).is_ok());
    assert!(Destination::parse("https://a.test/", 14).is_err());
}

#[test]
fn the_parts_are_those_of_the_canonical_form() {
    let destination = parse("HTTP://[::FFFF:10.0.0.5]:08443/").err();
    assert!(destination.is_some(), "a port with a leading zero");
    let destination = parse("http://API.iaas.test:8080/v1/%61?token=hunter2#x").unwrap();
    assert_eq!(destination.scheme(), Scheme::Http);
    assert_eq!(*destination.host(), Host::Name("api.iaas.test".into()));
    assert_eq!(destination.port(), 8080);
    assert_eq!(destination.path(), "/v1/a");
    assert_eq!(destination.query(), Some("token=hunter2"));
    assert_eq!(destination.origin(), "http://api.iaas.test:8080");
    assert_eq!(destination.host_header(), "api.iaas.test:8080");
    assert_eq!(parse("https://[fd01::1]/").unwrap().host_header(), "[fd01::1]");
}

#[test]
fn neither_display_nor_debug_shows_the_query() {
    let destination = parse("https://api.iaas.test/v1?token=hunter2").unwrap();
    assert_eq!(destination.to_string(), "https://api.iaas.test/v1");
    assert!(!format!("{destination:?}").contains("hunter2"));
}

proptest! {
    #[test]
    fn parsing_never_panics_and_the_canonical_form_is_stable(
        text in prop_oneof![
            r"\PC{0,60}",
            r"https?://[a-zA-Z0-9.\[\]:@%_*-]{0,20}(:[0-9]{0,6})?(/[a-z.%0-9A-F;*|^'é]{0,8}){0,4}(\?[a-z%&=]{0,5})?(#x)?",
        ]
    ) {
        if let Ok(destination) = parse(&text) {
            let again = parse(destination.to_url().as_str());
            prop_assert_eq!(again.as_ref(), Ok(&destination), "{}", text);
            prop_assert!(destination.path().starts_with('/'));
            prop_assert!(!destination.path().split('/').any(|segment| segment == "." || segment == ".."));
            prop_assert!(destination.to_string().is_ascii());
            let (url, host) = (destination.to_url(), destination.host().to_string());
            prop_assert_eq!(url.host_str(), Some(host.as_str()));
            prop_assert_eq!(url.port_or_known_default(), Some(destination.port()));
        }
    }
}
