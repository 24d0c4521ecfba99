//! The published vectors of version 4 signatures; `vectors.json` says where they come from.

use serde::Deserialize;
use wasm_cpi_sigv4::{PathRules, Request, Scope, SigningKey, sha256_hex};

#[derive(Deserialize)]
struct Suite {
    access_key_id: String,
    secret_access_key: String,
    timestamp: String,
    region: String,
    service: String,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    method: String,
    path: String,
    query: String,
    /// The headers to sign.
    headers: Vec<(String, String)>,
    body: String,
    encodes_twice: bool,
    normalizes: bool,
    canonical: String,
    /// Two vectors have only a canonical form.
    string_to_sign: Option<String>,
    signature: Option<String>,
}

#[test]
fn canonical_forms_and_signatures_are_those_of_the_vectors() {
    let suite: Suite = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let Suite { access_key_id, secret_access_key, timestamp, region, service, vectors } = &suite;
    let scope = Scope { timestamp, region, service };
    let key = SigningKey::derive(secret_access_key, &scope);
    for vector in vectors {
        let name = &vector.name;
        let headers: Vec<(&str, &str)> = vector.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let request = Request {
            method: &vector.method,
            path: &vector.path,
            path_rules: PathRules { encodes_twice: vector.encodes_twice, normalizes: vector.normalizes },
            query: &vector.query,
            headers: &headers,
            payload_sha256: &sha256_hex(vector.body.as_bytes()),
        };
        assert_eq!(request.canonical(), vector.canonical, "{name}");
        let Some(signature) = &vector.signature else { continue };
        assert_eq!(Some(request.string_to_sign(&scope)), vector.string_to_sign, "{name}");
        let value = request.authorization(access_key_id, &key, &scope);
        assert!(value.ends_with(&format!(", Signature={signature}")), "{name}: {value}");
        assert!(value.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "));
    }
    assert_eq!(vectors.iter().filter(|vector| vector.signature.is_some()).count(), 38);
    assert_eq!(vectors.len(), 40);
}
