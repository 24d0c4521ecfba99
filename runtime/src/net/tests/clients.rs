use super::handshakes::{Authority, trusted};
use super::run;
use super::server::{Server, response};
use crate::limits::Limits;
use crate::net::client::HostClient;
use crate::net::error::HttpErrorKind;
use std::time::{Duration, Instant};
use wasm_cpi_policy::secret::Secret;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

#[test]
fn a_request_with_basic_auth_returns_status_and_body() {
    let server = Server::answering(response("404 Not Found", "", "nothing"));
    let client = HostClient::new(None, &Limits::default()).unwrap();
    let password = Secret::new("pass:word");
    let body = Some(br#"{"a":1}"#.to_vec());
    let got = run(client.request("PUT", &server.url("/instances/x"), Some(("user", &password)), body, soon(), 100));
    assert_eq!(got.unwrap(), (404, b"nothing".to_vec()));
    let seen = &server.requests()[0];
    assert_eq!(seen.line(), "PUT /instances/x HTTP/1.1");
    assert_eq!(seen.header("authorization"), Some("Basic dXNlcjpwYXNzOndvcmQ="));
    assert_eq!(
        (seen.body.as_slice(), seen.header("content-type")),
        (br#"{"a":1}"#.as_slice(), Some("application/json"))
    );
    let error = run(client.request("GET", &server.url("/"), None, None, soon(), 3)).unwrap_err();
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
        let client = HostClient::new(Some(&ca), &Limits::default()).unwrap();
        assert_eq!(run(client.request("GET", &url, None, None, soon(), 100)).unwrap(), (200, b"hi".to_vec()));
    }
    let client = HostClient::new(None, &Limits::default()).unwrap();
    assert_eq!(run(client.request("GET", &url, None, None, soon(), 100)).unwrap_err().kind, HttpErrorKind::Tls);
    let error = HostClient::new(Some("/nonexistent/ca.pem"), &Limits::default()).err().unwrap();
    assert!(error.to_string().starts_with("config: the file /nonexistent/ca.pem cannot be read"), "{error}");
}

#[test]
fn the_error_of_an_invalid_configured_url_names_the_config() {
    let client = HostClient::new(None, &Limits::default()).unwrap();
    for url in ["", "registry:25777", "ftp://a.test/", "http://u:p@a.test/"] {
        let error = run(client.request("GET", url, None, None, soon(), 100)).unwrap_err();
        assert!(error.kind == HttpErrorKind::InvalidRequest && error.message.starts_with("config: "), "{url}: {error}");
    }
}
