//! Signs random requests with the crate `aws-sigv4` as well.

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use proptest::prelude::*;
use std::time::{Duration, UNIX_EPOCH};
use wasm_cpi_sigv4::{PathRules, Request, Scope, SigningKey, sha256_hex};

/// 2015-08-30T12:36:00Z.
const SECONDS: u64 = 1_440_938_160;
const TIMESTAMP: &str = "20150830T123600Z";
const HOST: &str = "api.region.example.com";

#[derive(Debug, Clone)]
struct Case {
    method: &'static str,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    secret: String,
    token: Option<String>,
    service: &'static str,
}

/// Texts as they stand in a URL: unreserved characters, other allowed ones, and complete escapes.
fn url_text() -> impl Strategy<Value = String> {
    let escaped = |c: char| c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let piece = prop_oneof![
        4 => "[A-Za-z0-9._~-]{1,4}",
        1 => "[:@!$'()*,]",
        1 => any::<char>().prop_map(escaped),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

/// The other implementation takes the paths of object storage as they are. So they must be in the form that the
/// service computes.
fn object_path(path: &str) -> String {
    path.chars().filter(|c| c.is_ascii_alphanumeric() || "/._~-".contains(*c)).collect()
}

fn case() -> impl Strategy<Value = Case> {
    let path = proptest::collection::vec(url_text(), 0..4).prop_map(|segments| format!("/{}", segments.join("/")));
    let parameter = (url_text().prop_filter("a name", |name| !name.is_empty()), url_text());
    let query = proptest::collection::vec(parameter.prop_map(|(name, value)| format!("{name}={value}")), 0..4);
    let header = ("x-[a-c]{1,2}", "[!-~]{0,4}( {1,3}[!-~]{1,4}){0,2}");
    (
        prop_oneof![Just("GET"), Just("POST"), Just("PUT")],
        path,
        query.prop_map(|parameters| parameters.join("&")),
        proptest::collection::vec(header, 0..4),
        proptest::collection::vec(any::<u8>(), 0..40),
        "[A-Za-z0-9/+]{40}",
        proptest::option::of("[A-Za-z0-9/+=]{16,64}"),
        prop_oneof![Just("compute"), Just("s3")],
    )
        .prop_map(|(method, path, query, headers, body, secret, token, service)| Case {
            method,
            path: if service == "s3" { object_path(&path) } else { path },
            query,
            headers,
            body,
            secret,
            token,
            service,
        })
}

fn own(case: &Case) -> String {
    let scope = Scope { timestamp: TIMESTAMP, region: "eu-central-1", service: case.service };
    let mut headers = vec![("host", HOST), ("x-amz-date", TIMESTAMP)];
    headers.extend(case.token.iter().map(|token| ("x-amz-security-token", token.as_str())));
    headers.extend(case.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let request = Request {
        method: case.method,
        path: &case.path,
        path_rules: PathRules::of_service(case.service),
        query: &case.query,
        headers: &headers,
        payload_sha256: &sha256_hex(&case.body),
    };
    request.authorization("AKIDEXAMPLE", &SigningKey::derive(&case.secret, &scope), &scope)
}

fn others(case: &Case) -> String {
    let identity = Credentials::new("AKIDEXAMPLE", case.secret.as_str(), case.token.clone(), None, "test").into();
    let mut settings = SigningSettings::default();
    if case.service == "s3" {
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    }
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region("eu-central-1")
        .name(case.service)
        .time(UNIX_EPOCH + Duration::from_secs(SECONDS))
        .settings(settings)
        .build()
        .unwrap()
        .into();
    let query = if case.query.is_empty() { String::new() } else { format!("?{}", case.query) };
    let headers = case.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let url = format!("https://{HOST}{}{query}", case.path);
    let request = SignableRequest::new(case.method, url, headers, SignableBody::Bytes(&case.body)).unwrap();
    let (instructions, _) = sign(request, &params).unwrap().into_parts();
    let value = instructions.headers().find(|(name, _)| *name == "authorization").map(|(_, value)| value.to_owned());
    value.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_requests_have_the_same_signature(case in case()) {
        prop_assert_eq!(own(&case), others(&case));
    }
}
