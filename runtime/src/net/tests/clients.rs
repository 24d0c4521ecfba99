use super::handshakes::{Authority, trusted};
use super::run;
use super::server::{Server, response};
use crate::limits::Limits;
use crate::limits::NamedLimit;
use crate::net::client::{HostClient, HostRequest};
use crate::net::error::HttpErrorKind;
use std::time::{Duration, Instant};
use wasm_cpi_policy::secret::Secret;

const SETTING: &str = "registry.ca";

fn get(url: &str) -> HostRequest<'_> {
    HostRequest {
        method: "GET",
        url,
        basic: None,
        body: None,
        deadline: Instant::now() + Duration::from_secs(5),
        max_body_bytes: 100,
        body_limit: NamedLimit { name: "registry_kib", value: 1 },
    }
}

#[test]
fn a_request_with_basic_auth_returns_status_and_body() {
    let server = Server::answering(response("404 Not Found", "", "nothing"));
    let client = HostClient::new(SETTING, None, &Limits::default()).unwrap();
    let password = Secret::new("pass:word");
    let body = Some(br#"{"a":1}"#.to_vec());
    let (url, basic) = (server.url("/instances/x"), Some(("user", &password)));
    let got = run(client.request(HostRequest { method: "PUT", basic, body, ..get(&url) }));
    assert_eq!(got.unwrap(), (404, b"nothing".to_vec()));
    let seen = &server.requests()[0];
    assert_eq!(seen.line(), "PUT /instances/x HTTP/1.1");
    assert_eq!(seen.header("authorization"), Some("Basic dXNlcjpwYXNzOndvcmQ="));
    assert_eq!(
        (seen.body.as_slice(), seen.header("content-type")),
        (br#"{"a":1}"#.as_slice(), Some("application/json"))
    );
    let error = run(client.request(HostRequest { max_body_bytes: 3, ..get(&url) })).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Limit("registry_kib"));
}

#[test]
fn the_ca_is_a_pem_text_or_the_path_of_a_file() {
    let authority = Authority::new();
    let server = trusted(&authority, "localhost", |_, wire| wire.write_all(&response("200 OK", "", "hi")).unwrap());
    let url = format!("https://localhost:{}/", server.address.port());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, authority.pem()).unwrap();
    // Do not depend on the umask: a file that others can write is refused.
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    for ca in [authority.pem(), path.display().to_string()] {
        let client = HostClient::new(SETTING, Some(&ca), &Limits::default()).unwrap();
        assert_eq!(run(client.request(get(&url))).unwrap(), (200, b"hi".to_vec()));
    }
    let client = HostClient::new(SETTING, None, &Limits::default()).unwrap();
    assert_eq!(run(client.request(get(&url))).unwrap_err().kind, HttpErrorKind::Tls);
    let error = HostClient::new(SETTING, Some("/nonexistent/ca.pem"), &Limits::default()).err().unwrap();
    assert!(
        error.to_string().starts_with("config: `registry.ca`: the file /nonexistent/ca.pem cannot be read"),
        "{error}"
    );
}

#[test]
fn the_error_of_an_invalid_configured_url_names_the_config() {
    let client = HostClient::new(SETTING, None, &Limits::default()).unwrap();
    for url in ["", "registry:25777", "ftp://a.test/", "http://u:p@a.test/"] {
        let error = run(client.request(get(url))).unwrap_err();
        assert!(error.kind == HttpErrorKind::InvalidRequest && error.message.starts_with("config: "), "{url}: {error}");
    }
}
