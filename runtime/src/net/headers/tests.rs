use super::*;
use proptest::prelude::*;
use wasm_cpi_policy::secret::{Layer, Secret};

fn one(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), value.to_owned())]
}

#[test]
fn only_known_methods_in_upper_case_pass() {
    for text in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        assert_eq!(method(text).unwrap(), text);
    }
    for text in ["", "get", "CONNECT", "TRACE", "GET ", "GET /x HTTP/1.1\r\n", "BREW", "G\u{117}T"] {
        assert_eq!(method(text).unwrap_err().kind, HttpErrorKind::InvalidRequest, "{text}");
    }
}

#[test]
fn framing_headers_and_malformed_headers_are_invalid() {
    let invalid = [
        ("Host", "evil.test"),
        ("HOST", "evil.test"),
        (":authority", "evil.test"),
        ("Content-Length", "5"),
        ("Content-Length", "+5"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "keep-alive"),
        ("Upgrade", "h2c"),
        ("TE", "trailers"),
        ("Trailer", "X"),
        ("Expect", "100-continue"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authorization", "Basic x"),
        ("Proxy-Anything", "x"),
        ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"),
        ("", "x"),
        ("X Y", "x"),
        ("X:Y", "x"),
        ("X\r\nY", "x"),
        ("X\u{e9}", "x"),
        ("X", "a\r\nHost: evil.test"),
        ("X", "a\nb"),
        ("X", "a\0b"),
        ("X", "a\u{7f}b"),
        ("X", "a\u{85}b"),
    ];
    for (name, value) in invalid {
        let error = check(&one(name, value), &Limits::default()).unwrap_err();
        assert_eq!((error.kind, error.sent), (HttpErrorKind::InvalidRequest, false), "{name:?}: {value:?}");
        assert!(error.message.starts_with("guest: ") && !error.message.contains("evil"), "{error}");
    }
    for (name, value) in [("X-A", "b c\td"), ("Content-Type", "text/plain; charset=utf-8"), ("x", ""), ("X", "\u{e9}")]
    {
        check(&one(name, value), &Limits::default()).unwrap();
        assert_eq!(to_map(&one(name, value)).unwrap().len(), 1);
    }
}

#[test]
fn too_many_or_too_large_headers_reach_their_limit() {
    let limits = Limits { http_headers: 3, header_kib: 1, ..Limits::default() };
    let many: Vec<_> = (0..10_000).map(|n| (format!("x-{n}"), String::new())).collect();
    assert_eq!(check(&many, &limits).unwrap_err().kind, HttpErrorKind::Limit("http_headers"));
    assert_eq!(check(&one("x", &"a".repeat(1 << 20)), &limits).unwrap_err().kind, HttpErrorKind::Limit("header_kib"));
    check(&many[..3], &limits).unwrap();
}

fn rules(secrets: bool) -> HeaderRules<'static> {
    let exposure = Exposure { sends_secrets: secrets, hides_values: secrets };
    HeaderRules { grant: "compute", exposure, auth: secrets.then_some("x-key"), slots: vec!["x-slot"], signed: None }
}

#[test]
fn credentials_of_the_guest_are_denied_if_the_grant_sends_its_own() {
    let vault = Vault::new();
    let seal = vault.seal("password", Secret::new("correct horse battery"), Layer::Job);
    let denied = |header: (&str, &str), query: Option<&str>, secrets: bool| match check_credentials(
        &one(header.0, header.1),
        query,
        "/v1/x",
        b"",
        &rules(secrets),
        &vault,
    ) {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error.kind, HttpErrorKind::Denied(DenialReason::Header));
            assert!(error.message.starts_with("policy: ") && !error.message.contains("hunter2"), "{error}");
            true
        }
    };
    // Name, denied if the grant has no secrets, denied if it has some.
    for (name, plain, secret) in [
        ("Authorization", true, true),
        ("authorization", true, true),
        ("Cookie", false, true),
        ("X-Auth-Token", false, true),
        ("X-Amz-Date", false, true),
        ("x-goog-user-project", false, true),
        ("Accept-Encoding", true, true),
        ("Range", true, true),
        ("Request_Range", true, true),
        ("X.Range", true, true),
        ("X.HTTP.Method.Override", true, true),
        ("X-HTTP~Method-Override", true, true),
        ("X!Original|URL", true, true),
        ("X-Method", true, true),
        ("Method", true, true),
        ("X.Auth.Token", false, true),
        ("X'Key", false, true),
        ("If.Match", true, true),
        ("x-ms-range", true, true),
        ("A-IM", true, true),
        ("If", true, true),
        ("If-None-Match", true, true),
        ("X-Source-If-Match", true, true),
        ("Accept-Charset", true, true),
        ("Content-Range", false, false),
        ("X-Arrange", false, false),
        ("X-Impersonate-User", true, true),
        ("X_WebAuth_User", true, true),
        ("X-Auth-Request-Email", true, true),
        ("X-SSL-Client-CN", true, true),
        ("SSL-Client-Cert", true, true),
        ("X-Trino-User", true, true),
        ("Fastly-Client-IP", true, true),
        ("X-Copy-From", true, true),
        ("x-ms-copy-source", true, true),
        ("Destination", true, true),
        ("X-Destinations", false, false),
        ("X-Key", false, true),
        ("X-Slot", true, true),
        ("Accept", false, true),
        ("Content-Type", false, false),
        ("X-Amzn", false, false),
        ("Private-Token", false, true),
        ("X_Api_Key", false, true),
        ("X-Service-Token", false, true),
        ("X-Vault-Token", false, true),
        ("X-Consul-Token", false, true),
        ("X-CSRF-Token", false, false),
        ("Idempotency-Key", false, false),
        ("es-security-runas-user", true, true),
        ("X-Authenticated-User", true, true),
        ("X-Consumer-Username", true, true),
        ("X-MS-CLIENT-PRINCIPAL-NAME", true, true),
        ("X-Amzn-Oidc-Identity", true, true),
        ("On-Behalf-Of", true, true),
        ("X-Script-Name", true, true),
    ] {
        assert_eq!(denied((name, "hunter2"), None, false), plain, "{name} without secrets");
        assert_eq!(denied((name, "hunter2"), None, true), secret, "{name} with secrets");
    }
    assert!(!denied(("X-Slot", &seal), None, true));
    assert!(!denied(("If-None-Match", "*"), None, true));
    for (accept, chooses) in [
        ("application/json", false),
        ("application/json;q=1, text/html; level=1", false),
        ("application/json;charset=utf-16", true),
        ("text/html, application/json; CharSet=\"utf-8\"", true),
    ] {
        assert_eq!(denied(("ACCEPT", accept), None, false), chooses, "{accept}");
    }
    for (query, with_secrets) in [
        ("token=hunter2", true),
        ("a=b&Access_Token=hunter2", true),
        ("a=b&%61pi_key=hunter2", true),
        ("X-Amz-Signature=hunter2", true),
        ("sig=hunter2", true),
        ("x=1;access_token=hunter2", true),
        ("%u0074oken=hunter2", true),
        ("token%00x=hunter2", true),
        ("+token%5B%5D=hunter2", true),
        ("x=%u0026token=hunter2", true),
        ("sudo=hunter2", true),
        ("private_token=hunter2", true),
        ("api_token=hunter2", true),
        ("access_key=hunter2", true),
        ("run_as=hunter2", true),
        ("http_method=DELETE", true),
        ("X-Method-Override=DELETE", true),
        ("Method=hunter2", true),
        ("a=%3Btoken&b=%E4", false),
        ("payment_method=x&sudoer=1", false),
        ("a=token&tokens=1&sort_key=x", false),
        ("", false),
    ] {
        assert!(!denied(("x-other", "x"), Some(query), false), "{query}");
        assert_eq!(denied(("x-other", "x"), Some(query), true), with_secrets, "{query}");
    }
}

#[test]
fn debug_output_of_headers_shows_no_value() {
    assert!(!format!("{:?}", to_map(&one("x-a", "hunter2")).unwrap()).contains("hunter2"));
}

proptest! {
    #[test]
    fn headers_that_pass_the_check_can_be_converted(name in "\\PC{0,12}|[a-zA-Z-]{1,8}", value in "\\PC{0,20}|[ -~\t]{0,20}|.{0,9}") {
        let headers = one(&name, &value);
        if check(&headers, &Limits::default()).is_ok() {
            prop_assert_eq!(to_map(&headers).unwrap().len(), 1);
        }
    }
}
